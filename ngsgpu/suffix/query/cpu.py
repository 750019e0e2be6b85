"""Exact matches of reads in an FM index of both strands.

A search adds bases in front of what it has and keeps the rows that begin with it (backward search).
Since the text has both strands, the reverse complement of a piece of the read is searched to add
bases behind it.

A match is *maximal* if it occurs in the text and no longer piece of the read around it does. From a
maximal match ``[begin, end)`` the next one is found in two searches: backward from the base at
``end``, as far as it goes, for its beginning; then forward from there for its end. Each base of the
read is so passed about twice for each match that it is in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.intrinsics import prefetch
from ngsgpu.suffix.fm import BLOCK, SAMPLED, base_of, row_before


@njit(nogil=True, cache=True)
def place_of_row(
    words: NDArray[np.uint32],
    primary: Integer,
    totals: NDArray[np.int64],
    sample: NDArray[np.int64],
    row: Integer,
) -> Integer:
    """The place of a row's suffix in the text; -1 in a damaged index."""
    steps = np.int64(0)
    seen: Integer = np.int64(-1)
    while row % SAMPLED:
        if row == seen:  # a circle
            return np.int64(-1)
        if steps & (steps - 1) == 0:
            seen = row
        steps += 1
        if row == primary:
            row = np.int64(0)
        else:
            base = base_of(words, row - 1 if row > primary else row)
            row = min(row_before(words, primary, totals, row, base), totals[4])
    place = steps + sample[row // SAMPLED]
    return place if place < totals[4] else np.int64(-1)


@njit(nogil=True, cache=True)
def search_back(
    words: NDArray[np.uint32],
    primary: Integer,
    totals: NDArray[np.int64],
    codes: NDArray[np.uint8],
    begin: Integer,
    end: Integer,
    turned: bool,
    rows: NDArray[np.int64],
) -> int:
    """Add bases, as long as the text has what was added.

    Args:
        words: of the index.
        primary: of the index.
        totals: of the index.
        codes: of the read; over 3: no base.
        begin: of the read; no base before it is added.
        end: of the read; no base from it on is added.
        turned: False: bases are added from ``end - 1`` down to ``begin``; True: their complements
            from ``begin`` up to ``end - 1``.
        rows: int64[2], gets the first row of what was found and the row after the last.

    Returns:
        How many were added.
    """
    size = totals[4]
    low, high = np.int64(0), np.int64(size + 1)
    added = 0
    while added < end - begin:
        code = np.int64(codes[begin + added] if turned else codes[end - 1 - added])
        if code > 3:
            break
        base = 3 - code if turned else code
        first = row_before(words, primary, totals, low, base)
        after = row_before(words, primary, totals, high, base)
        if first >= after:
            break
        low, high = first, after
        position = (low - 1 if low > primary else low) // BLOCK
        prefetch(words, 16 * position)
        added += 1
    rows[0], rows[1] = low, high
    return added


@njit(nogil=True, cache=True)
def find_maximal(
    words: NDArray[np.uint32],
    primary: Integer,
    totals: NDArray[np.int64],
    codes: NDArray[np.uint8],
    starts: NDArray[np.int64],
    reads: tuple[int, int],
    shortest: Integer,
    whole: bool,
    found: NDArray[np.int64],
) -> int:
    """Find the maximal matches of some reads.

    Args:
        words: of the index.
        primary: of the index.
        totals: of the index.
        codes: uint8[bases], of all reads.
        starts: int64[n + 1], where the reads begin.
        reads: the first read and the one after the last.
        shortest: bases of the shortest match.
        whole: whether only matches of whole reads are wanted.
        found: int64[m, 5], gets the read, the match's begin and end in it, and the first row of its
            reverse complement and the row after the last.

    Returns:
        Number of matches, which may exceed the room for them; -1 in a damaged index.
    """
    rows = np.empty(2, dtype=np.int64)
    count = 0
    for read in range(reads[0], reads[1]):
        low, end = starts[read], starts[read + 1]
        begin = low
        while begin < end:
            stop = begin + search_back(words, primary, totals, codes, begin, end, True, rows)
            if stop - begin >= shortest and (not whole or (begin == low and stop == end)):
                if count < len(found):
                    found[count, 0] = read
                    found[count, 1] = begin - low
                    found[count, 2] = stop - low
                    found[count, 3] = rows[0]
                    found[count, 4] = rows[1]
                count += 1
            if whole or stop == end:
                break
            back = search_back(words, primary, totals, codes, low, stop + 1, False, rows)
            if stop + 1 - back <= begin:
                return -1
            begin = stop + 1 - back
    return count


@njit(nogil=True, cache=True)
def find_places(
    words: NDArray[np.uint32],
    primary: Integer,
    totals: NDArray[np.int64],
    sample: NDArray[np.int64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """Write where the suffixes of rows are in the text.

    Args:
        words: of the index.
        primary: of the index.
        totals: of the index.
        sample: of the index.
        rows: int64[m].
        places: int64[m], gets their places; -1 in a damaged index.
    """
    for i in range(len(rows)):
        places[i] = place_of_row(words, primary, totals, sample, rows[i])


@njit(nogil=True, cache=True)
def turn_places(
    found: NDArray[np.int64], size: Integer, at: NDArray[np.int64], places: NDArray[np.int64]
) -> None:
    """Turn places of reverse complements into those of the matches, ascending for each.

    Args:
        found: of ``find_maximal``.
        size: of the text.
        at: int64[m + 1], where the places of each match begin.
        places: int64, changed in place.
    """
    for match in range(len(found)):
        length = found[match, 2] - found[match, 1]
        for i in range(at[match], at[match + 1]):
            places[i] = size - places[i] - length
        places[at[match] : at[match + 1]].sort()
