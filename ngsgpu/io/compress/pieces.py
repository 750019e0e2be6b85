"""Inflates pieces of a gzip file, with or without knowing the preceding text.

A piece whose preceding 32 KiB (its *window*) are not known yet is inflated twice, each time after
another made-up window. How a deflate stream is decoded does not depend on the bytes that it
repeats, so the two results, *twins*, differ in those bytes alone that come from the window; and
since the two windows have another pair of bytes at every place, the pair tells the place. So one
pass over the twins puts in the right bytes as soon as the window is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.io.compress.bits import WINDOW, Inflater
from ngsgpu.io.compress.members import (
    ERRORS,
    FOOTER_BYTES,
    Footer,
    member_start,
    read_footer,
)
from ngsgpu.io.compress.stream import Part
from ngsgpu.jit import njit

MAX_TEXT: Final = 1 << 25
"""Bytes that a piece may become; more are left to inflating one after the other."""

_PLACES: Final = np.arange(WINDOW)
_FIRST: Final = (_PLACES % 256).astype(np.uint8)
_SECOND: Final = ((_PLACES + 1 + _PLACES // 256) % 256).astype(np.uint8)
_PAIRS: Final = _FIRST | _SECOND.astype(np.uint16) << 8


class IrregularError(Exception):
    """A piece that has to be inflated by other means, which find out what is wrong with it."""


@dataclass(slots=True)
class Segment:
    """Inflated bytes of one member of a gzip file.

    Attributes:
        parts: the bytes.
        twins: as many of the first parts as depend on a window that was not known: the same,
            inflated after another window.
        crc: CRC-32 of the bytes, once they are known.
        size: how many bytes there are.
        footer: what the member's end says of it, if it ends here.
    """

    parts: list[Part] = field(default_factory=list)
    twins: list[bytes] = field(default_factory=list)
    crc: int = 0
    size: int = 0
    footer: Footer | None = None


def inflate(data: memoryview, start: int, end: int | None, window: bytes | None) -> list[Segment]:
    """Inflate a piece of a gzip file.

    Args:
        data: compressed bytes that hold the piece.
        start: bit where it begins, with a block.
        end: bit where it ends, with a block of the same member or a later one; None for the file's
            last piece.
        window: the bytes before, up to 32 KiB of the same member; None if they are not known.

    Raises:
        IrregularError: the piece does not end so, is damaged, or very large.
    """
    segments = []
    while True:
        try:
            segment, at = _inflate_member(data, start, end, window)
        except ERRORS as error:
            raise IrregularError from error
        segments.append(segment)
        if segment.footer is None or (end is None and _is_padding(data, at)):
            return segments
        begin = member_start(data, at)
        if begin is None or (end is not None and 8 * begin > end):
            raise IrregularError
        start = 8 * begin
        window = b""
        if start == end:
            return [*segments, Segment()]


def _inflate_member(
    data: memoryview, start: int, end: int | None, window: bytes | None
) -> tuple[Segment, int]:
    """Inflate up to the end of a member or of the piece; where the member ends, too."""
    segment = Segment()
    twin = None
    if window is None:
        twin = Inflater(data, start, end, _SECOND.tobytes()).steps()
    inflater = Inflater(data, start, end, _FIRST.tobytes() if window is None else window)
    for part in inflater.steps():
        segment.parts.append(part)
        segment.size += len(part)
        if twin is not None:
            other = next(twin)
            segment.twins.append(other)
            if len(part) >= WINDOW and part[-WINDOW:] == other[-WINDOW:]:
                twin = None
        if window is not None:
            segment.crc = isal_zlib.crc32(part, segment.crc)
        if segment.size > MAX_TEXT:
            raise IrregularError
    if inflater.met_end:
        return segment, 0
    if not inflater.ended:
        raise IrregularError
    at = inflater.position
    segment.footer = read_footer(data, at)
    if segment.footer is None:
        raise IrregularError
    return segment, at + FOOTER_BYTES


def _is_padding(data: memoryview, at: int) -> bool:
    """Whether nothing but zeros follows."""
    return at == len(data) or (data[at] == 0 and not bytes(data[at:]).strip(b"\0"))


def window_after(segments: list[Segment], window: bytes) -> bytes:
    """The window of the piece that follows one of these segments and window."""
    segment = segments[-1]
    if len(segments) > 1:
        return _tail(segment.parts, b"")
    if not segment.twins:
        return _tail(segment.parts, window)
    first = np.frombuffer(_tail(segment.parts, _FIRST.tobytes()), dtype=np.uint8)
    others = [*segment.twins, *segment.parts[len(segment.twins) :]]
    second = np.frombuffer(_tail(others, _SECOND.tobytes()), dtype=np.uint8)
    return merge_twins(first, second, _table(window)).tobytes()


def _tail(parts: list[Part] | list[Part | bytes], before: bytes) -> bytes:
    """The last bytes, as many as a window has."""
    held: list[bytes] = []
    size = 0
    for part in reversed(parts):
        held.append(bytes(part[-WINDOW:]))
        size += len(held[-1])
        if size >= WINDOW:
            break
    else:
        held.append(before)
    return b"".join(reversed(held))[-WINDOW:]


def complete(segments: list[Segment], window: bytes) -> None:
    """Put the right bytes into a piece that was inflated without its window of full length."""
    segment = segments[0]
    table = _table(window)
    for index, twin in enumerate(segment.twins):
        part = np.frombuffer(segment.parts[index], dtype=np.uint8)
        segment.parts[index] = merge_twins(part, np.frombuffer(twin, dtype=np.uint8), table)
    segment.twins = []
    for right in segment.parts:
        segment.crc = isal_zlib.crc32(right, segment.crc)


def _table(window: bytes) -> NDArray[np.uint8]:
    """For each pair of bytes of the twins the right one."""
    table = (np.arange(1 << 16) % 256).astype(np.uint8)
    table[_PAIRS[WINDOW - len(window) :]] = np.frombuffer(window, dtype=np.uint8)
    return table


def merge_twins(
    first: NDArray[np.uint8], second: NDArray[np.uint8], table: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The right bytes of a part.

    Args:
        first: the part, inflated after the first window.
        second: the same after the second.
        table: for each pair of bytes the right one.
    """
    merged = np.empty_like(first)
    _merge(first, second, table, merged)
    return merged


@njit(nogil=True, cache=True)
def _merge(first, second, table, merged):  # type: ignore[no-untyped-def]
    words = first.size // 8
    left, right = first[: words * 8].view(np.uint64), second[: words * 8].view(np.uint64)
    out = merged[: words * 8].view(np.uint64)
    for k in range(words):
        if left[k] == right[k]:
            out[k] = left[k]
            continue
        for at in range(8 * k, 8 * k + 8):
            merged[at] = table[first[at] | np.uint16(second[at]) << 8]
    for at in range(8 * words, first.size):
        merged[at] = table[first[at] | np.uint16(second[at]) << 8]
