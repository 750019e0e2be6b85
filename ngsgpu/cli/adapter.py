"""Commands of the command line, from the functions that declare their parameters.

The options, their help, the check of values and files, and the options that come with a role (CRAM
input takes ``--cram-reference``) follow from the declarations; see ``ngsgpu.declared``. Messages
have options in place of the parameters that the core names.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from ngsgpu.cli.files import checked_files, reads_cram
from ngsgpu.cli.help import WIDTH, Context, write_commands, write_options, write_text
from ngsgpu.cli.hints import no_command
from ngsgpu.cli.options import WORDS
from ngsgpu.declared.numbers import decimal_number, whole_number
from ngsgpu.declared.options import Option
from ngsgpu.declared.parameters import Parameter, arguments, parameters_of
from ngsgpu.declared.roles import Role
from ngsgpu.declared.values import as_options, check_value
from ngsgpu.errors import NgsgpuError, UsageError
from ngsgpu.lazy import registered

SETTINGS: Final[dict[str, Any]] = {
    "help_option_names": ["-h", "--help"],
    "show_default": True,
    "max_content_width": WIDTH,
}

_LARGEST: Final = {"threads": 4096, "seed": 2**63 - 1}
_LARGEST_USUAL: Final = 2**31 - 1

CRAM_REFERENCE: Final = Parameter(
    name="cram_reference",
    kind=str,
    is_list=False,
    is_tuple=False,
    role=Role.READ,
    option=Option(
        "FASTA by which CRAM input was compressed.", "FILE", shown_default="from its header"
    ),
    default=None,
)
"""An option of every command whose reads may be CRAM; it holds for all CRAM files."""


class Entry(NamedTuple):
    """A command, or a group of them, that is loaded when it is called.

    Attributes:
        place: ``module:function``, where modules that begin with a dot are below ``ngsgpu``, and
            others below ``ngsgpu.cli``; of a group ``module:COMMANDS``, a mapping of names to
            functions.
        summary: the first line of its help.
        group: heading under which it is listed.
    """

    place: str
    summary: str
    group: str = "Commands"

    def load(self, name: str) -> Command | Group:
        """Import it."""
        module, _, attribute = self.place.partition(":")
        full = f"ngsgpu{module}" if module.startswith(".") else f"ngsgpu.cli.{module}"
        found = getattr(importlib.import_module(full), attribute)
        if isinstance(found, Mapping):
            return Group({own: Command(own, run, name) for own, run in found.items()}, name=name)
        return Command(name, found)


class Group(click.Group):
    """Commands in the order in which they are declared, loaded when they are called.

    Args:
        entries: commands, or where they are, by their names, which may have two words.
        registry: group of entry points by which other packages add functions; empty: none.
        settings: for ``click.Group``.
    """

    context_class = Context

    def __init__(
        self, entries: Mapping[str, Command | Entry], *, registry: str = "", **settings: Any
    ) -> None:
        super().__init__(no_args_is_help=True, context_settings=SETTINGS, **settings)
        self.entries = entries
        self._registry = registry

    @cached_property
    def others(self) -> dict[str, Command | Entry]:
        """Commands of other packages; one that cannot be used is reported and left out."""
        found: dict[str, Command | Entry] = {}
        for name, place, function in registered(self._registry) if self._registry else ():
            try:
                if isinstance(function, Exception):
                    raise function
                if name in self.entries:
                    raise TypeError("there is one of this name")
                found[name] = Command(name, function)
            except Exception as error:  # others' code must not stop ours
                import logging

                said = logging.getLogger("ngsgpu")
                said.warning("command %s of %s cannot be used: %s", name, place, error)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in order."""
        return [*self.entries, *self.others]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of this name."""
        found = self.entries.get(cmd_name) or self.others.get(cmd_name)
        if not isinstance(found, Entry):
            return found
        loaded = found.load(cmd_name)
        if isinstance(loaded, Group):
            loaded.help = found.summary
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by its first two words, or else by the first."""
        name = " ".join(args[:2])
        if name in self.entries and len(args) > 1:
            return name, self.get_command(ctx, name), args[2:]
        if args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            raise UsageError(no_command(ctx.command_path, args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        groups: dict[str, dict[str, str]] = {}
        for name, found in {**self.entries, **self.others}.items():
            if isinstance(found, Entry):
                groups.setdefault(found.group, {})[name] = found.summary
            else:
                heading = "Of other packages" if name in self.others else "Commands"
                first = (found.help or "").partition("\n\n")[0]
                groups.setdefault(heading, {})[name] = " ".join(first.split())
        write_commands(groups, formatter)


def commands_below(group: Group, name: str = "") -> Iterator[tuple[str, Command | Group]]:
    """All groups and commands of a group, with the names by which they are called, in order."""
    for own in group.entries:
        found = group.get_command(click.Context(group), own)
        assert isinstance(found, Command | Group)
        full = f"{name} {own}".strip()
        yield full, found
        if isinstance(found, Group):
            yield from commands_below(found, full)


class Command(click.Command):
    """A command, from the function that runs it.

    The function returns None, or an exit status.

    Args:
        name: of the command.
        function: what it does; its docstring is the help.
        group: name of the group it is in.
    """

    context_class = Context

    def __init__(self, name: str, function: Callable[..., Any], group: str = "") -> None:
        self.function = function
        self.full_name = f"{group} {name}".strip()
        self.parameters = parameters_of(function)
        if reads_cram(self.parameters):
            self.parameters.append(CRAM_REFERENCE)
        # Of a program that a command starts, everything from its name on is the program's.
        own: dict[str, Any] = {
            "allow_interspersed_args": getattr(function, "takes_program", None) is None
        }
        if getattr(function, "underscores", False):
            own["token_normalize_func"] = lambda name: name.replace("_", "-")
        super().__init__(
            name=name,
            callback=self._run,
            params=[_click_parameter(parameter) for parameter in self.parameters],
            help=inspect.getdoc(function),
            context_settings=SETTINGS | own,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; before, refuse options of another program for which there is a text."""
        for pattern, text in getattr(self.function, "refused", {}).items():
            for number, word in enumerate(args):
                # The last word may be -h for help.
                if re.fullmatch(pattern, word) and not (word == "-h" and args[number:] == ["-h"]):
                    raise UsageError(text)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, and examples as they are typed."""
        write_text(self.help or "", formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of arguments, then that of options, in groups."""
        own = [parameter for parameter in self.params if isinstance(parameter, Argument)]
        if rows := [parameter.summary_record() for parameter in own if parameter.summary]:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        write_options(self.parameters, self.get_params(ctx), ctx, formatter)

    def prepare(self, words: Iterable[str]) -> click.Context:
        """Check the words of a run, except for its files; ``invoke`` runs what it gives back.

        Raises:
            UsageError: an option has a value that it does not take.
            click.UsageError: there is no such option, or one is missing.
        """
        words = [*words]
        context = self.make_context(self.full_name, [*words])
        context.meta[WORDS] = [*self.full_name.split(), *words]
        with context, options_named(self.parameters):
            values = self._values(context.params)
            self._check_ranges(values)
            arguments(self.function, values, _given())
        return context

    def rehearse(self, words: Iterable[str]) -> None:
        """Do what a run does before it reads, such as all checks.

        Raises:
            NgsgpuError: what the run would refuse.
            click.UsageError: as of ``prepare``.
        """
        from ngsgpu.run.rehearsal import rehearsal

        with rehearsal(), self.prepare(words) as context:
            self.invoke(context)

    def _run(self, **given: Any) -> Any:
        values = self._values(given)
        with options_named(self.parameters):
            self._check_ranges(values)
            with checked_files(self.full_name, self.parameters, values):
                return self.function(**arguments(self.function, values, _given()))

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {own.name: _value_of(own, given[own.name]) for own in self.parameters}

    def _check_ranges(self, values: Mapping[str, Any]) -> None:
        for parameter in self.parameters:
            _check(parameter, values[parameter.name])


def _given() -> set[str]:
    """Names of the parameters on the command line."""
    context = click.get_current_context()
    names = context.params
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in names if context.get_parameter_source(name) is source}


class _Values(click.ParamType[Any]):
    """A value, or several with commas between, or a word that stands for None."""

    name = "value"

    def __init__(self, word: str | None, kind: type, is_tuple: bool) -> None:
        self._word, self._is_tuple = word, is_tuple
        self._kind = _click_type(kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value or a tuple of them; None for the word."""
        if value == self._word:
            return None
        try:
            if not self._is_tuple:
                return self._kind.convert(value, param, ctx)
            return tuple(self._kind.convert(own, param, ctx) for own in value.split(",") if own)
        except click.BadParameter:
            name = max(param.opts, key=len) if param is not None else ""
            word = "" if self._word is None else f"{self._word} or "
            wanted = "numbers with commas between" if self._is_tuple else "a number"
            raise UsageError(f"{name} must be {word}{wanted}, not {value!r}") from None


class _Whole(click.types.IntParamType):
    """A whole number, of the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        try:
            return whole_number(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)


class _Decimal(click.types.FloatParamType):
    """A number, of the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        try:
            return decimal_number(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a valid float.", param, ctx)


def _click_type(kind: Any) -> Any:
    return {int: _Whole(), float: _Decimal()}.get(kind) or click.types.convert_type(kind)


class Argument(click.Argument):
    """An argument with a help, its ``summary``."""

    def __init__(self, *names: Any, summary: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.summary = summary

    def make_metavar(self, ctx: click.Context) -> str:
        """Name in the usage, in brackets if it may be left out."""
        name = self.metavar or ""
        return name if self.required else f"[{name}]"

    def summary_record(self) -> tuple[str, str]:
        """Line of the help."""
        return self.metavar or "", self.summary + ("  [required]" if self.required else "")


def _click_parameter(parameter: Parameter) -> click.Parameter:
    declared, required = parameter.option, parameter.default is ...
    kind: Any = _click_type(str if parameter.kind is Path else parameter.kind)
    if declared.word is not None or parameter.is_tuple:
        kind = _Values(declared.word, parameter.kind, parameter.is_tuple)
    common: dict[str, Any] = {
        "required": required,
        "metavar": declared.metavar or None,
        "type": kind,
    }
    if not (required or parameter.is_list):  # click takes None for the default of what is required
        common["default"] = _shown(parameter)
    if declared.is_argument:
        many = -1 if parameter.is_list else 1
        return Argument([parameter.name], nargs=many, summary=declared.help, **common)
    if parameter.kind is bool:
        common |= {"is_flag": True, "type": None}
    if declared.alone is not None:
        common |= {"is_flag": False, "flag_value": declared.alone}
    return click.Option(
        [parameter.name, *parameter.names],
        multiple=parameter.is_list,
        help=declared.help,
        show_default=declared.shown_default or _shown(parameter) not in (None, ""),
        envvar=declared.environment,
        show_envvar=declared.environment is not None,
        **common,
    )


def _shown(parameter: Parameter) -> Any:
    """The default as the command line takes it."""
    default = parameter.default
    if parameter.is_tuple and isinstance(default, tuple):
        return ",".join(map(str, default))
    return parameter.option.word if default is None else default


def _value_of(parameter: Parameter, given: Any) -> Any:
    """The value as the function gets it: lists, and None if a list is not given; paths."""
    if parameter.is_list:
        values = [Path(own) if parameter.kind is Path else own for own in given or ()]
        return values or (None if parameter.default is None else [])
    return Path(given) if parameter.kind is Path and given is not None else given


def _check(parameter: Parameter, value: Any) -> None:
    """Check the range of a value; a number that is too large to be meaningful has none."""
    if isinstance(value, list | tuple):
        for own in value:
            _check(parameter, own)
        return
    check_value(parameter.name, value, parameter.option)
    if parameter.option.most is not None:
        return
    largest = _LARGEST.get(parameter.name, _LARGEST_USUAL)
    if isinstance(value, int | float) and not abs(value) <= largest:
        raise UsageError(f"`{parameter.name}` must be at most {largest}, not {value}")


_named: Mapping[str, str] = {}
"""Options by the names of parameters, of the command that runs; threads share it."""


@contextlib.contextmanager
def options_named(parameters: Sequence[Parameter]) -> Iterator[None]:
    """Let messages name the options of a command, also those of errors that leave the block.

    Args:
        parameters: of the command.
    """
    global _named
    before, _named = _named, _options(parameters)
    try:
        yield
    except NgsgpuError as error:
        error.reword(as_typed)
        raise
    finally:
        _named = before


def as_typed(message: str) -> str:
    """A message of the core with the options of the command that runs."""
    message = as_options(message, _named)
    return as_options(message, _usual()) if "`" in message else message


def _options(parameters: Sequence[Parameter]) -> dict[str, str]:
    return {own.name: own.shown for own in parameters}


@cache
def _usual() -> dict[str, str]:
    """Options of correction, for messages of commands without them, such as `doctor`."""
    from ngsgpu.cli.stages.correct import correct

    return _options(parameters_of(correct))
