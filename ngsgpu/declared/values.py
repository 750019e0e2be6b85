"""Ranges and choices of parameters, checked with one message from Python and the command line.

Messages name parameters as Python does, in backticks; `as_options` makes them the command line's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from ngsgpu.declared.options import Option, option_of
from ngsgpu.errors import UsageError

_PARAMETER = re.compile(r"`([a-z_][a-z0-9_]*)`")


def check_value(name: str, value: Any, declared: Option) -> None:
    """Check a value; None is in every range.

    Args:
        name: of the parameter.
        value: one value.
        declared: its range or choices.

    Raises:
        UsageError: it is outside.
    """
    if value is None:
        return
    if declared.choices is not None and value not in declared.choices:
        *others, last = map(str, declared.choices)
        raise UsageError(f"`{name}` must be {', '.join(others)} or {last}, not {value}")
    low, high, above = declared.least, declared.most, declared.above
    if (low is None and high is None and above is None) or isinstance(value, str):
        return
    # Written so that NaN is in no range.
    if (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
    ):
        return
    word = "" if declared.word is None else f"{declared.word} or "
    if low is not None and high is not None:
        wanted = f"from {low:,} to {high:,}"
    elif above is not None:
        wanted = f"above {above:,}" + (f" and at most {high:,}" if high is not None else "")
    else:
        wanted = f"{low:,} or more" if low is not None else f"at most {high:,}"
    shown = f"{value:g}" if isinstance(value, float) else value
    raise UsageError(f"`{name}` must be {word}{wanted}, not {shown}")


def check_values(parameters: Any) -> None:
    """Check the values of all fields of a dataclass that are declared with a range or choices.

    Raises:
        UsageError: one is outside.
    """
    for field in dataclasses.fields(parameters):
        if (declared := option_of(field)) is not None:
            check_value(field.name, getattr(parameters, field.name), declared)


def as_options(message: str, names: Mapping[str, str]) -> str:
    """A message with options in place of parameters.

    Args:
        message: names parameters in backticks.
        names: options by the names of parameters.
    """
    return _PARAMETER.sub(lambda found: names.get(found[1], found[0]), message)
