"""The report's tables as CSV files: one a table, with all samples in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ngsgpu.report.exports.cells import columns_of, with_units
from ngsgpu.report.page import Column, SampleSection, Table

_QUANTITIES: Final = ("", "stage")
"""Headings of labels whose rows are quantities in different units."""


def csv_tables(context: Mapping[str, Any]) -> dict[str, str]:
    """CSV text by file name, of all tables in what a page is made from.

    Tables that samples have one each of are put together; their first column is the sample. Cells
    hold one raw value each where the page has numbers (see ``cells``), and are empty for missing
    values; the unit is in the heading, or in the label of a row that is a quantity.

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
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
