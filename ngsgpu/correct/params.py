"""Parameters of the correction, and the integers that the kernels compare with.

Defaults are those of CARE (Kallenborn 2024, chapter 4) in its released version 2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from ngsgpu.align.alignment import WEIGHT_BITS
from ngsgpu.align.msa import MAX_AGREEING
from ngsgpu.align.rules import SUPPORT_BITS, Rules
from ngsgpu.correct.forests.forest import Forests, check_threshold, load_model, without_forests
from ngsgpu.errors import UsageError, check_choice, check_range
from ngsgpu.io.text.batch import MAX_READ_LENGTH
from ngsgpu.minhash import MinhashParameters

TOLERANCE = 1e-5


TYPICAL_ERROR_RATE = 1e-3
"""Of bases of at least Q20, before any is seen."""

MIN_VARIANT_READS = 3
UNEXPLAINED = 0.002
"""Probability that an error of a read is found in enough others by chance, at most."""

NEVER = (1 << 31) - 1


USEFUL_COVERAGE = 3.5
"""Reads per position below which correction finds about half of the errors at best: see
``docs/correct.md``."""

HIGHEST_QUALITY = 20
"""Phred score that a changed base gets at most (``--quality``); see ``docs/correct.md``."""

MASKED_QUALITY = 2
"""The same for a base that becomes N: what Illumina's pipelines write for N."""


def variant_depths(error_rate: float) -> tuple[int, int, int, int, int, int, int, int]:
    """Q20 reads of a column from which one more read each must agree on a base.

    Among n reads, an erroneous base is found in N - 1 others with the binomial probability of N - 1
    or more successes in n trials at a third of the error rate, for which Poisson's is taken; N is
    the smallest number for which that is at most ``UNEXPLAINED``.
    """
    depths = [
        math.floor(_explained(MIN_VARIANT_READS + step - 1) * 3 / error_rate) + 1
        for step in range(8)
    ]
    first, *_ = depths
    return (first, *depths[1:])  # type: ignore[return-value]


def _explained(others: int) -> float:
    """Largest mean at which ``others`` or more events have a probability of ``UNEXPLAINED``."""
    low, high = 0.0, 50.0
    for _ in range(60):
        mean = (low + high) / 2
        fewer = sum(mean**i / math.factorial(i) for i in range(others)) * math.exp(-mean)
        low, high = (mean, high) if 1 - fewer <= UNEXPLAINED else (low, mean)
    return low


_RANGES: Final = {
    "min_overlap": (1, MAX_READ_LENGTH),
    "min_overlap_ratio": (0, 1),
    "max_mismatch_ratio": (0, 1),
    "pair_mismatch_ratio": (0, 1),
    "error_rate": (0, 1 / 3),
    "coverage_factor": (0, 10),
    "refine_factor": (0, 10),
    "refine_rounds": (0, 100),
    "position_support": (0, 1),
    "position_max_reads": (0, 1000),
    "margin": (0, MAX_READ_LENGTH),
    "compared_quality": (0, 93),
    "evidence_reads": (0, 1000),
    "evidence_ratio": (0, 1000),
}
"""Of the parameters that are for Python alone: what the kernels' integers hold."""


@dataclass(frozen=True, slots=True)
class CorrectionParameters:
    """How reads are corrected.

    Attributes:
        coverage: reads per position of the genome; None to estimate it from the k-mer spectrum.
        minhash: k-mer length, number of tables, how much of a bucket is looked at.
        quality_bits: bits of quality kept a base: 8, 2, 1 or 0 (every base weighs the same).
        min_overlap: shortest overlap of an anchor and a candidate, in bases.
        min_overlap_ratio: the same as a part of the anchor's length.
        max_mismatch_ratio: mismatches an overlap may have, as a part of its length.
        pair_mismatch_ratio: the same for candidates of a paired read whose mates are not
            candidates of the mate.
        error_rate: e of the quality classes: an MSA may replace the anchor if the mean support
            is at least 1 - e and the smallest at least 1 - 3e. For single reads also the unit
            of the candidate classes (2e, 3e, 4e mismatches).
        coverage_factor: part of the coverage that counts as enough.
        refine_factor: part of the coverage at which another base in a column is a repeat.
        refine_rounds: how often an MSA is refined at most.
        position_support: support at which single positions of a low-quality MSA are corrected.
        position_max_reads: how many reads may have the original base there, the anchor included.
        margin: how far a candidate may reach beyond the anchor to be corrected too, in bases.
        model: forests that decide on single positions: ``none``, ``default`` or a file.
        anchor_threshold: probability from which the forest changes a base of a low-quality MSA;
            None: the model's.
        candidate_threshold: the same for bases of candidates.
        classic: decide as CARE does, without what the following attributes describe.
        keep_variants: reads of at least Q20 that must agree on a base for it to be kept as an
            allele; None: as many as the errors of the run do not explain.
        compared_quality: Phred score below which a base of the anchor is not compared when it
            is aligned.
        evidence_reads: full-weight reads that a base of a low-quality MSA needs against the
            anchor's own.
        evidence_ratio: and how many for each other read that contradicts it.
        mask: write N in place of the corrected base.
        quality: set the qualities of changed bases.
    """

    coverage: float | None = None
    minhash: MinhashParameters = field(default_factory=MinhashParameters)
    quality_bits: int = 8
    min_overlap: int = 30
    min_overlap_ratio: float = 0.30
    max_mismatch_ratio: float = 0.20
    pair_mismatch_ratio: float = 0.06
    error_rate: float = 0.06
    coverage_factor: float = 0.6
    refine_factor: float = 0.3
    refine_rounds: int = 5
    position_support: float = 0.90
    position_max_reads: int = 2
    margin: int = 15
    model: str = "none"
    anchor_threshold: float | None = None
    candidate_threshold: float | None = None
    classic: bool = False
    keep_variants: int | None = None
    compared_quality: int = 15
    evidence_reads: float = 1.8
    evidence_ratio: int = 6
    mask: bool = False
    quality: bool = False

    def __post_init__(self) -> None:
        if self.coverage is not None and not 0 < self.coverage <= 1_000_000:
            raise UsageError(f"--coverage must be auto or above 0, not {self.coverage:g}")
        check_choice("--quality-bits", self.quality_bits, (8, 2, 1, 0))
        for name, (low, high) in _RANGES.items():
            check_range(name, getattr(self, name), low, high)
        thresholds = {
            "--anchor-threshold": self.anchor_threshold,
            "--candidate-threshold": self.candidate_threshold,
        }
        for option, value in thresholds.items():
            check_threshold(option, value)
            if value is not None and self.model == "none":
                raise UsageError(f"{option} is for --model; add --model default, or leave it out")
        load_model(self.model)

        if self.keep_variants is not None and not 2 <= self.keep_variants <= MAX_AGREEING:
            raise UsageError(
                f"--keep-variants must be auto or 2 to {MAX_AGREEING}, not {self.keep_variants}"
            )
        if self.classic and self.keep_variants is not None:
            raise UsageError("--classic keeps no variants; leave out --keep-variants")

    def forests(self, coverage: float) -> Forests:
        """What decides on single positions, for a coverage (reads per position)."""
        model = load_model(self.model)
        if model is None:
            return without_forests()
        return model.forests(coverage, self.anchor_threshold, self.candidate_threshold)

    def observed_rules(self, coverage: float, *, paired: bool, bases: int, errors: int) -> Rules:
        """``rules`` for the errors among the Q20 bases of a sample."""
        rate = (errors + 1) / (bases + 1 / TYPICAL_ERROR_RATE)
        return self.rules(coverage, paired=paired, error_rate=min(rate, 0.1))

    def rules(
        self, coverage: float, *, paired: bool, error_rate: float = TYPICAL_ERROR_RATE
    ) -> Rules:
        """The integers for a coverage (reads per position) and an error rate of Q20 bases."""
        if self.classic:
            variants, depths = 0, (NEVER,) * 8
        elif self.keep_variants is not None:
            variants, depths = self.keep_variants, (NEVER,) * 8
        else:
            variants, depths = MIN_VARIANT_READS, variant_depths(error_rate)
        e = self.error_rate
        percent = math.ceil(100 * e - TOLERANCE) // 2 / 100
        return Rules(
            kmer=self.minhash.kmer,
            max_bucket_size=self.minhash.max_bucket_size(coverage),
            window=self.minhash.window(coverage),
            paired=int(paired),
            min_overlap=self.min_overlap,
            min_overlap_permille=round(1000 * self.min_overlap_ratio),
            max_mismatch_permille=round(1000 * self.max_mismatch_ratio),
            pair_mismatch_permille=round(1000 * self.pair_mismatch_ratio),
            bin_permille=(round(2000 * e), round(3000 * e), round(4000 * e)),
            bin_reads=math.ceil(self.coverage_factor * coverage - TOLERANCE),
            refine_rounds=self.refine_rounds,
            refine_reads=max(1, math.floor(self.refine_factor * math.floor(coverage) + TOLERANCE)),
            refine_keep_weight=_weight(0.9),
            min_coverage=math.ceil(self.coverage_factor / 6 * coverage - TOLERANCE),
            mean_support=_support(1 - e),
            min_support=_support(1 - 3 * e),
            high_mean_support=_support(1 - percent),
            high_min_support=_support(1 - 3 * percent),
            position_support=_support(self.position_support),
            position_max_reads=self.position_max_reads,
            margin=self.margin,
            variant_reads=variants,
            variant_depths=depths,
            compared_weight=0 if self.classic else _weight(1 - 10 ** (-self.compared_quality / 10)),
            evidence_weight=_weight(self.evidence_reads),
            evidence_ratio=self.evidence_ratio,
        )


def _weight(value: float) -> int:
    return math.ceil((value - TOLERANCE) * (1 << WEIGHT_BITS))


def _support(value: float) -> int:
    return math.ceil((value - TOLERANCE) * (1 << SUPPORT_BITS))
