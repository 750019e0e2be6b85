"""Depletion as a stage: what is made of some records, and runs from files to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import COUNTERS, find_kept
from ngsgpu.deplete.index import HostIndex, open_index
from ngsgpu.deplete.params import DepletionParameters
from ngsgpu.deplete.stats import DepletionStatistics
from ngsgpu.device.plan import Allocation, HostPlan, MemoryPlan
from ngsgpu.io.inputs import ReadFiles, pair_inputs, plan_lanes
from ngsgpu.io.output.writer import Outputs
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.copy import kept_records
from ngsgpu.run.numbered import NumberedOutputs
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import plan_records
from ngsgpu.run.record import Made, RecordDriver, RecordStage, Task

if TYPE_CHECKING:
    from ngsgpu.deplete.gpu import DepletionKernels


def deplete_files(
    index: str | Path,
    in1: Paths,
    out1: Paths,
    in2: Paths = (),
    out2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: DepletionParameters | None = None,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> DepletionStatistics:
    """Take the reads of a host out of files; mates stay together.

    Args:
        index: the host's, made by ``build_index``.
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. Names ending
            in ``.gz`` or ``.zst`` are compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: what is the host's, and what is kept.
        stats: JSON file for the statistics.
        options: threads and so on.

    Raises:
        InputError: an input or the index cannot be read; no output was written.
        UsageError: the files are inconsistent.
        OutputError: an output cannot be written; none was.
    """
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    options = options or RunOptions()
    driver = RecordDriver(lanes, outputs, options, stats=stats, also_read=[index])
    opened = open_index(index, options.threads)
    driver.note_time("open")
    return driver.run(Depletion(opened, parameters or DepletionParameters(), lanes[0]))


def plan_files(
    index: str | Path,
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    options: RunOptions | None = None,
) -> HostPlan:
    """Plan the memory of ``deplete_files``, whose arguments these are.

    Raises:
        InputError: the index cannot be read.
        UsageError: the files are inconsistent.
    """
    options = options or RunOptions()
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    table = _table_of(open_index(index, options.threads))
    return plan_records(Depletion.WORK, lanes, options, table, on_gpu=[table])


def _table_of(index: HostIndex) -> Allocation:
    return Allocation("index", index.table.nbytes)


class Depletion(RecordStage[DepletionStatistics]):
    """Keeps the records of others than the host, or of the host alone, as they are.

    Args:
        index: the host's.
        parameters: what is the host's, and what is kept.
        lane: one of those that are read, which are alike.
    """

    NAME = "deplete"
    DOING = "depleting"
    WORK = "depletion"
    phred_offset: Literal[33] = 33
    """The reader then takes any qualities; they are only copied."""

    def __init__(self, index: HostIndex, parameters: DepletionParameters, lane: ReadFiles) -> None:
        self._index = index
        self._parameters = parameters
        self._lane = lane

    def outputs(self, files: Outputs) -> Outputs:
        """See ``RecordStage``."""
        if not self._parameters.rename:
            return files
        return NumberedOutputs(files, 2 if self._lane.interleaved else 1)

    def no_counts(self) -> NDArray[np.int64]:
        """See ``RecordStage``."""
        return np.zeros(len(COUNTERS), dtype=np.int64)

    def on_cpu(self, task: Task) -> Made:
        """See ``RecordStage``."""
        mates, lane, begin, end, _ = task
        first, second = mates[0], mates[-1]
        kept = np.empty(end - begin, dtype=np.bool_)
        counts = self.no_counts()
        parameters, index = self._parameters, self._index
        find_kept(
            first, second, len(mates) == 2, begin, end, index.parameters.sampling(), index.table,
            parameters.bounds(index.parameters, index.kmers), parameters.keep_host, kept, counts,
        )  # fmt: skip
        return Made(kept_records(mates, begin, kept, interleaved=lane.interleaved), counts)

    def gpu_room(self, memory: int) -> int:
        """See ``RecordStage``."""
        from ngsgpu.run.record_gpu import LEAST_BYTES

        table, records = _table_of(self._index), Allocation("records", LEAST_BYTES)
        MemoryPlan(doing=self.WORK, allocations=(table, records), budget=memory).check()
        return memory - table.bytes

    def on_gpu(self, chunk_bytes: int) -> DepletionKernels:
        """See ``RecordStage``."""
        from ngsgpu.deplete.gpu import DepletionKernels

        return DepletionKernels(self._index, self._parameters, self._lane, chunk_bytes)

    def statistics(
        self, options: RunOptions, backend: str, counts: NDArray[np.int64]
    ) -> DepletionStatistics:
        """See ``RecordStage``."""
        statistics = DepletionStatistics.begun(
            options,
            backend,
            self._parameters,
            index=self._index.describe(),
            bounds=self._parameters.bounds(self._index.parameters, self._index.kmers).to_json(),
            paired=self._lane.paired,
        )
        statistics.count(counts)
        return statistics
