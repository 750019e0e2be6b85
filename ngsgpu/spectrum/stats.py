"""The counters of a spectrum correction, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ngsgpu.run.statistics import RunStatistics, totals_of
from ngsgpu.spectrum.cpu import CLASSES

if TYPE_CHECKING:
    from ngsgpu.io.output.edits import EditCounts
    from ngsgpu.spectrum.cpu_run import Run, SpectrumCorrections

_SHOWN = 1000


@dataclass(slots=True, kw_only=True)
class SpectrumStatistics(RunStatistics):
    """Counts and resources of a spectrum correction; see also ``RunStatistics``.

    Attributes:
        kmers: their length, the threshold of solid ones, the depth of the main peak (0 without),
            and the histogram up to 1,000 (pairs of a count and a number of k-mers).
        reads: totals of the input.
        classes: reads by class.
        corrected: reads and bases changed, ambiguous bases decided and left.
        corrected_bases_by_position: for each mate, bases changed at each position of the read.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``.
        gpu_memory: memory planned on each GPU, and what lay on the host; empty on the CPU.
    """

    SCHEMA = "ngsgpu.spectrum"
    kmers: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    corrected_bases_by_position: list[list[int]] = field(default_factory=list)
    adapters: dict[str, Any] = field(default_factory=dict)
    gpu_memory: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, corrections: SpectrumCorrections, counts: EditCounts) -> Self:
        """The statistics of a run that has written its outputs.

        Args:
            run: the run, with its reads and times.
            corrections: edits and classes of the reads.
            counts: edits that were written.
        """
        reads = run.reads
        present = np.flatnonzero(run.histogram[: _SHOWN + 1])
        numbers = np.bincount(corrections.classes, minlength=len(CLASSES)).tolist()
        return cls.after(
            run,
            kmers={
                "k": run.kmer,
                "solid_from": run.thresholds.solid,
                "depth": run.thresholds.depth,
                "genome_size": run.thresholds.genome_size,
                "histogram": np.stack([present, run.histogram[present]], axis=1).tolist(),
            },
            reads=totals_of(reads, paired=int(reads.paired)),
            classes=dict(zip(CLASSES, numbers, strict=True)),
            corrected={
                "reads": counts.reads,
                "bases": int(counts.by_position.sum()),
                "unknown_decided": counts.ambiguous,
                "unknown_left": len(reads.ambiguous.positions) - counts.ambiguous,
            },
            corrected_bases_by_position=counts.by_position.tolist(),
        )

    def summary(self) -> list[str]:
        """A short text summary."""
        reads, changed = self.reads["total"], self.corrected
        share = 100 * changed["reads"] / max(1, reads)
        done = "masked" if self.parameters.get("mask") else "corrected"
        return [
            f"k-mers of {self.kmers['k']} bases, solid from a count of {self.kmers['solid_from']}",
            f"{reads:,} reads, {self.reads['bases']:,} bases",
            f"{changed['bases']:,} bases {done} in {changed['reads']:,} reads ({share:.1f} %)",
            ", ".join(f"{number:,} {name}" for name, number in self.classes.items()).replace(
                "_", " "
            ),
            self.resources(),
        ]
