"""Merging from files to files: read pairs, merge them, write the results in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from ngsgpu.errors import InputError, UnsuitableError, UsageError
from ngsgpu.io.inputs import ReadFiles, pair_inputs, warn_of_mates
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, check_distinct, is_stream, listed
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.merge import cpu
from ngsgpu.merge.cpu import Tally
from ngsgpu.merge.cpu_run import PAIRS_PER_TASK, Pieces, merge_on_cpu
from ngsgpu.merge.outputs import MergeOutputs
from ngsgpu.merge.params import MergeParameters, Rules
from ngsgpu.merge.qualities import Tables
from ngsgpu.merge.sample import Learned, Sample, learn, take_sample, unlearned
from ngsgpu.merge.stats import MergeStatistics
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, say_if_compiling

logger = logging.getLogger("ngsgpu")

MANY_BEYOND = 0.5
"""Part of the merged pairs that may overlap by more than ``max_overlap`` without a warning."""


_SAMPLE_CHUNK_BYTES = 1 << 20
_GPU_CHUNK_BYTES = 16 << 20


def merge_files(
    in1: Paths,
    in2: Paths = (),
    outputs: MergeOutputs | None = None,
    *,
    interleaved: bool = False,
    parameters: MergeParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> MergeStatistics:
    """Merge the overlapping pairs of files.

    Args:
        in1: files of first mates, or of interleaved mates; ``-`` is standard input. Several are
            concatenated.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: output files; names ending in ``.gz`` or ``.zst`` are compressed.
        interleaved: whether ``in1`` holds both mates.
        parameters: merging parameters.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        options: threads and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: files or parameters are inconsistent.
        OutputError: an output cannot be written; none was.
    """
    in1, in2 = listed(in1), listed(in2)
    lanes = pair_inputs(in1, in2, interleaved=interleaved, option="--interleaved-in")
    if not lanes[0].paired:
        raise UsageError(
            "merging needs both mates; give second mates with -I, or --interleaved-in "
            "if -i holds both"
        )
    outputs = outputs or MergeOutputs()
    run = _Run(
        lanes,
        outputs,
        parameters or MergeParameters(),
        phred_offset,
        options or RunOptions(),
    )
    outputs.check(run.parameters)
    check_distinct([*in1, *in2], [*outputs.reads.values(), *outputs.text_paths])
    warn_of_mates(run.inputs)
    return run.run()


@dataclass(slots=True)
class _Run:
    """One run of ``merge_files``."""

    inputs: list[ReadFiles]
    outputs: MergeOutputs
    parameters: MergeParameters
    phred_offset: PhredOffset
    options: RunOptions
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))
    max_overlap: int = 0
    learned: Learned | None = None
    backend: str = "cpu"

    def run(self) -> MergeStatistics:
        """Read, merge, write."""
        return on_backend(self.options, self._run_on_gpu, lambda: self._run_on("cpu"))

    def _run_on_gpu(self) -> MergeStatistics:
        """Merge on the GPU, which requires rereadable input.

        Raises:
            InputError: an input is invalid; with the CPU reader's message.
            UnsuitableError: the GPU reader does not support an input, or the outputs.
            DeviceError: CUDA fails.
        """
        from ngsgpu.io.gpu.feed import IrregularInputError

        streams = any(map(is_stream, self.outputs.reads.values()))
        if streams or not all(lane.is_regular for lane in self.inputs):
            raise UnsuitableError(
                "merging on a GPU needs files, not standard input, standard output or pipes; "
                "name files or use --backend cpu"
            )
        try:
            return self._run_on("cuda")
        except (IrregularInputError, InputError) as error:
            reason = f"{error}, which is not for merging on a GPU; use --backend cpu"
        if not self.options.may_fall_back:
            for _ in self._batches(self.options.chunk_bytes):
                pass
        raise UnsuitableError(reason)

    def _run_on(self, backend: Literal["cpu", "cuda"]) -> MergeStatistics:
        begin = time.monotonic()
        self.backend = backend
        if backend == "cpu":
            say_if_compiling()
        reads, texts = self.outputs.reads, self.outputs.text_paths
        with (
            OutputSet(
                [*reads.values(), *texts],
                threads=self.options.threads,
                compression_level=self.options.compress_level,
            ) as files,
            Progress(self.options.progress) as self.progress,
        ):
            tally = self._merge_on_gpu(files) if backend == "cuda" else self._merge_on_cpu(files)
            merged_s = time.monotonic() - begin
            contents = self.outputs.texts(tally)
            statistics = self.statistics(tally)
            statistics.time_s["merge"] = round(merged_s, 3)
            statistics.time_s["total"] = round(time.monotonic() - begin, 3)
            if self.outputs.stats is not None:
                contents[str(self.outputs.stats)] = statistics.to_json()
            for index, path in enumerate(texts, start=len(reads)):
                files.write(index, contents[path].encode())
        self._warn(tally)
        return statistics

    @property
    def _file_numbers(self) -> dict[int, int]:
        """For each output of the kernels that is written, its index among the files."""
        return {number: index for index, number in enumerate(self.outputs.reads)}

    def _merge_on_cpu(self, files: OutputSet) -> Tally:
        file_numbers = self._file_numbers

        def write(pieces: Pieces) -> None:
            for number, index in file_numbers.items():
                if len(pieces[number]):
                    files.write(index, pieces[number])

        sample, batches = take_sample(self._batches(self.options.chunk_bytes))
        rules, tables = self.rules(sample)
        with self.progress.stage("merging", unit="pairs") as stage:
            return merge_on_cpu(
                batches,
                rules,
                tables,
                self.outputs.wanted,
                write,
                threads=self.options.threads,
                pairs_per_task=self.options.units_per_task or PAIRS_PER_TASK,
                advance=stage.advance,
            )

    def _merge_on_gpu(self, files: OutputSet) -> Tally:
        from ngsgpu.device.errors import cuda_errors
        from ngsgpu.device.team import limited_gpu_memory
        from ngsgpu.merge.gpu import merge_on_gpu

        sample = Sample([], 0.0, 0)
        if self.parameters.max_overlap is None:  # as always with overlaps by likelihood
            with closing(self._batches(_SAMPLE_CHUNK_BYTES)) as batches:
                sample, _ = take_sample(batches)
        rules, tables = self.rules(sample)
        with (
            limited_gpu_memory(self.options.gpu_memory),
            cuda_errors("merging"),
            self.progress.stage("merging", unit="pairs") as stage,
        ):
            return merge_on_gpu(
                self.inputs,
                rules,
                tables,
                self.outputs.wanted,
                files,
                self._file_numbers,
                phred_offset=self.phred_offset,
                threads=self.options.threads,
                chunk_bytes=min(self.options.chunk_bytes, _GPU_CHUNK_BYTES),
                memory=self.options.gpu_memory,
                advance=stage.advance,
            )

    def _batches(self, chunk_bytes: int) -> Generator[tuple[Mates, Mates], None, None]:
        for lane in self.inputs:
            for batches in lane.batches(
                threads=self.options.threads,
                phred_offset=self.phred_offset,
                chunk_bytes=chunk_bytes,
            ):
                for batch in batches:
                    if batch.qual_start is None:
                        raise InputError(
                            batch.path,
                            "this is FASTA, but merging needs qualities",
                            "give FASTQ files",
                            record=1,
                            line=1,
                        )
                yield Mates.of_pairs(batches)

    def rules(self, sample: Sample) -> tuple[Rules, Tables]:
        """What decides, for reads such as the first ones."""
        offset = 33 if self.phred_offset == "auto" else self.phred_offset
        if self.parameters.overlap == "likelihood":
            self.max_overlap = sample.longest
            rules = self.parameters.rules(self.max_overlap, offset)
            learned = learn(sample, self.parameters, rules, self.options.threads)
            rules, tables, self.learned = learned
            return rules, tables
        if self.parameters.max_overlap is None:
            self.max_overlap = self.parameters.automatic_max_overlap(
                sample.mean_length, sample.longest
            )
            logger.info("max-overlap: %d bases", self.max_overlap)
        else:
            self.max_overlap = self.parameters.max_overlap
        return self.parameters.rules(self.max_overlap, offset), unlearned(self.parameters, offset)

    def _warn(self, tally: Tally) -> None:
        """Warn if most overlaps exceed the scored length."""
        merged = tally[cpu.INWARD] + tally[cpu.OUTWARD]
        if merged and tally[cpu.BEYOND] > MANY_BEYOND * merged:
            logger.warning(
                "%.1f %% of the overlaps are longer than --max-overlap %d, beyond which they are "
                "scored too low; give --max-overlap auto",
                100 * tally[cpu.BEYOND] / merged,
                self.max_overlap,
            )

    def statistics(self, tally: Tally) -> MergeStatistics:
        """What the run saw and did."""
        statistics = MergeStatistics.begun(
            self.options,
            self.backend,
            self.parameters,
            parameters={"phred_offset": self.phred_offset},
            learned={} if self.learned is None else self.learned.for_statistics(),
            max_overlap={
                "value": self.max_overlap,
                "automatic": self.parameters.max_overlap is None,
            },
        )
        statistics.count(tally)
        return statistics
