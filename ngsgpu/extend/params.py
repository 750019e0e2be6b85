"""Parameters of the extension.

Defaults are those of CAREx (Kallenborn 2024, chapter 8) unless ``docs/extend.md`` says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from ngsgpu.declared.common import QualityBits
from ngsgpu.declared.options import flag, option, value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.minhash.params import EndParameters

if TYPE_CHECKING:
    from ngsgpu.extend.rules import Rules

MAX_FRAGMENT = 20_000
"""Longest connected fragment, in bases."""

DEVIATIONS = 4
"""How many standard deviations from the mean a fragment's length may be, unless given."""


@parameters
class ExtensionParameters:
    """How pairs are extended."""

    ends: EndParameters = field(default_factory=EndParameters)
    quality_bits: QualityBits = 8
    strict: int = option(
        0,
        "0|1|2",
        "2: both directions must reach the mate with the same sequence; 1: one may stop early if "
        "it agrees as far as it got; 0: one direction suffices.",
        choices=(0, 1, 2),
    )
    insert_mean: float | None = option(
        None,
        "N",
        "Mean insert size (fragment length, reads included).",
        "--insert-size",
        shown_default="estimated",
        least=1,
        most=MAX_FRAGMENT,
    )
    insert_sd: float | None = option(
        None,
        "N",
        "Standard deviation of the insert size.",
        shown_default="estimated",
        least=0,
        most=MAX_FRAGMENT,
    )
    min_length: int | None = option(
        None,
        "N",
        "Minimum fragment length to connect.",
        shown_default="mean - 4 SD",
        least=1,
        most=MAX_FRAGMENT,
    )
    max_length: int | None = option(
        None,
        "N",
        "Maximum fragment length to connect.",
        shown_default="mean + 4 SD",
        least=1,
        most=MAX_FRAGMENT,
    )
    step: int = option(20, "N", "Maximum bases appended per step, 1 to 64.", least=1, most=64)
    min_reads: int = option(3, "N", "Minimum reads covering an appended base.", least=1, most=255)
    min_overlap: int = option(50, "N", "Minimum overlap with another read, 50 or more.")
    min_overlap_ratio: float = option(
        0.5, "X", "Minimum overlap as a fraction of the anchor read.", least=0, most=1
    )
    max_mismatch_ratio: float = option(
        0.05, "X", "Maximum mismatches as a fraction of the overlap.", least=0.001, most=0.2
    )
    gap_mismatches: int = option(
        0, "N", "Mismatches allowed between the two gap sequences.", least=0
    )
    confirm_ratio: float = option(
        0.5,
        "X",
        "Fraction of the gap the other direction must cover to confirm it.",
        least=0,
        most=1,
    )
    confirm_matches: float = option(
        0.95, "X", "Identity required over that fraction.", least=0, most=1
    )
    merge_overlap: int = option(
        40, "N", "Overlap that joins two unfinished extensions (--strict 0).", least=1
    )
    outward: bool = flag("Also extend pairs outward.", "--outward")
    mate_pairs: bool = value(False, "Whether the reads of a pair point away from each other.")

    def __post_init__(self) -> None:
        if (self.insert_mean is None) != (self.insert_sd is None):
            raise UsageError("give `insert_mean` and `insert_sd` together or not at all")
        if (self.min_length or 0) > (self.max_length or MAX_FRAGMENT):
            raise UsageError(
                f"`min_length` ({self.min_length:,}) must not exceed `max_length` "
                f"({self.max_length:,})"
            )
        if self.min_overlap < self.ends.window:
            raise UsageError(
                f"`min_overlap` must be {self.ends.window} or more, not {self.min_overlap}"
            )

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
                f"no fragment is at least {low:,} (`min_length`) and at most {high:,} bases "
                "(`max_length`) long; fragments have "
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
        from ngsgpu.extend.rules import Rules

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
