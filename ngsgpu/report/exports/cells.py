"""Cells of the report's tables as numbers: one value a cell, with its unit in a heading.

The page has cells for readers, such as ``0.96 % → 0.0004 %``, ``14,990 (99.9 %)``, ``3 min 20 s``.
Here the first becomes two columns, the second a number and a share, the third 200 seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ngsgpu.report import words
from ngsgpu.report.page import Column

_SEPARATED: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER: Final = r"[+-]?\d[\d.]*(?:e[+-]?\d+)?"
_UNITS: Final = {
    "%": re.compile(rf"{_NUMBER} %"),
    "s": re.compile(rf"{_NUMBER} s|\d+ min \d\d s|\d+ h \d\d min"),
    "MiB": re.compile(rf"{_NUMBER} (?:MiB|GiB)"),
}
"""Units of numbers in files, and cells of the page that are in them."""
_VALUE: Final = rf"(?:{_NUMBER}(?: %)?|{words.NOTHING})"
_CHANGE: Final = re.compile(rf"({_VALUE}) → ({_VALUE}(?: \(.+\))?)")
_SHARED: Final = re.compile(rf"({_NUMBER}|{words.NOTHING}) \(({_NUMBER} %|{words.NOTHING})\)")
_NOTED: Final = re.compile(rf"({_NUMBER}) \(([A-Za-z].*)\)")


def plain(cell: str) -> str:
    """A cell without separators of thousands; nothing for a missing value."""
    text = cell.replace("\N{NO-BREAK SPACE}", " ").strip()
    if text == words.NOTHING:
        return ""
    return _SEPARATED.sub(lambda found: found.group().replace(",", ""), text)


def numbers(column: Column) -> Iterator[Column]:
    """A column of plain cells as columns of numbers, as far as it holds any."""
    for part in _changes(column):
        for own in _notes(part):
            unit = _unit_of(own.cells)
            if unit:
                own = Column(f"{own.heading} ({unit})".strip(), [_bare(c) for c in own.cells])
            yield own


def with_units_in_labels(labels: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """The labels of rows that are quantities, with units; cells lose theirs.

    A row whose cells have different units stays as it is.
    """
    found = list(labels)
    for row, label in enumerate(labels):
        if unit := _unit_of([column.cells[row] for column in columns]):
            found[row] = f"{label} ({unit})"
            for column in columns:
                column.cells[row] = _bare(column.cells[row])
    return found


def _unit_of(cells: Sequence[str]) -> str:
    """The unit that all cells with a value have; empty if there is none."""
    given = [cell for cell in cells if cell]
    for unit, pattern in _UNITS.items():
        if given and all(pattern.fullmatch(cell) for cell in given):
            return unit
    return ""


def _bare(cell: str) -> str:
    """The number of a cell in its unit; per cent as it is written."""
    if not cell or cell.endswith(" %"):
        return cell.removesuffix(" %")
    value = round(words.value(cell) or 0.0, 2)
    return str(int(value) if value == int(value) else value)


def _changes(column: Column) -> list[Column]:
    """A column each for values before and after something."""
    pairs = _matched(column.cells, _CHANGE, lambda cell: None)
    return _columns(pairs, f"{column.heading} before", f"{column.heading} after") or [column]


def _notes(column: Column) -> list[Column]:
    """A column each for numbers, and for shares or words in parentheses after them."""
    heading = column.heading

    def alone(cell: str) -> tuple[str, str] | None:
        if _UNITS["%"].fullmatch(cell):
            return "", cell
        return (cell, "") if re.fullmatch(_NUMBER, cell) else None

    shared = _columns(_matched(column.cells, _SHARED, alone), heading, f"{heading}, share")
    if shared:
        # A rate without a count is a share, too.
        return shared
    noted = _matched(column.cells, _NOTED, lambda cell: (cell, ""))
    return _columns(noted, heading, f"{heading}, note") or [column]


_Pair = tuple[str, str]


def _matched(
    cells: Sequence[str], pattern: re.Pattern[str], other: Callable[[str], _Pair | None]
) -> list[_Pair]:
    """Both groups of a pattern in every cell, or what ``other`` makes of those without a match.

    Empty if no cell matches, or if one does not and nothing can be made of it.
    """
    found: list[_Pair] = []
    matches = [pattern.fullmatch(cell) for cell in cells]
    for cell, match in zip(cells, matches, strict=True):
        pair = (match[1], match[2]) if match else other(cell) if cell else ("", "")
        if pair is None:
            return []
        found.append(pair)
    return found if any(matches) else []


def _columns(pairs: Sequence[_Pair], first: str, second: str) -> list[Column]:
    if not pairs:
        return []
    return [
        Column(heading, [plain(pair[number]) for pair in pairs])
        for number, heading in enumerate((first, second))
    ]
