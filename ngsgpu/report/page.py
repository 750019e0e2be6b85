"""Elements of a page: tables, figures, sections, and the findings of each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ngsgpu.report import words


@dataclass(frozen=True)
class Table:
    """A table of the report; the first column names the rows.

    Attributes:
        headings: of all columns.
        rows: cells as text; numbers have their values (see ``words``).
        marks: ``(row, column)`` of cells that are the better ones.
        text_columns: columns, besides the first, that hold words and not numbers.
    """

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    marks: frozenset[tuple[int, int]] = frozenset()
    text_columns: frozenset[int] = frozenset()

    def transposed(self, first: str) -> Table:
        """With a row a column, for many samples with a column each; ``first`` heads the first."""
        names, *others = zip(self.headings, *self.rows, strict=True)
        return Table((first, *names[1:]), others)

    def without_empty_columns(self) -> Table:
        """Without the columns, besides the first, in which no row has a value."""
        kept = [
            column
            for column in range(len(self.headings))
            if column == 0 or any(row[column] not in ("", words.NOTHING) for row in self.rows)
        ]
        place = {column: number for number, column in enumerate(kept)}
        return Table(
            tuple(self.headings[column] for column in kept),
            [tuple(row[column] for column in kept) for row in self.rows],
            frozenset((row, place[column]) for row, column in self.marks if column in place),
            frozenset(place[column] for column in self.text_columns if column in place),
        )


@dataclass(frozen=True)
class Plot:
    """A plot and its caption."""

    svg: str
    caption: str
    is_wide: bool = False

    @property
    def element(self) -> str:
        """The drawing as HTML that screen readers name by the caption."""
        return self.svg.replace("<svg", f'<svg role="img" aria-label="{escape(self.caption)}"', 1)


@dataclass
class SampleSection:
    """Tables and figures of one sample in one section of the report, and a note on all of them."""

    name: str
    label: str
    kind: str
    note: str = ""
    tables: list[tuple[str, Table]] = field(default_factory=list)
    figures: list[Plot] = field(default_factory=list)
    details: list[tuple[str, Table]] = field(default_factory=list)
    number: int = 0
    """Of the sample, from 0, for names of drawings."""

    def plot(self, svg: str, caption: str, *, is_wide: bool = False) -> None:
        """Add a figure.

        Args:
            svg: the drawing.
            caption: text below it.
            is_wide: whether it takes the full width.
        """
        self.figures.append(Plot(svg, caption, is_wide))

    @property
    def wide_figures(self) -> list[Plot]:
        """Full-width figures."""
        return [figure for figure in self.figures if figure.is_wide]

    @property
    def small_figures(self) -> list[Plot]:
        """Figures next to tables."""
        return [figure for figure in self.figures if not figure.is_wide]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.tables or self.figures)


@dataclass(frozen=True)
class Finding:
    """The main results of one sample: sentences, and figures to catch the eye."""

    name: str
    label: str
    kind: str
    sentences: list[str] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Column:
    """A column of the table of main results: a cell a sample."""

    heading: str
    cells: Sequence[str]
