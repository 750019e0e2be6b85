"""Copies records as they are, some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

_LF = np.uint8(10)
_CR = np.uint8(13)


def kept_records(
    mates: Sequence[Mates], begin: int, kept: NDArray[np.bool_], *, interleaved: bool
) -> list[NDArray[np.uint8]]:
    """Copies of the records that are kept.

    Args:
        mates: records, or those of first and second mates.
        begin: first unit.
        kept: which units are kept, from ``begin`` on.
        interleaved: whether mates lie in one file, in turn.

    Returns:
        The bytes, uint8, for each output: one of interleaved mates.
    """
    sizes = [_bytes(own, begin, begin + len(kept)) for own in mates]
    rooms = [sum(sizes)] if interleaved else sizes
    pieces = []
    for own, room in zip(mates, rooms, strict=False):
        out = np.empty(room, dtype=np.uint8)
        pieces.append(out[: _copy_kept(own, mates[-1], interleaved, begin, kept, out)])
    return pieces


def _bytes(mates: Mates, begin: int, end: int) -> int:
    """Bytes of records, with a line feed that may be missing."""
    starts, ends = mates.header_start[begin:end], mates.record_end[begin:end]
    return int((ends - starts).sum(dtype=np.int64)) + (end - begin) + 1


@njit(nogil=True, cache=True)
def _copy_record(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> int:
    """Copy a record and one line feed; return where the next record goes.

    A record of FASTQ ends with its qualities, whatever blank lines follow.
    """
    start, end = mates.header_start[i] - 1, mates.record_end[i]
    if len(mates.qual_start) > 0:
        text = mates.qual_start[i] + mates.seq_len[i]
        end = text + 1 if text < end and mates.data[text] == _CR else text
    elif mates.data[end - 1] == _LF:
        end -= 1
    source, target = np.uint64(start), np.uint64(at)
    size = np.uint64(end - start)
    for k in range(size):
        out[target + k] = mates.data[source + k]
    out[target + size] = _LF
    return at + (end - start) + 1


@njit(nogil=True, cache=True)
def _copy_kept(
    first: Mates,
    second: Mates,
    interleaved: bool,
    begin: int,
    kept: NDArray[np.bool_],
    out: NDArray[np.uint8],
) -> int:
    """Copy the records of ``first`` that are kept; return the number of bytes.

    Args:
        first: records.
        second: their mates.
        interleaved: whether each mate follows its record.
        begin: first unit.
        kept: which units are kept, from ``begin`` on.
        out: room for them, and for a line feed each.
    """
    at = 0
    for i in range(len(kept)):
        if kept[i]:
            at = _copy_record(first, begin + i, out, at)
            if interleaved:
                at = _copy_record(second, begin + i, out, at)
    return at
