"""Depletion from files to files: read, decide, write the kept records as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import COUNTERS
from ngsgpu.deplete.cpu_run import UNITS_PER_TASK, deplete_on_cpu
from ngsgpu.deplete.index import HostIndex, open_index
from ngsgpu.deplete.params import DepletionParameters
from ngsgpu.deplete.stats import DepletionStatistics
from ngsgpu.errors import InputError, UnsuitableError
from ngsgpu.io.inputs import ReadFiles, plan_lanes, warn_of_mates
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, check_distinct, is_stream, listed
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, say_if_compiling

PHRED_OFFSET: Literal[33] = 33
"""Offset for the reader, which then takes any qualities; they are only copied."""

_GPU_CHUNK_BYTES = 16 << 20


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
    in1, out1, in2, out2 = listed(in1), listed(out1), listed(in2), listed(out2)
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    paths = outputs if stats is None else [*outputs, str(stats)]
    check_distinct([*in1, *in2], paths, also_read=[index])
    warn_of_mates(lanes)
    begin = time.monotonic()
    options = options or RunOptions()
    run = _Run(
        open_index(index, options.threads),
        lanes,
        outputs,
        None if stats is None else str(stats),
        parameters or DepletionParameters(),
        options,
        begin,
    )
    run.opened_s = time.monotonic() - begin
    return run.run()


@dataclass(slots=True)
class _Run:
    """One run of ``deplete_files``."""

    index: HostIndex
    lanes: list[ReadFiles]
    outputs: list[str]
    stats: str | None
    parameters: DepletionParameters
    options: RunOptions
    begin: float
    opened_s: float = 0.0
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))

    def run(self) -> DepletionStatistics:
        """Read, decide, write."""
        return on_backend(self.options, self._run_on_gpu, lambda: self._run_on("cpu"))

    def _run_on_gpu(self) -> DepletionStatistics:
        """Deplete on the GPU, which requires rereadable input.

        Raises:
            InputError: an input is invalid; with the CPU reader's message.
            UnsuitableError: the GPU reader does not support an input, or the outputs.
            DeviceError: CUDA fails.
        """
        from ngsgpu.io.gpu.feed import IrregularInputError

        if any(map(is_stream, self.outputs)) or not all(lane.is_regular for lane in self.lanes):
            raise UnsuitableError(
                "depletion on a GPU needs files, not standard input, standard output or pipes; "
                "name files or use --backend cpu"
            )
        try:
            return self._run_on("cuda")
        except (IrregularInputError, InputError) as error:
            reason = f"{error}, which is not for depletion on a GPU; use --backend cpu"
        if not self.options.may_fall_back:
            for lane in self.lanes:
                for _ in self._batches(lane):
                    pass
        raise UnsuitableError(reason)

    def _run_on(self, backend: Literal["cpu", "cuda"]) -> DepletionStatistics:
        begin = time.monotonic()
        if backend == "cpu":
            say_if_compiling()
        paths = self.outputs if self.stats is None else [*self.outputs, self.stats]
        with (
            OutputSet(
                paths,
                threads=self.options.threads,
                compression_level=self.options.compress_level,
            ) as files,
            Progress(self.options.progress) as self.progress,
        ):
            counts = self._on_gpu(files) if backend == "cuda" else self._on_cpu(files)
            statistics = DepletionStatistics.begun(
                self.options,
                backend,
                self.parameters,
                index=self.index.describe(),
                paired=self.lanes[0].paired,
            )
            statistics.count(counts)
            statistics.time_s["open"] = round(self.opened_s, 3)
            statistics.time_s["deplete"] = round(time.monotonic() - begin, 3)
            statistics.time_s["total"] = round(time.monotonic() - self.begin, 3)
            if self.stats is not None:
                files.write(len(self.outputs), statistics.to_json().encode())
        return statistics

    def _on_cpu(self, files: OutputSet) -> NDArray[np.int64]:
        counts = np.zeros(len(COUNTERS), dtype=np.int64)
        unit = "pairs" if self.lanes[0].paired else "reads"
        with self.progress.stage("depleting", unit=unit) as stage:
            for lane in self.lanes:

                def write(number: int, piece: NDArray[np.uint8], lane: ReadFiles = lane) -> None:
                    files.write(lane.outputs[number], piece)

                counts += deplete_on_cpu(
                    self._batches(lane),
                    self.index,
                    self.parameters,
                    write,
                    paired=lane.paired,
                    threads=self.options.threads,
                    units_per_task=self.options.units_per_task or UNITS_PER_TASK,
                    advance=stage.advance,
                )
        return counts

    def _on_gpu(self, files: OutputSet) -> NDArray[np.int64]:
        from ngsgpu.deplete.gpu import deplete_on_gpu
        from ngsgpu.device.errors import cuda_errors
        from ngsgpu.device.team import limited_gpu_memory

        unit = "pairs" if self.lanes[0].paired else "reads"
        with (
            limited_gpu_memory(self.options.gpu_memory),
            cuda_errors("depletion"),
            self.progress.stage("depleting", unit=unit) as stage,
        ):
            return deplete_on_gpu(
                self.lanes,
                self.index,
                self.parameters,
                files,
                threads=self.options.threads,
                chunk_bytes=min(self.options.chunk_bytes, _GPU_CHUNK_BYTES),
                memory=self.options.gpu_memory,
                advance=stage.advance,
            )

    def _batches(self, lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]]:
        return lane.batches(
            threads=self.options.threads,
            phred_offset=PHRED_OFFSET,
            chunk_bytes=self.options.chunk_bytes,
        )
