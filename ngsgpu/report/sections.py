"""What a section of the report is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from ngsgpu.report.content import Table


@dataclass(frozen=True)
class Figure:
    """A plot and what it shows."""

    svg: str
    caption: str
    is_wide: bool = False


@dataclass
class SampleSection:
    """Tables and figures of one sample in one section of the report."""

    name: str
    label: str
    kind: str
    tables: list[tuple[str, Table]] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    details: list[tuple[str, Table]] = field(default_factory=list)

    @property
    def wide_figures(self) -> list[Figure]:
        """Figures that take a line of their own."""
        return [figure for figure in self.figures if figure.is_wide]

    @property
    def small_figures(self) -> list[Figure]:
        """Figures that stand beside tables."""
        return [figure for figure in self.figures if not figure.is_wide]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.tables or self.figures)
