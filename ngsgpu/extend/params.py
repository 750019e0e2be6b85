"""Parameters of the extension, and their integer form for the kernels.

Defaults are those of CAREx (Kallenborn 2024, chapter 8) unless ``docs/extend.md`` says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ngsgpu.device.cuda.structs import Struct, fields_of
from ngsgpu.errors import UsageError, check_choice, check_range
from ngsgpu.minhash.ends import EndParameters

MAX_FRAGMENT = 20_000
"""Longest connected fragment, in bases."""

DEVIATIONS = 4
"""How many standard deviations from the mean a fragment's length may be, unless given."""


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
    pair_slack: int
    strict: int
    agreed_doubts: int
    differing_doubts: int
    gap_mismatches: int
    confirm_permille: int
    confirm_match_permille: int
    merge_overlap: int
    merge_mismatch_permille: int
    outward: int
    reverse_complemented_input: int


RULES: Final = Struct(__name__, "Rules", fields_of(Rules))


@dataclass(frozen=True, slots=True)
class ExtensionParameters:
    """How pairs are extended.

    Attributes:
        ends: how reads that begin inside a sequence are found.
        quality_bits: bits of quality kept a base: 8, 2, 1 or 0.
        strict: 0, 1 or 2, how much the tasks from both sides have to agree.
        insert_mean: mean length of fragments, in bases; None to estimate it.
        insert_sd: its standard deviation; None to estimate it.
        min_length: shortest connected fragment, in bases; None for the mean less four standard
            deviations.
        max_length: longest one; None for the mean plus four standard deviations.
        step: columns that a sequence grows by at most in one iteration.
        min_reads: reads that cover a new column at least (m in section 8.2.2).
        min_overlap: shortest overlap of a sequence and a candidate, in bases.
        min_overlap_ratio: the same as a part of the start read's length.
        max_mismatch_ratio: mismatches an overlap may have, as a part of its length.
        gap_mismatches: bases by which the gaps of both tasks may differ and still agree.
        confirm_ratio: part of a gap that the other task must have reached to confirm it.
        confirm_matches: part of that which must be equal.
        merge_overlap: shortest overlap of two unfinished sequences that are merged, in bases.
        outward: whether to extend pairs outwards, too.
        mate_pairs: whether the reads of a pair point away from each other.
    """

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

    def __post_init__(self) -> None:
        check_choice("--quality-bits", self.quality_bits, (8, 2, 1, 0))
        check_choice("--strict", self.strict, (0, 1, 2))
        check_range("--insert-size", self.insert_mean, 1, MAX_FRAGMENT)
        check_range("--min-length", self.min_length, 1, MAX_FRAGMENT)
        check_range("--max-length", self.max_length, 1, MAX_FRAGMENT)
        sd = self.insert_sd
        check_range("--insert-sd", sd, 0, MAX_FRAGMENT)
        if (self.insert_mean is None) != (sd is None):
            raise UsageError("give --insert-size and --insert-sd together or not at all")
        if (self.min_length or 0) > (self.max_length or MAX_FRAGMENT):
            raise UsageError(
                f"--min-length ({self.min_length:,}) must not exceed --max-length "
                f"({self.max_length:,})"
            )
        check_range("--step", self.step, 1, 64)
        check_range("--min-reads", self.min_reads, 1, 255)
        check_range("--min-overlap", self.min_overlap, self.ends.window)
        check_range("--min-overlap-ratio", self.min_overlap_ratio, 0, 1)
        check_range("--confirm-ratio", self.confirm_ratio, 0, 1)
        check_range("--confirm-matches", self.confirm_matches, 0, 1)
        check_range("--max-mismatch-ratio", self.max_mismatch_ratio, 0.001, 0.2)
        check_range("--gap-mismatches", self.gap_mismatches, 0)
        check_range("--merge-overlap", self.merge_overlap, 1)

    def lengths(self, mean: float, sd: float) -> tuple[int, int]:
        """Shortest and longest fragment that is connected.

        Raises:
            UsageError: there is none.
        """
        low = self.min_length
        high = self.max_length
        if low is None:
            low = max(1, math.floor(mean - DEVIATIONS * sd))
        if high is None:
            high = min(MAX_FRAGMENT, math.ceil(mean + DEVIATIONS * sd))
        if low > high:
            raise UsageError(
                f"no fragment is at least {low:,} (--min-length) and at most {high:,} bases "
                "(--max-length) long; fragments have "
                f"{mean:.0f} ± {sd:.0f} bases"
            )
        return low, high

    def agreed_doubts(self, low: int, high: int) -> int:
        """How many of two tasks that agree may be in doubt.

        A wrong number of copies of a tandem repeat, on which both tasks may agree, changes the
        length. Copies longer than the shortest overlap matter. Where the lengths that are possible
        are less than twice that apart, most fragments cannot lose or gain one. Where the longest
        is more than three times as long as the shortest, they often do.

        Args:
            low: shortest fragment that is connected.
            high: the longest.
        """
        if self.strict == 2:
            return int(high - low <= 2 * self.min_overlap)
        return 2 if self.strict == 0 and high <= 3 * low else 1

    def differing_doubts(self, low: int, high: int) -> int:
        """How many of two tasks with different gaps may be doubtful; -1 if none counts.

        They mostly differ in copies of a repeat. With a narrow length range, the length of the
        chosen one is still right; otherwise often not.

        Args:
            low: minimum fragment length.
            high: maximum fragment length.
        """
        return 1 if self.strict == 0 and high <= 3 * low else -1

    def rules(self, mean: float, sd: float) -> Rules:
        """The integers, for fragments of a mean length and standard deviation."""
        low, high = self.lengths(mean, sd)
        return Rules(
            min_overlap=self.min_overlap,
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
            pair_slack=20 + min(200, math.ceil(DEVIATIONS * sd)),
            strict=self.strict,
            agreed_doubts=self.agreed_doubts(low, high),
            differing_doubts=self.differing_doubts(low, high),
            gap_mismatches=self.gap_mismatches,
            confirm_permille=round(1000 * self.confirm_ratio),
            confirm_match_permille=round(1000 * self.confirm_matches),
            merge_overlap=self.merge_overlap,
            merge_mismatch_permille=50,
            outward=int(self.outward),
            reverse_complemented_input=int(self.mate_pairs),
        )
