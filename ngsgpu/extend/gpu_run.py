"""An extension on GPUs: batches distributed in order, two active on each GPU.

While the longest tasks of a batch finish, the next batch starts on a separate stream. Each of
several GPUs holds the reads and the tables; where they do not fit on each, GPUs that are linked
have them in common. The result does not depend on any of that.

While a batch is extended, the previous one is formatted: threads read the pieces of the inputs
that hold its records, located by the first pass, and format them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import persistent
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import ReusedMemory
from ngsgpu.device.team import Team, free_unused
from ngsgpu.extend.cpu import COUNTERS, Extensions
from ngsgpu.extend.cpu_run import ExtensionOnCpu, Run
from ngsgpu.extend.gpu_plan import (
    BATCH_BYTES,
    BATCHES_PER_GPU,
    MIN_PAIRS,
    pairs_per_batch,
    plan_and_place,
    plan_for_this_gpu,
)
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.extend.rules import Rules
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.reread import check_same
from ngsgpu.minhash.ends_gpu import build_end_tables_on_gpu
from ngsgpu.pool import Shared, working
from ngsgpu.readset.gpu_divided import common_arena
from ngsgpu.run.again.sections import Section, can_seek, indexed_sections, read_sections
from ngsgpu.run.gpu_run import GpuRun
from ngsgpu.run.staged import ReadLengths

if TYPE_CHECKING:
    from ngsgpu.minhash.ends_gpu import DeviceEndTables
    from ngsgpu.readset.gpu import DeviceReadSet

logger = logging.getLogger("ngsgpu")

BATCHES_IN_ALL: Final = 4
"""Batches for each GPU at least, so that all have work, and text is made meanwhile."""


@dataclass(slots=True)
class _Held:
    """Data of a GPU, and the streams of its active batches."""

    device: Any
    reads: DeviceReadSet
    tables: DeviceEndTables
    streams: list[Any]


class GpuExtension:
    """GPUs that extend pairs of one read set.

    Args:
        reads: the read set as each GPU has it, from the current one on.
        tables: the tables of its read ends on the current one.
        tables_divided: whether they are divided over the GPUs.
        batch_bytes: maximum bytes for the results of a batch.

    Attributes:
        counters: int64[COUNTERS], counters of the tasks with the latest rules.
        utilisation: fraction of the time in which resident warps had a pair, with these rules.
    """

    def __init__(
        self,
        reads: Sequence[DeviceReadSet],
        tables: DeviceEndTables,
        tables_divided: bool = False,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._batch_bytes = batch_bytes
        self._team = Team(len(reads))
        self._reads, self._tables, self._tables_divided = reads, tables, tables_divided
        self._held = self._team.each(self._hold)
        self._memory = ReusedMemory()
        self.counters: NDArray[np.int64] = np.zeros(COUNTERS, dtype=np.int64)
        self.utilisation = 0.0

    def _hold(self, member: int) -> _Held:
        """Data of a GPU: copies of those of the first one, on the others."""
        import cupy

        reads, tables = self._reads[member], self._tables
        if member > 0:
            tables = tables.on_current_device(divided=self._tables_divided)
        _ = reads.struct
        # Separate streams neither wait for earlier work nor share its memory.
        self._team.devices[member].synchronize()
        free_unused()
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(BATCHES_PER_GPU)]
        return _Held(self._team.devices[member], reads, tables, streams)

    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        from ngsgpu.extend.gpu import DeviceExtender

        share = -(-len(pairs) // (BATCHES_IN_ALL * len(self._held)))
        size = min(pairs_per_batch(rules, self._batch_bytes), max(MIN_PAIRS, share))
        batches = [pairs[begin : begin + size] for begin in range(0, len(pairs), size)]
        places = [
            (held, held.streams[turn]) for turn in range(BATCHES_PER_GPU) for held in self._held
        ]
        workers = min(len(batches), len(places))
        made: list[tuple[Any, Any, Any]] = []
        with cuda_errors("extending pairs"):
            for held, stream in places[:workers]:
                with held.device, stream:
                    extender = DeviceExtender(held.reads, held.tables, rules, self._memory)
                made.append((held.device, stream, extender))
        shared = Shared(made)

        def extend(batch: NDArray[np.int64]) -> Extensions:
            with (
                shared.borrowed() as (device, stream, extender),
                cuda_errors("extending pairs"),
                device,
                stream,
            ):
                results: Extensions = extender.extend(batch)
            return results

        if workers:
            with working(workers, extend, batches, ahead=workers + 1, name="gpu") as results:
                yield from results
        extenders = [extender for _, _, extender in made]
        self.counters = np.zeros(COUNTERS, dtype=np.int64)
        for extender in extenders:
            self.counters += extender.counters
        if extenders:
            self.utilisation = sum(one.utilisation for one in extenders) / len(extenders)

    def taken_bytes(self) -> int:
        """Memory that CuPy has taken of the GPU that has taken most."""
        import cupy

        def taken(member: int) -> int:
            return int(cupy.get_default_memory_pool().total_bytes())

        return max(self._team.each(taken))


class ExtensionOnGpu(GpuRun[ExtensionParameters], Run):
    """See ``Run``.

    Attributes:
        team: the GPUs, when the tables are built.
    """

    ON_CPU = ExtensionOnCpu
    PLAN = staticmethod(plan_for_this_gpu)
    team: GpuExtension

    def build(self) -> None:
        """Copy reads to the GPU that are not there, and build the tables of their ends.

        Raises:
            DeviceError: the GPU's memory does not suffice.
        """
        with self.building_tables() as stage, cuda_errors("building the tables"):
            reads, plan = plan_and_place(self.reads, self.parameters, self.options)
            logger.info("GPU memory: %s", plan.line())
            self.gpu = plan.document()
            self.reads = reads[0]
            keeping: Callable[[], AbstractContextManager[None]] = persistent
            if plan.divided_over > 1:
                keeping = common_arena(plan, Team(self.options.gpus)).in_use
            tables = build_end_tables_on_gpu(
                reads[0],
                self.parameters.ends,
                on_device=plan.on_device,
                parts=plan.parts,
                keeping=keeping,
                advance=stage.advance,
            )
            self.team = GpuExtension(reads, tables, plan.divided_over > 1, plan.batch_bytes)

    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""
        yield from self.team.results(rules, pairs)
        self.counters = self.team.counters
        self.gpu["taken_bytes"] = self.team.taken_bytes()
        self.gpu["utilisation"] = round(self.team.utilisation, 4)

    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""
        known = ReadLengths.of(self.reads)
        pairs = np.arange(known.reads // 2, dtype=np.int64)

        def work(one: tuple[Section, Extensions]) -> Text:
            return maker.text(*one)

        with ExitStack() as opened:
            if self.layouts is not None and can_seek(self.layouts):
                sections = indexed_sections(self.layouts, known, opened)
            else:
                sections = read_sections(lanes, known, self.batches)
            together = with_results(sections, self.results(rules, pairs))
            with working(self.options.threads, work, together, name="text") as texts:
                yield from texts
        for lane in self.layouts or ():
            for file in lane.files:
                check_same(file)


def with_results(
    sections: Iterator[Section], results: Iterator[Extensions]
) -> Iterator[tuple[Section, Extensions]]:
    """Align sections with results, both of all pairs in order.

    If one ends within the other, the longer one is cut.
    """
    section: Section | None = None
    for batch in results:
        done = 0
        while done < len(batch.kind):
            section = section or next(sections)
            count = min(section.pairs, len(batch.kind) - done)
            part = batch.rows(done, done + count)
            yield section.part(0, count), part
            section = section.part(count, section.pairs) if count < section.pairs else None
            done += count
    # Run the checks after the last section.
    for _ in sections:
        pass
