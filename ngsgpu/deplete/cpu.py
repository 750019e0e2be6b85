"""The depletion kernels: which reads are the host's, and the records that are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.kmers import (
    BLOCK,
    SEPARATOR,
    Room,
    contains,
    hash_all,
    new_room,
    sample_block,
)
from ngsgpu.deplete.params import MILLION, Bounds, Sampling
from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

_LF = np.uint8(10)
_CR = np.uint8(13)
_UPPER = np.uint8(0xDF)
_BASES = (np.uint8(65), np.uint8(67), np.uint8(71), np.uint8(84))

COUNTERS = ("units", "kept_units", "bases", "kept_bases")
"""Counters of a run. A unit is a pair, or a read without mate."""
UNITS, KEPT_UNITS, BASES, KEPT_BASES = range(len(COUNTERS))


@njit(nogil=True, cache=True, inline="always")
def _append(
    data: NDArray[np.uint8], start: Integer, length: Integer, is_wrapped: bool,
    text: NDArray[np.uint8], at: Integer,
) -> int:  # fmt: skip
    """Append the letters of a read and a separator; return where the next goes.

    Inlined, like ``_covered``: passing arrays to a function takes longer than a short read does.
    """
    source, target = np.uint64(start), np.uint64(at)
    if is_wrapped:  # as FASTA may be
        done = np.uint64(0)
        while done < np.uint64(length):
            letter = data[source]
            source += np.uint64(1)
            text[target + done] = letter
            done += np.uint64((letter != _LF) & (letter != _CR))
    else:
        for k in range(np.uint64(length)):
            text[target + k] = data[source + k]
    text[target + np.uint64(length)] = SEPARATOR
    return at + length + 1


@njit(nogil=True, cache=True, inline="always")
def _covered(
    starts: NDArray[np.int64], hashes: NDArray[np.uint64], begin: int, end: int, at: int,
    table: NDArray[np.uint32], k: int, enough: int,
) -> int:  # fmt: skip
    """Bases of a read that k-mers of the host cover, counted up to ``enough``.

    Args:
        starts: where the block's sampled k-mers begin.
        hashes: of these.
        begin: the first k-mer of the read.
        end: end of its k-mers.
        at: where the read begins in the block.
        table: k-mers of the host.
        k: length of a k-mer.
        enough: number of bases after which counting stops.
    """
    covered, last = 0, at
    for i in range(begin, end):
        if contains(table, hashes[i]):
            covered += min(k, starts[i] + k - last)
            last = starts[i] + k
            if covered >= enough:
                break
    return covered


@njit(nogil=True, cache=True, inline="always")
def _end_of(starts: NDArray[np.int64], begin: int, found: int, end: int) -> int:
    """The first k-mer from ``begin`` on that does not begin before ``end``."""
    while begin < found and starts[begin] < end:
        begin += 1
    return begin


@njit(nogil=True, cache=True)
def _is_short_host(
    room: Room, letters: int, sampling: Sampling, table: NDArray[np.uint32], least: int, enough: int
) -> bool:
    """Whether a short unit, of which k-mers of the host cover too little, is the host's.

    It is if all its sampled k-mers are the host's, or if these cover enough of it once a base that
    none of them covers is replaced: a read of 50 bases has few k-mers without its error.

    Args:
        room: workspace, whose text is the unit's.
        letters: of the text.
        sampling: which k-mers count.
        table: those of the host.
        least: bases that k-mers must cover if all are the host's.
        enough: bases that they must cover once one base is replaced.
    """
    k = sampling.kmer
    found = int(sample_block(room, letters, sampling))
    hash_all(room, found, table)
    is_covered = np.zeros(letters, dtype=np.bool_)
    hits = 0
    for i in range(found):
        if contains(table, room.kmers[i]):
            hits += 1
            is_covered[room.starts[i] : room.starts[i] + k] = True
    if hits == found and is_covered.sum() >= least:
        return True
    for at in range(letters):
        own = room.text[at]
        if is_covered[at] or own == SEPARATOR:
            continue
        for letter in _BASES:
            if letter == own & _UPPER:
                continue
            room.text[at] = letter
            found = int(sample_block(room, letters, sampling))
            hash_all(room, found, table)
            if _covered(room.starts, room.kmers, 0, found, 0, table, k, enough) >= enough:
                return True
        room.text[at] = own
    return False


@njit(nogil=True, cache=True)
def find_kept(
    first: Mates,
    second: Mates,
    paired: bool,
    begin: int,
    end: int,
    sampling: Sampling,
    table: NDArray[np.uint32],
    bounds: Bounds,
    keep_host: bool,
    kept: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    """Decide which of the units ``begin`` up to ``end`` are kept.

    Args:
        first: reads, or first mates.
        second: second mates.
        paired: whether there are any.
        begin: first unit.
        end: end of the units.
        sampling: which k-mers count.
        table: those of the host.
        bounds: bases of a unit that they must cover for it to be the host's.
        keep_host: whether the host's are kept.
        kept: bool[end - begin], the decisions.
        counts: int64[len(COUNTERS)], added to.
    """
    longest = BLOCK
    for i in range(begin, end):
        longest = max(longest, first.seq_len[i] + second.seq_len[i] + 2)
    room = new_room(longest)
    other = new_room(bounds.short_bases + 2)
    is_wrapped = len(first.qual_start) == 0
    i = begin
    while i < end:
        stop, at = i, 0
        while stop < end and at + first.seq_len[stop] + second.seq_len[stop] + 2 <= longest:
            at = _append(
                first.data, first.seq_start[stop], np.int64(first.seq_len[stop]), is_wrapped,
                room.text, at,
            )  # fmt: skip
            if paired:
                at = _append(
                    second.data, second.seq_start[stop], np.int64(second.seq_len[stop]),
                    is_wrapped, room.text, at,
                )  # fmt: skip
            stop += 1
        found = sample_block(room, at, sampling)
        hash_all(room, found, table)
        at = place = 0
        while i < stop:
            length1 = int(first.seq_len[i])
            length2 = int(second.seq_len[i]) if paired else 0
            bases = length1 + length2
            by_share = (bounds.millionths * bases + MILLION - 1) // MILLION
            enough = max(bounds.least, min(bounds.most, bases // 2), by_share)
            begun = at
            after = _end_of(room.starts, place, found, at + length1)
            covered = _covered(
                room.starts, room.kmers, place, after, at, table, sampling.kmer, enough
            )
            at, place = at + length1 + 1, after
            if paired:
                after = _end_of(room.starts, place, found, at + length2)
                if covered < enough:
                    covered += _covered(
                        room.starts, room.kmers, place, after, at, table, sampling.kmer,
                        enough - covered,
                    )  # fmt: skip
                at, place = at + length2 + 1, after
            is_host = covered >= enough
            if not is_host and covered and bases <= bounds.short_bases:
                letters = at - begun
                other.text[:letters] = room.text[begun:at]
                is_host = _is_short_host(
                    other, letters, sampling, table, by_share, max(enough, 2 * bases // 3)
                )
            keep = is_host == keep_host
            kept[i - begin] = keep
            counts[UNITS] += 1
            counts[BASES] += bases
            if keep:
                counts[KEPT_UNITS] += 1
                counts[KEPT_BASES] += bases
            i += 1
