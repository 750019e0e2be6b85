"""The counters of a correction run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ngsgpu.correct.params import DEEP_COVERAGE, USEFUL_COVERAGE
from ngsgpu.correct.workspace import (
    ALIGNED,
    ALONE,
    ANCHORS,
    CROWDED,
    FOUND,
    HIGH,
    KEPT,
    LOW,
    Q20_BASES,
    Q20_ERRORS,
    REFINED_AWAY,
)
from ngsgpu.run.statistics import RunStatistics, totals_of

if TYPE_CHECKING:
    from ngsgpu.correct.corrections import Corrections
    from ngsgpu.correct.cpu_run import Run
    from ngsgpu.io.output.edits import EditCounts
    from ngsgpu.readset.kmers import KmerSpectrum

_CROWD = 10
"""Overlapping reads per read where most reads should find similar ones."""
_CORRECTED = 0.8
"""Bases corrected for each of at least Q20 that hardly any other read has, where no more are left
than usual: between 2 and 40 on genomes and amplicons with the sequencer's qualities."""
_FEWEST_RARE = 100


@dataclass(slots=True, kw_only=True)
class CorrectionStatistics(RunStatistics):
    """Counts and resources of a correction; see also ``RunStatistics``.

    Attributes:
        coverage: ``value`` (reads per position; 0 if no read has a k-mer), whether it was
            ``estimated``, and whether it ``suffices`` for correction to be of use.
        reads: totals of the input.
        anchors: MSAs by quality.
        candidates: found by the tables, aligned, kept by the filter, taken out by refinement.
        corrected: reads and bases changed, reads by class, ambiguous bases decided and left.
        kept: Q20 bases that were compared, those of them that hardly any other read has (``rare``),
            and whether ``nearly_all`` differences were kept although the coverage is high.
        corrected_bases_by_position: for each mate, bases changed at each position of the read.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``.
        spectrum: k-mer length, sampling and histogram that the coverage was estimated from.
        gpu_memory: memory planned on the GPU, and what lay on the host; empty on the CPU.
    """

    SCHEMA = "ngsgpu.correct"
    coverage: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int | bool] = field(default_factory=dict)
    corrected_bases_by_position: list[list[int]] = field(default_factory=list)
    spectrum: dict[str, Any] = field(default_factory=dict)
    adapters: dict[str, Any] = field(default_factory=dict)
    gpu_memory: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        run: Run,
        spectrum: KmerSpectrum,
        coverage: float,
        corrections: Corrections,
        counts: EditCounts,
    ) -> Self:
        """The statistics of a run that has written its outputs.

        Args:
            run: the run, with its reads and times.
            spectrum: k-mers of the reads.
            coverage: reads per position.
            corrections: the corrections and their counters.
            counts: edits that were written.
        """
        reads, counters = run.reads, corrections.counters
        changed, rare = int(counts.by_position.sum()), int(counters[Q20_ERRORS])
        alone = 2 * counters[ALONE] >= counters[ANCHORS] and (
            counters[ALIGNED] >= _CROWD * counters[ANCHORS] > 0
        )
        is_given = run.parameters.coverage is not None
        if not is_given and not len(spectrum.count):
            coverage = 0.0
        few = rare >= _FEWEST_RARE and changed < _CORRECTED * rare
        return cls.after(
            run,
            coverage={
                "value": round(coverage, 3),
                "estimated": not is_given,
                "suffices": coverage >= USEFUL_COVERAGE,
            },
            reads=totals_of(reads, paired=int(reads.paired)),
            anchors={
                "total": int(counters[ANCHORS]),
                "without_candidates": int(counters[ALONE]),
                "in_repeats": int(counters[CROWDED]),
                "high_quality": int(counters[HIGH]),
                "low_quality": int(counters[LOW]),
            },
            candidates={
                "found": int(counters[FOUND]),
                "aligned": int(counters[ALIGNED]),
                "kept": int(counters[KEPT]),
                "removed_by_refinement": int(counters[REFINED_AWAY]),
            },
            corrected={
                "reads": counts.reads,
                "bases": changed,
                "high_quality_reads": corrections.high_quality,
                "confirmed_reads": corrections.confirmed,
                "completed_reads": corrections.completed,
                "anchor_only_reads": corrections.anchor_only,
                "rejected_reads": corrections.rejected,
                "unknown_decided": counts.ambiguous,
                "unknown_left": len(reads.ambiguous.positions) - counts.ambiguous,
            },
            kept={
                "q20_bases": int(counters[Q20_BASES]),
                "rare": rare,
                "nearly_all": bool(coverage >= DEEP_COVERAGE and (alone or few)),
            },
            corrected_bases_by_position=counts.by_position.tolist(),
            spectrum={
                "k": spectrum.k,
                "sampled": spectrum.sampled,
                "histogram": np.stack([spectrum.multiplicity, spectrum.count], axis=1).tolist(),
            },
        )

    def summary(self) -> list[str]:
        """A short text summary."""
        reads, changed = self.reads["total"], self.corrected
        share = 100 * changed["reads"] / max(1, reads)
        done = "masked" if self.parameters.get("mask") else "corrected"
        value, is_estimated = self.coverage["value"], self.coverage["estimated"]
        known = f"coverage {value:.1f} ({'estimated' if is_estimated else 'given'})"
        return [
            known if value else "coverage unknown: no read has a k-mer",
            f"{reads:,} reads, {self.reads['bases']:,} bases",
            f"{changed['bases']:,} bases {done} in {changed['reads']:,} reads ({share:.1f} %)",
            f"{changed['unknown_decided']:,} ambiguous bases decided, "
            f"{changed['unknown_left']:,} left",
            self.resources(),
        ]
