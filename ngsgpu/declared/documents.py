"""Files of settings that users write: YAML, TOML or JSON, of texts, numbers, lists and tables.

Nothing in them can become more than it looks: YAML has no tags and no aliases, size and depth are
bounded, and a value is a number or true or false only where it is written as this program would
write it. All else is text as it is typed, such as 2026-05-01, 1.10, 0x1f or no.
"""

from __future__ import annotations

import datetime
import math
import operator
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final

from ngsgpu.errors import InputError

_YAML: Final = {".yaml", ".yml", ".json"}  # JSON is YAML
_MOST_BYTES: Final = 1 << 18
_MOST_VALUES: Final = 10_000
_DEEPEST: Final = 20
_LONGEST: Final = 4096
"""Characters of a text, as of a path."""
_MOST_DOTS: Final = 40
_DIGITS: Final = 18
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?")
_WORDS: Final = {"": None, "~": None, "null": None, "true": True, "false": False}
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def read_document(path: str | Path) -> Any:
    """The content of a file, by its name's ending; TOML if that says nothing.

    Returns:
        Text, int, finite float, bool, None, lists of these, or dicts with texts as keys.

    Raises:
        InputError: it cannot be read, or is no such document.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(path, f"cannot be read ({reason})", "check the path") from error
    if len(data) > _MOST_BYTES:
        raise InputError(
            path, f"is larger than {_MOST_BYTES:,} bytes", "give a file that a person wrote"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path, "cannot be read (it is no text)", "write it in UTF-8") from error
    try:
        if Path(path).suffix.lower() in _YAML:
            return _of_yaml(path, text)
        # A name of n parts takes n^2 bytes, and more, in tomllib.
        if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
            raise ValueError(f"a line has more than {_MOST_DOTS} dots")
        return checked(tomllib.loads(text, parse_float=lambda own: _meant(own.replace("_", ""))))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise InputError(path, f"is not what its name says ({reason})", "correct it") from error


def _of_yaml(path: str | Path, text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise InputError(
            path, "YAML needs PyYAML", "install it (pip install pyyaml), or write TOML"
        ) from error
    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        kinds = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)
        needed = (own for own in events if not isinstance(own, kinds))
        if next(needed, None) is None:
            return None
        found = _Reader(needed).value(next(needed), 1)
        if (more := next(needed, None)) is not None:
            raise ValueError(f"a second document begins{_place(more)}")
        return checked(found)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


class _Reader:
    """Makes values of the events of PyYAML's parser, whose classes it knows by their names."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._count = 0

    def value(self, event: Any, depth: int) -> Any:
        kind = type(event).__name__
        self._count += 1
        if kind == "AliasEvent":
            raise ValueError(f"there is an alias (*){_place(event)}; write the value itself")
        if event.tag is not None:
            raise ValueError(f"there is a tag (!){_place(event)}; leave it out")
        if depth > _DEEPEST or self._count > _MOST_VALUES:
            raise ValueError(f"it is nested too deeply, or has too many values{_place(event)}")
        if kind == "ScalarEvent":
            return event.value if event.style else _meant(event.value)
        inner = self._inside(kind.removesuffix("StartEvent") + "EndEvent")
        if kind == "SequenceStartEvent":
            return [self.value(own, depth + 1) for own in inner]
        found: dict[str, Any] = {}
        for key in inner:
            if type(key).__name__ != "ScalarEvent" or key.tag is not None:
                raise ValueError(f"a name is no text{_place(key)}")
            if key.value in found:
                raise ValueError(f"{key.value!r} is there twice{_place(key)}")
            found[key.value] = self.value(next(self._events), depth + 1)
        return found

    def _inside(self, end: str) -> Iterator[Any]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield event


def _place(event: Any) -> str:
    return f" in line {event.start_mark.line + 1}"


def _meant(text: str) -> Any:
    """The value of a plain word: what is written otherwise than a number would be is text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _DIGITS + 8 and _NUMBER.fullmatch(text):
        number = float(text) if {*text} & {*".e"} else int(text)
        if str(number) == text and abs(number) < 10**_DIGITS:
            return number
    return text


def checked(value: Any, depth: int = 1) -> Any:
    """A value as documents have them, with paths and dates as texts.

    Args:
        value: of a document, or as a Python program gives it.
        depth: of the list or table it is in, and one.

    Raises:
        ValueError: it is none.
    """
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(value, Mapping):
        return {str(checked(name)): checked(own, depth + 1) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [checked(own, depth + 1) for own in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, str | PurePath):
        return _checked_text(str(value))
    return value if value is None or isinstance(value, bool) else _checked_number(value)


def _checked_number(value: Any) -> int | float:
    """A number of Python's own kinds, also of one that is NumPy's."""
    if hasattr(value, "__index__"):
        if abs(number := operator.index(value)) >= 10**_DIGITS:
            raise ValueError(f"a number has more than {_DIGITS} digits")
        return number
    if not hasattr(value, "__float__"):
        raise ValueError(f"a value is no text or number but {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number")
    return float(value)


def _checked_text(text: str) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"a text is longer than {_LONGEST:,} characters")
    if "\0" in text or _SURROGATES.search(text):
        raise ValueError(f"{text[:40]!r} has characters that no text has")
    return text
