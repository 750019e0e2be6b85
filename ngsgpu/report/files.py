"""Reads JSON and lines for the report, with clear errors for damaged files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, unreadable
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.io.paths import own_descriptor
from ngsgpu.io.text.lines import text_lines
from ngsgpu.report import words
from ngsgpu.report.absent import is_present

_DEEPEST: Final = 100
"""Levels of a JSON document at most; those of ngsgpu have fewer than ten."""
_TOO_DEEP: Final = f"it is nested more than {_DEEPEST} deep"
_HALF: Final = re.compile("[\ud800-\udfff]")
_BYTE: Final = re.compile("[\udc80-\udcff]")
"""What Python, and so the statistics of a run, have for a byte of a file name that is not UTF-8."""


def is_text(name: str) -> bool:
    """Whether a name can be shown: it has no half of a character (a lone surrogate)."""
    return _HALF.search(name) is None


def _read_text(path: Path, remedy: str) -> str:
    try:
        # One of the shell has its writer; for that of any other the report would wait for ever.
        if path.is_fifo() and own_descriptor(path, standard=0) is None:
            raise InputError(path, "it is a named pipe", "give a file")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise InputError(path, "it is not UTF-8 text", remedy) from error


def numbered_lines(path: Path, remedy: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, read at once."""
    return iter(enumerate(text_lines(_read_text(path, remedy)), 1))


def load_json(path: Path, remedy: str) -> Any:
    """Read a JSON file; bytes of file names that are not UTF-8 become U+FFFD.

    Raises:
        InputError: it cannot be read, is not JSON, or cannot be shown.
    """
    text = _read_text(path, remedy)
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        cause = f"it is not valid JSON ({error.msg})"
        raise InputError(path, cause, remedy, line=error.lineno) from error
    except ValueError as error:
        raise InputError(path, f"it is not valid JSON ({error})", remedy) from error
    if cause := _unfit(document):
        raise InputError(path, cause, remedy)
    return _without_bytes(document) if "\\udc" in text.lower() else document


def _without_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_bytes(key): _without_bytes(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_bytes(inner) for inner in value]
    return _BYTE.sub("\ufffd", value) if isinstance(value, str) else value


def _unfit(document: Any) -> str:
    """Why a document cannot be shown; empty if it can."""
    level = [document]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, str) and not is_text(_BYTE.sub("", value)):
                return f"it holds half of a character (a lone surrogate): {ascii(value)[:60]}"
        if not inner:
            return ""
        level = inner
    return _TOO_DEEP


def read_json(path: Path, schema: str, version: int, *others: str) -> dict[str, Any]:
    """Read a JSON object and check its ``schema`` (or one of others) and ``schema_version``.

    Args:
        path: the file.
        schema: expected schema.
        version: newest known version.
        *others: further schemas that are accepted.

    Raises:
        InputError: when it cannot be read, is not JSON, or is of another kind or newer version.
    """
    document = load_json(path, "make the file again")
    if not isinstance(document, dict) or document.get("schema") not in (schema, *others):
        raise InputError(path, f"it does not have the schema {schema}", "give the right file")
    found = document.get("schema_version")
    if not isinstance(found, int) or not 1 <= found <= version:
        raise InputError(
            path,
            f"its schema_version {found!r} is not supported (at most {version})",
            "make the file with this version of ngsgpu",
        )
    return document


def load_fastp(path: Path) -> Json:
    """Read a JSON report of fastp, or of ``ngsgpu trim``, which has the same form.

    Raises:
        InputError: it cannot be read, or is none.
    """
    document = load_json(path, "make the file again")
    summary = document.get("summary") if isinstance(document, dict) else None
    if not isinstance(summary, dict) or not isinstance(summary.get("before_filtering"), dict):
        raise InputError(path, "it is no JSON report of fastp", "make the file again")
    return Json(path, document)


def is_by_fastp(report: Json) -> bool:
    """Whether fastp wrote such a report, rather than ``ngsgpu trim``."""
    return "ngsgpu" not in str(report.get("summary.fastp_version"))


def trimmers(reports: Iterable[Json]) -> str:
    """The programs that wrote such reports; without reports, ours."""
    names = {"fastp" if is_by_fastp(own) else "ngsgpu trim" for own in reports}
    return words.listed(sorted(names or {"ngsgpu trim"}))


def _is_number(value: Any) -> bool:
    """Whether a value is a number that is shown without losing itself: finite, below 1e300."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


_LARGEST_VALUE: Final = 10_000_000
"""Of a histogram, which is drawn value by value: no fragment is longer."""


class Json:
    """A JSON object with access by path and checks that name the file and the entry.

    An entry of another kind than asked for is an `InputError`.
    """

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self.path = path
        self.document = document

    def get(self, key: str) -> Any:
        """The entry at a dotted path, ``None`` if there is none."""
        value: Any = self.document
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def number(self, key: str) -> float | None:
        """A number; ``None`` if there is none."""
        value = self.get(key)
        if value is None:
            return None
        if not _is_number(value):
            raise self._wrong(key, "is not a number")
        return cast(float, value)

    def moment(self, key: str) -> float:
        """A time as statistics have it, in seconds since the epoch."""
        try:
            return datetime.fromisoformat(str(self.get(key))).timestamp()
        except ValueError:
            raise self._wrong(key, "is not a time") from None

    def line(self, label: str, key: str, of: str = "") -> tuple[str, str, str]:
        """A line of a table: label, a count, and its share of another one if that is named.

        Args:
            label: label of the line.
            key: dotted key of the count.
            of: dotted key of the whole; empty for no share.
        """
        value = self.number(key)
        share: str = words.share(value, self.number(of)) if of and value is not None else ""
        return label, words.count(value), share

    def array(self, key: str) -> NDArray[np.float64]:
        """A list of numbers; empty if there is none."""
        return self.as_array(self.get(key), key)

    def as_array(self, value: Any, key: str) -> NDArray[np.float64]:
        """Check that a value is a list of numbers, and turn it into an array."""
        numbers = value if value is not None else []
        if not isinstance(numbers, list) or not all(map(_is_number, numbers)):
            raise self._wrong(key, "is not a list of numbers")
        return np.array(numbers, dtype=np.float64)

    def histogram(self, key: str) -> list[tuple[int, int]]:
        """A list of values, ascending, each with its count; empty if there is none."""
        rows = [self.as_array(row, key) for row in self.entries(key)]
        last = -1.0
        for row in rows:
            if len(row) != 2 or not (last < row[0] <= _LARGEST_VALUE and 0 <= row[1] < np.inf):
                raise self._wrong(key, "is not a list of ascending values and their counts")
            last = row[0]
        return [(int(value), int(count)) for value, count in rows]

    def entries(self, key: str) -> list[Any]:
        """A list; empty if there is none."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(key, "is not a list")
        return value

    def _wrong(self, key: str, what: str) -> InputError:
        return InputError(self.path, f"{key} {what}", "make the file again")


def json_if_present(
    path: Path | None, what: str, schema: str, missing: list[str], *others: str
) -> Json | None:
    """Read a result; if it is missing, its description and the reason are added to ``missing``.

    Args:
        path: the result; None if the study has none.
        what: its description.
        schema: expected schema.
        missing: descriptions of what is missing; extended in place.
        *others: further schemas that are accepted.

    Raises:
        InputError: it exists, but is damaged or of another kind.
    """
    if not is_present(path, what, missing):
        return None
    assert path is not None
    return Json(path, read_json(path, schema, 1, *others))


def json_if_named(path: Path | None, what: str, schema: str, missing: list[str]) -> Json | None:
    """The same for results that not every study has: without a path, nothing is missing.

    Args:
        path: the result; None if the study has none.
        what: its description.
        schema: expected schema.
        missing: descriptions of what is missing; extended in place.
    """
    return None if path is None else json_if_present(path, what, schema, missing)


def moments(
    stats: Json, entry: str, deviation: str, what: str, of: str
) -> list[tuple[str, str, str]]:
    """Lines with the mean and the standard deviation of lengths; of none, they have no value.

    Args:
        stats: statistics of a run.
        entry: dotted key of the lengths.
        deviation: key of the standard deviation within it.
        what: name of the lengths in the labels.
        of: dotted key of the number of pairs.
    """
    is_known = stats.number(of) != 0
    return [
        (
            f"{label} of the {what}",
            words.decimal(stats.number(f"{entry}.{key}") if is_known else None, 1),
            "",
        )
        for label, key in (("mean", "mean"), ("standard deviation", deviation))
    ]
