"""The assembly graph: pieces of sequence that overlap by k - 1 bases, and the links between them.

A piece is read in two directions: ``d = 2 * piece`` as it stands, ``d = 2 * piece + 1`` as its
reverse complement, and ``d ^ 1`` is the other direction. Every k-mer occurs in one piece at most.
If ``e`` follows ``d``, the last k - 1 bases of ``d`` are the first of ``e``, and ``d ^ 1`` follows
``e ^ 1``. Followers of a direction differ in the base behind the overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.chains import Unitigs
from ngsgpu.assemble.graph import Graph
from ngsgpu.assemble.text import write_bases
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import map_all
from ngsgpu.sequence.codec import CODES, LETTERS

DEPTH_UNIT: Final = 256
"""Depths are stored in units of 1 / DEPTH_UNIT."""

_LONG: Final = 1000
_PLASMID: Final = 2000
_PART: Final = 1 << 12
"""Pieces that a task writes."""

_CODES = np.arange(4, dtype=np.uint8)


class GraphArrays(NamedTuple):
    """An assembly graph as kernels take it; see ``Pieces``."""

    k: int
    bases: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    depths: NDArray[np.int64]
    link_starts: NDArray[np.int64]
    links: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """An assembly graph.

    Attributes:
        k: pieces that are linked overlap by k - 1 bases.
        bases: uint8[m], codes of all pieces, one after the other.
        starts: int64[n + 1], where each piece begins in ``bases``.
        depths: int64[n], mean count of a piece's k-mers, those of the first graph, times
            ``DEPTH_UNIT``.
        link_starts: int64[2n + 1], where the links of each direction begin in ``links``.
        links: int64[l], directions that follow.
    """

    k: int
    bases: NDArray[np.uint8]
    starts: NDArray[np.int64]
    depths: NDArray[np.int64]
    link_starts: NDArray[np.int64]
    links: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.depths)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each piece."""
        return np.diff(self.starts)

    @property
    def arrays(self) -> GraphArrays:
        """The graph for kernels."""
        return GraphArrays(
            self.k, self.bases, self.starts, self.lengths, self.depths, self.link_starts, self.links
        )

    @property
    def sources(self) -> NDArray[np.int64]:
        """The direction that each link follows."""
        return np.repeat(np.arange(2 * len(self)), np.diff(self.link_starts))

    def typical_depth(self) -> int:
        """Depth below which half of the k-mers of reads lie, by the long pieces if they have most.

        Errors have few k-mers of reads, however many pieces they make.
        """
        return self._typical(np.arange(len(self)))

    def _typical(self, rows: NDArray[np.int64]) -> int:
        """``typical_depth`` of some pieces."""
        lengths, depths = self.lengths[rows], self.depths[rows]
        mass = (lengths - (self.k - 1)) * depths
        long = np.where(lengths >= _LONG, mass, 0)
        counted = long if 2 * int(long.sum()) >= int(mass.sum()) else mass
        if not len(counted):
            return 0
        order = np.argsort(depths, kind="stable")
        sums = np.cumsum(counted[order])
        return int(depths[order][np.searchsorted(sums, sums[-1] / 2)])

    def copy_depths(self) -> NDArray[np.int64]:
        """Depth of one copy of what each piece is a part of: int64[n], in ``DEPTH_UNIT``.

        That is the typical depth; but what no link joins to the rest and is deeper is a plasmid of
        many copies, if it is long enough; or a chromosome, if such a plasmid has most of the reads.
        """
        typical = self.typical_depth()
        found = np.full(len(self), typical, dtype=np.int64)
        parts = np.zeros(len(self), dtype=np.int64)
        find_parts(self.link_starts, self.links, parts)
        bases = np.bincount(parts, weights=self.lengths - (self.k - 1), minlength=1)
        for part in np.flatnonzero(bases >= _PLASMID).tolist():
            rows = np.flatnonzero(parts == part)
            own = self._typical(rows)
            if 2 * own > 3 * typical or 2 * own < typical:
                found[rows] = own
        return found


@njit(nogil=True, cache=True)
def find_parts(
    link_starts: NDArray[np.int64], links: NDArray[np.int64], parts: NDArray[np.int64]
) -> None:
    """Write the number of the first piece that links lead to from each piece, over any others."""
    seen = np.zeros(len(parts), dtype=np.bool_)
    stack = np.empty(len(parts), dtype=np.int64)
    for first in range(len(parts)):
        if seen[first]:
            continue
        seen[first] = True
        stack[0] = first
        used = 1
        while used > 0:
            used -= 1
            piece = stack[used]
            parts[piece] = first
            for i in range(link_starts[2 * piece], link_starts[2 * piece + 2]):
                other = links[i] >> 1
                if not seen[other]:
                    seen[other] = True
                    stack[used] = other
                    used += 1


def pieces_of(graph: Graph, unitigs: Unitigs, threads: int = 1) -> Pieces:
    """Unitigs as an assembly graph.

    Args:
        graph: the de Bruijn graph.
        unitigs: the unitigs of the graph.
        threads: number of threads; does not affect the result.
    """
    starts = np.concatenate([[0], np.cumsum(unitigs.sizes + (graph.k - 1))])
    bases = np.empty(int(starts[-1]), dtype=np.uint8)

    def write(begin: int) -> None:
        end = min(len(unitigs), begin + _PART)
        own = bases[starts[begin] : starts[end]]
        if unitigs.letters is not None:
            own[...] = CODES[unitigs.letters[starts[begin] : starts[end]]]
            return
        write_bases(
            graph.kmers, graph.nexts, graph.masks, graph.k,
            unitigs.first, unitigs.sizes, begin, end, _CODES, own,
        )  # fmt: skip

    map_all(threads, write, range(0, len(unitigs), _PART), name="bases")
    depths = unitigs.totals * DEPTH_UNIT // np.maximum(1, unitigs.sizes)
    links = unitigs.links.astype(np.int64)
    return Pieces(graph.k, bases, starts, depths, unitigs.link_starts, links)


@dataclass(frozen=True, slots=True)
class Paths:
    """Walks through an assembly graph.

    Attributes:
        starts: int64[n + 1], where each one begins in ``steps``.
        steps: int64[m], directions.
        circles: those that go on from their end to their beginning, by what joined them.
    """

    starts: NDArray[np.int64]
    steps: NDArray[np.int64]
    circles: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.starts) - 1


def compacted(
    pieces: Pieces, alive: NDArray[np.bool_], kept: NDArray[np.bool_] | None = None
) -> Pieces:
    """Take out pieces and links, and join pieces that have become one path.

    New pieces are in the order of the lower of their two end pieces, with which they begin;
    circles come last, and begin with their lowest piece.

    Args:
        pieces: the graph.
        alive: bool[n], which pieces stay.
        kept: bool[l], which links stay, as in the other direction; all, if None.
    """
    sources = pieces.sources
    stays = alive[sources >> 1] & alive[pieces.links >> 1]
    if kept is not None:
        stays &= kept
    pieces = replace(
        pieces,
        links=pieces.links[stays],
        link_starts=np.concatenate(
            [[0], np.cumsum(np.bincount(sources[stays], minlength=2 * len(pieces)))]
        ),
    )
    room = int(np.count_nonzero(alive))
    starts = np.zeros(room + 1, dtype=np.int64)
    steps = np.empty(room, dtype=np.int64)
    found = find_paths(pieces.link_starts, pieces.links, alive, starts, steps)
    return _joined(pieces, Paths(starts[: found + 1], steps))


def _joined(pieces: Pieces, paths: Paths) -> Pieces:
    """The graph whose pieces are paths that have no branches inside, each piece in one."""
    lengths = pieces.lengths
    overlap = pieces.k - 1
    kmers = lengths[paths.steps >> 1] - overlap
    begins = paths.starts[:-1]
    sums = np.add.reduceat(kmers, begins) if len(paths) else np.empty(0, dtype=np.int64)
    weights = kmers * pieces.depths[paths.steps >> 1]
    totals = np.add.reduceat(weights, begins) if len(paths) else sums
    starts = np.concatenate([[0], np.cumsum(sums + overlap)])
    bases = np.empty(int(starts[-1]), dtype=np.uint8)
    spell(pieces.bases, pieces.starts, overlap, paths.starts, paths.steps, starts, bases)
    first, last = paths.steps[begins], paths.steps[paths.starts[1:] - 1]
    head = np.full(2 * len(pieces), -1, dtype=np.int64)
    head[last ^ 1] = 2 * np.arange(len(paths)) + 1
    head[first] = 2 * np.arange(len(paths))
    out = np.stack([last, first ^ 1], axis=1).reshape(-1)
    degrees = np.diff(pieces.link_starts)[out]
    link_starts = np.concatenate([[0], np.cumsum(degrees)])
    at = np.arange(int(link_starts[-1])) + np.repeat(
        pieces.link_starts[out] - link_starts[:-1], degrees
    )
    depths = totals // np.maximum(1, sums)
    return Pieces(pieces.k, bases, starts, depths, link_starts, head[pieces.links[at]])


def without_ends(pieces: Pieces, cuts: NDArray[np.int64]) -> Pieces:
    """The graph without the ends of pieces.

    Args:
        pieces: the graph.
        cuts: int64[n, 2], bases to cut from the begin and from the end of each piece; none where it
            has links.
    """
    steps = np.zeros(len(pieces.bases) + 1, dtype=np.int64)
    np.add.at(steps, pieces.starts[:-1] + cuts[:, 0], 1)
    np.add.at(steps, pieces.starts[1:] - cuts[:, 1], -1)
    return replace(
        pieces,
        bases=pieces.bases[np.cumsum(steps)[:-1] > 0],
        starts=np.concatenate([[0], np.cumsum(pieces.lengths - cuts.sum(axis=1))]),
    )


def turn(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The codes of the other strand."""
    return np.uint8(3) - codes[::-1]


def begin_of(pieces: Pieces, d: int, size: int) -> NDArray[np.uint8]:
    """The first codes of a direction.

    Args:
        pieces: the graph.
        d: the direction.
        size: codes; all, if there are fewer.
    """
    begin, end = pieces.starts[d >> 1], pieces.starts[(d >> 1) + 1]
    if d & 1:
        return turn(pieces.bases[max(begin, end - size) : end])
    return pieces.bases[begin : min(end, begin + size)]


def end_of(pieces: Pieces, d: int, size: int) -> NDArray[np.uint8]:
    """The last codes of a direction.

    Args:
        pieces: the graph.
        d: the direction.
        size: codes; all, if there are fewer.
    """
    return turn(begin_of(pieces, d ^ 1, size))


@njit(nogil=True, cache=True)
def successor_of(link_starts: NDArray[np.int64], links: NDArray[np.int64], d: Integer) -> Integer:
    """The only follower of ``d``, if ``d`` is its only predecessor and another piece; or -1."""
    if link_starts[d + 1] - link_starts[d] != 1:
        return -1
    e = links[link_starts[d]]
    if e >> 1 == d >> 1 or link_starts[(e ^ 1) + 1] - link_starts[e ^ 1] != 1:
        return -1
    return e


@njit(nogil=True, cache=True)
def find_paths(
    link_starts: NDArray[np.int64],
    links: NDArray[np.int64],
    alive: NDArray[np.bool_],
    starts: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> int:
    """Walk all paths without branches; return their number.

    Args:
        link_starts: of the graph.
        links: of the graph, without those of dead pieces.
        alive: bool[n].
        starts: int64[room + 1], gets where each path begins, and the last ends.
        steps: int64[room], gets the directions.
    """
    seen = ~alive
    found = at = 0
    for closed in range(2):
        for piece in range(len(alive)):
            if seen[piece]:
                continue
            d = 2 * piece
            if not closed and successor_of(link_starts, links, d + 1) >= 0:
                d += 1
                if successor_of(link_starts, links, d - 1) >= 0:
                    continue
            while d >= 0 and not seen[d >> 1]:
                steps[at] = d
                seen[d >> 1] = True
                at += 1
                d = successor_of(link_starts, links, d)
            found += 1
            starts[found] = at
    return found


@njit(nogil=True, cache=True)
def base_of(
    bases: NDArray[np.uint8], starts: NDArray[np.int64], d: Integer, i: Integer
) -> np.uint8:
    """Base ``i`` of direction ``d``."""
    if d & 1:
        return np.uint8(3) - bases[starts[(d >> 1) + 1] - 1 - i]
    return bases[starts[d >> 1] + i]


@njit(nogil=True, cache=True)
def spell(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    overlap: int,
    path_starts: NDArray[np.int64],
    steps: NDArray[np.int64],
    places: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write the bases of paths.

    Args:
        bases: of the graph.
        starts: of the graph.
        overlap: k - 1.
        path_starts: of the paths.
        steps: of the paths.
        places: int64[n + 1], where the bases of each path go.
        out: gets them.
    """
    for path in range(len(path_starts) - 1):
        at = places[path]
        for step in range(path_starts[path], path_starts[path + 1]):
            d = steps[step]
            begin = 0 if step == path_starts[path] else overlap
            for i in range(begin, starts[(d >> 1) + 1] - starts[d >> 1]):
                out[at] = base_of(bases, starts, d, i)
                at += 1


def letters(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes as text."""
    return LETTERS[codes]
