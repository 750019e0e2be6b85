"""The report's tables as CSV files: one a table, with all samples in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ngsgpu.report import words
from ngsgpu.report.page import SampleSection, Table

_NUMBER = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_PERCENT = re.compile(r"[+-]?[\d.,e-]+ %")


def csv_tables(context: Mapping[str, Any]) -> dict[str, str]:
    """CSV text by file name, of all tables in what a page is made from.

    Tables that samples have one each of are put together; their first column is the sample. Cells
    are as in the page, but without separators of thousands, and empty for missing values. A column
    of percentages has its unit in the heading.

    Args:
        context: variables of the page: tables, and under ``parts`` the sections of each stage.
    """
    found = {f"{_slug(name)}.csv": _csv(table) for name, table in _single(context)}
    for part in context["parts"]:
        if part["table"] is not None:
            found[f"{part['name']}.csv"] = _csv(part["table"])
        for title, table in _joined(part["sections"]):
            name = _slug(title).removeprefix(f"{part['name']}-")
            found[f"{part['name']}-{name}.csv"] = _csv(table)
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


def _csv(table: Table) -> str:
    rows = [[_plain(cell) for cell in row] for row in table.rows]
    headings = [heading or "value" for heading in table.headings]
    for column, heading in enumerate(headings):
        cells = [row[column] for row in rows if row[column]]
        if cells and all(_PERCENT.fullmatch(cell) for cell in cells):
            headings[column] = f"{heading} (%)".strip()
            for row in rows:
                row[column] = row[column].removesuffix(" %")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


def _plain(cell: str) -> str:
    """A cell for programs: numbers without separators, nothing for a missing value."""
    text = cell.replace("\N{NO-BREAK SPACE}", " ").strip()
    if text == words.NOTHING:
        return ""
    return _NUMBER.sub(lambda found: found.group().replace(",", ""), text)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
