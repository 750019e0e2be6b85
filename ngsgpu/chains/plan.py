"""The words of each step: which files it reads and writes, and its options."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ngsgpu.chains.flow import Flow, Wiring, wiring_of
from ngsgpu.chains.steps import Step
from ngsgpu.cli.adapter import Command
from ngsgpu.declared.parameters import Parameter
from ngsgpu.declared.roles import Role
from ngsgpu.errors import InputError, NgsgpuError, UsageError
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.io.paths import is_stream

Find = Callable[[str], Command]
"""Finds a command by its full name."""

_OUTPUTS: Final = {Role.WRITTEN, Role.PREFIX, Role.MULTIQC}
_PLACEHOLDER: Final = "{sample}"
_OWN: Final = {"in1", "in2", "interleaved", "interleaved_in", "interleaved_out", "dry_run"}
"""Parameters that are the chain's to give."""


@dataclass(frozen=True)
class Planned:
    """A step with its command line.

    Attributes:
        step: the step.
        command: what runs.
        words: its command line.
        copies: files of reads for later steps that are also outputs of the chain, and their names.
        level: of their compression; None: that of the chain.
        outputs: files that it writes for good.
        last_use: files of reads that no later step reads.
        sheet: lines of a sample sheet that it reads, by the path of this.
        called: what messages call files between steps, by their paths.
    """

    step: Step
    command: Command
    words: list[str]
    copies: Mapping[str, str] = field(default_factory=dict)
    level: int | None = None
    outputs: tuple[str, ...] = ()
    last_use: tuple[str, ...] = ()
    sheet: Mapping[str, list[str]] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)

    def write_sheet(self) -> None:
        """Write the sample sheet.

        Raises:
            OutputError: it cannot be written.
        """
        for path, lines in self.sheet.items():
            write_text_atomically(path, "".join(f"{line}\n" for line in lines))


@dataclass(frozen=True)
class Chain:
    """What the plans of all samples have in common.

    Attributes:
        steps: in order.
        find: finds commands.
        common: options for every command that has them, by the names of parameters.
    """

    steps: Sequence[Step]
    find: Find
    common: Mapping[str, Any]

    def plan(self, reads: Flow, sample: str, out: Path, between: Path) -> list[Planned]:
        """Plan the steps of a sample, and check their options.

        Args:
            reads: of the sample.
            sample: its name.
            out: folder of the outputs.
            between: folder of the reads between two steps.

        Raises:
            UsageError: a step cannot be where it is, or has an option that it does not take.
        """
        wired = [wiring_of(step.command) for step in self.steps]
        writers = [number for number, (_, own) in enumerate(wired) if own.passes_on]
        flow, planned = reads, []
        for number, (step, (full, wiring)) in enumerate(zip(self.steps, wired, strict=True)):
            if step.keep is not None and not wiring.passes_on:
                raise _of_step(step, "it writes no reads; 'keep' is for steps that do")
            words = _Words(step, self.find(full), wiring, sample, out)
            is_read = number + 1 < len(self.steps)
            is_kept = number == writers[-1] if step.keep is None and writers else bool(step.keep)
            made = words.plan(flow, between, self.common, is_read=is_read, is_kept=is_kept)
            if wiring.passes_on:
                used = flow.files if flow is not reads else ()
                made, flow = replace(made, last_use=used), words.passed_on(flow)
            planned.append(made)
        if flow is not reads and flow.files[0].startswith(str(between)):
            planned[-1] = replace(planned[-1], last_use=(*planned[-1].last_use, *flow.files))
        return planned


def check_streams(planned: Sequence[Planned], inputs: Sequence[str]) -> None:
    """Refuse a chain of which two steps would read the same stream.

    Args:
        planned: the steps.
        inputs: files of the sample.

    Raises:
        UsageError: names the second step.
    """
    streams = {own for own in inputs if is_stream(own) or own == "-"}
    readers = [own for own in planned if streams & {word.partition("=")[2] for word in own.words}]
    for own in readers[1:]:
        raise _of_step(
            own.step,
            f"{readers[0].step.name} has read the stream of reads before; give files, or begin "
            "with a step that passes reads on",
        )


@contextmanager
def named(step: Step) -> Iterator[None]:
    """Name a step in the messages of errors, but of those that name a file of reads.

    Raises:
        UsageError: in place of one of click's.
    """
    import click

    try:
        yield
    except click.UsageError as error:
        raise _of_step(step, error.format_message()) from error
    except InputError:
        raise
    except NgsgpuError as error:
        error.reword(lambda text: f"step {step.name}: {text}")
        raise


def _of_step(step: Step, message: str) -> UsageError:
    return UsageError(f"step {step.name}: {message}")


class _Words:
    """Makes the command line of a step."""

    def __init__(
        self, step: Step, command: Command, wiring: Wiring, sample: str, out: Path
    ) -> None:
        self._step, self._command, self._wiring = step, command, wiring
        self._sample, self._out = sample, out
        self._known = {own.name: own for own in command.parameters}
        self._given = self._options()
        self._reads: dict[str, str] = {}

    def _options(self) -> dict[str, Any]:
        """The step's options by the names of parameters; names of outputs lie in the folder."""
        named = self._known | {
            name.strip("-").replace("-", "_"): own
            for own in self._known.values()
            for name in own.names
        }
        found: dict[str, Any] = {}
        for name, value in self._step.options.items():
            if name not in named:
                near = difflib.get_close_matches(name, named, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise _of_step(self._step, f"{self._step.command} has no option {name!r}{hint}")
            parameter = named[name]
            if parameter.name in found:
                raise _of_step(self._step, f"{parameter.flag} is given twice")
            found[parameter.name] = self._placed(parameter, value)
        found |= self._typed()
        if own := sorted(_OWN & found.keys()):
            raise _of_step(self._step, f"{own[0]!r} is the chain's to give; leave it out")
        return found

    def _typed(self) -> dict[str, Any]:
        """The options of the step's arguments, by the names of parameters."""
        import click

        context = click.Context(self._command, **self._command.context_settings)
        parser = self._command.make_parser(context)
        try:
            found, left, _ = parser.parse_args([*self._step.arguments])
        except click.UsageError as error:
            raise _of_step(self._step, error.format_message()) from error
        if left:
            raise _of_step(self._step, f"{left[0]!r} in its arguments is no option")
        options = {own.name for own in self._known.values() if not own.option.is_argument}
        return {name: value for name, value in found.items() if name in options}

    def _placed(self, parameter: Parameter, value: Any, *, is_part: bool = False) -> Any:
        """A value as an option takes it."""
        if isinstance(value, list):
            if is_part or not (parameter.is_list or parameter.is_tuple):
                raise _of_step(self._step, f"{parameter.flag} takes one value")
            return [self._placed(parameter, own, is_part=True) for own in value]
        if isinstance(value, Mapping):
            raise _of_step(self._step, f"{parameter.flag} takes no table")
        if parameter.kind is bool or value is None:
            return value
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if parameter.role in _OUTPUTS and text != "-":
            return str(self._out / text.replace(_PLACEHOLDER, self._sample))
        return text

    def plan(
        self, flow: Flow, between: Path, common: Mapping[str, Any], *, is_read: bool, is_kept: bool
    ) -> Planned:
        """The step as it is run.

        Args:
            flow: reads that there are.
            between: folder of the reads between two steps.
            common: options for every command that has them.
            is_read: whether a later step reads what this one writes.
            is_kept: whether that is an output of the chain.
        """
        values = {name: value for name, value in common.items() if name in self._known}
        sheet = self._inputs(values, flow, between)
        targets = {name: self._target(name, stem, flow) for name, stem in self._stems(flow)}
        copies: dict[str, str] = {}
        for name, target in targets.items():
            value = target
            if is_read:
                value = str(between / f"{self._step.name}-{name}.{flow.ending}")
                if is_kept or name in self._given:
                    copies[value] = target
            values[name] = value
            self._reads[name] = value
        outputs = {
            name: str(self._out / text.format(name=self._step.name, sample=self._sample))
            for name, text in self._wiring.files.items()
            if name == "stats" or self._wiring.alone not in self._given
        }
        values |= outputs | {name: own for name, own in self._given.items() if name not in targets}
        words = [*self._words(values)]
        with named(self._step):
            self._command.prepare(words)
        return Planned(
            self._step,
            self._command,
            words,
            copies,
            int(level) if (level := self._given.get("compress_level")) else None,
            (*(() if is_read else targets.values()), *self._written(values)),
            sheet=sheet,
            called={
                **{self._reads[name]: self._called(name, targets) for name in targets if is_read},
                **dict.fromkeys(sheet, f"the sample sheet of step {self._step.name}"),
            },
        )

    def _called(self, name: str, targets: Mapping[str, str]) -> str:
        """What messages call an output of reads."""
        wiring = self._wiring
        what = "the reads"
        if wiring.joined is not None and name == wiring.joined[0]:
            what = f"the {wiring.joined[1]} reads"
        elif wiring.mates is not None and wiring.mates[1] in targets:
            what = f"the {'first' if name == wiring.mates[0] else 'second'} mates"
        return f"{what} of step {self._step.name}"

    def _inputs(self, values: dict[str, Any], flow: Flow, between: Path) -> dict[str, list[str]]:
        """Add the reads to the values; gives back the sample sheet that names them, if one does."""
        wiring = self._wiring
        if not wiring.interleaved:
            values["in1"] = list(flow.files)
            return {}
        if flow.single and wiring.beside == "refused":
            raise _of_step(
                self._step,
                "there are single reads beside pairs, which it does not take together; put it "
                "before the step that merges or extends",
            )
        if wiring.joined is not None and not flow.paired:
            raise _of_step(self._step, "it needs pairs")
        if flow.single and wiring.beside == "sheet":
            lanes = [
                *zip(flow.first, flow.second, strict=True),
                *((own, "") for own in flow.single),
            ]
            path = str(between / f"{self._step.name}.tsv")
            values["samples"] = path
            rows = [f"{self._sample}\t{first}\t{second}" for first, second in lanes]
            return {path: ["sample\tfastq_1\tfastq_2", *rows]}
        values["in1"], values["in2"] = list(flow.first), list(flow.second)
        values[wiring.interleaved] = flow.interleaved
        if flow.single:
            values["single"] = list(flow.single)
        if wiring.beside == "sheet" and "sample" in self._known:
            values["sample"] = self._sample
        return {}

    def _stems(self, flow: Flow) -> Iterator[tuple[str, str]]:
        """Outputs of reads, by their parameters, and how their files are called."""
        wiring = self._wiring
        if wiring.joined is not None:
            yield wiring.joined
        if wiring.mates is None:
            return
        first, second = wiring.mates
        if flow.second or (flow.interleaved and wiring.separates):
            yield first, f"{wiring.word}_1"
            yield second, f"{wiring.word}_2"
        else:
            yield first, wiring.word

    def _target(self, name: str, stem: str, flow: Flow) -> str:
        """Path of an output of reads."""
        given = self._given.get(name)
        if isinstance(given, list):
            if len(given) != 1:
                raise _of_step(self._step, f"`{name}` is one file")
            (given,) = given
        if given is not None:
            return str(given)
        return str(self._out / f"{stem}.{flow.ending}.gz")

    def passed_on(self, flow: Flow) -> Flow:
        """The reads behind the step."""
        assert self._wiring.mates is not None
        first, second = (self._reads.get(name) for name in self._wiring.mates)
        joined = self._reads.get(self._wiring.joined[0]) if self._wiring.joined else None
        return Flow(
            () if first is None else (first,),
            () if second is None else (second,),
            interleaved=flow.interleaved and second is None,
            single=() if joined is None else (joined,),
            ending=flow.ending,
        )

    def _written(self, values: Mapping[str, Any]) -> Iterator[str]:
        """Outputs that are not reads."""
        for name, value in values.items():
            if self._known[name].role in _OUTPUTS and name not in self._reads and value is not None:
                yield from map(str, value if isinstance(value, list) else [value])

    def _words(self, values: Mapping[str, Any]) -> Iterator[str]:
        for name, value in values.items():
            parameter = self._known[name]
            option = max(parameter.names, key=len)
            if parameter.kind is bool:
                if self._is_set(name, value):
                    yield option
                continue
            if isinstance(value, list) and parameter.is_tuple:
                value = ",".join(map(str, value))
            for own in value if isinstance(value, list) else [value]:
                if own is not None:
                    yield f"{option}={own}"

    def _is_set(self, name: str, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        if value not in ("true", "false"):
            raise _of_step(self._step, f"{name!r} is true or false, not {value!r}")
        return bool(value == "true")
