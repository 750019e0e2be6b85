"""Parameters of the extension, and the integers that the kernels compare with.

Defaults are those of CAREx (Kallenborn 2024, chapter 8) unless ``docs/extend.md`` says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from ngsgpu.errors import UsageError
from ngsgpu.minhash.ends import EndParameters

LONGEST = 20_000
"""Longest extended read, in bases; kernels keep a task's sequence in memory of this order."""


class Rules(NamedTuple):
    """What the kernels compare with, all integers, so that no result depends on rounding.

    Ratios are in thousandths and compared by cross-multiplication.
    """

    min_overlap: int
    min_overlap_permille: int
    max_mismatch_permille: int
    start_mismatch_permille: int
    step: int
    min_reads: int
    branch_reads: int
    branch_permille: int
    bucket_entries: int
    mate_overlap: int
    mate_permille: int
    mate_mismatches: int
    min_length: int
    max_length: int
    mean_length: int
    strict: int
    gap_mismatches: int
    confirm_permille: int
    confirm_match_permille: int
    merge_overlap: int
    merge_mismatch_permille: int
    outward: int
    turned_input: int
    pair_slack: int


@dataclass(frozen=True, slots=True)
class ExtensionParameters:
    """How pairs are extended.

    Attributes:
        coverage: reads per position of the genome; None to estimate it from the k-mer spectrum.
        ends: how reads that begin inside a sequence are found.
        quality_bits: bits of quality kept a base: 8, 2, 1 or 0.
        strict: 0, 1 or 2, how much both strands have to agree.
        insert_mean: mean length of fragments in bases; None to estimate it.
        insert_sd: standard deviation of it; None to estimate it.
        min_length: shortest extended read (without outward extension), in bases; None for the
            mean less four standard deviations.
        max_length: longest one; None for the mean plus four standard deviations.
        step: columns that a sequence grows by at most in one iteration.
        min_reads: reads that cover a column at least (m in section 8.2.2).
        min_overlap: shortest overlap of a sequence and a candidate, in bases.
        min_overlap_ratio: the same as a part of the start read's length.
        max_mismatch_ratio: mismatches an overlap may have, as a part of its length.
        gap_mismatches: bases by which the gaps of both strands may differ in strict modes.
        confirm_ratio: part of a gap that the other strand must have reached in strict mode 1.
        confirm_matches: part of that which must agree.
        merge_overlap: overlap of two unfinished sequences that are merged in strict mode 0.
        outward: whether to extend pairs outwards, too.
        mate_pairs: whether the reads point away from each other, as in mate-pair libraries.
    """

    coverage: float | None = None
    ends: EndParameters = field(default_factory=EndParameters)
    quality_bits: int = 8
    strict: int = 0
    insert_mean: float | None = None
    insert_sd: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    step: int = 20
    min_reads: int = 3
    min_overlap: int = 50
    min_overlap_ratio: float = 0.5
    max_mismatch_ratio: float = 0.05
    gap_mismatches: int = 0
    confirm_ratio: float = 0.5
    confirm_matches: float = 0.95
    merge_overlap: int = 40
    outward: bool = False
    mate_pairs: bool = False

    def rules(self, mean: float, sd: float) -> Rules:
        """The integers, for fragments of a mean length and standard deviation."""
        low, high = self.lengths(mean, sd)
        return Rules(
            min_overlap=max(self.min_overlap, self.ends.window),
            min_overlap_permille=round(1000 * self.min_overlap_ratio),
            max_mismatch_permille=round(1000 * self.max_mismatch_ratio),
            start_mismatch_permille=max(150, round(1000 * self.max_mismatch_ratio)),
            step=self.step,
            min_reads=self.min_reads,
            branch_reads=2,
            branch_permille=100,
            bucket_entries=1024,
            mate_overlap=70,
            mate_permille=60,
            mate_mismatches=10,
            min_length=low,
            max_length=high,
            mean_length=round(mean),
            strict=self.strict,
            gap_mismatches=self.gap_mismatches,
            confirm_permille=round(1000 * self.confirm_ratio),
            confirm_match_permille=round(1000 * self.confirm_matches),
            merge_overlap=self.merge_overlap,
            merge_mismatch_permille=50,
            outward=int(self.outward),
            turned_input=int(self.mate_pairs),
            pair_slack=20 + min(200, math.ceil(4 * sd)),
        )

    def lengths(self, mean: float, sd: float) -> tuple[int, int]:
        """Shortest and longest extended read."""
        low = self.min_length if self.min_length is not None else math.floor(mean - 4 * sd)
        high = self.max_length if self.max_length is not None else math.ceil(mean + 4 * sd)
        return max(1, low), min(high, LONGEST)
