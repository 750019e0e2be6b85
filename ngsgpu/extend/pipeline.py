"""Extension from files to files.

The inputs are read twice: first into a read set, among which candidates are looked for; then
again, batch by batch, for names, letters and qualities of what is written. So memory holds the
read set and its tables, and results only of the pairs under way.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.lanes import Lane, keep_streams, measure_lanes, plan_lanes
from ngsgpu.correct.run import RunOptions
from ngsgpu.device.inventory import numba_cache
from ngsgpu.errors import InputError, UsageError
from ngsgpu.extend import cpu
from ngsgpu.extend.host import PAIRS_A_TASK, Extender, map_in_order
from ngsgpu.extend.insert import InsertSize, estimate_insert, sampled_pairs, sampling_parameters
from ngsgpu.extend.joining import NOT_CONNECTED
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.extend.plan import ExtensionPlan, plan_extension
from ngsgpu.extend.records import KIND_WORDS, Format, Mates, format_pairs
from ngsgpu.extend.stats import ExtensionStatistics
from ngsgpu.io.atomic import check_distinct
from ngsgpu.io.batch import RecordBatch
from ngsgpu.io.reader import PhredOffset
from ngsgpu.io.writer import OutputSet
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.progress import Progress
from ngsgpu.readset import ReadSet, ReadSetBuilder

logger = logging.getLogger("ngsgpu")

PACKAGE = Path(__file__).parents[1]


class ExtensionOutputs(NamedTuple):
    """Where results go; a path that is None is not written.

    Attributes:
        extended: extended reads; the others are the remaining pairs.
        remaining1: first mates of pairs that were not connected.
        remaining2: second mates of these; with ``remaining1`` alone mates alternate there.
        stats: statistics as JSON.
        fasta: whether extended reads are written as FASTA.
        include_remaining: whether ``extended`` holds remaining pairs, too.
        sort: whether the order is that of the input.
        gap_quality: Phred score of all bases that are no read's; None for computed ones.
    """

    extended: str
    remaining1: str | None = None
    remaining2: str | None = None
    stats: str | None = None
    fasta: bool = False
    include_remaining: bool = False
    sort: bool = True
    gap_quality: int | None = None

    @property
    def paths(self) -> list[str]:
        """The paths of all outputs."""
        named = (self.extended, self.remaining1, self.remaining2, self.stats)
        return [path for path in named if path is not None]

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            UsageError: says what does not fit together.
        """
        if self.remaining2 is not None and self.remaining1 is None:
            raise UsageError("--remaining2 needs --remaining1; give both, or --remaining1 alone")
        if self.include_remaining and self.fasta:
            raise UsageError("--include-remaining copies records as they are; leave out --fasta")
        if self.gap_quality is not None and not 0 <= self.gap_quality <= 60:
            raise UsageError(f"--gap-quality must be from 0 to 60, not {self.gap_quality}")


def extend_files(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    outputs: ExtensionOutputs,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionStatistics:
    """Extend the pairs of files to long reads.

    Args:
        in1: files of first mates, or of interleaved mates; ``-`` is standard input.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: where results go.
        interleaved: whether ``in1`` holds both mates.
        parameters: how pairs are extended.
        phred_offset: 33, 64, or ``auto`` (33, unless the file looks like 64, which is refused).
        options: threads, memory and the like.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files do not fit together, or the memory does not suffice.
        OutputError: an output cannot be written; none was.
    """
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()
    lanes = _paired_lanes(in1, in2, interleaved)
    outputs.check()
    check_distinct([*in1, *in2], outputs.paths)
    run = _Run(parameters, options, phred_offset)
    if numba_cache(PACKAGE).files == 0:
        logger.info("compiling kernels (first start only, up to half a minute)")
    with (
        OutputSet(outputs.paths, threads=options.threads) as output_set,
        keep_streams(lanes) as kept,
        Progress(options.progress) as run.progress,
    ):
        reads = run.read(kept)
        run.check_memory(reads)
        tables = run.build(reads)
        insert = run.insert_size(reads, tables)
        extender = Extender(
            reads, tables, parameters.rules(insert.mean, insert.sd), options.threads
        )
        run.extend(kept, extender, outputs, output_set)
        statistics = run.statistics(reads, extender, insert)
        if outputs.stats is not None:
            text = statistics.to_json().encode()
            output_set.write(len(outputs.paths) - 1, text)
    return statistics


def extend_reads(
    reads: ReadSet,
    parameters: ExtensionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[cpu.Extensions, InsertSize]:
    """Extend all pairs of a read set in memory.

    Returns:
        The results, one row a pair, and the fragments' length they were made with.
    """
    parameters = parameters or ExtensionParameters()
    options = options or RunOptions()
    run = _Run(parameters, options, "auto")
    tables = run.build(reads)
    insert = run.insert_size(reads, tables)
    rules = parameters.rules(insert.mean, insert.sd)
    extender = Extender(reads, tables, rules, options.threads)
    pairs = np.arange(reads.reads // 2, dtype=np.int64)
    parts = [extender.extend(part) for part in _tasks(pairs)]
    if not parts:
        return cpu.Extensions.allocate(0, rules), insert
    return cpu.Extensions.joined(parts), insert


def plan_files(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path] = (),
    *,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionPlan:
    """Read the inputs, extend nothing, and say what extending them takes.

    Raises:
        InputError: an input cannot be read.
        UsageError: the files do not fit together.
    """
    options = options or RunOptions()
    with keep_streams(_paired_lanes(in1, in2, interleaved)) as lanes:
        sizes = measure_lanes(
            lanes,
            threads=options.threads,
            phred_offset=phred_offset,
            chunk_bytes=options.chunk_bytes,
        )
    return plan_extension(
        parameters or ExtensionParameters(),
        pairs=sizes.reads // 2,
        bases=sizes.bases,
        max_length=sizes.longest,
        threads=options.threads,
        budget_bytes=options.budget,
    )


def _paired_lanes(
    in1: Sequence[str | Path], in2: Sequence[str | Path], interleaved: bool
) -> list[Lane]:
    lanes, _ = plan_lanes(in1, in2, in1[:1], in2[:1], interleaved=interleaved)
    if not lanes[0].paired:
        raise UsageError("extension needs pairs: give second mates with -I, or --interleaved")
    return lanes


def _tasks(pairs: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, len(pairs), PAIRS_A_TASK):
        yield pairs[begin : begin + PAIRS_A_TASK]


class _Piece(NamedTuple):
    """Consecutive pairs: records ``begin`` to ``end`` of a batch, the first one's number."""

    mates1: Mates
    mates2: Mates
    begin: int
    end: int
    first_pair: int


class _Written(NamedTuple):
    """Bytes for the outputs, and what the statistics need."""

    extended: NDArray[np.uint8]
    remaining1: NDArray[np.uint8]
    remaining2: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    pairs: int


class _Run:
    """The stages of one run, and what they take in time and memory."""

    def __init__(
        self, parameters: ExtensionParameters, options: RunOptions, phred_offset: PhredOffset
    ) -> None:
        self.parameters = parameters
        self.options = options
        self.phred_offset: PhredOffset = phred_offset
        self.progress = Progress(enabled=False)
        self.seconds: dict[str, float] = {}
        self.planned_bytes = 0
        self.lengths = np.zeros(1, dtype=np.int64)
        self._begin = time.monotonic()

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

    @property
    def _offset(self) -> int:
        return 33 if self.phred_offset == "auto" else self.phred_offset

    def read(self, lanes: Sequence[Lane]) -> ReadSet:
        """Read all lanes into a read set."""
        builder = ReadSetBuilder(
            paired=True,
            quality_bits=self.parameters.quality_bits,
            phred_offset=self._offset,
            threads=self.options.threads,
        )
        with self._timed("read"), self.progress.stage("reading", unit="reads") as stage:
            for lane in lanes:
                for mates in self._batches(lane):
                    builder.add(*mates)
                    stage.advance(sum(map(len, mates)))
        return builder.finish()

    def check_memory(self, reads: ReadSet) -> None:
        """Refuse a run that does not fit, before its tables are built."""
        plan = plan_extension(
            self.parameters,
            pairs=reads.reads // 2,
            bases=reads.bases,
            max_length=reads.max_length,
            threads=self.options.threads,
            # What the reads take is taken already.
            budget_bytes=self.options.budget + (reads.nbytes if self.options.memory is None else 0),
            read_bytes=reads.nbytes,
        )
        self.planned_bytes = plan.total_bytes
        plan.check(self.parameters)

    def build(self, reads: ReadSet) -> EndTables:
        """Build the tables of the reads' ends."""
        hashes = self.parameters.ends.hashes
        with (
            self._timed("tables"),
            self.progress.stage("building tables", total=hashes, unit="tables") as stage,
        ):
            return build_end_tables(
                reads, self.parameters.ends, threads=self.options.threads, advance=stage.advance
            )

    def insert_size(self, reads: ReadSet, tables: EndTables) -> InsertSize:
        """The length of fragments, given or estimated from a sample of the pairs."""
        parameters = self.parameters
        if parameters.insert_mean is not None and parameters.insert_sd is not None:
            return InsertSize(parameters.insert_mean, parameters.insert_sd)
        if reads.reads == 0:
            return InsertSize(1.0, 1.0)
        sampling = sampling_parameters(parameters)
        rules = sampling.rules(0.0, 0.0)
        pairs = sampled_pairs(reads.reads // 2)
        with (
            self._timed("insert_size"),
            self.progress.stage("estimating the insert size", len(pairs), "pairs") as stage,
            ThreadPoolExecutor(self.options.threads) as pool,
        ):
            extender = Extender(reads, tables, rules, self.options.threads)
            lengths = []
            for part in map_in_order(pool, extender.extend, _tasks(pairs), self._ahead):
                lengths.append(part.total[part.kind != NOT_CONNECTED])
                stage.advance(len(part.kind))
        insert = estimate_insert(np.concatenate(lengths))
        logger.info("estimated length of fragments: %.1f ± %.1f", insert.mean, insert.sd)
        return insert

    @property
    def _ahead(self) -> int:
        return 2 * self.options.threads + 2

    def _pieces(self, lanes: Sequence[Lane], reads: ReadSet) -> Iterator[_Piece]:
        pair = 0
        for lane in lanes:
            for batches in self._batches(lane):
                _check_unchanged(batches, reads, 2 * pair)
                if len(batches) == 2:
                    mates = [Mates.of(batch, 0, 1) for batch in batches]
                else:
                    mates = [Mates.of(batches[0], mate, 2) for mate in range(2)]
                count = len(mates[0].seq_start)
                for begin in range(0, count, PAIRS_A_TASK):
                    end = min(count, begin + PAIRS_A_TASK)
                    yield _Piece(mates[0], mates[1], begin, end, pair + begin)
                pair += count
        if 2 * pair != reads.reads:
            raise InputError(
                lanes[-1].inputs[0],
                "the file became shorter while it was being extended",
                "extend it again when nothing writes to it",
            )

    def extend(
        self,
        lanes: Sequence[Lane],
        extender: Extender,
        outputs: ExtensionOutputs,
        output_set: OutputSet,
    ) -> None:
        """Read the lanes again, extend their pairs and write them."""
        reads, rules = extender.reads, extender.rules

        def work(piece: _Piece) -> _Written:
            count = piece.end - piece.begin
            pairs = np.arange(piece.first_pair, piece.first_pair + count, dtype=np.int64)
            results = extender.extend(pairs)
            how = self._format(outputs, rules, fasta=len(piece.mates1.qual_start) == 0)
            texts = format_pairs(piece.mates1, piece.mates2, piece.begin, how, results)
            lengths = results.total.astype(np.int64) + results.left + results.right
            return _Written(*texts, lengths[results.kind != NOT_CONNECTED], count)

        with (
            self._timed("extend"),
            self.progress.stage("extending", reads.reads // 2, "pairs") as stage,
            ThreadPoolExecutor(self.options.threads) as pool,
        ):
            pieces = self._pieces(lanes, reads)
            for written in map_in_order(pool, work, pieces, self._ahead, in_order=outputs.sort):
                self._write(written, outputs, output_set)
                counts = np.bincount(written.lengths, minlength=len(self.lengths))
                counts[: len(self.lengths)] += self.lengths
                self.lengths = counts
                stage.advance(written.pairs)

    def _format(self, outputs: ExtensionOutputs, rules: Rules, *, fasta: bool) -> Format:
        return Format(
            fasta=int(outputs.fasta or fasta),
            phred_offset=self._offset,
            gap_quality=-1 if outputs.gap_quality is None else outputs.gap_quality,
            include_remaining=int(outputs.include_remaining),
            interleave_remaining=int(outputs.remaining2 is None),
            turned_input=rules.turned_input,
        )

    @staticmethod
    def _write(written: _Written, outputs: ExtensionOutputs, output_set: OutputSet) -> None:
        output_set.write(0, written.extended)
        if outputs.remaining1 is not None and outputs.remaining2 is not None:
            output_set.write(1, written.remaining1)
            output_set.write(2, written.remaining2)
        elif outputs.remaining1 is not None:
            output_set.write(1, written.remaining1)

    def statistics(
        self, reads: ReadSet, extender: Extender, insert: InsertSize
    ) -> ExtensionStatistics:
        """What the run saw and did."""
        counters = extender.counters.tolist()
        kinds = counters[: len(KIND_WORDS)]
        found = np.flatnonzero(self.lengths)
        bases = int((self.lengths * np.arange(len(self.lengths))).sum())
        connected = sum(kinds[1:])
        note = f" ({self.options.backend_note})" if self.options.backend_note else ""
        self.seconds["total"] = round(time.monotonic() - self._begin, 3)
        return ExtensionStatistics(
            backend="cpu",
            device=f"{self.options.threads} CPU threads{note}",
            command=list(self.options.command),
            parameters=asdict(self.parameters) | {"phred_offset": self.phred_offset},
            insert=asdict(insert)
            | {"min_length": extender.rules.min_length, "max_length": extender.rules.max_length},
            reads={
                "total": reads.reads,
                "bases": reads.bases,
                "min_length": reads.min_length,
                "max_length": reads.max_length,
                "with_unknown": len(reads.unknown.reads),
            },
            pairs={
                "total": reads.reads // 2,
                "connected": connected,
                "remaining": kinds[NOT_CONNECTED],
            }
            | dict(zip(KIND_WORDS[1:], kinds[1:], strict=True)),
            lengths={
                "min": int(found[0]) if len(found) else 0,
                "mean": round(bases / max(1, connected), 3),
                "max": int(found[-1]) if len(found) else 0,
                "bases": bases,
            },
            length_histogram=[[int(length), int(self.lengths[length])] for length in found],
            tasks={
                "primary_iterations": counters[cpu.PRIMARY_STEPS],
                "auxiliary_iterations": counters[cpu.AUXILIARY_STEPS],
                "auxiliary_tasks": counters[cpu.AUXILIARY_TASKS],
                "candidates": counters[cpu.CANDIDATES_TAKEN],
            },
            time_s=self.seconds,
            memory={
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "planned_bytes": self.planned_bytes,
            },
        )


def _check_unchanged(batches: tuple[RecordBatch, ...], reads: ReadSet, first_read: int) -> None:
    """Refuse a file whose reads are not those of the first pass."""
    for mate, batch in enumerate(batches):
        last = first_read + len(batches) * len(batch)
        if reads.arrays.uniform_length >= 0:
            same = bool(np.all(batch.seq_len == reads.arrays.uniform_length))
        else:
            lengths = reads.arrays.lengths[first_read + mate : last : len(batches)]
            same = np.array_equal(batch.seq_len, lengths)
        if not same or last > reads.reads:
            raise InputError(
                batch.path,
                "the file changed while it was being extended",
                "extend it again when nothing writes to it",
            )
