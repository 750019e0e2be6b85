"""Correction from files to files.

The inputs are read twice: first into a read set, from which everything is decided; then again,
batch by batch, to be written with some bases replaced. So nothing but bases can change.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.host import ANCHORS_A_TASK, correct_on_cpu
from ngsgpu.correct.lanes import Lane, keep_streams, plan_lanes
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.plan import CorrectionPlan, plan_correction
from ngsgpu.correct.stats import CorrectionStatistics
from ngsgpu.device.inventory import numba_cache
from ngsgpu.device.memory import available_memory
from ngsgpu.errors import DeviceError, InputError, UsageError
from ngsgpu.io.atomic import AtomicFile, check_distinct
from ngsgpu.io.batch import RecordBatch
from ngsgpu.io.reader import CHUNK_BYTES, PhredOffset
from ngsgpu.io.writer import OutputSet
from ngsgpu.minhash import build_tables
from ngsgpu.progress import Progress, Stage
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers, estimate_coverage

logger = logging.getLogger("ngsgpu")

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes about it; none of these changes a byte of the output.

    Attributes:
        threads: how many threads work.
        memory: bytes that may be taken; None for what the machine has free.
        anchors_a_task: anchors that a thread takes at a time.
        chunk_bytes: bytes of a file that are handled at a time.
        progress: whether to show progress.
        backend: ``cpu`` or ``cuda``.
        may_fall_back: whether the CPU may do what the GPU cannot hold.
        gpu_memory: bytes of a GPU's memory that may be taken; None for what it has free.
        backend_note: why the backend was chosen, for the statistics.
        command: the command line, for the statistics.
    """

    threads: int = 1
    memory: int | None = None
    anchors_a_task: int = ANCHORS_A_TASK
    chunk_bytes: int = CHUNK_BYTES
    progress: bool = False
    backend: Literal["cpu", "cuda"] = "cpu"
    may_fall_back: bool = False
    gpu_memory: int | None = None
    backend_note: str = ""
    command: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """Bytes that may be taken."""
        return self.memory if self.memory is not None else available_memory()


def correct_files(
    in1: Sequence[str | Path],
    out1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    out2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> CorrectionStatistics:
    """Correct the reads of files and write them to files of the same order and layout.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. A name
            that ends in ``.gz`` is compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: how reads are corrected; CARE's values by default.
        phred_offset: 33, 64, or ``auto`` (33, unless the file looks like 64, which is refused).
        stats: where to write the statistics as JSON.
        options: threads, memory and the like.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files do not fit together, or the memory does not suffice.
        OutputError: an output cannot be written; none was.
    """
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    check_distinct([*in1, *in2], outputs if stats is None else [*outputs, stats])
    begin = time.monotonic()
    run = _Run(parameters, options, phred_offset)
    if numba_cache(PACKAGE).files == 0:
        logger.info("compiling kernels (first start only, up to half a minute)")
    with _opened(stats) as stats_file:
        with (
            OutputSet(outputs, threads=options.threads) as output_set,
            keep_streams(lanes) as kept,
            Progress(options.progress) as run.progress,
        ):
            reads = run.read(kept)
            spectrum, coverage = run.coverage(reads)
            run.check_memory(reads)
            corrections = run.correct(reads, coverage)
            run.write(kept, reads, corrections, output_set)
        statistics = run.statistics(reads, spectrum, coverage, corrections)
        statistics.time_s["total"] = round(time.monotonic() - begin, 3)
        if stats_file is not None:
            stats_file.write(statistics.to_json().encode())
    return statistics


@contextmanager
def _opened(path: str | Path | None) -> Iterator[AtomicFile | None]:
    """A file that is opened before any computing, and is there in the end if all went well."""
    if path is None:
        yield None
        return
    file = AtomicFile(path)
    try:
        yield file
        file.commit()
    except BaseException:
        file.discard()
        raise


def correct_reads(
    reads: ReadSet,
    parameters: CorrectionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[Corrections, float]:
    """Correct a read set in memory.

    Returns:
        The corrections, and the coverage (reads per position) they were made with.
    """
    run = _Run(parameters or CorrectionParameters(), options or RunOptions(), "auto")
    with Progress(run.options.progress) as run.progress:
        _, coverage = run.coverage(reads)
        return run.correct(reads, coverage), coverage


def plan_files(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: CorrectionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> CorrectionPlan:
    """Read the inputs, correct nothing, and say what correcting them takes.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files do not fit together.
    """
    parameters = parameters or CorrectionParameters()
    options = options or RunOptions()
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    reads = bases = longest = 0
    with keep_streams(lanes) as kept:
        for lane in kept:
            for mates in lane.batches(
                threads=options.threads,
                phred_offset=phred_offset,
                chunk_bytes=options.chunk_bytes,
            ):
                for batch in mates:
                    reads += len(batch)
                    bases += int(batch.seq_len.sum(dtype=np.int64))
                    longest = max(longest, int(batch.seq_len.max(initial=0)))
    return plan_correction(
        parameters,
        reads=reads,
        bases=bases,
        max_length=longest,
        paired=lanes[0].paired,
        threads=options.threads,
        budget_bytes=options.budget,
    )


class _Run:
    """The stages of one run, and what they take in time and memory."""

    def __init__(
        self, parameters: CorrectionParameters, options: RunOptions, phred_offset: PhredOffset
    ) -> None:
        self.parameters = parameters
        self.options = options
        self.phred_offset: PhredOffset = phred_offset
        self.progress = Progress(enabled=False)
        self.backend = options.backend
        self.seconds: dict[str, float] = {}
        self.planned_bytes = 0
        self.unknown_decided = 0
        self.changed_reads = 0
        self.by_position: list[NDArray[np.int64]] = []

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.seconds[stage] = round(time.monotonic() - begin, 3)

    def _batches(self, lane: Lane) -> Iterator[tuple[RecordBatch, ...]]:
        return lane.batches(
            threads=self.options.threads,
            phred_offset=self.phred_offset,
            chunk_bytes=self.options.chunk_bytes,
        )

    def read(self, lanes: Sequence[Lane]) -> ReadSet:
        """Read all lanes into a read set."""
        offset = 33 if self.phred_offset == "auto" else self.phred_offset
        builder = ReadSetBuilder(
            paired=lanes[0].paired,
            quality_bits=self.parameters.quality_bits,
            phred_offset=offset,
            threads=self.options.threads,
        )
        with self._timed("read"), self.progress.stage("reading", unit="reads") as stage:
            for lane in lanes:
                for mates in self._batches(lane):
                    builder.add(*mates)
                    stage.advance(sum(map(len, mates)))
        return builder.finish()

    def coverage(self, reads: ReadSet) -> tuple[KmerSpectrum, float]:
        """The k-mer spectrum, and the coverage given or estimated from it."""
        with self._timed("spectrum"):
            spectrum = count_kmers(
                reads, self.parameters.minhash.kmer, threads=self.options.threads
            )
        if self.parameters.coverage is not None:
            return spectrum, self.parameters.coverage
        coverage = max(1.0, estimate_coverage(spectrum))
        logger.info("estimated coverage: %.1f", coverage)
        return spectrum, coverage

    def check_memory(self, reads: ReadSet) -> None:
        """Refuse a run that does not fit, before its tables are built."""
        plan = plan_correction(
            self.parameters,
            reads=reads.reads,
            bases=reads.bases,
            max_length=reads.max_length,
            paired=reads.paired,
            threads=self.options.threads,
            # What the reads take is taken already.
            budget_bytes=self.options.budget + (reads.nbytes if self.options.memory is None else 0),
            read_bytes=reads.nbytes,
        )
        self.planned_bytes = plan.total_bytes
        plan.check(self.parameters)

    def correct(self, reads: ReadSet, coverage: float) -> Corrections:
        """Build the tables and correct every read."""
        if self.options.backend == "cuda":
            try:
                return self._correct_on_gpu(reads, coverage)
            except (UsageError, DeviceError) as error:
                if not self.options.may_fall_back:
                    raise
                logger.warning("%s; going on with the CPU", error)
                self.backend = "cpu"
        with self._tables_stage() as stage:
            tables = build_tables(
                reads,
                self.parameters.minhash,
                threads=self.options.threads,
                advance=stage.advance,
            )
        with self._correct_stage(reads) as stage:
            return correct_on_cpu(
                reads,
                tables,
                self.parameters,
                coverage,
                threads=self.options.threads,
                anchors_a_task=self.options.anchors_a_task,
                advance=stage.advance,
            )

    def _correct_on_gpu(self, reads: ReadSet, coverage: float) -> Corrections:
        from ngsgpu.correct.gpu import correct_on_gpu
        from ngsgpu.device.errors import cuda_errors
        from ngsgpu.device.gpu_memory import limited_gpu_memory
        from ngsgpu.minhash.gpu import build_tables_on_gpu
        from ngsgpu.readset.gpu import DeviceReadSet

        with limited_gpu_memory(self.options.gpu_memory):
            with self._timed("upload"), cuda_errors("copying the reads to the GPU"):
                device_reads = DeviceReadSet.from_host(reads)
            with self._tables_stage() as stage, cuda_errors("building the tables"):
                tables = build_tables_on_gpu(
                    device_reads, self.parameters.minhash, advance=stage.advance
                )
            with self._correct_stage(reads) as stage, cuda_errors("correcting"):
                return correct_on_gpu(
                    device_reads, tables, self.parameters, coverage, advance=stage.advance
                )

    @contextmanager
    def _tables_stage(self) -> Iterator[Stage]:
        hashes = self.parameters.minhash.hashes
        with (
            self._timed("tables"),
            self.progress.stage("building tables", total=hashes, unit="tables") as stage,
        ):
            yield stage

    @contextmanager
    def _correct_stage(self, reads: ReadSet) -> Iterator[Stage]:
        with (
            self._timed("correct"),
            self.progress.stage("correcting", total=reads.reads, unit="reads") as stage,
        ):
            yield stage

    def write(
        self,
        lanes: Sequence[Lane],
        reads: ReadSet,
        corrections: Corrections,
        outputs: OutputSet,
    ) -> None:
        """Read the lanes again and write them with the edits."""
        mate_count = 2 if reads.paired else 1
        self.by_position = [
            np.zeros(max(1, reads.max_length), dtype=np.int64) for _ in range(mate_count)
        ]
        first_read = 0
        with (
            self._timed("write"),
            self.progress.stage("writing", total=reads.reads, unit="reads") as stage,
        ):
            for lane in lanes:
                for mates in self._batches(lane):
                    _check_unchanged(mates, reads, first_read)
                    for mate, batch in enumerate(mates):
                        self._edit(batch, first_read + mate, len(mates), reads, corrections)
                        outputs.write(lane.outputs[mate], batch.data)
                    first_read += sum(map(len, mates))
                    stage.advance(sum(map(len, mates)))
        if first_read != reads.reads:
            raise InputError(
                lanes[-1].inputs[0],
                "the file became shorter while it was being corrected",
                "correct it again when nothing writes to it",
            )

    def _edit(
        self, batch: RecordBatch, first: int, step: int, reads: ReadSet, corrections: Corrections
    ) -> None:
        """Replace bases in a batch whose record i is read ``first + i * step``."""
        # Mates alternate within the batch, or the batch holds one mate of every pair.
        mate = first % step
        other = 1 if reads.paired and step == 1 else mate
        changed, decided = cpu.write_edits(
            batch.data,
            batch.seq_start,
            first,
            step,
            corrections.edit_start,
            corrections.edit_count,
            corrections.edits,
            self.by_position[mate],
            self.by_position[other],
        )
        self.changed_reads += changed
        self.unknown_decided += decided

    def statistics(
        self, reads: ReadSet, spectrum: KmerSpectrum, coverage: float, corrections: Corrections
    ) -> CorrectionStatistics:
        """What the run saw and did."""
        counters = corrections.counters
        unknown = len(reads.unknown.positions)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        note = f" ({self.options.backend_note})" if self.options.backend_note else ""
        where = "GPU" if self.backend == "cuda" else f"{self.options.threads} CPU threads"
        return CorrectionStatistics(
            backend=self.backend,
            device=where + note,
            command=list(self.options.command),
            parameters=asdict(self.parameters) | {"phred_offset": self.phred_offset},
            coverage={
                "value": round(coverage, 3),
                "estimated": self.parameters.coverage is None,
            },
            reads={
                "total": reads.reads,
                "paired": int(reads.paired),
                "bases": reads.bases,
                "min_length": reads.min_length,
                "max_length": reads.max_length,
                "with_unknown": len(reads.unknown.reads),
            },
            anchors={
                "total": int(counters[cpu.ANCHORS]),
                "without_candidates": int(counters[cpu.ALONE]),
                "in_repeats": int(counters[cpu.CROWDED]),
                "high_quality": int(counters[cpu.HIGH]),
                "low_quality": int(counters[cpu.LOW]),
            },
            candidates={
                "found": int(counters[cpu.FOUND]),
                "aligned": int(counters[cpu.ALIGNED]),
                "kept": int(counters[cpu.KEPT]),
                "removed_by_refinement": int(counters[cpu.REFINED_AWAY]),
            },
            corrected={
                "reads": self.changed_reads,
                "bases": int(sum(int(mate.sum()) for mate in self.by_position)),
                "high_quality_reads": corrections.high_quality,
                "confirmed_reads": corrections.confirmed,
                "completed_reads": corrections.completed,
                "anchor_only_reads": corrections.anchor_only,
                "rejected_reads": corrections.rejected,
                "unknown_decided": self.unknown_decided,
                "unknown_left": unknown - self.unknown_decided,
            },
            corrected_bases_by_position=[mate.tolist() for mate in self.by_position],
            spectrum={
                "k": spectrum.k,
                "sampled": spectrum.sampled,
                "histogram": np.stack([spectrum.multiplicity, spectrum.count], axis=1).tolist(),
            },
            time_s=self.seconds,
            memory={"peak_rss_bytes": peak, "planned_bytes": self.planned_bytes},
        )


def _check_unchanged(mates: tuple[RecordBatch, ...], reads: ReadSet, first_read: int) -> None:
    """Refuse a file whose reads are not those of the first pass."""
    for mate, batch in enumerate(mates):
        last = first_read + len(mates) * len(batch)
        if reads.arrays.uniform_length >= 0:
            same = last <= reads.reads and bool(
                np.all(batch.seq_len == reads.arrays.uniform_length)
            )
        else:
            lengths = reads.arrays.lengths[first_read + mate : last : len(mates)]
            same = np.array_equal(batch.seq_len, lengths)
        if not same:
            raise InputError(
                batch.path,
                "the file changed while it was being corrected",
                "correct it again when nothing writes to it",
            )
