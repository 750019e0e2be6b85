"""A spectrum correction: the memory it needs, and how the CPU takes its steps."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import Allocation
from ngsgpu.io.output.edits import Edits
from ngsgpu.jit import Integer
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.readset.kmers import estimate_coverage
from ngsgpu.run.again.edited import EditingRun
from ngsgpu.run.options import INTERPRETER_BYTES, Contents, ReadSetPlan
from ngsgpu.run.staged import CpuRun
from ngsgpu.spectrum import cpu
from ngsgpu.spectrum.kmers.counts import Thresholds, count_reads, find_thresholds, tasks_of
from ngsgpu.spectrum.kmers.reads import scores_of_codes
from ngsgpu.spectrum.kmers.solid import Solid, make_solid
from ngsgpu.spectrum.params import SpectrumParameters

_LOG = logging.getLogger("ngsgpu")

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
class SpectrumPlan(ReadSetPlan):
    """Memory that a spectrum correction needs; see ``ReadSetPlan``.

    Attributes:
        part_bits: k-mers are counted in 2^this parts.
    """

    part_bits: int


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
        doing=f"correcting {contents.count()}",
        contents=contents,
        quality_bits=parameters.quality_bits,
        part_bits=part_bits,
        allocations=(
            Allocation("reads", read_bytes),
            Allocation("counting", contents.bases * 10 >> part_bits),
            Allocation("k-mers", table_bytes),
            Allocation("other", other_bytes),
        ),
        budget=budget_bytes,
        notes=(contents.line(), f"k-mers   counted in {1 << part_bits:,} parts"),
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
    scores = scores_of_codes(reads.arrays.quality_bits, reads.levels)
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


class Run(EditingRun[SpectrumParameters]):
    """A spectrum correction: ``read`` (or ``take``), ``count``, ``correct``, ``write``.

    Attributes:
        kmer: k-mer length, after ``count``.
        thresholds: of the k-mers, after ``count``.
        histogram: int64[65536], distinct k-mers by count, after ``count``.
    """

    kmer: int
    thresholds: Thresholds
    histogram: NDArray[np.int64]

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
                "too low, or the reads are of many genomes; give `min_count`, or use `method='msa'`"
            )


class SpectrumOnCpu(CpuRun[SpectrumParameters], Run):
    """See ``Run``."""

    PLAN = staticmethod(plan_spectrum)
    _solid: Solid

    def count(self) -> None:
        """Count the k-mers and make the set of solid ones."""
        plan = self.check_memory()
        assert isinstance(plan, SpectrumPlan)
        bits, threads = plan.part_bits, self.options.threads
        with self.timed("size"):
            self.choose_kmer()
        with self.step("count", "counting k-mers", 1 << bits, "parts") as stage:
            counted = count_reads(
                self.reads, self.kmer, threads=threads, part_bits=bits, advance=stage.advance
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
