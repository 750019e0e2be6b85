"""A run on the CPU: the inputs are read into a read set, and read again to be written edited."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.host import correct_on_cpu
from ngsgpu.correct.lanes import Lane
from ngsgpu.correct.plan import plan_correction
from ngsgpu.correct.read_again import ReadAgain, Shape
from ngsgpu.io.patch import EditCounts
from ngsgpu.io.writer import OutputSet
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers


class HostRun(ReadAgain):
    """See ``Run``.

    Attributes:
        reads: the reads, once they were read.
    """

    backend = "cpu"
    reads: ReadSet

    def read(self, lanes: Sequence[Lane], outputs: OutputSet) -> ReadSet:
        """Read all lanes into a read set."""
        builder = ReadSetBuilder(
            paired=lanes[0].paired,
            quality_bits=self.parameters.quality_bits,
            phred_offset=33 if self.phred_offset == "auto" else self.phred_offset,
            threads=self.options.threads,
        )
        with self.reading() as stage:
            for lane in lanes:
                for mates in self.batches(lane):
                    builder.add(*mates)
                    stage.advance(sum(map(len, mates)))
            self.reads = builder.finish()
        return self.reads

    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already."""
        self.reads = reads

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
                anchors_a_task=self.options.anchors_a_task,
                advance=stage.advance,
            )

    def _check_memory(self) -> None:
        """Refuse a run that does not fit, before its tables are built."""
        reads = self.reads
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
        self.memory["planned_bytes"] = plan.total_bytes
        plan.check(self.parameters)

    def write(
        self, lanes: Sequence[Lane], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Read the lanes again and write them with the edits."""
        return self.write_again(lanes, Shape.of(self.reads), corrections, outputs)
