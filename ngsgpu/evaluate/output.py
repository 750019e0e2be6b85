"""What all evaluations write: the head of their JSON, rates, and tables for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ngsgpu._version import __version__


def head(schema: str, version: int) -> dict[str, Any]:
    """The first entries of an evaluation's JSON."""
    return {"schema": schema, "schema_version": version, "version": __version__}


def ratio(part: int, whole: int, scale: float = 1.0) -> float | None:
    """A rate; ``None`` where the divisor is 0.

    Args:
        part: the dividend.
        whole: the divisor.
        scale: factor of the result.
    """
    return scale * part / whole if whole else None


def fixed(value: float | None, digits: int) -> str:
    """A rate with a fixed number of decimals, ``-`` where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


@dataclass(frozen=True)
class TextTable:
    """A human-readable table.

    Attributes:
        title: shown on a terminal.
        headings: of the columns; empty ones are omitted.
        rows: cells as text.
        is_titled: whether the title is also shown in files and pipes.
        foot: text below the table, with its line end.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_titled: bool = False
    foot: str = ""

    def plain(self) -> str:
        """The table as text in columns: the first to the left, the others to the right."""
        text = f"{self.title}\n" if self.is_titled else ""
        lines = [self.headings, *self.rows] if self.rows and any(self.headings) else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for first, *others in lines:
            cells = [f"{first:<{widths[0]}}"]
            cells += [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            text += "  ".join(cells) + "\n"
        return text + self.foot


def print_tables(tables: Iterable[TextTable]) -> None:
    """Write tables to standard output: drawn on a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        for table in tables:
            sys.stdout.write(table.plain())
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for table in tables:
        drawn = Table(title=table.title, show_header=any(table.headings))
        for number, heading in enumerate(table.headings):
            drawn.add_column(heading, justify="right" if number else "left")
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)
        if table.foot:
            console.print(table.foot, end="")
