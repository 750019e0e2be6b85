"""Parameters of merging, and their form for the kernels.

Names and defaults are those of FLASH 1.2.11 (Magoč and Salzberg 2011), which the mode ``flash``
matches to the byte; additions are off or harmless by default.

Qualities of two overlapping bases are tables of their two scores. ``flash`` (Magoč and Salzberg
2011, and FLASH 1.2.11): equal bases get the higher score, different ones the difference of the
scores, at least 2; or, capped, the lower score, at most 2.

``edgar``: the posterior probability that the base is wrong, given two independent calls with
error probabilities x and y and errors that are equally likely to be any of the other three bases
(Edgar and Flyvbjerg 2015, as in Tynes 2018, section 2.5.1). Error probabilities are capped at 3/4,
which means no information: such a base leaves the other one unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError

QualityModel = Literal["edgar", "flash"]

MIN_TRIMMED = 30
"""Shortest fragment that adapters are trimmed from: shorter overlaps occur by chance."""

SAMPLED_PAIRS = 10_000
"""Number of pairs sampled for ``auto``: fixed, regardless of the batches."""

MAX_SCORE = 93
"""Highest Phred score with a printable character."""


class Outward(IntEnum):
    """Handling of pairs whose reads begin within each other and end outside.

    Attributes:
        IGNORE: do not look for them.
        MERGE: merge them, including the sequence outside the overlap.
        TRIM: remove the sequence outside the overlap, which is adapter.
    """

    IGNORE = 0
    MERGE = 1
    TRIM = 2


class Rules(NamedTuple):
    """What the kernels compare with."""

    min_overlap: int
    max_overlap: int
    max_mismatch_density: np.float32
    outward: int
    min_outward: int
    phred_offset: int
    prefer_first: int
    never_ambiguous: int
    correct_only: int


@dataclass(frozen=True, slots=True)
class MergeParameters:
    """How pairs are merged.

    Attributes:
        min_overlap: minimum overlap, in unambiguous bases.
        max_overlap: longer overlaps are scored as if they had this length; None to derive it from
            the reads (see ``automatic_max_overlap``).
        max_mismatch_density: maximum mismatches as a fraction of the (scored) overlap length.
        allow_outies: also merge outward-facing pairs.
        quality: ``edgar`` gives merged bases their posterior error probabilities (Edgar and
            Flyvbjerg 2015), ``flash`` FLASH's qualities.
        cap_mismatch_quals: with ``flash``: cap the qualities of mismatches at 2.
        max_quality: with ``edgar``: maximum score of agreeing bases.
        trim_adapters: trim reads at the end of their fragment.
        correct_only: write both reads with their overlap corrected, instead of merged reads.
        read_length: mean read length for the automatic ``max_overlap``, in bases; None for that of
            the reads.
        fragment_length: mean fragment length for it, in bases; None if unknown.
        fragment_deviation: its standard deviation; None for a tenth of it.
    """

    min_overlap: int = 10
    max_overlap: int | None = 65
    max_mismatch_density: float = 0.25
    allow_outies: bool = False
    quality: QualityModel = "edgar"
    cap_mismatch_quals: bool = False
    max_quality: int = 41
    trim_adapters: bool = False
    correct_only: bool = False
    read_length: int | None = None
    fragment_length: int | None = None
    fragment_deviation: int | None = None

    def __post_init__(self) -> None:
        if self.min_overlap < 1:
            raise UsageError(f"--min-overlap must be 1 or more, not {self.min_overlap}")
        if self.max_overlap is not None and self.max_overlap < self.min_overlap:
            raise UsageError(
                f"--max-overlap {self.max_overlap} is below --min-overlap {self.min_overlap}; "
                "raise one, lower the other, or give --max-overlap auto"
            )
        if not 0 <= self.max_mismatch_density <= 1:
            raise UsageError(
                f"--max-mismatch-density must be from 0 to 1, not {self.max_mismatch_density:g}"
            )
        if self.quality not in ("edgar", "flash"):
            raise UsageError(f"--quality must be edgar or flash, not {self.quality!r}")
        if self.cap_mismatch_quals and self.quality != "flash":
            raise UsageError("--cap-mismatch-quals requires --quality flash")
        if not 2 <= self.max_quality <= MAX_SCORE:
            raise UsageError(f"--max-quality must be from 2 to {MAX_SCORE}, not {self.max_quality}")
        if self.allow_outies and self.trim_adapters:
            raise UsageError(
                "--allow-outies keeps sequence beyond the overlap and --trim-adapters "
                "removes it; give one of them"
            )
        known = (
            ("--read-length", self.read_length),
            ("--fragment-length", self.fragment_length),
            ("--fragment-deviation", self.fragment_deviation),
        )
        for option, value in known:
            if value is not None and value < 1:
                raise UsageError(f"{option} must be 1 or more, not {value}")
            if value is not None and self.max_overlap is not None:
                raise UsageError(f"{option} requires --max-overlap auto")
        if self.fragment_length is None and (self.fragment_deviation or self.read_length):
            raise UsageError("--read-length and --fragment-deviation need --fragment-length")

    @property
    def outward(self) -> Outward:
        """Handling of reads that extend beyond each other's beginnings."""
        if self.trim_adapters:
            return Outward.TRIM
        return Outward.MERGE if self.allow_outies else Outward.IGNORE

    def automatic_max_overlap(self, mean_length: float, longest: int) -> int:
        """The ``max_overlap`` for reads of some lengths.

        With a known fragment length it is FLASH's: the overlap of average reads from an average
        fragment, and 2.5 standard deviations; cut to an integer. Without one it is the length of
        the longest read, so that every overlap is scored by its whole length.

        Args:
            mean_length: of the reads, in bases.
            longest: of the reads, in bases.

        Raises:
            UsageError: the fragments are too long for the reads to overlap.
        """
        if self.fragment_length is None:
            return max(self.min_overlap, longest)
        length = self.read_length if self.read_length is not None else round(mean_length)
        deviation = self.fragment_deviation
        if deviation is None:
            deviation = max(1, round(self.fragment_length / 10))
        overlap = int(2 * length - self.fragment_length + 2.5 * deviation)
        if overlap < self.min_overlap:
            raise UsageError(
                f"reads of {length} bases from fragments of {self.fragment_length} bases overlap "
                f"by at most {overlap} bases, below --min-overlap {self.min_overlap}; check "
                "--read-length and --fragment-length, or give --max-overlap as a number"
            )
        return overlap

    def rules(self, max_overlap: int, phred_offset: int) -> Rules:
        """The parameters in the kernels' form.

        Args:
            max_overlap: in bases, ``auto`` resolved.
            phred_offset: offset of the quality characters.
        """
        outward = self.outward
        min_outward = self.min_overlap
        if outward is Outward.TRIM:
            min_outward = max(min_outward, MIN_TRIMMED)
        return Rules(
            min_overlap=self.min_overlap,
            max_overlap=max_overlap,
            max_mismatch_density=np.float32(self.max_mismatch_density),
            outward=int(outward),
            min_outward=min_outward,
            phred_offset=phred_offset,
            prefer_first=int(self.quality == "edgar"),
            never_ambiguous=int(self.quality == "edgar"),
            correct_only=int(self.correct_only),
        )


SCORES = 128
"""Rows and columns of the tables: a power of two, so that an index is a shift and a sum."""

_NOTHING_KNOWN = 0.75


class QualityTables(NamedTuple):
    """Scores of merged bases, by the scores of the first and the second read's base.

    Attributes:
        agree: uint8[SCORES * SCORES], where the bases are equal.
        differ: uint8[SCORES * SCORES], where they are not.
    """

    agree: NDArray[np.uint8]
    differ: NDArray[np.uint8]


def quality_tables(parameters: MergeParameters, phred_offset: int) -> QualityTables:
    """The tables of a model.

    Args:
        parameters: which model, and its caps.
        phred_offset: 33 or 64; scores are such that their characters can be printed.
    """
    first, second = np.indices((SCORES, SCORES))
    highest = 126 - phred_offset
    if parameters.quality == "flash":
        agree = np.maximum(first, second)
        if parameters.cap_mismatch_quals:
            differ = np.minimum(np.minimum(first, second), 2)
        else:
            differ = np.maximum(np.abs(first - second), 2)
    else:
        agree, differ = _posterior_scores(first, second)
        highest = min(highest, parameters.max_quality)
    return QualityTables(*(_table(scores, highest) for scores in (agree, differ)))


def _posterior_scores(
    first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scores of equal bases, and of the better one of two that differ."""
    better = _error_probability(np.maximum(first, second))
    worse = _error_probability(np.minimum(first, second))
    product = better * worse
    agree = product / 3 / (1 - better - worse + 4 * product / 3)
    differ = better * (1 - worse / 3) / (better + worse - 4 * product / 3)
    return _score(agree), _score(differ)


def _error_probability(score: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.minimum(_NOTHING_KNOWN, 10 ** (-score / 10))


def _score(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(-10 * np.log10(probability) + 0.5).astype(np.int64)


def _table(scores: NDArray[np.int64], highest: int) -> NDArray[np.uint8]:
    return np.minimum(scores, highest).astype(np.uint8).ravel()
