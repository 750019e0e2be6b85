"""Numbers as readers want them: text for the page that keeps the values for programs.

The one place that formats numbers. A ``Number`` is its text and has the value it was made from;
tables hold them as cells, and CSV files and sorting take the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

NOTHING = "\N{EN DASH}"
"""Shown in a table for a missing value."""


class Number(str):
    """The text of a number, with its value.

    Attributes:
        value: as measured, a share (0 to 1) where the text has per cent; None if it is missing.
        unit: of the value in files: ``%``, ``s``, ``MiB`` or nothing.
    """

    __slots__ = ("unit", "value")
    value: float | None
    unit: str

    def __new__(cls, text: str, value: float | None, unit: str = "") -> Self:
        """Make a number of its text and value."""
        own = super().__new__(cls, NOTHING if value is None else text)
        own.value, own.unit = value, unit
        return own

    @property
    def shown(self) -> float | None:
        """The value in its unit, for axes."""
        return 100 * self.value if self.value is not None and self.unit == "%" else self.value


class Several(str):
    """The text of several values in one cell.

    Attributes:
        parts: the values, by what a table of one value a cell adds to the column's heading.
    """

    __slots__ = ("parts",)
    parts: Mapping[str, str]

    def __new__(cls, text: str, parts: Mapping[str, str]) -> Self:
        """Make a cell of its text and parts."""
        own = super().__new__(cls, text)
        own.parts = parts
        return own


BEFORE: Final = " before"
SHARE: Final = ", share"


def change(before: Number, after: Number, note: str = "") -> Several:
    """Values before and after something, as ``0.96 % → 0.0004 %``."""
    if before.value is None and after.value is None:
        text = NOTHING
    else:
        text = f"{before} → {after}" + (f" ({note})" if note else "")
    notes = {", note": note} if note else {}
    return Several(text, {BEFORE: before, " after": after, **notes})


def with_share(what: str, share: Number) -> Several:
    """A count or a name, and its share, as ``14,990 (99.9 %)``."""
    return Several(f"{what} ({share})", {"": what, SHARE: share})


def with_note(number: Number, note: str) -> Several:
    """A number and words, as ``29.9 (estimated)``."""
    return Several(f"{number} ({note})", {"": number, ", note": note})


def span(low: Number, high: Number) -> Several:
    """The ends of a range, as ``35 to 151``; one number where they are the same."""
    return Several(low if low == high else f"{low} to {high}", {" from": low, " to": high})


def first_number(cell: str) -> Number | None:
    """The number by which a cell is compared with others of its column; None for words."""
    own = next(iter(cell.parts.values())) if isinstance(cell, Several) else cell
    return own if isinstance(own, Number) else None


def sort_value(cell: str) -> float | None:
    """The value of ``first_number``; None for words, and where it is missing."""
    number = first_number(cell)
    return None if number is None else number.value


def count(value: float | None) -> Number:
    """A whole number with separators."""
    return Number(f"{value or 0:,.0f}", value)


def decimal(value: float | None, digits: int) -> Number:
    """A number with a fixed number of decimals."""
    return Number(f"{value or 0:,.{digits}f}", value)


def percent(value: float | None, digits: int = 2) -> Number:
    """A share (0 to 1) in per cent."""
    return Number(f"{100 * (value or 0):,.{digits}f} %", value, "%")


def rate(value: float | None) -> Number:
    """A small share in per cent with three significant digits."""
    return Number(f"{100 * value:.3g} %" if value else "0 %", value, "%")


def share(part: float | None, whole: float | None) -> Number:
    """A part of a whole in per cent with three significant digits."""
    return rate(None if part is None or not whole else part / whole)


def duration(seconds: float | None) -> Number:
    """Seconds as ``4.2 s``, ``3 min 20 s`` or ``2 h 05 min``."""
    return Number(_duration(seconds or 0.0), seconds, "s")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        whole = round(seconds)
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def mebibytes(value: float | None) -> Number:
    """MiB, as GiB from 1,024 on."""
    size = value or 0.0
    text = f"{size:,.0f} MiB" if size < 1024 else f"{size / 1024:,.2f} GiB"
    return Number(text, value, "MiB")


def bytes_as_mebibytes(value: float | None) -> Number:
    """Bytes as MiB or GiB."""
    return mebibytes(None if value is None else value / 2**20)


def number_words(value: int, what: str) -> str:
    """``one sample``, ``two samples``, ``13 samples``."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return (
        f"{words[value] if value < len(words) else f'{value:,}'} {what}{'' if value == 1 else 's'}"
    )


def listed(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; empty for none."""
    return "".join(items) if len(items) < 2 else f"{', '.join(items[:-1])} and {items[-1]}"


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested parameters as names with dots and values as text."""
    if isinstance(value, dict):
        found: dict[str, str] = {}
        for name, part in value.items():
            found |= flat(part, f"{prefix}.{name}" if prefix else str(name))
        return found
    if isinstance(value, list):
        text = ", ".join(str(part) for part in value)
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = "not set" if value is None else str(value)
    return {prefix: text}
