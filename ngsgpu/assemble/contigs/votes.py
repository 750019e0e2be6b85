"""Votes of reads on the bases of pieces.

Windows of a large k are in few reads, and where one ends, the last of them may be wrong. Reads that
lie on a piece by a word elsewhere outvote it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import Paths, Pieces, spell
from ngsgpu.assemble.contigs.places import Places, place_reads
from ngsgpu.assemble.contigs.reads import Reads, unpack
from ngsgpu.jit import njit
from ngsgpu.pool import map_all

_PART: Final = 1 << 15
_ALIKE: Final = 4
"""A read votes if fewer than a quarter of its bases on the piece differ from it."""

_LEAST: Final = 2
_RUN: Final = 12
_RATIO: Final = 2
"""A base gives way to another one that two reads have, and more than twice as many as any other. An
end is sure where two reads agree with this many bases in a row."""

_ONES = np.ones(_RUN, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Votes:
    """What reads say about the bases of pieces.

    Attributes:
        keys: int64[n], places where reads differ, times four, plus the base they have; ascending.
        times: int64[n], reads that have it.
        agree: int64[m], reads that agree with each base.
    """

    keys: NDArray[np.int64]
    times: NDArray[np.int64]
    agree: NDArray[np.int64]

    def others(self) -> NDArray[np.int64]:
        """Reads that have another base than each of ``keys``: int64[n]."""
        place = self.keys >> 2
        against = np.zeros(len(self.agree), dtype=np.int64)
        np.add.at(against, place, self.times)
        return self.agree[place] + against[place] - self.times


def votes_on(pieces: Pieces, reads: Reads, places: Places, threads: int) -> Votes:
    """The votes of placed reads.

    Args:
        pieces: the graph.
        reads: the reads.
        places: of all reads on the graph.
        threads: number of threads; does not affect the result.
    """
    count = len(places.direction)
    longest = int(reads.lengths.max(initial=0))
    begins = np.zeros(count, dtype=np.int64)
    ends = np.zeros(count, dtype=np.int64)

    def work(first: int) -> NDArray[np.int64]:
        last = min(count, first + _PART)
        room = int(reads.lengths[first:last].sum(dtype=np.int64)) // _ALIKE + 1
        differ = np.empty(room, dtype=np.int64)
        used = compare(
            pieces.bases, pieces.starts, reads.bases, reads.starts, reads.lengths,
            places.direction, places.at, first, last, longest, begins, ends, differ,
        )  # fmt: skip
        return differ[:used].copy()

    parts = map_all(threads, work, range(0, count, _PART), name="votes")
    keys, times = np.unique(
        np.concatenate([np.empty(0, dtype=np.int64), *parts]), return_counts=True
    )
    size = len(pieces.bases)
    agree = np.cumsum(
        np.bincount(begins, minlength=size + 1) - np.bincount(ends, minlength=size + 1)
    )
    np.subtract.at(agree, keys >> 2, times)
    return Votes(keys, times, agree[:size])


def corrected(pieces: Pieces, votes: Votes) -> Pieces:
    """The graph with the bases for which reads speak.

    Bases that a piece shares with one that it has a link to stay.

    Args:
        pieces: the graph.
        votes: on its bases.
    """
    overlap = pieces.k - 1
    free = np.ones(len(pieces.bases), dtype=np.bool_)
    linked = np.diff(pieces.link_starts) > 0
    for piece in np.flatnonzero(linked[0::2]).tolist():
        free[pieces.starts[piece + 1] - overlap : pieces.starts[piece + 1]] = False
    for piece in np.flatnonzero(linked[1::2]).tolist():
        free[pieces.starts[piece] : pieces.starts[piece] + overlap] = False
    place = votes.keys >> 2
    better = free[place] & (votes.times >= _LEAST) & (votes.times > _RATIO * votes.others())
    bases = pieces.bases.copy()
    bases[place[better]] = votes.keys[better] & 3
    return replace(pieces, bases=bases)


def corrected_paths(pieces: Pieces, paths: Paths, reads: Reads, threads: int) -> Pieces:
    """The graph with the bases for which the reads on its paths speak, across links as well.

    What one read says gives way to two. Bases of pieces that are in several places stay, and those
    shared with a piece that is not next to theirs on the path.

    Args:
        pieces: the graph.
        paths: through it.
        reads: the reads.
        threads: number of threads; does not affect the result.
    """
    if not len(paths):
        return pieces
    whole, begins = _along(pieces, paths)
    votes = votes_on(whole, reads, place_reads(whole, reads, len(reads), threads), threads)
    others = votes.others()
    better = (votes.times >= _LEAST) & ((votes.times > _RATIO * others) | (others == 1))
    bases = pieces.bases.copy()
    steps, sizes = paths.steps, pieces.lengths[paths.steps >> 1]
    single = np.bincount(steps >> 1, minlength=len(pieces))[steps >> 1] == 1
    left, right = _closed(pieces, paths)
    for key in votes.keys[better].tolist():
        place, code = key >> 2, key & 3
        # The steps of a path are in order, and the bases where two overlap are in both.
        first = int(np.searchsorted(begins + sizes, place, side="right"))
        last = int(np.searchsorted(begins, place, side="right"))
        own = np.arange(first, last)
        at = place - begins[own]
        shared = (left[own] & (at < pieces.k - 1)) | (
            right[own] & (at >= sizes[own] - (pieces.k - 1))
        )
        if single[own].all() and not shared.any():
            for d, i in zip(steps[own].tolist(), at.tolist(), strict=True):
                turns = d & 1
                begin, end = pieces.starts[d >> 1], pieces.starts[(d >> 1) + 1]
                bases[end - 1 - i if turns else begin + i] = 3 - code if turns else code
    return replace(pieces, bases=bases)


def _along(pieces: Pieces, paths: Paths) -> tuple[Pieces, NDArray[np.int64]]:
    """The paths as pieces without links, and where each step begins in all their bases.

    Args:
        pieces: the graph.
        paths: through it.
    """
    overlap = pieces.k - 1
    sizes = pieces.lengths[paths.steps >> 1]
    own = sizes - overlap
    own[paths.starts[:-1]] += overlap
    ends = np.cumsum(own)
    starts = np.concatenate([[0], ends[paths.starts[1:] - 1]])
    bases = np.empty(int(starts[-1]), dtype=np.uint8)
    spell(pieces.bases, pieces.starts, overlap, paths.starts, paths.steps, starts, bases)
    none = np.zeros(2 * len(paths) + 1, dtype=np.int64)
    depths = np.zeros(len(paths), dtype=np.int64)
    return Pieces(pieces.k, bases, starts, depths, none, none[:0]), ends - sizes


def _closed(pieces: Pieces, paths: Paths) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the begin and the end of each step have links to other steps than the next one."""
    steps = paths.steps
    number = np.diff(pieces.link_starts)
    left, right = number[steps ^ 1] > 0, number[steps] > 0
    inner = np.ones(len(steps), dtype=np.bool_)
    inner[paths.starts[1:] - 1] = False
    for row in np.flatnonzero(inner & (number[steps] == 1)).tolist():
        after = int(steps[row + 1])
        if pieces.links[pieces.link_starts[steps[row]]] == after and number[after ^ 1] == 1:
            right[row] = left[row + 1] = False
    return left, right


def lone_ends(
    pieces: Pieces, votes: Votes, unsure: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Bases at the ends of pieces of which no two reads are sure, as of ``without_ends``.

    Args:
        pieces: the graph.
        votes: on its bases.
        unsure: bool[2n], directions that have links, none of which two reads cross: what they share
            with what follows may be foreign to them. None: no direction.
    """
    cuts = np.zeros((len(pieces), 2), dtype=np.int64)
    counted = np.diff(pieces.link_starts) == 0
    if unsure is not None:
        counted |= unsure
    for d in np.flatnonzero(counted).tolist():
        shared = pieces.k - 1 if pieces.link_starts[d] < pieces.link_starts[d + 1] else 0
        agree = votes.agree[pieces.starts[d >> 1] : pieces.starts[(d >> 1) + 1]]
        sure = (agree if d & 1 else agree[::-1])[shared:] >= _LEAST
        # Where the only two reads disagree, one of them is wrong: what is behind it is not sure.
        runs = np.convolve(sure, _ONES, "full")[_RUN - 1 :] == _RUN
        lone = shared + int(np.argmax(runs))
        cuts[d >> 1, 1 - (d & 1)] = lone if runs.any() and 2 * lone <= len(agree) - pieces.k else 0
    return cuts


@njit(nogil=True, cache=True)
def compare(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    read_bases: NDArray[np.uint8],
    read_starts: NDArray[np.int64],
    read_lengths: NDArray[np.int32],
    direction: NDArray[np.int64],
    place: NDArray[np.int64],
    first: int,
    last: int,
    longest: int,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    differ: NDArray[np.int64],
) -> int:
    """Compare some reads with the pieces on which they lie.

    Args:
        bases: of the pieces.
        starts: of the pieces.
        read_bases: of the reads.
        read_starts: of the reads.
        read_lengths: of the reads.
        direction: of ``Places``.
        place: ``at`` of ``Places``.
        first: read to begin with.
        last: of the reads.
        longest: length of the longest read.
        begins: gets the first base of the pieces that each read votes on.
        ends: gets the base behind the last one.
        differ: gets the places of bases that differ, times four, plus the base of the read.

    Returns:
        The number of bases that differ.
    """
    codes = np.empty(longest, dtype=np.uint8)
    used = 0
    for read in range(first, last):
        d = direction[read]
        if d < 0:
            continue
        length = np.int64(read_lengths[read])
        unpack(read_bases, read_starts[read], length, codes)
        begin, end = starts[d >> 1], starts[(d >> 1) + 1]
        low = max(np.int64(0), -place[read])
        high = min(length, end - begin - place[read])
        before = used
        for i in range(low, high):
            at = end - 1 - place[read] - i if d & 1 else begin + place[read] + i
            code = np.uint8(3) - codes[i] if d & 1 else codes[i]
            if bases[at] != code:
                differ[used] = 4 * at + np.int64(code)
                used += 1
                if _ALIKE * (used - before) > high - low:
                    break
        if _ALIKE * (used - before) > high - low:
            used = before
        elif d & 1:
            begins[read], ends[read] = end - place[read] - high, end - place[read] - low
        else:
            begins[read], ends[read] = begin + place[read] + low, begin + place[read] + high
    return used
