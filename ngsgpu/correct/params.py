"""Parameters of the correction, and the integers that the kernels compare with.

Defaults are those of CARE (Kallenborn 2024, chapter 4) in its released version 2.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ngsgpu.align.alignment import WEIGHT_BITS
from ngsgpu.align.rules import SUPPORT_BITS, Rules
from ngsgpu.correct.forest import Forests, check_threshold, load_model, without_forests
from ngsgpu.errors import UsageError
from ngsgpu.minhash import MinhashParameters

TOLERANCE = 1e-5


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

    def __post_init__(self) -> None:
        if self.coverage is not None and not 0 < self.coverage <= 1_000_000:
            raise UsageError(f"--coverage must be auto or above 0, not {self.coverage:g}")
        if self.quality_bits not in (8, 2, 1, 0):
            raise UsageError(f"--quality-bits must be 8, 2, 1 or 0, not {self.quality_bits}")
        check_threshold("--anchor-threshold", self.anchor_threshold)
        check_threshold("--candidate-threshold", self.candidate_threshold)
        load_model(self.model)

    def forests(self, coverage: float) -> Forests:
        """What decides on single positions, for a coverage (reads per position)."""
        model = load_model(self.model)
        if model is None:
            return without_forests()
        return model.forests(coverage, self.anchor_threshold, self.candidate_threshold)

    def rules(self, coverage: float, *, paired: bool) -> Rules:
        """The integers for a coverage (reads per position)."""
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
        )


def _weight(value: float) -> int:
    return math.ceil((value - TOLERANCE) * (1 << WEIGHT_BITS))


def _support(value: float) -> int:
    return math.ceil((value - TOLERANCE) * (1 << SUPPORT_BITS))
