"""Parameters of merging.

``MergeParameters.flash`` has the values of FLASH 1.2.11 (Magoč and Salzberg 2011), with which the
output is FLASH's to the byte; the names of its options are kept.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

from ngsgpu.declared.options import flag, option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.merge.rules import Rules

OverlapModel = Literal["likelihood", "flash"]
QualityModel = Literal["calibrated", "edgar", "flash"]

MIN_TRIMMED = 30
"""With FLASH's overlaps, shortest fragment that adapters are trimmed from: shorter overlaps occur
by chance."""

FLASH_MAX_OVERLAP = 65
"""FLASH's default, for reads of 100 bases."""

ACCEPT_BITS = 5.0
"""Evidence that an overlap needs, in bits: it is this much likelier than none."""

LEAD_BITS = 6.0
"""By how much it must be likelier than the next-best."""

STRONG_BITS = 16.0
"""Evidence of its bases with which an overlap is not there by chance."""

CLEAR_BITS, CLEARER_BITS = 3.0, 8.0
"""By how much less of it than of other strong ones must be unexplained: if it has the most
evidence, and if it has not."""

CERTAIN_BITS = 20.0
"""Evidence of an overlap that is certain, and of one that is taken although another has more."""

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


@parameters
class MergeParameters:
    """How pairs are merged.

    ``flash`` is FLASH's method. Merged bases of ``calibrated`` quality have the posterior error
    probabilities of Edgar and Flyvbjerg (2015), of qualities that the overlaps of the first pairs
    confirm.
    """

    overlap: OverlapModel = option(
        "likelihood",
        "likelihood|flash",
        "Accept the overlap that is likelier than chance and than the next-best one, by "
        "qualities, base composition and fragment lengths (likelihood), or the one of lowest "
        "mismatch density (flash).",
        group="Overlaps",
    )
    min_overlap: int = option(
        10,
        "N",
        "Minimum overlap, in bases without N.",
        "-m",
        "--min-overlap",
        least=1,
        group="Overlaps",
    )
    max_overlap: int | None = option(
        None,
        "N|auto",
        "With --overlap flash: score longer overlaps as if they had this length; auto: see "
        "--fragment-length.",
        "-M",
        "--max-overlap",
        word="auto",
        shown_default="auto; with --flash 65",
        group="FLASH's method",
    )
    max_mismatch_density: float | None = option(
        None,
        "X",
        "Maximum mismatches as a fraction of the (scored) overlap length.",
        "-x",
        "--max-mismatch-density",
        shown_default="0.3; with --overlap flash 0.25",
        least=0,
        most=1,
        group="Overlaps",
    )
    allow_outies: bool = flag(
        "Also merge outward-facing pairs.", "--allow-outies", group="Overlaps"
    )
    quality: QualityModel | None = option(
        None,
        "calibrated|edgar|flash",
        "Qualities of merged bases: posterior error probabilities, from qualities calibrated on "
        "the overlaps of the first pairs (calibrated) or as stated (edgar), or by FLASH's rule.",
        shown_default="calibrated; with --overlap flash edgar",
        group="Qualities",
    )
    cap_mismatch_quals: bool = flag(
        "With --quality flash: cap qualities at 2 where the mates disagree.",
        "--cap-mismatch-quals",
        group="FLASH's method",
    )
    max_quality: int = option(
        41,
        "Q",
        "With --quality calibrated or edgar: maximum quality in overlaps, 2 to 93.",
        least=2,
        most=MAX_SCORE,
        group="Qualities",
    )
    mask_ties: bool = flag(
        "Write N where the mates disagree with equal quality, instead of the first mate's base.",
        "--mask-ties",
        group="Qualities",
    )
    trim_adapters: bool = flag(
        "With --overlap flash: trim reads that run past the end of their fragment into the "
        "adapter; likelihood always does, except with --allow-outies.",
        "--trim-adapters",
        group="Overlaps",
    )
    correct_only: bool = flag(
        "Do not merge: write all pairs to --unmerged1 and --unmerged2, corrected where the reads "
        "overlap.",
        "--correct-only",
        group="Overlaps",
    )
    read_length: int | None = option(
        None,
        "N",
        "Mean read length for --max-overlap auto.",
        shown_default="mean of the first 10,000 pairs",
        least=1,
        group="FLASH's method",
    )
    fragment_length: int | None = option(
        None,
        "N",
        "Mean fragment length for --max-overlap auto; without it, auto is the longest read of the "
        "first 10,000 pairs.",
        least=1,
        group="FLASH's method",
    )
    fragment_deviation: int | None = option(
        None,
        "N",
        "Standard deviation of the fragment length for --max-overlap auto.",
        shown_default="a tenth of the fragment length",
        least=1,
        group="FLASH's method",
    )

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
        likelihood = self.overlap == "likelihood"
        if self.quality is None:
            object.__setattr__(self, "quality", "calibrated" if likelihood else "edgar")
        if self.max_mismatch_density is None:
            object.__setattr__(self, "max_mismatch_density", 0.3 if likelihood else 0.25)
        if self.max_overlap is not None and likelihood:
            raise UsageError(
                "`max_overlap` requires `overlap='flash'`; likelihood scores overlaps in full"
            )
        if self.max_overlap is not None and self.max_overlap < self.min_overlap:
            raise UsageError(
                f"`max_overlap` {self.max_overlap} is below `min_overlap` {self.min_overlap}; "
                "raise one, lower the other, or give `max_overlap` auto"
            )
        if self.quality == "calibrated" and not likelihood:
            raise UsageError(
                "`quality='calibrated'` requires `overlap='likelihood'`; give `quality='edgar'`"
            )
        if self.mask_ties and self.quality == "flash":
            raise UsageError("`mask_ties` requires `quality='calibrated'` or edgar")
        if self.cap_mismatch_quals and self.quality != "flash":
            raise UsageError("`cap_mismatch_quals` requires `quality='flash'`")
        if self.allow_outies and self.trim_adapters:
            raise UsageError(
                "`allow_outies` keeps sequence beyond the overlap and `trim_adapters` "
                "removes it; give one of them"
            )
        for name in ("read_length", "fragment_length", "fragment_deviation"):
            if getattr(self, name) is None:
                continue
            if self.max_overlap is not None:
                raise UsageError(f"`{name}` requires `max_overlap` auto")
            if likelihood:
                raise UsageError(
                    f"`{name}` requires `overlap='flash'`; likelihood learns lengths from the reads"
                )
        if self.fragment_length is None and (self.fragment_deviation or self.read_length):
            raise UsageError("`read_length` and `fragment_deviation` need `fragment_length`")

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
                f"by at most {overlap} bases, below `min_overlap` {self.min_overlap}; check "
                "`read_length` and `fragment_length`, or give `max_overlap` as a number"
            )
        return overlap

    def rules(self, max_overlap: int, phred_offset: int) -> Rules:
        """The parameters in the kernels' form.

        Args:
            max_overlap: in bases, ``auto`` resolved.
            phred_offset: offset of the quality characters.
        """
        import numpy as np

        from ngsgpu.merge.rules import Rules

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
            clear=0,
            clearer=0,
            certain=0,
            related=0,
            contained=int(outward is Outward.TRIM),
            most_match=0,
            most_mismatch=0,
        )
