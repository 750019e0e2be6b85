"""A run on the CPU: the inputs are read into a read set, and read again to be written edited."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.first_reading import Contents, read_within
from ngsgpu.correct.host import correct_on_cpu
from ngsgpu.correct.plan import CorrectionPlan, plan_correction
from ngsgpu.correct.read_again import ReadAgain, ReadLengths
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.patch import EditCounts
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers


class HostRun(ReadAgain):
    """See ``Run``.

    Attributes:
        reads: the reads, once they were read.
        paired: whether reads 2p and 2p + 1 are mates.
    """

    backend = "cpu"
    reads: ReadSet
    paired: bool

    def read(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> ReadSet:
        """Read all lanes into a read set."""
        self.paired = lanes[0].paired
        builder = ReadSetBuilder(
            paired=self.paired,
            quality_bits=self.parameters.quality_bits,
            phred_offset=33 if self.phred_offset == "auto" else self.phred_offset,
            threads=self.options.threads,
        )
        with self.reading() as stage:
            self.reads = read_within(
                lanes, self.batches, builder, self.plan, self.parameters, stage.advance
            )
        return self.reads

    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already."""
        self.reads = reads
        if self.options.memory is None:  # what the reads take is taken already
            self.budget += reads.nbytes
        self.paired = reads.paired

    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""
        with self.timed("spectrum"):
            return count_kmers(
                self.reads, self.parameters.minhash.kmer, threads=self.options.threads
            )

    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            UsageError: the memory does not suffice.
        """
        self._check_memory()
        with self.building_tables() as stage:
            tables = build_tables(
                self.reads,
                self.parameters.minhash,
                threads=self.options.threads,
                advance=stage.advance,
            )
        with self.correcting(self.reads.reads) as stage:
            return correct_on_cpu(
                self.reads,
                tables,
                self.parameters,
                coverage,
                threads=self.options.threads,
                anchors_per_task=self.options.anchors_per_task,
                advance=stage.advance,
            )

    def plan(self, contents: Contents) -> CorrectionPlan:
        """What a run with some reads takes."""
        return plan_correction(
            self.parameters,
            reads=contents.reads,
            bases=contents.bases,
            max_length=contents.longest,
            paired=self.paired,
            threads=self.options.threads,
            budget_bytes=self.budget,
            read_bytes=contents.read_bytes,
            estimated=contents.estimated,
        )

    def _check_memory(self) -> None:
        """Refuse a run that does not fit, before its tables are built."""
        reads = self.reads
        plan = self.plan(Contents(reads.reads, reads.bases, reads.max_length, reads.nbytes))
        self.memory["planned_bytes"] = plan.total_bytes
        plan.check(self.parameters)

    def write(
        self, lanes: Sequence[ReadFiles], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Read the lanes again and write them with the edits."""
        return self.write_again(lanes, ReadLengths.of(self.reads), corrections, outputs)
