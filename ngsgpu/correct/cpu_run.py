"""A correction on the CPU: anchors in an order that suits the cache, on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.correct import cpu
from ngsgpu.correct.corrections import CorrectionCollector, Corrections
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.plan import CorrectionPlan, plan_correction
from ngsgpu.correct.run import Run
from ngsgpu.jit import Integer
from ngsgpu.minhash import MinhashTables, build_tables
from ngsgpu.minhash.cpu import READ_MASK
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers
from ngsgpu.run.staged import Contents, CpuRun

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
    weights = quality_weights(reads.arrays.quality_bits)
    rules = parameters.rules(coverage, paired=reads.paired)
    collector = CorrectionCollector(reads.reads)
    lock = threading.Lock()
    spaces = Shared(
        cpu.Workspace.allocate(reads.max_length, parameters.minhash.hashes, parameters.margin)
        for _ in range(threads)
    )

    def work(begin: int) -> None:
        with spaces.borrowed() as space:
            correct(anchors[begin : begin + anchors_per_task], space)

    def correct(task: NDArray[np.uint32], space: cpu.Workspace) -> None:
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
    return collector.finish(counters)


class CorrectionOnCpu(CpuRun[CorrectionParameters], Run):
    """See ``Run``."""

    def plan(self, contents: Contents, *, paired: bool) -> CorrectionPlan:
        """Memory that the run needs for some reads."""
        return plan_correction(
            self.parameters,
            reads=contents.reads,
            bases=contents.bases,
            max_length=contents.longest,
            paired=paired,
            threads=self.options.threads,
            budget_bytes=self.budget,
            read_bytes=contents.read_bytes,
            estimated=contents.estimated,
        )

    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""
        with self.timed("spectrum"):
            return count_kmers(
                self.reads, self.parameters.minhash.kmer, threads=self.options.threads
            )

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
