"""Queries on one GPU or several: the counterpart of ``engine``.

One warp handles a query: it sketches the reads, looks up the features, sorts the locations in
registers and selects the candidates. Where there are more locations than a warp holds, a block
counts them by windows and sorts these. For the few queries with too many windows, locations are
sorted together in device memory (a radix sort by query and window).

With several GPUs, each searches some of the partitions or, if there is only one, some of the
queries. The first, which has read the queries, sends them to the others and combines the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ngsgpu.classify.query.cpu import PartitionArrays
from ngsgpu.classify.query.engine import Engine, partition_bytes
from ngsgpu.classify.query.gpu_batch import NULL, GpuBatch, GpuNames, GpuReads
from ngsgpu.classify.sketch.gpu import sketch_numbers
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_of_warps
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import pinned_empty, to_device
from ngsgpu.device.plan import Allocation, plan_on_gpu
from ngsgpu.device.team import Team, here
from ngsgpu.pool import parts_within

KERNELS: Final = KernelModule("ngsgpu.classify.query", "query.cu")
LONGER: Final = KernelModule("ngsgpu.classify.query", "longer.cu")
QUERY_WARPS: Final = 8

_COUNTERS: Final = 4
"""Of a search in a partition, as in ``longer.cuh``."""
_LONGEST: Final = 2
"""Which of them counts queries for the radix sort."""

PARTITION: Final = Struct(__name__, "Partition", {
    "directory": "const uint2*",
    "entries": "const uint32_t*",
    "locations": "const uint32_t*",
    "first_window": "const uint32_t*",
    "block_target": "const int32_t*",
    "target": "const int32_t*",
    "taxon": "const int32_t*",
    "taxon_of_target": "const int32_t*",
    "bits": "int64_t",
    "entry_count": "int64_t",
    "location_count": "int64_t",
    "last_window": "int64_t",
})  # fmt: skip
"""``PartitionArrays``. ``taxon`` and ``taxon_of_target`` (by the database's numbers) are null where
calls may be sequences; ``last_window`` is that of all targets."""

_LOCATIONS_AT_ONCE: Final = 1 << 26
"""Approximate number of locations sorted together in device memory; each takes some 40 bytes."""

_SIZES: Final = 3


class Search(NamedTuple):
    """A running search.

    Attributes:
        reads: the queries.
        candidates: int32[queries, m, 4], see ``GpuBatch``.
        sizes: int32[3, queries], see there.
        longest: uint64[partitions, queries], queries whose locations the radix sort sorts (low
            half) and their number.
    """

    reads: GpuReads
    candidates: Any
    sizes: Any
    longest: Any


class Searcher:
    """Finds candidates in partitions on the current GPU.

    Args:
        engine: the database and the parameters.
        partitions: the partitions to search.
        memory: GPU memory budget in bytes; None: free memory.
        like: a searcher of the same partitions on this GPU, which are not copied to it again.

    Raises:
        DeviceError: the partitions do not fit into the GPU's memory.
    """

    def __init__(
        self,
        engine: Engine,
        partitions: Sequence[PartitionArrays],
        memory: int | None = None,
        like: Searcher | None = None,
    ) -> None:
        import cupy

        self._engine = engine
        if like is None:
            size = Allocation("partitions", partition_bytes(partitions))
            plan_on_gpu("the partitions of the database", memory, size).check()
        taxa = engine.taxon_of_target
        self.taxa = cupy.asarray(taxa) if len(taxa) > 0 else None
        there = [None] * len(partitions) if like is None else like._partitions
        self._partitions: list[_GpuPartition] = [
            _GpuPartition(partition, self.taxa, own)
            for partition, own in zip(partitions, there, strict=True)
        ]
        counts = pinned_empty(4 * _COUNTERS * len(self._partitions)).view(np.uint32)
        self._counts = counts.reshape(-1, _COUNTERS)
        self._grid = (KERNELS.resident_blocks("find_candidates", 32 * QUERY_WARPS),)
        self._longer_grid = (LONGER.resident_blocks("rank_longer", THREADS),)

    def start(self, reads: GpuReads) -> Search:
        """Begin to search; the GPU is the current one."""
        import cupy

        engine, queries = self._engine, reads.queries
        most = engine.parameters.candidates
        search = Search(
            reads,
            cupy.empty((queries, most, 4), dtype=cupy.int32),
            cupy.empty((_SIZES, queries), dtype=cupy.int32),
            cupy.empty((len(self._partitions), queries), dtype=cupy.uint64),
        )
        longer = cupy.empty(queries, dtype=cupy.uint64)
        counters = cupy.zeros((len(self._partitions), _COUNTERS), dtype=cupy.uint32)
        for number, partition in enumerate(self._partitions):
            arguments = (
                *reads.arguments(), np.uint32(queries), *sketch_numbers(engine.sketch),
                _span_of(engine, reads), partition.struct, np.int32(most),
            )  # fmt: skip
            lists = (
                search.sizes, counters[number], longer, search.longest[number], search.candidates
            )  # fmt: skip
            KERNELS.launch(
                "find_candidates",
                self._grid,
                (32 * QUERY_WARPS,),
                (*arguments, np.int32(number == 0), *lists),
            )
            LONGER.launch("rank_longer", self._longer_grid, (THREADS,), (*arguments, *lists[1:]))
        counters.get(out=self._counts, blocking=False)
        return search

    def finish(self, search: Search) -> None:
        """Wait for a search; the GPU is the current one."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        for number, partition in enumerate(self._partitions):
            if count := int(self._counts[number, _LONGEST]):
                self._find_longest(partition, search.longest[number, :count], search)

    def _find_longest(self, partition: _GpuPartition, longest: Any, search: Search) -> None:
        """Sort the locations of queries with most, and pick candidates."""
        import cupy

        engine, reads = self._engine, search.reads
        rules = (*sketch_numbers(engine.sketch), _span_of(engine, reads))
        ends = np.cumsum(longest.get() >> np.uint64(32), dtype=np.int64)
        done = 0
        for begin, stop in parts_within(ends, _LOCATIONS_AT_ONCE):
            cut = slice(begin, stop)
            end = cupy.asarray(ends[cut] - done)
            count = np.uint32(len(end))
            total = int(ends[cut][-1]) - done
            words = cupy.zeros(total, dtype=cupy.uint64)
            has_runs = engine.sketch.rules.smer > 0
            run_ends = cupy.zeros(total, dtype=cupy.uint64) if has_runs else None
            LONGER.launch(
                "gather_longest",
                grid_of_warps(int(count)),
                (THREADS,),
                (
                    *reads.arguments(), *rules, partition.struct, longest[cut], count, end,
                    words, run_ends if has_runs else NULL,
                ),
            )  # fmt: skip
            radix_sort(words)  # within each query, whose number is in the high bits
            if has_runs:
                radix_sort(run_ends)
            LONGER.launch(
                "pick_longest",
                (int(count),),
                (THREADS,),
                (
                    search.sizes, np.uint32(reads.queries), *rules, partition.struct,
                    longest[cut], count, end, words, run_ends if has_runs else words,
                    cupy.empty(total, dtype=cupy.uint32), cupy.empty(total, dtype=cupy.int32),
                    np.int32(engine.parameters.candidates), search.candidates,
                ),
            )  # fmt: skip
            done = int(ends[stop - 1])


def _span_of(engine: Engine, reads: GpuReads) -> np.int32:
    return np.int32(engine.rules.span_of(paired=len(reads.mates) == 2))


class _GpuPartition:
    """A partition on the device.

    Attributes:
        struct: the struct ``PARTITION``.
    """

    def __init__(
        self, partition: PartitionArrays, taxa: Any, like: _GpuPartition | None = None
    ) -> None:
        names = list(PARTITION.fields)[: 7 if taxa is not None else 6]
        there = {} if like is None else like._arrays
        self._arrays: dict[str, Any] = {
            name: there[name]
            if name in there and name != "taxon"
            else to_device(getattr(partition, name))
            for name in names
        }
        self.struct = PARTITION.on_device(
            **{"taxon": None, **self._arrays},
            taxon_of_target=taxa,
            bits=partition.bits,
            entry_count=len(partition.entries),
            location_count=len(partition.locations),
            last_window=max(0, int(partition.first_window[-1]) - 1),
        )


def max_gpus(partitions: int) -> int | None:
    """How many GPUs can share a search of this many partitions; None: any number.

    They share the partitions or, if there is only one, the queries.
    """
    return None if partitions == 1 else partitions


class GpuEngine:
    """Finds candidates on several GPUs, from the current one on.

    Args:
        engine: the database and the parameters.
        gpus: number of GPUs.
        memory: memory budget per GPU in bytes; None: free memory.
        like: an engine of the same partitions, whose GPUs are used with what is in their memory.

    Attributes:
        planned_bytes: memory for the partitions, on the GPU that needs most.

    Raises:
        DeviceError: the partitions do not fit into a GPU's memory.
    """

    def __init__(
        self,
        engine: Engine,
        gpus: int = 1,
        memory: int | None = None,
        like: GpuEngine | None = None,
    ) -> None:
        self.engine = engine
        partitions = engine.partitions
        self._splits_queries = len(partitions) == 1
        limit = max_gpus(len(partitions)) or gpus
        self._team: Team = Team(min(gpus, limit)) if like is None else like._team
        team = self._team
        shares = [
            partitions if self._splits_queries else partitions[member :: len(team)]
            for member in range(len(team))
        ]
        self.planned_bytes = max(map(partition_bytes, shares))
        there = [None] * len(team) if like is None else like._searchers
        self._searchers: list[Searcher] = team.each(
            lambda member: Searcher(engine, shares[member], memory, there[member])
        )

    def find(self, reads: GpuReads, names: GpuNames) -> GpuBatch:
        """Find the candidates of queries; waits for the kernels.

        Args:
            reads: their sequences.
            names: of the queries; their bytes may be counted on the device.
        """
        import cupy

        def end(member: int) -> None:
            if member > 0:  # the first one's stream copies what is joined
                cupy.cuda.get_current_stream().synchronize()

        searches = self._start(reads)
        self._team.each(lambda member: self._searchers[member].finish(searches[member]))
        self._team.each(end)
        candidates, sizes = self._joined(searches)
        used = names.used if isinstance(names.used, int) else int(names.used[0])
        return GpuBatch(
            reads.queries, len(reads.mates) == 2, names._replace(used=used), sizes, candidates
        )

    def _start(self, reads: GpuReads) -> list[Search]:
        """Begin to search on all GPUs."""
        import cupy

        searchers = self._searchers
        if len(searchers) == 1:
            return [searchers[0].start(reads)]
        ready = cupy.cuda.Event(disable_timing=True)
        ready.record(cupy.cuda.get_current_stream())
        share = -(-reads.queries // len(searchers)) if self._splits_queries else 0

        def start(member: int) -> Search:
            own = reads
            if share:
                begin = min(member * share, reads.queries)
                own = reads.part(begin, min(begin + share, reads.queries))
            return searchers[member].start(own if member == 0 else own.copied(ready))

        return self._team.each(start)

    def _joined(self, searches: list[Search]) -> tuple[Any, Any]:
        """Candidates and sizes of all queries, on the first GPU."""
        import cupy

        first = searches[0]
        if len(searches) == 1:
            return first.candidates, first.sizes
        if self._splits_queries:
            return (
                cupy.concatenate([here(search.candidates) for search in searches]),
                cupy.concatenate([here(search.sizes) for search in searches], axis=1),
            )
        queries, most, _ = first.candidates.shape
        taxa = self._searchers[0].taxa
        for search in searches[1:]:
            KERNELS.launch_threads(
                "merge_candidates",
                queries,
                here(search.candidates),
                np.uint32(queries),
                np.int32(most),
                NULL if taxa is None else taxa,
                first.candidates,
            )
        return first.candidates, first.sizes
