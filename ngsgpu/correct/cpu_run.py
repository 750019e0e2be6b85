"""A correction: its steps on any backend, the memory it needs, and how the CPU takes the steps."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.align.rules import Rules
from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import CorrectionCollector, Corrections
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.rules.cpu_witnesses import ReadAsker
from ngsgpu.correct.workspace import Workspace, sampled_anchors, sampled_errors
from ngsgpu.device.plan import Allocation
from ngsgpu.jit import Integer
from ngsgpu.minhash import MinhashTables, build_tables
from ngsgpu.minhash import tables as minhash_tables
from ngsgpu.minhash.cpu import READ_MASK
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum, estimate_coverage
from ngsgpu.run.again.edited import EditingRun
from ngsgpu.run.options import INTERPRETER_BYTES, Contents, ReadSetPlan
from ngsgpu.run.progress import Stage
from ngsgpu.run.staged import CpuRun


class Run(EditingRun[CorrectionParameters]):
    """A correction: ``read`` (or ``take``), ``fill_unknown``, ``count``, ``correct``, ``write``."""

    def count(self) -> tuple[KmerSpectrum, float]:
        """The k-mer spectrum of the reads and their coverage, reads per position.

        That is given, or estimated from the spectrum. Chooses the tables and their k-mer length.
        """
        reads, bases, given = self.reads.reads, self.reads.bases, self.parameters
        minhash = given.for_reads(reads, bases).minhash
        with self.timed("spectrum"):
            spectrum = self.sampled_spectrum(minhash.k)
        coverage = given.coverage or max(1.0, estimate_coverage(spectrum))
        repeated = spectrum.share_above(minhash.max_bucket_size(coverage))
        self.parameters = given.for_reads(reads, bases, repeated, coverage)
        return spectrum, coverage

    @abstractmethod
    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UnsuitableError: a read is too long for the GPU.
            HostMemoryError: the memory does not suffice.
        """

    def building_tables(self) -> AbstractContextManager[Stage]:
        """The step of the tables."""
        return self.step("tables", "building tables", self.parameters.minhash.tables, "tables")


RESULT_BYTES_PER_READ = 1 + 8 + 1 + 8 + 2 + 4 * 2 + 16
"""Class, votes (9 bytes), place of the edits, two edits; k-mers that reads are asked about."""

WORKSPACE_BYTES = 8 << 20
"""Bytes per thread for anchors with very many candidates."""

_MIN_TABLES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPlan(ReadSetPlan):
    """Memory that a correction needs; see ``ReadSetPlan``."""


def plan_correction(
    parameters: CorrectionParameters, contents: Contents, *, threads: int, budget_bytes: int
) -> CorrectionPlan:
    """Plan the memory of a correction.

    Args:
        parameters: correction parameters.
        contents: the reads.
        threads: number of threads.
        budget_bytes: memory budget.
    """
    reads = contents.reads
    parameters = parameters.for_number(reads)
    anchors = reads // 2 if contents.paired else reads
    batches = -(-anchors // ANCHORS_PER_TASK)
    kind = "pairs" if contents.paired else "reads"
    return CorrectionPlan(
        doing=f"correcting {contents.count()}",
        contents=contents,
        quality_bits=parameters.quality_bits,
        tables=parameters.minhash.tables,
        allocations=(
            Allocation("reads", contents.nbytes(parameters.quality_bits)),
            Allocation(
                "tables",
                minhash_tables.planned_bytes(reads, contents.longest, parameters.minhash),
            ),
            Allocation("results", reads * RESULT_BYTES_PER_READ),
            Allocation("other", INTERPRETER_BYTES + threads * WORKSPACE_BYTES + (256 << 20)),
        ),
        budget=budget_bytes,
        table_bytes=max(1, reads)
        * minhash_tables.entry_bytes(contents.longest, parameters.minhash.k),
        least_tables=_MIN_TABLES,
        notes=(
            contents.line(),
            f"tables   {parameters.minhash.tables}",
            f"batches  {batches:,} of {ANCHORS_PER_TASK:,} {kind}",
        ),
    )


ANCHORS_PER_TASK = 4096


def anchors_in_bucket_order(reads: ReadSet, tables: MinhashTables) -> NDArray[np.uint32]:
    """Anchors (first mates where paired), those of a bucket of the first table together.

    They share most of their candidates, so these are still in the cache when the next needs
    them. The order decides nothing but the time.
    """
    ids = tables.arrays.ids[0, : int(tables.entries[0])] & READ_MASK
    listed = np.zeros(reads.reads, dtype=bool)
    listed[ids] = True
    rest = np.flatnonzero(~listed).astype(np.uint32)
    anchors = np.concatenate([ids, rest])
    return anchors[anchors % 2 == 0] if reads.paired else anchors


def observed_rules(
    reads: ReadSet, tables: MinhashTables, parameters: CorrectionParameters, coverage: float
) -> Rules:
    """The rules of a run, from the errors of a sample of its anchors."""
    rules = parameters.rules(coverage, paired=reads.paired)
    if not rules.variant_reads:
        return rules
    space = Workspace.allocate(reads.max_length, parameters.minhash.tables, parameters.margin)
    weights = quality_weights(reads.arrays.quality_bits, reads.levels)
    sample = sampled_anchors(reads.reads, 2 if reads.paired else 1)
    done: Integer = 0
    while done < len(sample):
        done, _, _ = cpu.correct_anchors(
            reads.arrays, reads.ambiguous, tables.arrays, weights, rules, sample, done, space
        )
    return parameters.observed_rules(
        coverage, paired=reads.paired, **sampled_errors(space.counters)
    )


def correct_on_cpu(
    reads: ReadSet,
    tables: MinhashTables,
    parameters: CorrectionParameters,
    coverage: float,
    *,
    threads: int = 1,
    anchors_per_task: int = ANCHORS_PER_TASK,
    advance: Callable[[int], None] = lambda reads: None,
) -> Corrections:
    """Correct all reads of a read set.

    Args:
        reads: the read set.
        tables: its minhash tables.
        parameters: correction parameters.
        coverage: reads per genome position.
        threads: number of threads; does not affect the result.
        anchors_per_task: anchors (or pairs) per task; nor does this.
        advance: called with the number of reads corrected since the last call.
    """
    anchors = anchors_in_bucket_order(reads, tables)
    weights = quality_weights(reads.arrays.quality_bits, reads.levels)
    rules = observed_rules(reads, tables, parameters, coverage)
    forests = parameters.forests(coverage, with_qualities=reads.arrays.quality_bits > 0)
    collector = CorrectionCollector(reads.reads, reads.paired, forests.second)
    lock = threading.Lock()
    spaces = Shared(
        Workspace.allocate(
            reads.max_length,
            parameters.minhash.tables,
            parameters.margin,
            forests,
        )
        for _ in range(threads)
    )

    def work(begin: int) -> None:
        with spaces.borrowed() as space:
            correct(anchors[begin : begin + anchors_per_task], space)

    def correct(task: NDArray[np.uint32], space: Workspace) -> None:
        done: Integer = 0
        while done < len(task):
            before = done
            done, records, votes = cpu.correct_anchors(
                reads.arrays, reads.ambiguous, tables.arrays, weights, rules, task, done, space
            )
            with lock:
                collector.add_records(
                    space.edit_reads[:records],
                    space.classes[:records],
                    space.edit_ends[:records],
                    space.edit_hashes[:records],
                    space.edits,
                )
                collector.add_votes(space.vote_reads[:votes], space.vote_hashes[:votes])
            advance(int(done - before) * (2 if reads.paired else 1))

    tasks = range(0, len(anchors), anchors_per_task)
    with working(threads, work, tasks, in_order=False, name="correct") as done:
        for _ in done:
            pass
    counters = np.stack([space.counters for space in spaces.things]).sum(axis=0, dtype=np.int64)
    return collector.finish(counters, ReadAsker(reads, threads))


class CorrectionOnCpu(CpuRun[CorrectionParameters], Run):
    """See ``Run``."""

    PLAN = staticmethod(plan_correction)

    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            HostMemoryError: the memory does not suffice.
        """
        self.check_memory()
        threads = self.options.threads
        with self.building_tables() as stage:
            tables = build_tables(
                self.reads, self.parameters.minhash, threads=threads, advance=stage.advance
            )
        with self.correcting() as stage:
            return correct_on_cpu(
                self.reads,
                tables,
                self.parameters,
                coverage,
                threads=threads,
                anchors_per_task=self.options.units_per_task or ANCHORS_PER_TASK,
                advance=stage.advance,
            )
