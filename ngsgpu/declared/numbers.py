"""Numbers as users write them: on the command line, in tables, in sizes.

Python's ``int`` and ``float`` also take ``1_000`` and the digits of every script, which no other
program of a pipeline would read the same way.
"""

from __future__ import annotations

import re
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf)", re.IGNORECASE | re.ASCII
)
_BLANKS: Final = " \t\r\n"


def is_digits(text: str) -> bool:
    """Whether a text is of one or more of the digits 0 to 9 alone."""
    return text.isascii() and text.isdigit()


def whole_number(text: str) -> int:
    """The whole number that a text is, of the digits 0 to 9; blanks around it do not count.

    Raises:
        ValueError: it is none.
    """
    return int(_checked(text, _WHOLE))


def decimal_number(text: str) -> float:
    """The number that a text is, as ``12``, ``0.5`` or ``1e-3``; see `whole_number`.

    Raises:
        ValueError: it is none.
    """
    return float(_checked(text, _DECIMAL))


def _checked(text: str, pattern: re.Pattern[str]) -> str:
    number = text.strip(_BLANKS)
    if not pattern.fullmatch(number):
        raise ValueError(f"{text!r} is not a number")
    return number
