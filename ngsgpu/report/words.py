"""Numbers as readers want them."""

from __future__ import annotations

import re
from typing import Any

NOTHING = "\N{EN DASH}"
"""Shown in a table for a missing value."""


def count(value: float | None) -> str:
    """A whole number with separators."""
    return NOTHING if value is None else f"{value:,.0f}"


def decimal(value: float | None, digits: int) -> str:
    """A number with a fixed number of decimals."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share (0 to 1) in per cent."""
    return NOTHING if value is None else f"{100 * value:,.{digits}f} %"


def rate(value: float | None) -> str:
    """A small share in per cent with three significant digits."""
    if value is None:
        return NOTHING
    return f"{100 * value:.3g} %" if value else "0 %"


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in per cent with three significant digits."""
    return NOTHING if part is None or not whole else rate(part / whole)


def duration(seconds: float | None) -> str:
    """Seconds as ``4.2 s``, ``3 min 20 s`` or ``2 h 05 min``."""
    if seconds is None:
        return NOTHING
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        whole = round(seconds)
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def mebibytes(value: float | None) -> str:
    """MiB, as GiB from 1,024 on."""
    if value is None:
        return NOTHING
    return f"{value:,.0f} MiB" if value < 1024 else f"{value / 1024:,.2f} GiB"


def bytes_as_mebibytes(value: float | None) -> str:
    """Bytes as MiB or GiB."""
    return mebibytes(None if value is None else value / 2**20)


def number_words(value: int, what: str) -> str:
    """``one sample``, ``two samples``, ``13 samples``."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return (
        f"{words[value] if value < len(words) else f'{value:,}'} {what}{'' if value == 1 else 's'}"
    )


def listed(items: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


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


_UNITS = {"h": 3600.0, "min": 60.0, "GiB": 1024.0}
_PART = re.compile(r"([\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(h|min|GiB)?")


def value(cell: str) -> float | None:
    """The number in a cell of a table, to compare it with others of its column; None for words.

    Times are in seconds, memory is in MiB.
    """
    found = _PART.match(cell.strip())
    if found is None or not found[1].strip(","):
        return None
    parts = _PART.findall(cell) if found[2] in ("h", "min") else [found.groups()]
    return sum(float(number.replace(",", "")) * _UNITS.get(unit, 1.0) for number, unit in parts)
