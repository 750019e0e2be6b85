"""Matches as lines of PAF, the pairwise mapping format of minimap2.

Twelve columns: the read, its length, begin and end of the match in it, strand, the sequence, its
length, begin and end in it, twice the length of the match, and 255 for an unknown mapping quality;
then ``nh:i:`` with the number of places. A match without written places has ``*`` for a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.put import put_bytes, put_number
from ngsgpu.jit import njit

_TAB = 9
_FIELDS = 12 * 20 + 32
"""Most bytes of a line without its names."""

_END = np.frombuffer(b"\t255\tnh:i:", dtype=np.uint8)


class Names(NamedTuple):
    """Names in a text.

    Attributes:
        text: uint8.
        begin: int64[n].
        end: int64[n].
    """

    text: NDArray[np.uint8]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]


class Hits(NamedTuple):
    """Places of matches; one without places has one hit, whose ``sequence`` is -1.

    Attributes:
        match: int64[m], row of ``find_maximal``.
        sequence: int64[m].
        offset: int64[m], first base in the sequence.
        reverse: bool[m], whether the read's reverse complement is there.
        places: int64[m], how many places the match has.
    """

    match: NDArray[np.int64]
    sequence: NDArray[np.int64]
    offset: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    places: NDArray[np.int64]


def lines_of(
    reads: Names,
    read_starts: NDArray[np.int64],
    sequences: Names,
    sequence_starts: NDArray[np.int64],
    found: NDArray[np.int64],
    hits: Hits,
) -> NDArray[np.uint8]:
    """The lines of hits, uint8.

    Args:
        reads: their names.
        read_starts: int64[n + 1], where their bases begin.
        sequences: their names.
        sequence_starts: int64[s + 1], where their bases begin.
        found: of ``find_maximal``.
        hits: of these matches.
    """
    own = found[hits.match, 0]
    longest = int((sequences.end - sequences.begin).max())
    room = int((reads.end[own] - reads.begin[own]).sum()) + len(own) * (longest + _FIELDS)
    out = np.empty(room, dtype=np.uint8)
    used = _write_lines(reads, read_starts, sequences, sequence_starts, found, hits, out)
    return out[:used]


@njit(nogil=True, cache=True)
def _write_lines(
    reads: Names,
    read_starts: NDArray[np.int64],
    sequences: Names,
    sequence_starts: NDArray[np.int64],
    found: NDArray[np.int64],
    hits: Hits,
    out: NDArray[np.uint8],
) -> int:
    at = 0
    for hit in range(len(hits.match)):
        match = hits.match[hit]
        read, begin, end = found[match, 0], found[match, 1], found[match, 2]
        at = put_bytes(out, at, reads.text, reads.begin[read], reads.end[read])
        for value in (read_starts[read + 1] - read_starts[read], begin, end):
            out[at] = _TAB
            at = put_number(out, at + 1, value)
        sequence = hits.sequence[hit]
        out[at] = _TAB
        out[at + 2] = _TAB
        at += 3
        low, size, length = np.int64(0), np.int64(0), np.int64(0)
        if sequence < 0:
            out[at - 2] = ord("*")
            out[at] = ord("*")
            at += 1
        else:
            out[at - 2] = ord("-") if hits.reverse[hit] else ord("+")
            at = put_bytes(
                out, at, sequences.text, sequences.begin[sequence], sequences.end[sequence]
            )
            low = hits.offset[hit]
            size = sequence_starts[sequence + 1] - sequence_starts[sequence]
            length = end - begin
        for value in (size, low, low + length, length, length):
            out[at] = _TAB
            at = put_number(out, at + 1, value)
        at = put_bytes(out, at, _END, 0, len(_END))
        at = put_number(out, at, hits.places[hit])
        out[at] = 10
        at += 1
    return at
