"""Contigs: the tour walked from the edges that follow no other, then around its circuits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.euler.graph import EulerGraph, Places
from ngsgpu.jit import njit
from ngsgpu.pool import working

_TEXT: Final = 1 << 22
"""Letters written at once."""


@dataclass(frozen=True, slots=True)
class Contigs:
    """Paths and circuits of the tour, longest first, then by their first edge.

    Attributes:
        firsts: int[n], first edge; of a circuit, the smallest one.
        sizes: int64[n], number of edges.
        totals: int64[n], sum of their counts.
    """

    firsts: Places
    sizes: NDArray[np.int64]
    totals: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.firsts)


def find_contigs(graph: EulerGraph, successors: Places, shortest: int = 0) -> Contigs:
    """Walk the tour.

    Args:
        graph: the graph.
        successors: int[m], what follows each edge, or -1.
        shortest: bases of the shortest contig that counts.
    """
    followed = np.zeros(len(successors), dtype=np.uint8)
    followed[successors[successors >= 0]] = 1
    starts = np.flatnonzero(followed == 0).astype(successors.dtype)
    parts = []
    seen = np.zeros(len(successors), dtype=np.uint8)
    for edges in (starts, None):
        # What is left is circuits; each is walked from its smallest edge.
        firsts = starts if edges is not None else np.flatnonzero(seen == 0).astype(starts.dtype)
        sizes = np.zeros((len(firsts), 2), dtype=np.int64)
        walk(successors, graph.counts, firsts, seen, sizes)
        kept = sizes[:, 0] > max(0, shortest - graph.length)
        parts.append((firsts[kept], sizes[kept]))
    firsts, sizes = (np.concatenate([part[i] for part in parts]) for i in range(2))
    order = np.lexsort((firsts, -sizes[:, 0]))
    return Contigs(firsts[order], sizes[order, 0], sizes[order, 1])


def write_contigs(
    graph: EulerGraph,
    successors: Places,
    contigs: Contigs,
    write: Callable[[memoryview], None],
    threads: int = 1,
) -> None:
    """Write contigs as FASTA, with the fields of unitigs' headers; threads make the letters.

    Args:
        graph: the graph of the edges.
        successors: the next edge of each edge, or -1.
        contigs: first edges and sizes of the contigs.
        write: called with pieces of the text, in order.
        threads: number of threads; does not affect the text.
    """
    letters = contigs.sizes + (graph.length - 1)
    ends = np.searchsorted(np.cumsum(letters), np.arange(_TEXT, letters.sum() + _TEXT, _TEXT))
    bounds = np.unique(np.concatenate(([0], ends + 1, [len(contigs)])).clip(max=len(contigs)))

    def text(part: tuple[int, int]) -> bytes:
        begin, end = part
        offsets = np.concatenate(([0], np.cumsum(letters[begin:end])))
        out = np.empty(offsets[-1], dtype=np.uint8)
        firsts, sizes = contigs.firsts[begin:end], contigs.sizes[begin:end]
        spell(graph.edges, successors, graph.length, firsts, sizes, offsets, out)
        lines = []
        for i in range(begin, end):
            size, total = int(contigs.sizes[i]), int(contigs.totals[i])
            fields = f"LN:i:{letters[i]} KC:i:{total} km:f:{total / size:.1f}"
            own = out[offsets[i - begin] : offsets[i - begin + 1]].tobytes()
            lines.append(b">%d %s\n%s\n" % (i, fields.encode(), own))
        return b"".join(lines)

    parts = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    with working(threads, text, parts, name="contigs") as done:
        for piece in done:
            write(memoryview(piece))


@njit(nogil=True, cache=True)
def walk(
    successors: Places,
    counts: NDArray[np.uint16],
    firsts: Places,
    seen: NDArray[np.uint8],
    sizes: NDArray[np.int64],
) -> None:
    """Number of edges from each first one, and their counts' sum, up to an edge seen before."""
    for i in range(len(firsts)):
        edge = firsts[i]
        while edge >= 0 and not seen[edge]:
            seen[edge] = 1
            sizes[i, 0] += 1
            sizes[i, 1] += counts[edge]
            edge = successors[edge]


@njit(nogil=True, cache=True)
def spell(
    edges: NDArray[np.uint64],
    successors: Places,
    length: int,
    firsts: Places,
    sizes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write the letters of contigs: all of the first edge, the last one of the others."""
    last = np.uint64(64 - 2 * length)
    for i in range(len(firsts)):
        edge, at = firsts[i], offsets[i]
        for j in range(length - 1):
            code = np.int64((edges[edge] >> np.uint64(62 - 2 * j)) & np.uint64(3))
            out[at + j] = (84 << 24 | 71 << 16 | 67 << 8 | 65) >> (8 * code) & 255
        at += length - 1
        for j in range(sizes[i]):
            code = np.int64((edges[edge] >> last) & np.uint64(3))
            out[at + j] = (84 << 24 | 71 << 16 | 67 << 8 | 65) >> (8 * code) & 255
            edge = successors[edge]
