"""Inflates pieces of a gzip file, with or without knowing the preceding text.

A piece whose preceding 32 KiB (its *window*) are not known yet is inflated twice, each time after
another made-up window. How a deflate stream is decoded does not depend on the bytes that it
repeats, so the two results, *twins*, differ in those bytes alone that come from the window; and
since the two windows have another pair of bytes at every place, the pair tells the place. So one
pass over the twins puts in the right bytes as soon as the window is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.io.compress.bits import WINDOW, DamagedError, closed, inflate_part
from ngsgpu.io.compress.members import FOOTER_BYTES, Footer, member_start, read_footer
from ngsgpu.jit import njit

MAX_TEXT: Final = 1 << 26
"""Bytes that a piece may become; more are left to inflating one after the other."""

MOST_MEMBERS: Final = 256
"""Most members of a piece; of more, shorter ones, the rest of the file is inflated faster by one
thread."""

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
        text: uint8, the bytes.
        twin: if they depend on a window that was not known: the same, inflated after another one.
        crc: CRC-32 of the bytes, once they are known.
        footer: what the member's end says of it, if it ends here.
    """

    text: NDArray[np.uint8]
    twin: NDArray[np.uint8] | None = None
    crc: int = 0
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
        IrregularError: the piece does not end so, is damaged, very large, or of many members.
    """
    segments: list[Segment] = []
    stream = closed(data, end)
    while True:
        segment, at = _inflate_member(stream, start, window)
        if end is not None and at == len(stream):
            return [*segments, segment]
        segment.footer = read_footer(data, at)
        if segment.footer is None:
            raise IrregularError
        at += FOOTER_BYTES
        segments.append(segment)
        if len(segments) > MOST_MEMBERS:
            raise IrregularError
        if end is None and _is_padding(data, at):
            return segments
        begin = member_start(data, at)
        if begin is None or (end is not None and 8 * begin > end):
            raise IrregularError
        start = 8 * begin
        window = b""
        if start == end:
            return [*segments, Segment(np.empty(0, dtype=np.uint8))]


def _inflate_member(
    stream: NDArray[np.uint8], start: int, window: bytes | None
) -> tuple[Segment, int]:
    """Inflate up to the end of a member or of the piece; the byte where that is, too."""
    twin = None
    try:
        if window is None:
            part = inflate_part(stream, start, _FIRST.tobytes(), MAX_TEXT)
            twin = inflate_part(stream, start, _SECOND.tobytes(), MAX_TEXT).text
        else:
            part = inflate_part(stream, start, window, MAX_TEXT)
    except DamagedError as error:
        raise IrregularError from error
    crc = 0 if twin is not None else isal_zlib.crc32(part.text)
    return Segment(part.text, twin, crc), part.position


def _is_padding(data: memoryview, at: int) -> bool:
    """Whether nothing but zeros follows."""
    return at == len(data) or (data[at] == 0 and not bytes(data[at:]).strip(b"\0"))


def window_after(segments: list[Segment], window: bytes) -> bytes:
    """The window of the piece that follows one of these segments and window."""
    segment = segments[-1]
    tail = segment.text[-WINDOW:]
    if segment.twin is not None:
        tail = merge_twins(tail, segment.twin[-WINDOW:], window)
    before = window if len(segments) == 1 else b""
    return (before + tail.tobytes())[-WINDOW:]


def complete(segments: list[Segment], window: bytes) -> None:
    """Put the right bytes into a piece that was inflated without its window of full length."""
    segment = segments[0]
    if segment.twin is not None:
        segment.text = merge_twins(segment.text, segment.twin, window)
        segment.twin = None
        segment.crc = isal_zlib.crc32(segment.text)


def merge_twins(
    first: NDArray[np.uint8], second: NDArray[np.uint8], window: bytes
) -> NDArray[np.uint8]:
    """The right bytes of a part.

    Args:
        first: the part, inflated after the first window.
        second: the same after the second.
        window: the right one.
    """
    merged = np.empty_like(first)
    pairs = _PAIRS[WINDOW - len(window) :]
    _merge(first, second, pairs, np.frombuffer(window, dtype=np.uint8), merged)
    return merged


@njit(nogil=True, cache=True)
def _merge(first, second, pairs, window, merged):  # type: ignore[no-untyped-def]
    """For each pair of bytes the right one: the same, or that of the window."""
    table = np.empty(1 << 16, dtype=np.uint8)
    for pair in range(table.size):
        table[pair] = pair & 0xFF
    for k in range(pairs.size):
        table[pairs[k]] = window[k]
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
