"""A spectrum correction: the memory it needs, and how the CPU takes its steps."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits, EditStyle
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.jit import Integer
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import KmerSpectrum, count_kmers, estimate_coverage
from ngsgpu.run.edited import Render, write_edited
from ngsgpu.run.options import INTERPRETER_BYTES, Contents, HostPlan
from ngsgpu.run.progress import Stage
from ngsgpu.run.staged import CpuRun, StagedRun
from ngsgpu.spectrum import cpu
from ngsgpu.spectrum.counts import (
    Thresholds,
    count_reads,
    find_thresholds,
    tasks_of,
)
from ngsgpu.spectrum.params import SpectrumParameters
from ngsgpu.spectrum.reads import scores_of_codes
from ngsgpu.spectrum.solid import Solid, make_solid

_LOG = logging.getLogger("ngsgpu")

HIGHEST_QUALITY = 20
MASKED_QUALITY = 2
"""Phred scores of changed and of masked bases at most, as with the other method."""

_SAMPLED_KMER = 21
_BASES_PER_TASK = 1 << 20
_MAX_PART_BITS = 6
_DISTINCT_SHARE = 4
"""Distinct k-mers that occur twice are 1 / this of all k-mers, for the plan."""

RULES = {"search": cpu.SEARCH, "voting": cpu.VOTING, "exhaustive": cpu.EXHAUSTIVE}


@dataclass(frozen=True, slots=True)
class SpectrumCorrections:
    """The corrections of all reads of a read set.

    Attributes:
        edits: bases to replace, by read.
        classes: uint8[reads], numbers of ``cpu.CLASSES``.
        begin: int32[reads], first base of the part that trimming leaves.
        end: int32[reads], its end.
    """

    edits: Edits
    classes: NDArray[np.uint8]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]

    def apply(self, reads: Sequence[str]) -> list[str]:
        """The sequences of the reads that were corrected, as they are then; not trimmed.

        Args:
            reads: their sequences, in the order of the read set.

        Raises:
            UsageError: there are more or fewer than in the read set.
        """
        return self.edits.apply(reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumPlan(HostPlan):
    """Memory that a spectrum correction needs; see ``HostPlan``.

    Attributes:
        part_bits: k-mers are counted in 2^this parts.
        count_bytes: those of a part, and their tables.
    """

    DOING = "correcting"
    part_bits: int
    count_bytes: int

    def parts(self) -> dict[str, int]:
        """Bytes of each part, by its name."""
        return {
            "reads": self.read_bytes,
            "counting": self.count_bytes,
            "k-mers": self.table_bytes,
            "other": self.other_bytes,
        }

    def units(self) -> str:
        """The reads, with their number."""
        return f"{self.contents.reads:,} reads"

    def inputs(self) -> list[str]:
        """Lines for people about the reads."""
        found = self.contents
        return [
            f"reads    {found.reads:,} with {found.bases:,} bases, the longest {found.longest:,}"
        ]

    def lines(self) -> list[str]:
        """The plan for people."""
        reads, memory = HostPlan.lines(self)
        return [reads, f"k-mers   counted in {1 << self.part_bits:,} parts", memory]

    def fewer_tables(self, surplus: int) -> int | None:
        """There is one table."""
        return None


def plan_spectrum(
    parameters: SpectrumParameters, contents: Contents, *, threads: int, budget_bytes: int
) -> SpectrumPlan:
    """Plan the memory of a spectrum correction.

    Args:
        parameters: of the correction.
        contents: the reads.
        threads: number of threads.
        budget_bytes: memory budget.
    """
    read_bytes = contents.nbytes(parameters.quality_bits)
    table_bytes = contents.bases // _DISTINCT_SHARE * (10 + 16)
    other_bytes = INTERPRETER_BYTES + contents.reads * 19 + threads * (64 << 20)
    room = budget_bytes - read_bytes - table_bytes - other_bytes
    part_bits = 0
    while part_bits < _MAX_PART_BITS and contents.bases * 10 >> part_bits > room:
        part_bits += 1
    return SpectrumPlan(
        contents=contents,
        tables=1,
        part_bits=part_bits,
        count_bytes=contents.bases * 10 >> part_bits,
        read_bytes=read_bytes,
        table_bytes=table_bytes,
        other_bytes=other_bytes,
        budget_bytes=budget_bytes,
    )


def correct_on_cpu(
    reads: ReadSet,
    solid: Solid,
    kmer: int,
    parameters: SpectrumParameters,
    *,
    trim: bool = False,
    threads: int = 1,
    bases_per_task: int = _BASES_PER_TASK,
    advance: Callable[[int], None] = lambda reads: None,
) -> SpectrumCorrections:
    """Correct all reads of a read set.

    Args:
        reads: the read set.
        solid: its solid k-mers.
        kmer: their length.
        parameters: of the correction.
        trim: whether reads are going to be trimmed: then nothing else of them changes.
        threads: number of threads; does not affect the result.
        bases_per_task: nor does this.
        advance: called with the number of reads corrected since the last call.
    """
    scores = scores_of_codes(reads.arrays.quality_bits)
    rules = parameters.search_rules(kmer)
    rule = RULES[parameters.rule]
    spaces = Shared(cpu.Workspace.allocate(reads.max_length) for _ in range(threads))

    def correct(task: tuple[int, int]) -> cpu.Results:
        first, last = task
        found = cpu.Results.allocate(last - first, (last - first) * reads.max_length)
        with spaces.borrowed() as space:
            size: Integer = cpu.correct_reads(
                reads.arrays, reads.ambiguous, scores, solid, rules, rule,
                parameters.mutations, trim, first, last, space, found,
            )  # fmt: skip
        advance(last - first)
        return found._replace(edits=found.edits[:size].copy())

    with working(threads, correct, tasks_of(reads, bases_per_task), name="spectrum") as done:
        parts = [cpu.Results.allocate(0, 0), *done]
    joined = cpu.Results(*map(np.concatenate, zip(*parts, strict=True)))
    starts = np.cumsum(joined.counts, dtype=np.int64) - joined.counts
    return SpectrumCorrections(
        Edits(starts, joined.counts, joined.edits), joined.classes, joined.begin, joined.end
    )


class Run(StagedRun[SpectrumParameters]):
    """A spectrum correction: ``read`` (or ``take``), ``count``, ``correct``, ``write``.

    Attributes:
        kmer: k-mer length, after ``count``.
        thresholds: of the k-mers, after ``count``.
        histogram: int64[65536], distinct k-mers by count, after ``count``.
    """

    HARM = "correction takes these bases for reads of one place, and replaces right ones"

    kmer: int
    thresholds: Thresholds
    histogram: NDArray[np.int64]

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet, style: EditStyle) -> None:
        """Start copying the inputs to the outputs after ``read``, if that helps.

        Args:
            lanes: the inputs.
            outputs: the outputs.
            style: how edits are going to be written.
        """

    @abstractmethod
    def count(self) -> None:
        """Count the k-mers and make the set of solid ones.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            HostMemoryError: the memory does not suffice.
        """

    @abstractmethod
    def correct(self, *, trim: bool = False) -> SpectrumCorrections:
        """Correct every read; if they are going to be trimmed, nothing else of them changes."""

    @abstractmethod
    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """The spectrum of a sample of the k-mers."""

    def choose_kmer(self) -> None:
        """Choose the k-mer length; the size of the genome is guessed from a sample of k-mers."""
        if self.parameters.kmer is not None:
            self.kmer = self.parameters.kmer
            return
        reads = self.reads
        coverage = max(1.0, estimate_coverage(self.sampled_spectrum(_SAMPLED_KMER)))
        mean_length = reads.bases / max(1, reads.reads)
        self.kmer = self.parameters.kmer_for(reads.bases / coverage, mean_length)

    def choose_thresholds(self, histogram: NDArray[np.int64]) -> None:
        """Choose the counts that divide k-mers."""
        self.histogram = histogram
        found = self.thresholds = find_thresholds(histogram, self.parameters.min_count)
        _LOG.info("k-mers of %d bases are solid from a count of %d", self.kmer, found.solid)
        if self.parameters.min_count is None and found.depth == 0 and histogram[2:].any():
            _LOG.warning(
                "the k-mers with errors cannot be told from those of the genome: the coverage is "
                "too low, or the reads are of many genomes; give --min-count, or use --method msa"
            )

    def correcting(self) -> AbstractContextManager[Stage]:
        """The step of the corrections."""
        return self.step("correct", "correcting", self.reads.reads)

    def writing(self) -> AbstractContextManager[Stage]:
        """The step of the outputs."""
        return self.step("write", "writing", self.reads.reads)

    def style(self) -> EditStyle:
        """How corrections are written."""
        if not self.parameters.quality:
            return EditStyle(self.parameters.mask)
        highest = MASKED_QUALITY if self.parameters.mask else HIGHEST_QUALITY
        return EditStyle(self.parameters.mask, self.offset + highest)

    def write(
        self,
        lanes: Sequence[ReadFiles],
        corrections: SpectrumCorrections,
        outputs: OutputSet,
        render: Render | None = None,
    ) -> EditCounts:
        """Read the lanes again and write them with the corrections, or what ``render`` makes of it.

        Raises:
            InputError: a file has changed.
        """
        with self.writing() as stage:
            return write_edited(
                self, lanes, corrections.edits, self.style(), outputs, stage.advance, render
            )


class SpectrumOnCpu(CpuRun[SpectrumParameters], Run):
    """See ``Run``."""

    _solid: Solid

    def plan(self, contents: Contents) -> SpectrumPlan:
        """Memory that the run needs for some reads."""
        return plan_spectrum(
            self.parameters, contents, threads=self.options.threads, budget_bytes=self.budget
        )

    def sampled_spectrum(self, k: int) -> KmerSpectrum:
        """The spectrum of a sample of the k-mers."""
        return count_kmers(self.reads, k, threads=self.options.threads)

    def count(self) -> None:
        """Count the k-mers and make the set of solid ones."""
        self.check_memory()
        reads, threads = self.reads, self.options.threads
        with self.timed("size"):
            self.choose_kmer()
        contents = Contents(reads.reads, reads.bases, reads.max_length, reads.paired, reads.nbytes)
        bits = self.plan(contents).part_bits
        with self.step("count", "counting k-mers", 1 << bits, "parts") as stage:
            counted = count_reads(
                reads, self.kmer, threads=threads, part_bits=bits, advance=stage.advance
            )
        with self.timed("table"):
            self.choose_thresholds(counted.histogram)
            self._solid = make_solid(
                counted.kmers, counted.counts, self.thresholds.solid, self.thresholds.strong,
                bloom=self.parameters.filter == "bloom",
            )  # fmt: skip

    def correct(self, *, trim: bool = False) -> SpectrumCorrections:
        """Correct every read."""
        with self.correcting() as stage:
            return correct_on_cpu(
                self.reads,
                self._solid,
                self.kmer,
                self.parameters,
                trim=trim,
                threads=self.options.threads,
                bases_per_task=self.options.units_per_task or _BASES_PER_TASK,
                advance=stage.advance,
            )
