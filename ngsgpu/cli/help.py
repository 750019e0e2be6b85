"""What ``--help`` prints: commands and options in groups, with examples that are not wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import click

from ngsgpu.declared.options import INPUT, OUTPUT, RESEARCH, RUN
from ngsgpu.declared.parameters import Parameter
from ngsgpu.declared.roles import Role

EXAMPLE: Final = re.compile(
    r"(?:(?:(\w[\w ]*):)?\s{2,}(?=\S)|(?=ngsgpu ))((?:\S.*)?(?<!\S)ngsgpu .*)"
)
"""A paragraph of a docstring that is a command to type, with its label before."""

WIDTH: Final = 120
"""Characters in a line at most, in a terminal that has more."""

_SETTINGS: Final = "Settings"
_FEW: Final = 15
"""Up to this number, options are one list without headings."""

_OF_ROLES: Final = {
    Role.READS: INPUT,
    Role.READ: INPUT,
    Role.READ_BY_NAME: INPUT,
    Role.DATABASE: INPUT,
    Role.SHEET: INPUT,
    Role.WRITTEN: OUTPUT,
    Role.MULTIQC: OUTPUT,
    Role.PREFIX: OUTPUT,
}


_HYPHEN: Final = "\ue000"
"""Stands for hyphens while lines are broken, which is not done there."""


class Formatter(click.HelpFormatter):
    """Breaks lines only at spaces, so that names of options stay whole."""

    def write(self, string: str) -> None:
        """Write a text as it is."""
        super().write(string.replace(_HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        """Write a text in lines."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write two columns."""
        whole = [(name, text.replace("-", _HYPHEN)) for name, text in rows]
        super().write_dl(whole, col_max, col_spacing)


class Context(click.Context):
    """A context whose help is written by `Formatter`."""

    formatter_class = Formatter


def write_text(text: str, formatter: click.HelpFormatter) -> None:
    """Write a command's description; examples are not wrapped, so that they can be copied."""
    examples: list[tuple[str, str]] = []
    for paragraph in text.split("\n\n"):
        if found := EXAMPLE.fullmatch(paragraph):
            examples.append((found[1] or "", found[2]))
            continue
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(paragraph.split()))
    if examples:
        with formatter.section("Examples"):
            for label, command in examples:
                # A line that is too long is the terminal's to break: copied, it is one line.
                formatter.write(f"  {label}:\n" if label else "")
                formatter.write(f"    {command}\n")


def write_options(
    parameters: Sequence[Parameter],
    options: Sequence[click.Parameter],
    context: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    """Write the help of options, in groups if they are many.

    Args:
        parameters: of the command.
        options: of click, those of the parameters among them.
        context: of the command.
        formatter: to write to.
    """
    groups = {own.name: group_of(own) for own in parameters}
    rows: dict[str, list[tuple[str, str]]] = {}
    for option in options:
        row = option.get_help_record(context) if isinstance(option, click.Option) else None
        if row is not None:
            rows.setdefault(groups.get(option.name or "", RUN), []).append(row)
    if sum(map(len, rows.values())) <= _FEW:
        rows = {"Options": [row for found in rows.values() for row in found]}
    for group in in_order(rows):
        with formatter.section(group):
            formatter.write_dl(rows[group])


def group_of(parameter: Parameter) -> str:
    """Heading under which an option is listed: the declared one, or that of its files."""
    if parameter.option.group:
        return parameter.option.group
    return _SETTINGS if parameter.role is None else _OF_ROLES.get(parameter.role, _SETTINGS)


def in_order(groups: Iterable[str]) -> Iterator[str]:
    """Headings in the order of the help: files, then settings, then what few runs need."""
    known = [*dict.fromkeys(groups)]
    first, last = (INPUT, OUTPUT, _SETTINGS), (RUN, RESEARCH)
    own = [group for group in known if group not in first + last]
    return (group for group in (*first, *own, *last) if group in known)


def write_commands(groups: Mapping[str, Mapping[str, str]], formatter: click.HelpFormatter) -> None:
    """List commands.

    Args:
        groups: summaries by names of commands, by headings.
        formatter: to write to.
    """
    width = max((len(name) for own in groups.values() for name in own), default=0)
    for heading, own in groups.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), text) for name, text in own.items()])
