"""Ranges and choices of parameters, checked with one message from Python and the command line.

Messages name parameters as Python does, in backticks; `as_options` makes them the command line's.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, TypeVar, dataclass_transform

from ngsgpu.declared.options import Option
from ngsgpu.declared.parameters import declared_options
from ngsgpu.errors import UsageError

T = TypeVar("T")

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
    if isinstance(value, tuple):
        for own in value:
            check_value(name, own, declared)
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


@dataclass_transform(frozen_default=True)
def parameters(declared: type[T]) -> type[T]:
    """Make a class a frozen dataclass of parameters, which checks what its fields declare.

    Its own ``__post_init__``, for what depends on several of them, runs afterwards. Its help lists
    the fields.
    """
    fields = declared_options(declared)
    own = declared.__dict__.get("__post_init__")

    def check(made: T) -> None:
        for name, option in fields.items():
            check_value(name, getattr(made, name), option)
        if own is not None:
            own(made)

    declared.__post_init__ = check  # type: ignore[attr-defined]
    lines = [f"    {name}: {option.help}" for name, option in fields.items()]
    text = inspect.cleandoc(declared.__doc__ or "")
    declared.__doc__ = "\n".join([text, "", "Attributes:", *lines])
    return dataclasses.dataclass(frozen=True, slots=True)(declared)


def as_options(message: str, names: Mapping[str, str]) -> str:
    """A message with options in place of parameters.

    Args:
        message: names parameters in backticks.
        names: options by the names of parameters.
    """
    return _PARAMETER.sub(lambda found: names.get(found[1], found[0]), message)
