"""From the graph of one k to that of a larger one, by the reads.

Inside a piece every window of the larger k is known; only those across links are asked of the
reads. The next graph's pieces are those long enough, and the windows across links: those of reads,
and those of links between two long pieces, which no longer window can tell anything about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.cleaning import find_loops
from ngsgpu.assemble.contigs.pieces import (
    DEPTH_UNIT,
    Pieces,
    base_of,
    begin_of,
    compacted,
    end_of,
    letters,
)
from ngsgpu.assemble.contigs.reads import Reads
from ngsgpu.assemble.contigs.walks import SURE, Threads, hash_of, threaded
from ngsgpu.jit import njit
from ngsgpu.kmers.counted import sorted_counts
from ngsgpu.kmers.cpu import FIRST_SLOTS, add_kmers, find_kmers, into_buckets
from ngsgpu.kmers.params import words_of
from ngsgpu.pool import map_all
from ngsgpu.sequence.hashing import mix64

_BITS: Final = 5
_NO_COUNTS = np.empty(0, dtype=np.uint16)
_NO_QUALITY = np.empty(0, dtype=np.int64)


def raise_k(
    pieces: Pieces,
    reads: Reads,
    k: int,
    scale: tuple[int, int],
    threads: int,
    *,
    keeps_only: bool = False,
) -> Pieces:
    """The graph of a larger k.

    Args:
        pieces: the graph.
        reads: the reads.
        k: the larger one, odd.
        scale: depth is the number of reads of a window times the first, by the second.
        threads: number of threads; does not affect the result.
        keeps_only: whether a link between long pieces also stays if it is the only one at an end of
            a piece that is no error: with few reads, one that no two cross may be true, and without
            it another one would pass for the only way through a repeat.
    """
    found = threaded(pieces, reads, k, threads)
    lengths = pieces.lengths
    long = lengths >= k
    sources = pieces.sources
    sure = found.support >= SURE
    texts: list[NDArray[np.uint8]] = []
    if keeps_only:
        ends = (np.diff(pieces.link_starts) == 1) & np.repeat(_is_common(pieces), 2)
        sure |= ends[sources] | ends[pieces.links ^ 1]
        loops = np.zeros(len(pieces), dtype=np.bool_)
        find_loops(pieces.arrays, pieces.typical_depth(), loops)
        sure |= loops[sources >> 1] | loops[pieces.links >> 1]
        texts += _around_loops(pieces, loops & ~long, k)
    sure &= long[sources >> 1] & long[pieces.links >> 1]
    sure &= sources <= pieces.links ^ 1
    joints = np.empty((int(sure.sum()), 2 * k - 1 - pieces.k), dtype=np.uint8)
    write_joints(
        pieces.k, pieces.bases, pieces.starts, sources[sure], pieces.links[sure], k, joints
    )
    kmers, counts = _counted(found, [*joints, *texts], k, threads)
    taken = np.flatnonzero(long)
    sizes = np.concatenate([lengths[taken], np.full(len(kmers), k)])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    bases = np.empty(int(starts[-1]), dtype=np.uint8)
    write_nodes(pieces.bases, pieces.starts, taken, kmers, k, bases)
    depths = np.concatenate(
        [pieces.depths[taken], counts.astype(np.int64) * (DEPTH_UNIT * scale[0]) // scale[1]]
    )
    link_starts, links = linked(bases, starts, k - 1)
    made = Pieces(k, bases, starts, depths, link_starts, links)
    return compacted(made, np.ones(len(made), dtype=np.bool_))


def _around_loops(pieces: Pieces, loops: NDArray[np.bool_], k: int) -> Iterator[NDArray[np.uint8]]:
    """The bases around short pieces that close loops, of which every window goes across them."""
    for own in (2 * np.flatnonzero(loops)).tolist():
        repeat = int(pieces.links[pieces.link_starts[own]])
        if pieces.lengths[repeat >> 1] >= k:
            parts = begin_of(pieces, own, k), begin_of(pieces, repeat, k - 1)
            inner = [each[pieces.k - 1 :] for each in parts]
            yield np.concatenate([end_of(pieces, repeat, k - 1), *inner])


def _is_common(pieces: Pieces) -> NDArray[np.bool_]:
    """Mask of the pieces at least half as deep as most of the genome."""
    return 2 * pieces.depths >= pieces.typical_depth()


def _counted(
    found: Threads, joints: Sequence[NDArray[np.uint8]], k: int, threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """The windows of stretches in order, and how often each one occurs."""
    text = np.concatenate([found.text, *map(letters, joints)])
    ends = len(found.text) + np.cumsum([len(own) for own in joints], dtype=np.int64)
    places = np.concatenate([found.starts, ends])
    begin, stop = places[:-1], places[1:]
    room = np.empty((int(np.maximum(0, stop - begin - (k - 1)).sum()), words_of(k)), np.uint64)
    size = find_kmers(text, begin, stop, begin, _NO_QUALITY, 0, k, room)
    kmers = np.empty_like(room[:size])
    buckets = np.empty((1 << _BITS) + 1, dtype=np.int64)
    into_buckets(room[:size], _BITS, buckets, kmers)

    def count(bucket: int) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
        table = np.zeros((FIRST_SLOTS, kmers.shape[1] + 1), dtype=np.uint64)
        used = np.zeros(1, dtype=np.int64)
        low, high = buckets[bucket : bucket + 1], buckets[bucket + 1 : bucket + 2]
        table = add_kmers(table, used, kmers, low, high, _NO_COUNTS)
        return sorted_counts(table, _BITS, 1, _NO_COUNTS)

    parts = map_all(threads, count, range(1 << _BITS), name="windows")
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def linked(
    bases: NDArray[np.uint8], starts: NDArray[np.int64], overlap: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Links between all pieces that overlap by a given number of bases.

    Args:
        bases: of the pieces.
        starts: of the pieces.
        overlap: bases.

    Returns:
        ``link_starts`` and ``links`` of the graph; followers in ascending order.
    """
    size = 2 * (len(starts) - 1)
    heads = np.empty(size, dtype=np.uint64)
    tails = np.empty(size, dtype=np.uint64)
    hash_ends(bases, starts, overlap, heads, tails)
    order = np.argsort(heads, kind="stable")
    heads = heads[order]
    low = np.searchsorted(heads, tails, side="left")
    high = np.searchsorted(heads, tails, side="right")
    link_starts = np.zeros(size + 1, dtype=np.int64)
    links = np.empty(int((high - low).sum()), dtype=np.int64)
    found = find_overlaps(bases, starts, overlap, order, low, high, link_starts, links)
    return link_starts, links[:found]


@njit(nogil=True, cache=True)
def hash_ends(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    overlap: int,
    heads: NDArray[np.uint64],
    tails: NDArray[np.uint64],
) -> None:
    """Hash the first and the last bases of every direction."""
    for d in range(len(heads)):
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        heads[d] = mix64(hash_of(bases, starts, d, 0, overlap))
        tails[d] = mix64(hash_of(bases, starts, d, length - overlap, overlap))


@njit(nogil=True, cache=True)
def find_overlaps(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    overlap: int,
    order: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    link_starts: NDArray[np.int64],
    links: NDArray[np.int64],
) -> int:
    """Write the links of directions whose hashes agree, if their bases do; return their number."""
    found = 0
    for d in range(len(low)):
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        for i in range(low[d], high[d]):
            e = order[i]
            same = True
            for j in range(overlap):
                if base_of(bases, starts, d, length - overlap + j) != base_of(bases, starts, e, j):
                    same = False
                    break
            if same:
                links[found] = e
                found += 1
        link_starts[d + 1] = found
    return found


@njit(nogil=True, cache=True)
def write_joints(
    k: int,
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    window: int,
    joints: NDArray[np.uint8],
) -> None:
    """Write the bases around links, of which every window goes across."""
    for i in range(len(sources)):
        d = sources[i]
        length = starts[(d >> 1) + 1] - starts[d >> 1]
        for j in range(window - 1):
            joints[i, j] = base_of(bases, starts, d, length - (window - 1) + j)
        for j in range(k - 1, window - 1):
            joints[i, window - k + j] = base_of(bases, starts, targets[i], j)


@njit(nogil=True, cache=True)
def write_nodes(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    taken: NDArray[np.int64],
    kmers: NDArray[np.uint64],
    k: int,
    out: NDArray[np.uint8],
) -> None:
    """Write the bases of some pieces, then those of k-mers."""
    at = 0
    for piece in taken:
        size = starts[piece + 1] - starts[piece]
        out[at : at + size] = bases[starts[piece] : starts[piece + 1]]
        at += size
    for i in range(len(kmers)):
        for j in range(k):
            out[at] = np.uint8((kmers[i, j >> 5] >> np.uint64(62 - 2 * (j & 31))) & np.uint64(3))
            at += 1
