"""One parameter: how it is given on the command line, and which values it may have.

`option`, `flag` and `argument` stand where a default would: of a field of a dataclass, or of a
parameter of a function; `value` declares a field that only Python gives. Parameters that several
commands share are declared in an annotation::

    Threads = Annotated[int, option(..., "N", "Worker threads.", "-t", "--threads")]
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

_KEY: Final = "option"

INPUT: Final = "Input"
OUTPUT: Final = "Output"
RUN: Final = "Threads, memory and GPUs"
RESEARCH: Final = "For comparisons and research"
"""Headings of the help that many commands have; the help lists the last two last."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a parameter is given.

    Attributes:
        help: what it does, a sentence or two.
        metavar: placeholder of its value; empty: it has none.
        names: on the command line; none: ``--`` and the parameter's name.
        is_argument: whether it is given by its place instead.
        is_hidden: whether the command line has no option for it.
        shown_default: what stands for the default in the help; None: the value itself.
        environment: variable that gives it if the command line does not.
        least: smallest value.
        most: largest value.
        above: value that it must exceed.
        below: value that it must stay below.
        choices: all its values; None: any.
        word: what stands for None on the command line, such as ``auto``.
        alone: value if the option stands alone, without one; None: it needs one.
        kind: ``bool``, ``int`` or ``float`` if its values are; found from its type.
        group: heading of the help that it is under; empty: by the role of its files, or "Settings".
    """

    help: str
    metavar: str = ""
    names: tuple[str, ...] = ()
    is_argument: bool = False
    is_hidden: bool = False
    shown_default: str | None = None
    environment: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] | None = None
    word: str | None = None
    alone: str | None = None
    kind: type | None = None
    group: str = ""


def option(default: object, metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value.

    Args:
        default: value without the option; ``...`` if it is required, or in an annotation.
        metavar: placeholder of the value.
        text: help.
        names: of the option; ``--`` and the parameter's name if none is given.
        more: further attributes of `Option`.
    """
    return _field(default, Option(text, metavar, names, **more))


def flag(text: str, *names: str, default: object = False, group: str = "") -> Any:
    """An option without a value.

    Args:
        text: help.
        names: as of `option`.
        default: value without the option; ``...`` in an annotation.
        group: heading in the help, see `Option`.
    """
    return _field(default, Option(text, names=names, group=group))


def argument(default: object, metavar: str, text: str = "") -> Any:
    """A parameter that is given by its place.

    Args:
        default: value without it; ``...`` if it is required.
        metavar: name in the help.
        text: help.
    """
    return _field(default, Option(text, metavar, is_argument=True))


def value(default: object, text: str, **more: Any) -> Any:
    """A parameter for Python alone; the command line has no option for it.

    Args:
        default: what it is unless given.
        text: help.
        more: further attributes of `Option`.
    """
    return _field(default, Option(text, is_hidden=True, **more))


def option_of(field: object) -> Option | None:
    """What `option` and its like declared, from what they returned; None of anything else."""
    metadata = field.metadata if isinstance(field, dataclasses.Field) else {}
    found = metadata.get(_KEY)
    return found if isinstance(found, Option) else None


def _field(default: object, declared: Option) -> Any:
    given = dataclasses.MISSING if default is ... else default
    return dataclasses.field(default=given, metadata={_KEY: declared})
