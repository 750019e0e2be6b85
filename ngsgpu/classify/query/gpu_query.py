"""Queries on one GPU or several: the counterpart of ``engine``.

A query is a warp's work: it sketches the reads, looks the features up, sorts the locations in
registers and picks the candidates. Queries with more locations than a warp holds are sorted
together in device memory (a radix sort by query and window).

Of several GPUs, each searches some of the partitions, or, where there is but one, some of the
queries. The first, which has read the queries, sends them to the others and joins what they find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import NULL, DeviceBatch, DeviceNames, DeviceReads
from ngsgpu.classify.query.gpu_search import KERNELS, Search, Searcher
from ngsgpu.device.kernels import THREADS, grid_of_threads
from ngsgpu.device.team import Team, here


def max_gpus(partitions: int) -> int | None:
    """How many GPUs can share a search of so many partitions; None for any number.

    They share the partitions, or, where there is but one, the queries.
    """
    return None if partitions == 1 else partitions


class DeviceEngine:
    """Finds candidates on the current GPU, and on those after it.

    Args:
        engine: the database, and how to classify with it.
        gpus: how many GPUs search.
        memory: bytes of each GPU's memory that may be taken; None for what is free.

    Raises:
        DeviceError: the partitions do not fit into a GPU's memory.
    """

    def __init__(self, engine: Engine, gpus: int = 1, memory: int | None = None) -> None:
        self.engine = engine
        partitions = engine.partitions
        self._splits_queries = len(partitions) == 1
        self._team = team = Team(min(gpus, max_gpus(len(partitions)) or gpus))

        def searcher(member: int) -> Searcher:
            own = partitions if self._splits_queries else partitions[member :: len(team)]
            return Searcher(engine, own, memory)

        self._searchers = team.each(searcher)

    def find(self, reads: DeviceReads, names: DeviceNames) -> DeviceBatch:
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
        return DeviceBatch(
            reads.queries, len(reads.mates) == 2, names._replace(used=used), sizes, candidates
        )

    def _start(self, reads: DeviceReads) -> list[Search]:
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
            KERNELS.launch(
                "merge_candidates",
                grid_of_threads(queries),
                (THREADS,),
                (
                    here(search.candidates), np.uint32(queries), np.int32(most),
                    NULL if taxa is None else taxa, first.candidates,
                ),
            )  # fmt: skip
        return first.candidates, first.sizes
