"""Columns of the report's tables for programs: one raw value a cell, with its unit in a heading.

The page has cells for readers, such as ``0.96 % → 0.0004 %``, ``14,990 (99.9 %)``, ``1 h 01 min``.
Here the first becomes two columns, the second a number and a share, the third 3661 seconds: the
values that cells have beside their text (see ``words``), never the text read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from ngsgpu.report import words
from ngsgpu.report.page import Column
from ngsgpu.report.words import SHARE, Number, Several

_PLAIN: Final = (Decimal("1e-6"), Decimal("1e16"))
"""Values between these are written without an exponent."""


def columns_of(column: Column) -> Iterator[Column]:
    """A column as columns of one value a cell: each cell's parts, or the column itself."""
    names = dict.fromkeys(
        name for cell in column.cells if isinstance(cell, Several) for name in cell.parts
    )
    if not names:
        yield column
    for name in names:
        yield Column(
            column.heading + name, [_part(cell, name, list(names)) for cell in column.cells]
        )


def _part(cell: str, name: str, names: Sequence[str]) -> str:
    """A part of a cell; a cell of one value is the first part, or the share that it is."""
    if isinstance(cell, Several):
        return cell.parts.get(name, "")
    is_share = isinstance(cell, Number) and cell.unit == "%" and SHARE in names
    return cell if name == (SHARE if is_share else names[0]) else ""


def with_units(
    labels: Sequence[str], columns: Sequence[Column], *, are_quantities: bool
) -> tuple[list[str], list[Column]]:
    """The labels of rows and the columns, with raw cells and units in headings or labels.

    A unit that all values of a column have is in its heading. If rows are quantities, one that all
    other values of a row have is in its label.

    Args:
        labels: labels of the rows.
        columns: columns of text cells.
        are_quantities: whether each row is a quantity with a unit.
    """
    found, mixed = [], []
    for column in columns:
        unit = _unit_of(column.cells)
        heading = f"{column.heading} ({unit})".strip() if unit else column.heading
        found.append(Column(heading, [raw(cell) for cell in column.cells]))
        if not unit:
            mixed.append(column)
    names = [raw(label) for label in labels]
    if are_quantities:
        for row, label in enumerate(names):
            if unit := _unit_of([column.cells[row] for column in mixed]):
                names[row] = f"{label} ({unit})"
    return names, found


def _unit_of(cells: Sequence[str]) -> str:
    """The unit that all cells with a value have; empty if there is none."""
    units = {
        cell.unit if isinstance(cell, Number) else ""
        for cell in cells
        if cell not in ("", words.NOTHING)
    }
    return units.pop() if len(units) == 1 else ""


def raw(cell: str) -> str:
    """The value of a cell in its unit, with all its digits; words as they are."""
    if not isinstance(cell, Number):
        return "" if cell == words.NOTHING else cell.replace("\N{NO-BREAK SPACE}", " ")
    value = cell.value
    if value is None:
        return ""
    exact = Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))
    if cell.unit == "%":
        exact = exact.scaleb(2)
    if exact == 0:
        return "0"
    low, high = _PLAIN
    return f"{exact.normalize():f}" if low <= abs(exact) < high else f"{exact.normalize():e}"
