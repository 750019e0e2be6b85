"""Unitigs on a GPU, equal to those of ``graph`` and ``chains``.

Chains are ranked by pointer jumping: each direction knows one ahead of it in its chain and how far
away that is, and asks that one for what it knows, so that the distance doubles each time. What
never sees an end is a circle; the smallest directions of circles are found in the same way, and
circles are cut there. Each node then knows its unitig and its place in it, and writes its letter.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.chains import Unitigs
from ngsgpu.assemble.graph import Graph, index_bits
from ngsgpu.device.arena import Arena, persistent
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, plan_on_gpu
from ngsgpu.device.team import limited_gpu_memory
from ngsgpu.pool import parts_within
from ngsgpu.sequence.codec import LETTERS

KERNELS: Final = KernelModule("ngsgpu.assemble")
MOST_NODES: Final = (1 << 30) - 1
"""Of a graph: directions are int32."""

_SMALL_BYTES: Final = 4 << 20
_UNITIG_BYTES: Final = 128
_LETTER_BYTES: Final = 1 << 30
"""Letters that are brought home at a time, at most."""

_NOWHERE = np.uint64(0)


def graph_bytes(size: int, k: int, words: int) -> int:
    """Minimum GPU memory for a graph by its number of nodes, without its unitigs."""
    return size * (8 * words + 64) + 4 * (1 << index_bits(size, k)) + _SMALL_BYTES


def compact_on_gpu(
    kmers: Any,
    counts: Any,
    k: int,
    *,
    limit: int | None = None,
    neighbours: bool = False,
) -> tuple[Graph, Unitigs]:
    """Find the neighbours of all k-mers and compact their graph, on the current GPU.

    Args:
        kmers: uint64[n, words], canonical, ascending, distinct; not none; of NumPy or, on this GPU,
            CuPy.
        counts: uint16[n], likewise.
        k: their length, odd.
        limit: GPU memory that may be used, in bytes; None: free memory.
        neighbours: whether ``masks`` and ``nexts`` of the graph are wanted.

    Returns:
        The graph, without ``starts``, without neighbours unless they are wanted, and without k-mers
        and counts that came from the GPU; and the unitigs, with their letters.

    Raises:
        DeviceMemoryError: the graph does not fit.
        DeviceError: CUDA fails.
    """
    size, words = kmers.shape
    with limited_gpu_memory(limit), cuda_errors("compacting the graph on the GPU"):
        there = 0 if isinstance(kmers, np.ndarray) else kmers.nbytes + counts.nbytes
        plan = plan_on_gpu(
            f"the graph of {size:,} k-mers", None if limit is None else limit - there,
            Allocation("graph", graph_bytes(size, k, words) - there),
            beyond=f"{MOST_NODES:,} k-mers" if size > MOST_NODES else "",
        )  # fmt: skip
        plan.check()
        arena = Arena(min(plan.budget, plan.total + _UNITIG_BYTES * size))
        with arena.in_use():
            run = _Compaction(kmers, counts, k, arena, neighbours=neighbours)
            unitigs = run.unitigs()
            none = np.empty(0, dtype=np.int32)
            if there:
                kmers, counts = np.empty((0, words), np.uint64), np.empty(0, np.uint16)
            return Graph(k, kmers, counts, none, run.masks, run.nexts), unitigs


class _Compaction:
    """One run of ``compact_on_gpu``.

    Attributes:
        masks: of the graph, if they are wanted; on the host.
        nexts: likewise.
    """

    def __init__(
        self,
        kmers: Any,
        counts: Any,
        k: int,
        arena: Arena,
        *,
        neighbours: bool,
    ) -> None:
        import cupy

        self.masks = np.empty(0, dtype=np.uint8)
        self.nexts = np.empty(0, dtype=np.int32)
        self._neighbours = neighbours
        self._k = k
        self._size, self._words = kmers.shape
        self._bits = index_bits(self._size, k)
        self._arena = arena
        with persistent():
            self._kmers, self._counts = (
                to_device(own) if isinstance(own, np.ndarray) else own for own in (kmers, counts)
            )
            self._masks = cupy.empty(self._size, dtype=cupy.uint8)
            self._starts = cupy.empty((1 << self._bits) + 1, dtype=cupy.int32)
        self._index = (self._kmers, self._starts, np.int32(self._bits), np.int32(k))
        self._directions = np.int64(2 * self._size)

    def unitigs(self) -> Unitigs:
        """Compact."""
        reach = self._ranked()
        first, last, sizes, unitig_at, link_starts = self._described(reach)
        links = self._linked(first, last, unitig_at, link_starts)
        home = first.get(), last.get(), sizes.get()
        starts = link_starts.get()
        del first, link_starts
        totals = self._totals(reach, last, unitig_at, len(sizes))
        letters = self._letters(reach, last, sizes, unitig_at)
        return Unitigs(*home, totals, starts, links, letters)

    def _launch_for_words(self, kernel: str, units: int, *arguments: Any) -> None:
        KERNELS.launch_threads(f"{kernel}_{self._words}", units, *arguments)

    def _joined(self) -> Any:
        """Direction that is joined to each direction, int32[2n]."""
        import cupy

        size = np.int64(self._size)
        rows = (self._kmers, np.int32(self._words), size, np.int32(self._bits), self._starts)
        KERNELS.launch_threads("fill_starts", self._size + 1, *rows)
        nexts = cupy.empty(2 * self._size, dtype=cupy.int32)
        self._launch_for_words(
            "find_neighbours", 2 * self._size, *self._index, size, self._masks, nexts
        )
        if self._neighbours:
            self.masks, self.nexts = self._masks.get(), nexts.get()
        joined = cupy.empty(2 * self._size, dtype=cupy.int32)
        KERNELS.launch_threads("join", 2 * self._size, nexts, self._directions, joined)
        return joined

    def _ranked(self) -> Any:
        """Distance of each direction from the end of its chain: structs ``Reach``, int32[2n, 2]."""
        import cupy

        joined = self._joined()
        reach, other = (cupy.empty((2 * self._size, 2), dtype=cupy.int32) for _ in range(2))
        KERNELS.launch_threads(
            "begin_reach", 2 * self._size, joined, _NOWHERE, self._directions, reach
        )
        reach, other, left = self._doubled(reach, other)
        if left == 0:
            return reach
        circles = cupy.flatnonzero(reach[:, 0] >= 0)
        listed = (circles, np.int64(left))
        # ``reach`` keeps the chains, and the circles are begun anew in it.
        for step in range(left.bit_length() + 1):
            KERNELS.launch_threads(
                "double_circle", left, joined, reach, *listed, np.int32(step == 0), other
            )
            reach, other = other, reach
        KERNELS.launch_threads("cut_circles", left, reach, *listed, joined)
        if left.bit_length() % 2 == 0:
            reach, other = other, reach
        KERNELS.launch_threads("begin_reach", left, joined, *listed, reach)
        del circles, listed, joined
        return self._doubled(reach, other)[0]

    def _doubled(self, reach: Any, other: Any) -> tuple[Any, Any, int]:
        """Double until all chains are ranked; the result, room, directions of circles."""
        import cupy

        left = cupy.zeros(1, dtype=cupy.uint32)
        before = -1
        while True:
            left[...] = 0
            KERNELS.launch_threads(
                "double_reach", 2 * self._size, reach, self._directions, other, left
            )
            reach, other = other, reach
            now = int(left[0])
            # A chain that is not done gets shorter each time.
            if now in (0, before):
                return reach, other, now
            before = now

    def _described(self, reach: Any) -> tuple[Any, Any, Any, Any, Any]:
        """First and last directions, sizes, the unitigs at ends, where links begin; in order."""
        import cupy

        owner = cupy.full(self._size, -1, dtype=cupy.int32)
        size = np.int64(self._size)
        self._launch_for_words(
            "choose", 2 * self._size, self._kmers, np.int32(self._k), size, reach, owner
        )
        first = owner[cupy.flatnonzero(owner >= 0)]
        unitigs = len(first)
        # Of nodes that are no ends, it is never read.
        unitig_at = owner
        last = cupy.empty(unitigs, dtype=cupy.int32)
        sizes = cupy.empty(unitigs, dtype=cupy.int64)
        degrees = cupy.empty(2 * unitigs, dtype=cupy.uint32)
        KERNELS.launch_threads(
            "describe", unitigs, first, np.int64(unitigs), reach, self._masks, last, sizes,
            unitig_at, degrees,
        )  # fmt: skip
        link_starts = cupy.zeros(2 * unitigs + 1, dtype=cupy.int64)
        link_starts[1:] = cupy.cumsum(degrees, dtype=cupy.int64)
        return first, last, sizes, unitig_at, link_starts

    def _linked(self, first: Any, last: Any, unitig_at: Any, link_starts: Any) -> NDArray[np.int32]:
        """The links of all ends."""
        import cupy

        links = cupy.empty(int(link_starts[-1]), dtype=cupy.int32)
        self._launch_for_words(
            "list_links", 2 * len(first), *self._index, self._masks, first, last,
            np.int64(len(first)), unitig_at, link_starts, links,
        )  # fmt: skip
        home: NDArray[np.int32] = links.get()
        return home

    def _totals(self, reach: Any, last: Any, unitig_at: Any, unitigs: int) -> NDArray[np.int64]:
        """Sums of the counts of the unitigs' k-mers."""
        import cupy

        totals = cupy.zeros(unitigs, dtype=cupy.uint64)
        KERNELS.launch_threads(
            "add_counts", 2 * self._size, self._counts, self._directions, reach, last, unitig_at,
            totals,
        )  # fmt: skip
        home: NDArray[np.int64] = totals.get().view(np.int64)
        return home

    def _letters(self, reach: Any, last: Any, sizes: Any, unitig_at: Any) -> NDArray[np.uint8]:
        """The letters of all unitigs."""
        import cupy

        places = np.concatenate([[0], np.cumsum(sizes.get() + (self._k - 1))])
        there, letters = cupy.asarray(places), cupy.asarray(LETTERS)
        home = np.empty(int(places[-1]), dtype=np.uint8)
        most = min(_LETTER_BYTES, max(1, self._arena.room - _SMALL_BYTES // 4))
        for begin, end in parts_within(places[1:] - places[0], most):
            part = home[places[begin] : places[end]]
            out = cupy.empty(len(part), dtype=cupy.uint8)
            self._launch_for_words(
                "write_letters", 2 * self._size, self._kmers, np.int32(self._k),
                np.int64(self._size), reach, last, sizes, there, np.int64(begin), np.int64(end),
                unitig_at, letters, out,
            )  # fmt: skip
            out.get(out=part)
            del out
        return home
