"""Records in and out: a pair's reads in the direction of its fragment, and the output records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.merge.overlap import pack
from ngsgpu.merge.qualities import CYCLE_BITS, CYCLES, SCORES, Tables

_N = np.uint8(ord("N"))
_UPPER = np.uint8(0xDF)
_A, _C, _G, _T = (np.uint8(letter) for letter in b"ACGT")
_A_OR_T = np.uint8(ord("A") ^ ord("T"))
_C_OR_G = np.uint8(ord("C") ^ ord("G"))


@njit(nogil=True, cache=True, inline="always")
def copy(
    out: NDArray[np.uint8], at: Integer, data: NDArray[np.uint8], start: Integer, end: Integer
) -> int:
    """Append bytes; return where the next go."""
    begin, source = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(max(0, end - start))):
        out[begin + i] = data[source + i]
    return at + max(0, end - start)


@njit(nogil=True, cache=True)
def copy_letters(
    data: NDArray[np.uint8], start: Integer, count: Integer, out: NDArray[np.uint8], at: Integer
) -> None:
    """Write letters in upper case, and N for all that are not A, C, G or T."""
    begin, source = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(count)):
        letter = data[source + i] & _UPPER
        is_base = (letter == _A) | (letter == _C) | (letter == _G) | (letter == _T)
        out[begin + i] = letter if is_base else _N


@njit(nogil=True, cache=True)
def copy_complement(
    data: NDArray[np.uint8], last: Integer, count: Integer, out: NDArray[np.uint8], at: Integer
) -> None:
    """Write the complements of ``count`` letters, the one at ``last`` first, going back."""
    begin, source = np.uint64(at), np.uint64(last)
    for i in range(np.uint64(count)):
        letter = data[source - i] & _UPPER
        if_cg = letter ^ _C_OR_G if (letter == _C) | (letter == _G) else _N
        out[begin + i] = letter ^ _A_OR_T if (letter == _A) | (letter == _T) else if_cg


@njit(nogil=True, cache=True)
def copy_scores(
    data: NDArray[np.uint8], start: Integer, count: Integer, offset: Integer, out: NDArray[np.uint8]
) -> None:
    """Write the scores of quality characters; negative ones become zero."""
    source, lowest = np.uint64(start), np.uint8(offset)
    for i in range(np.uint64(count)):
        byte = data[source + i]
        out[i] = byte - lowest if byte > lowest else np.uint8(0)


@njit(nogil=True, cache=True)
def copy_scores_back(
    data: NDArray[np.uint8], last: Integer, count: Integer, offset: Integer, out: NDArray[np.uint8]
) -> None:
    """The same, the character at ``last`` first, going back."""
    source, lowest = np.uint64(last), np.uint8(offset)
    for i in range(np.uint64(count)):
        byte = data[source - i]
        out[i] = byte - lowest if byte > lowest else np.uint8(0)


@njit(nogil=True, cache=True, inline="always")
def put_scores(
    out: NDArray[np.uint8], at: Integer, scores: NDArray[np.uint8], start: Integer, end: Integer,
    offset: Integer,
) -> int:  # fmt: skip
    """Append scores as characters; return where the next go."""
    begin, source, lowest = np.uint64(at), np.uint64(start), np.uint8(offset)
    for i in range(np.uint64(max(0, end - start))):
        out[begin + i] = scores[source + i] + lowest
    return at + max(0, end - start)


@njit(nogil=True, cache=True)
def put_scores_back(
    out: NDArray[np.uint8], at: Integer, scores: NDArray[np.uint8], last: Integer, count: Integer,
    offset: Integer,
) -> int:  # fmt: skip
    """The same for ``count`` scores, the one at ``last`` first, going back."""
    begin, source, lowest = np.uint64(at), np.uint64(last), np.uint8(offset)
    for i in range(np.uint64(count)):
        out[begin + i] = scores[source - i] + lowest
    return at + count


_LF = 10
_PLUS = 43
_AT = 64
_SLASH = 47
_HASH = 35


class Read(NamedTuple):
    """A read in the direction of the fragment.

    Attributes:
        letters: uint8, ACGTN.
        words: the same as uint64.
        scores: uint8.
        planes: uint64[3, words].
    """

    letters: NDArray[np.uint8]
    words: NDArray[np.uint64]
    scores: NDArray[np.uint8]
    planes: NDArray[np.uint64]


@njit(nogil=True, cache=True)
def room_for(longest: int) -> Read:
    """Room for a read of up to ``longest`` bases."""
    words = (longest + 63) // 64 + 1
    letters = np.empty(64 * words, dtype=np.uint8)
    return Read(
        letters,
        letters.view(np.uint64),
        np.empty(64 * words, dtype=np.uint8),
        np.empty((3, words + 1), dtype=np.uint64),
    )


@njit(nogil=True, cache=True)
def load(mates: Mates, i: Integer, offset: Integer, read: Read) -> None:
    """Load a first read unchanged."""
    length = np.int64(mates.seq_len[i])
    copy_letters(mates.data, mates.seq_start[i], length, read.letters, 0)
    copy_scores(mates.data, mates.qual_start[i], length, offset, read.scores)


@njit(nogil=True, cache=True)
def load_reversed(mates: Mates, i: Integer, offset: Integer, read: Read) -> None:
    """Load the reverse complement of a second read."""
    length = np.int64(mates.seq_len[i])
    copy_complement(mates.data, mates.seq_start[i] + length - 1, length, read.letters, 0)
    copy_scores_back(mates.data, mates.qual_start[i] + length - 1, length, offset, read.scores)


@njit(nogil=True, cache=True)
def load_pair(
    mates1: Mates, mates2: Mates, i: Integer, offset: Integer, first: Read, second: Read
) -> bool | np.bool:
    """Load both reads of a pair, and their planes; return if no base is ambiguous."""
    load(mates1, i, offset, first)
    load_reversed(mates2, i, offset, second)
    known1 = pack(first.words, np.int64(mates1.seq_len[i]), first.planes)
    known2 = pack(second.words, np.int64(mates2.seq_len[i]), second.planes)
    return known1 and known2


@njit(nogil=True, cache=True)
def recalibrate(
    read: Read, length: Integer, tables: Tables, mate: Integer, backwards: bool
) -> None:
    """Replace the scores of a read by calibrated ones.

    Args:
        read: in the direction of its fragment; changed.
        length: its bases.
        tables: with ``scores``.
        mate: 0 or 1.
        backwards: whether the base sequenced first is its last one.
    """
    for part in range((length + (1 << CYCLE_BITS) - 1) >> CYCLE_BITS):
        row = (mate * CYCLES + min(part, CYCLES - 1)) * SCORES
        begin, end = part << CYCLE_BITS, min((part + 1) << CYCLE_BITS, length)
        if backwards:
            begin, end = length - end, length - begin
        for i in range(begin, end):
            read.scores[i] = tables.scores[row + (np.int64(read.scores[i]) & (SCORES - 1))]


@njit(nogil=True, cache=True)
def _header(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer, of_pair: bool) -> int:
    """Append a header line without the white space at its end.

    That of a pair is the first mate's up to its last slash, and beyond the character after the
    slash if a number sign follows that, as in ``name/1#ACGT``.
    """
    start = mates.header_start[i]
    end = mates.header_end[i]
    while end > start and (mates.data[end - 1] == 32 or 9 <= mates.data[end - 1] <= 13):
        end -= 1
    out[at] = _AT
    at += 1
    slash = end
    if of_pair:
        slash -= 1
        while slash >= start and mates.data[slash] != _SLASH:
            slash -= 1
        if slash < start:
            slash = end
    at = copy(out, at, mates.data, start, slash)
    if slash + 2 < end and mates.data[slash + 2] == _HASH:
        at = copy(out, at, mates.data, slash + 2, end)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True, inline="always")
def _between(out: NDArray[np.uint8], at: Integer) -> int:
    """Append the separator between bases and qualities."""
    out[at] = _LF
    out[at + 1] = _PLUS
    out[at + 2] = _LF
    return at + 3


@njit(nogil=True, cache=True)
def put_unchanged(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> int:
    """Append an unmerged record."""
    at = _header(mates, i, out, at, False)
    start, length = mates.seq_start[i], np.int64(mates.seq_len[i])
    copy_letters(mates.data, start, length, out, at)
    at = _between(out, at + length)
    at = copy(out, at, mates.data, mates.qual_start[i], mates.qual_start[i] + length)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True)
def put_merged(
    mates1: Mates,
    i: Integer,
    first: Read,
    before: Integer,
    overlap: Read,
    length: Integer,
    second: Read,
    after: Integer,
    after_end: Integer,
    offset: Integer,
    out: NDArray[np.uint8],
    at: Integer,
) -> int:
    """Append a merged record: ``before`` bases of the first, the overlap, the end of the second."""
    at = _header(mates1, i, out, at, True)
    at = copy(out, at, first.letters, 0, before)
    at = copy(out, at, overlap.letters, 0, length)
    at = copy(out, at, second.letters, after, after_end)
    at = _between(out, at)
    at = put_scores(out, at, first.scores, 0, before, offset)
    at = put_scores(out, at, overlap.scores, 0, length, offset)
    at = put_scores(out, at, second.scores, after, after_end, offset)
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True)
def put_corrected(
    mates: Mates,
    i: Integer,
    read: Read,
    overlap: Read,
    start: Integer,
    overlap_length: Integer,
    begin: Integer,
    end: Integer,
    is_reverse: bool,
    offset: Integer,
    out: NDArray[np.uint8],
    at: Integer,
) -> tuple[int, int]:
    """Append a read whose bases from ``start`` on are those of the overlap.

    Args:
        mates: the records.
        i: the record.
        read: the read in the direction of the fragment; changed.
        overlap: the decided bases.
        start: where in ``read`` they belong.
        overlap_length: how many.
        begin: first base of ``read`` that is kept.
        end: end of these.
        is_reverse: whether ``read`` is the reverse complement of the record's.
        offset: of quality characters.
        out: where to write.
        at: from where on.

    Returns:
        (where the next bytes go, number of bases changed).
    """
    changed = 0
    for k in range(overlap_length):
        changed += read.letters[start + k] != overlap.letters[k]
        read.letters[start + k] = overlap.letters[k]
        read.scores[start + k] = overlap.scores[k]
    at = _header(mates, i, out, at, False)
    size = end - begin
    if is_reverse:
        copy_complement(read.letters, end - 1, size, out, at)
        at = _between(out, at + size)
        at = put_scores_back(out, at, read.scores, end - 1, size, offset)
    else:
        at = copy(out, at, read.letters, begin, end)
        at = _between(out, at)
        at = put_scores(out, at, read.scores, begin, end, offset)
    out[at] = _LF
    return at + 1, changed
