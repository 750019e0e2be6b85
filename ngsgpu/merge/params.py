"""Parameters of merging, and their form for the kernels.

``MergeParameters.flash`` has the values of FLASH 1.2.11 (Magoč and Salzberg 2011), with which the
output is FLASH's to the byte; the names of its options are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np

from ngsgpu.errors import UsageError

OverlapModel = Literal["likelihood", "flash"]
QualityModel = Literal["calibrated", "edgar", "flash"]

MIN_TRIMMED = 30
"""With FLASH's overlaps, shortest fragment that adapters are trimmed from: shorter overlaps occur
by chance."""

FLASH_MAX_OVERLAP = 65
"""FLASH's default, for reads of 100 bases."""

ACCEPT_BITS = 5.0
"""Evidence that an overlap needs, in bits: it is this much likelier than none."""

STRONG_BITS = 20.0
"""Evidence with which an overlap is not there by chance."""

LEAD_BITS = 6.0
"""By how much it must be likelier than the next-best."""

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
    """What the kernels compare with.

    The last ones are those of overlaps by likelihood: ``density`` is in 1024ths, evidence in
    ``qualities.UNIT``, and ``contained`` tells whether a read may lie within the other one.
    """

    min_overlap: int
    max_overlap: int
    max_mismatch_density: np.float32
    outward: int
    min_outward: int
    phred_offset: int
    prefer_first: int
    never_ambiguous: int
    mask_ties: int
    correct_only: int
    likelihood: int
    density: int
    accept: int
    lead: int
    strong: int
    related: int
    contained: int
    most_match: int
    most_mismatch: int


@dataclass(frozen=True, slots=True)
class MergeParameters:
    """How pairs are merged.

    Attributes:
        overlap: ``likelihood`` takes the overlap that is likelier than chance and than the
            next-best one, ``flash`` the one with the fewest mismatches a base.
        min_overlap: minimum overlap, in unambiguous bases.
        max_overlap: with ``flash``, longer overlaps are scored as if they had this length; None to
            derive it from the reads (see ``automatic_max_overlap``).
        max_mismatch_density: maximum mismatches as a fraction of the (scored) overlap length; None
            for 0.25 with ``flash``, 0.3 with ``likelihood``.
        allow_outies: also merge outward-facing pairs.
        quality: ``calibrated`` gives merged bases the posterior error probabilities (Edgar and
            Flyvbjerg 2015) of qualities that the overlaps of the first pairs confirm, ``edgar``
            those of the qualities as stated, ``flash`` FLASH's qualities; None for ``calibrated``
            with overlaps by likelihood, else ``edgar``.
        cap_mismatch_quals: with ``flash``: cap the qualities of mismatches at 2.
        max_quality: unless ``flash``: maximum score of agreeing bases.
        mask_ties: unless ``flash``: write N where mates disagree with the same quality.
        trim_adapters: trim reads at the end of their fragment; overlaps by likelihood always do,
            unless outward-facing pairs are merged.
        correct_only: write both reads with their overlap corrected, instead of merged reads.
        read_length: mean read length for the automatic ``max_overlap``, in bases; None for that of
            the reads.
        fragment_length: mean fragment length for it, in bases; None if unknown.
        fragment_deviation: its standard deviation; None for a tenth of it.
    """

    overlap: OverlapModel = "likelihood"
    min_overlap: int = 10
    max_overlap: int | None = None
    max_mismatch_density: float | None = None
    allow_outies: bool = False
    quality: QualityModel | None = None
    cap_mismatch_quals: bool = False
    max_quality: int = 41
    mask_ties: bool = False
    trim_adapters: bool = False
    correct_only: bool = False
    read_length: int | None = None
    fragment_length: int | None = None
    fragment_deviation: int | None = None

    @classmethod
    def flash(cls, **changed: Any) -> MergeParameters:
        """FLASH's parameters, except for some.

        Args:
            **changed: attributes with other values.
        """
        own: dict[str, Any] = {"overlap": "flash", "quality": "flash"}
        if changed.get("fragment_length") is None:
            own["max_overlap"] = FLASH_MAX_OVERLAP
        return cls(**{**own, **changed})

    def __post_init__(self) -> None:
        if self.overlap not in ("likelihood", "flash"):
            raise UsageError(f"--overlap must be likelihood or flash, not {self.overlap!r}")
        likelihood = self.overlap == "likelihood"
        if self.quality is None:
            object.__setattr__(self, "quality", "calibrated" if likelihood else "edgar")
        if self.max_mismatch_density is None:
            object.__setattr__(self, "max_mismatch_density", 0.3 if likelihood else 0.25)
        if self.min_overlap < 1:
            raise UsageError(f"--min-overlap must be 1 or more, not {self.min_overlap}")
        if self.max_overlap is not None and likelihood:
            raise UsageError(
                "--max-overlap requires --overlap flash; likelihood scores overlaps in full"
            )
        if self.max_overlap is not None and self.max_overlap < self.min_overlap:
            raise UsageError(
                f"--max-overlap {self.max_overlap} is below --min-overlap {self.min_overlap}; "
                "raise one, lower the other, or give --max-overlap auto"
            )
        if not 0 <= self.density <= 1:
            raise UsageError(f"--max-mismatch-density must be from 0 to 1, not {self.density:g}")
        if self.quality not in ("calibrated", "edgar", "flash"):
            raise UsageError(f"--quality must be calibrated, edgar or flash, not {self.quality!r}")
        if self.quality == "calibrated" and not likelihood:
            raise UsageError(
                "--quality calibrated requires --overlap likelihood; give --quality edgar"
            )
        if self.mask_ties and self.quality == "flash":
            raise UsageError("--mask-ties requires --quality calibrated or edgar")
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
            if value is not None and likelihood:
                raise UsageError(
                    f"{option} requires --overlap flash; likelihood learns lengths from the reads"
                )
        if self.fragment_length is None and (self.fragment_deviation or self.read_length):
            raise UsageError("--read-length and --fragment-deviation need --fragment-length")

    @property
    def outward(self) -> Outward:
        """Handling of reads that extend beyond each other's beginnings."""
        if self.allow_outies:
            return Outward.MERGE
        trim = self.trim_adapters or self.overlap == "likelihood"
        return Outward.TRIM if trim else Outward.IGNORE

    @property
    def density(self) -> float:
        """Maximum mismatches a base."""
        assert self.max_mismatch_density is not None
        return self.max_mismatch_density

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
        outward, likelihood = self.outward, self.overlap == "likelihood"
        min_outward = self.min_overlap
        if outward is Outward.TRIM and not likelihood:
            min_outward = max(min_outward, MIN_TRIMMED)
        own_rule = self.quality != "flash"
        return Rules(
            min_overlap=self.min_overlap,
            max_overlap=max_overlap,
            max_mismatch_density=np.float32(self.density),
            outward=int(outward),
            min_outward=min_outward,
            phred_offset=phred_offset,
            prefer_first=int(own_rule),
            never_ambiguous=int(own_rule),
            mask_ties=int(self.mask_ties),
            correct_only=int(self.correct_only),
            likelihood=int(likelihood),
            density=round(1024 * self.density),
            accept=0,
            lead=0,
            strong=0,
            related=0,
            contained=int(outward is Outward.TRIM),
            most_match=0,
            most_mismatch=0,
        )
