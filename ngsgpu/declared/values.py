"""Ranges and choices of parameters, checked with one message from Python and the command line.

Messages name parameters in backticks as Python does, alone or with a value: "raise `gpu_memory`,
or use `backend='cpu'`". `as_options` makes them the command line's: "raise --gpu-memory, or use
--backend cpu".
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, dataclass_transform

from ngsgpu.declared.options import Option
from ngsgpu.declared.parameters import declared_options
from ngsgpu.errors import UsageError

T = TypeVar("T")

_KINDS: Final[dict[Any, tuple[str, Callable[[Any], bool]]]] = {
    bool: ("True or False", lambda value: type(value).__name__ in ("bool", "bool_")),
    int: ("a whole number", lambda value: hasattr(value, "__index__")),
    float: ("a number", lambda value: hasattr(value, "__float__")),
}
"""In words, and whether a value is one; numbers may be NumPy's."""

_PARAMETER = re.compile(r"`([a-z_][a-z0-9_]*)(?:=([^`]+))?`")


def check_value(name: str, value: Any, declared: Option) -> None:
    """Check a value; None is in every range.

    Args:
        name: of the parameter.
        value: one value.
        declared: its range or choices.

    Raises:
        UsageError: it is outside, or of another type.
    """
    if value is None:
        return
    if isinstance(value, tuple | list):
        for own in value:
            check_value(name, own, declared)
        return
    if declared.kind is not None:
        words, is_one = _KINDS[declared.kind]
        if not is_one(value):
            raise UsageError(f"`{name}` must be {words}, not {value!r}")
    if declared.choices is not None and value not in declared.choices:
        *others, last = choices = [*map(str, declared.choices)]
        given = repr(value) if str(value) in choices else value
        raise UsageError(f"`{name}` must be {', '.join(others)} or {last}, not {given}")
    if isinstance(value, str) or _is_within(value, declared):
        return
    word = "" if declared.word is None else f"{declared.word} or "
    shown = f"{value:g}" if isinstance(value, float) else value
    raise UsageError(f"`{name}` must be {word}{_range(declared)}, not {shown}")


def _is_within(number: Any, declared: Option) -> bool:
    """Whether a number is in its range; NaN is in none."""
    low, high = declared.least, declared.most
    return (
        (low is None or number >= low)
        and (high is None or number <= high)
        and (declared.above is None or number > declared.above)
        and (declared.below is None or number < declared.below)
    )


def _range(declared: Option) -> str:
    """A range in words."""
    if declared.above is not None and declared.below is not None:
        return f"between {declared.above:,} and {declared.below:,}"
    if declared.least is not None and declared.most is not None:
        return f"from {declared.least:,} to {declared.most:,}"
    words = []
    if declared.least is not None:
        words.append(f"{declared.least:,} or more")
    if declared.above is not None:
        words.append(f"above {declared.above:,}")
    if declared.most is not None:
        words.append(f"at most {declared.most:,}")
    if declared.below is not None:
        words.append(f"below {declared.below:,}")
    return " and ".join(words)


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
        message: names parameters in backticks, some with values.
        names: options by the names of parameters.
    """

    def option(found: re.Match[str]) -> str:
        name, given = found.groups()
        if name not in names:
            return found[0]
        return names[name] if given is None else names[name] + " " + given.strip("'")

    return _PARAMETER.sub(option, message)
