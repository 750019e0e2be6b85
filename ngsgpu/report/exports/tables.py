"""The report's tables as CSV files: one a table, with all samples in it.

The page has cells for readers, such as ``0.96 % → 0.0004 %``, ``14,990 (99.9 %)``, ``1 h 01 min``.
Here the first becomes two columns, the second a number and a share, the third 3661 seconds: the
values that cells have beside their text (see ``words``), never the text read back.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ngsgpu.report import words
from ngsgpu.report.page import Column, SampleSection, Table
from ngsgpu.report.words import SHARE, Number, Several

_QUANTITIES: Final = ("", "stage")
"""Headings of labels whose rows are quantities in different units."""


def csv_tables(context: Mapping[str, Any]) -> dict[str, str]:
    """CSV text by file name, of all tables in what a page is made from.

    Tables that samples have one each of are put together; their first column is the sample. Cells
    hold one raw value each where the page has numbers, and are empty for missing values; the unit
    is in the heading, or in the label of a row that is a quantity.

    Args:
        context: variables of the page: tables, and under ``parts`` the sections of each stage.
    """
    found = {f"{_slug(name)}.csv": _csv(table) for name, table in _single(context)}
    for part in context["parts"]:
        if part["table"] is not None:
            found[f"{part['name']}.csv"] = _csv(part["table"])
        for title, table in _joined(part["sections"]):
            name = _slug(title).removeprefix(f"{part['name']}-")
            found[f"{part['name']}-{name}.csv"] = _csv(table, labels=2)
    return found


def _single(context: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """Names and tables that are not of samples: single ones, and lists of them, numbered."""
    for name, value in context.items():
        for number, table in enumerate(value if isinstance(value, list) else [value], start=1):
            if isinstance(table, Table):
                yield name.removesuffix("_table") + f"-{number}" * (number > 1), table


def _joined(sections: Sequence[SampleSection]) -> Iterator[tuple[str, Table]]:
    """The sections' tables by title; columns that only some samples have are empty in others."""
    by_title: dict[str, list[tuple[str, Table]]] = {}
    for section in sections:
        for title, table in (*section.tables, *section.details):
            by_title.setdefault(title, []).append((section.label, table))
    for title, tables in by_title.items():
        headings = tuple(dict.fromkeys(name for _, own in tables for name in own.headings))
        rows = []
        for label, own in tables:
            for row in own.rows:
                cells = dict(zip(own.headings, row, strict=True))
                rows.append((label, *(cells.get(name, "") for name in headings)))
        yield title, Table(("sample", *headings), rows)


def _csv(table: Table, labels: int = 1) -> str:
    """A table's text; its first columns are the labels of the rows."""
    whole = list(zip(*table.rows, strict=True)) or [()] * len(table.headings)
    columns = [Column(name, list(own)) for name, own in zip(table.headings, whole, strict=True)]
    parts = [
        part
        for number, column in enumerate(columns[labels:], start=labels)
        for part in ([column] if number in table.text_columns else columns_of(column))
    ]
    own = columns[labels - 1]
    names, found = with_units(own.cells, parts, are_quantities=own.heading in _QUANTITIES)
    written = [*columns[: labels - 1], Column(own.heading, names), *found]
    text = io.StringIO()
    rows = zip(*(column.cells for column in written), strict=True)
    headings = [column.heading or "value" for column in written]
    lines = ([_as_text(cell) for cell in row] for row in [headings, *rows])
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


_NUMBER: Final = re.compile(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?%?|-", re.IGNORECASE)


def _as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: such names get an apostrophe in front."""
    is_formula = cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if is_formula and not _NUMBER.fullmatch(cell) else cell


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


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
