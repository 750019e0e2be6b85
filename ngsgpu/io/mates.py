"""First mates that look like second ones: a look at the first names of each file, before a run."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import Source

if TYPE_CHECKING:
    from ngsgpu.io.gpu.records import Files

logger = logging.getLogger("ngsgpu")

_LOOKED_AT: Final = 1 << 16
_NUMBER: Final = re.compile(rb"\S+/([12])(?=\s|$)|\S+\s+([12]):[YN]:")
"""Mate numbers as in ``name/2`` and in Casava's ``name 2:N:0:ACGT``."""


def warn_of_mates(lanes: Iterable[Files]) -> None:
    """Warn for each lane whose first mates are named as second ones, or if both mates are.

    Only the first names of regular files are checked. Other problems of a file are left to its
    readers.
    """
    for lane in lanes:
        if not all(Path(path).is_file() for path in lane.inputs):
            continue
        try:
            fault = _fault(lane)
        except (InputError, OSError):
            continue
        if fault:
            logger.warning("%s: %s", lane.inputs[0], fault)


def _fault(lane: Files) -> str | None:
    """The problem with a lane's mates; None if there is none, or without mates."""
    first = lane.inputs[0]
    if lane.interleaved:
        numbers = _mate_numbers(first)
        if _all(numbers[::2], 2):
            return "the first mates of its pairs are named as second ones; is their order right?"
        return None
    if len(lane.inputs) < 2:
        return None
    second = lane.inputs[1]
    if Path(first).samefile(second):
        return "is given for first and for second mates; name the file of second mates"
    ones, twos = _mate_numbers(first), _mate_numbers(second)
    if _all(ones, 2):
        return f"is given for first mates, but named as second ones; swapped with {second}?"
    if _all(twos, 1):
        return f"has its mates in {second}, which are named as first ones; is it the right file?"
    return None


def _all(numbers: list[int], number: int) -> bool:
    return bool(numbers) and set(numbers) == {number}


def _mate_numbers(path: str) -> list[int]:
    """The mate number in each of the first names: 1, 2, or 0 where there is none."""
    source = Source(path, threads=1, chunk_bytes=_LOOKED_AT)
    try:
        chunk = next(iter(source.chunks()), None)
    finally:
        source.close()
    if chunk is None:
        return []
    lines = chunk.data.tobytes().splitlines()
    if chunk.size == _LOOKED_AT:
        del lines[-1:]  # may be cut short
    names = lines[::4] if lines[:1] and lines[0][:1] == b"@" else lines
    found = (_NUMBER.match(name) for name in names if name[:1] in (b"@", b">"))
    return [int(match[1] or match[2]) if match else 0 for match in found]
