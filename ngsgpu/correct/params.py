"""Parameters of the correction, and the integers that the kernels compare with.

Defaults are those of CARE (Kallenborn 2024, chapter 4) in its released version 2.3.
What kernels need is imported when it is used, since the command line imports the parameters.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from typing import TYPE_CHECKING, Self

from ngsgpu.declared.common import Mask, QualityBits, SetQuality
from ngsgpu.declared.limits import MAX_AGREEING, MAX_READ_LENGTH
from ngsgpu.declared.options import RESEARCH, flag, option, value
from ngsgpu.declared.roles import Read
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.minhash.params import MinhashParameters

if TYPE_CHECKING:
    from ngsgpu.align.rules import Rules
    from ngsgpu.correct.forests.forest import Forests

TOLERANCE = 1e-5


TYPICAL_ERROR_RATE = 1e-3
"""Of bases of at least Q20, before any is seen."""

MIN_VARIANT_READS = 3
UNEXPLAINED = 0.002
"""Probability that an error of a read is found in enough others by chance, at most."""

UNEXPLAINED_PAIR = 0.01
"""The same of an error of Q30 or above in one other read, with such a quality there, too."""

CHANCE_BASES = 4
"""Bases by which an overlap is longer than the k-mer that found it."""

FEWEST_OF_COPY = 2
"""Reads with a base that show another copy of a repeat: a single one has an error."""

NEVER = (1 << 31) - 1


USEFUL_COVERAGE = 3.5
"""Reads per position below which correction finds about half of the errors at best: see
``docs/correct.md``."""

DEEP_COVERAGE = 100
"""Reads per position from which correction is expected to change what hardly any other read has."""


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


@parameters
class CorrectionParameters:
    """How reads are corrected."""

    coverage: float | None = option(
        None,
        "X",
        "Sequencing depth (reads per genome position); auto estimates it from the k-mer spectrum.",
        word="auto",
        above=0,
        most=1_000_000,
        group="Alignment (--method msa)",
    )
    minhash: MinhashParameters = field(default_factory=MinhashParameters)
    quality_bits: QualityBits = 8
    min_overlap: int = value(
        30, "Shortest overlap of an anchor and a candidate, in bases.", least=1,
        most=MAX_READ_LENGTH,
    )  # fmt: skip
    min_overlap_ratio: float = value(
        0.30, "The same as a part of the anchor's length.", least=0, most=1
    )
    max_mismatch_ratio: float = value(
        0.20, "Mismatches an overlap may have, as a part of its length.", least=0, most=1
    )
    pair_mismatch_ratio: float = value(
        0.06,
        "The same for candidates of a paired read whose mates are not candidates of the mate.",
        least=0,
        most=1,
    )
    error_rate: float = value(
        0.06,
        "e of the quality classes: an MSA may replace the anchor if the mean support is at least "
        "1 - e and the smallest at least 1 - 3e. For single reads also the unit of the candidate "
        "classes (2e, 3e, 4e mismatches).",
        least=0,
        most=1 / 3,
    )
    coverage_factor: float = value(
        0.6, "Part of the coverage that counts as enough.", least=0, most=10
    )
    refine_factor: float = value(
        0.3, "Part of the coverage at which another base in a column is a repeat.", least=0, most=10
    )
    refine_rounds: int = value(5, "How often an MSA is refined at most.", least=0, most=100)
    position_support: float = value(
        0.90, "Support at which single positions of a low-quality MSA are corrected.", least=0,
        most=1,
    )  # fmt: skip
    position_max_reads: int = value(
        2, "How many reads may have the original base there, the anchor included.", least=0,
        most=1000,
    )  # fmt: skip
    margin: int = value(
        15,
        "How far a candidate may reach beyond the anchor to be corrected too, in bases.",
        least=0,
        most=MAX_READ_LENGTH,
    )
    model: Read = option(
        "auto",
        "auto|none|default|FILE",
        "Trained forest that changes what fixed thresholds leave: default (that which comes with "
        "ngsgpu), none, or a file of ngsgpu train export; auto: default, but none with --classic "
        "and for reads without qualities.",
        group="Alignment (--method msa)",
    )
    anchor_threshold: float | None = option(
        None,
        "P",
        "Minimum probability at which the forest changes a base of the read itself.",
        shown_default="0.9995, with --classic the model's",
        above=0,
        below=1,
        group=RESEARCH,
    )
    candidate_threshold: float | None = option(
        None,
        "P",
        "With --classic, least probability at which the forest changes a base of an overlapping "
        "read.",
        shown_default="the model's",
        above=0,
        below=1,
        group=RESEARCH,
    )
    classic: bool = flag(
        "Decide as CARE 2.3 does, and keep no variants.", "--classic", group=RESEARCH
    )
    keep_variants: int | None = option(
        None,
        "N",
        "A base on which N reads agree (at Q20 or above, from different fragments) is an allele "
        "and never changed; auto: as many as the errors of the reads do not explain, at least 3.",
        word="auto",
        least=2,
        most=MAX_AGREEING,
        group="Alignment (--method msa)",
    )
    compared_quality: int = value(
        15,
        "Phred score below which a base of the anchor is not compared when it is aligned; like "
        "the next two not with classic.",
        least=0,
        most=93,
    )
    evidence_reads: float = value(
        1.8,
        "Full-weight reads that a base of a low-quality MSA needs against the anchor's own.",
        least=0,
        most=1000,
    )
    evidence_ratio: int = value(
        6, "And how many for each other read that contradicts it.", least=0, most=1000
    )
    mask: Mask = False
    quality: SetQuality = False

    def __post_init__(self) -> None:
        for name in ("anchor_threshold", "candidate_threshold"):
            threshold = getattr(self, name)
            if threshold is not None and self.chosen_model() == "none":
                raise UsageError(f"`{name}` is for `model`; add `model='default'`, or leave it out")
        if self.model not in ("auto", "none"):
            from ngsgpu.correct.forests.forest import load_model

            load_model(self.model)
        if self.candidate_threshold is not None and not self.classic:
            raise UsageError(
                "`candidate_threshold` is for `classic`, without which forests change no bases of "
                "other reads; add `classic`, or leave it out"
            )
        if self.classic and self.keep_variants is not None:
            raise UsageError("`classic` keeps no variants; leave out `keep_variants`")

    def for_number(self, reads: int) -> Self:
        """The same with a number of tables that suits a number of reads."""
        return dataclasses.replace(self, minhash=self.minhash.for_number(reads))

    def for_reads(
        self, reads: int, bases: int, repeated: float = 0.0, coverage: float = 0.0
    ) -> Self:
        """The same with tables that suit some reads, or with ``classic`` k-mers as long as CARE's.

        Arguments are those of ``MinhashParameters.for_reads``.
        """
        own = self.minhash
        if self.classic:
            own = dataclasses.replace(own, kmer=own.k)
        minhash = own.for_reads(reads, bases, repeated, coverage)
        length = bases / max(1, reads)
        half = max(minhash.k + CHANCE_BASES, math.floor(length / 2))
        if self.classic or half >= self.min_overlap or length <= half:
            return dataclasses.replace(self, minhash=minhash)
        # The least overlap leaves fewer shifts than where it is a part of the length.
        share = min(1.0, (1 - half / length) / (1 - self.min_overlap_ratio))
        return dataclasses.replace(
            self,
            minhash=minhash,
            min_overlap=half,
            coverage_factor=self.coverage_factor * share,
        )

    def chosen_model(self, *, with_qualities: bool = True) -> str:
        """The model for reads with or without qualities: ``none``, ``default`` or a file."""
        if self.model != "auto":
            return self.model
        return "default" if with_qualities and not self.classic else "none"

    def forests(self, coverage: float, *, with_qualities: bool = True) -> Forests:
        """What decides on single positions, for a coverage (reads per position)."""
        from ngsgpu.correct.forests.forest import load_model, without_forests

        model = load_model(self.chosen_model(with_qualities=with_qualities))
        if model is None:
            return without_forests()
        if self.classic:
            return model.forests(coverage, self.anchor_threshold, self.candidate_threshold)
        return model.beside_rules(coverage, self.anchor_threshold)

    def observed_rules(
        self,
        coverage: float,
        *,
        paired: bool,
        bases: int,
        errors: int,
        good_bases: int = 0,
        good_errors: int = 0,
    ) -> Rules:
        """``rules`` for the errors among the Q20 bases of a sample, and its good ones, of Q30."""
        rate, good_rate = (
            min(0.1, (wrong + 1) / (seen + 1 / TYPICAL_ERROR_RATE))
            for wrong, seen in ((errors, bases), (good_errors, good_bases))
        )
        return self.rules(coverage, paired=paired, error_rate=rate, good_error_rate=good_rate)

    def rules(
        self,
        coverage: float,
        *,
        paired: bool,
        error_rate: float = TYPICAL_ERROR_RATE,
        good_error_rate: float = TYPICAL_ERROR_RATE,
    ) -> Rules:
        """The integers for a coverage (reads per position) and error rates of Q20 and Q30 bases."""
        from ngsgpu.align.rules import Rules

        if self.classic:
            variants, depths, pair_depth = 0, (NEVER,) * 8, -1
        elif self.keep_variants is not None:
            variants, depths, pair_depth = self.keep_variants, (NEVER,) * 8, -1
        else:
            variants, depths = MIN_VARIANT_READS, variant_depths(error_rate)
            pair_depth = math.floor(3 * UNEXPLAINED_PAIR / good_error_rate)
        # Of a bucket no more than a window is looked at: amplicons have thousands of reads a place.
        seen = coverage if self.classic else min(coverage, self.minhash.window(coverage))
        e = self.error_rate
        percent = math.ceil(100 * e - TOLERANCE) // 2 / 100
        return Rules(
            kmer=self.minhash.k,
            max_bucket_size=self.minhash.max_bucket_size(coverage),
            window=self.minhash.window(coverage),
            paired=int(paired),
            min_overlap=self.min_overlap,
            min_overlap_permille=round(1000 * self.min_overlap_ratio),
            max_mismatch_permille=round(1000 * self.max_mismatch_ratio),
            pair_mismatch_permille=round(1000 * self.pair_mismatch_ratio),
            bin_permille=(round(2000 * e), round(3000 * e), round(4000 * e)),
            bin_reads=math.ceil(self.coverage_factor * seen - TOLERANCE),
            refine_rounds=self.refine_rounds,
            refine_reads=max(
                1 if self.classic else FEWEST_OF_COPY,
                math.floor(self.refine_factor * math.floor(coverage) + TOLERANCE),
            ),
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
            pair_depth=pair_depth,
            compared_weight=0 if self.classic else _weight(1 - 10 ** (-self.compared_quality / 10)),
            evidence_weight=_weight(self.evidence_reads),
            evidence_ratio=self.evidence_ratio,
        )


def _weight(weight: float) -> int:
    from ngsgpu.align.alignment import WEIGHT_BITS

    return math.ceil((weight - TOLERANCE) * (1 << WEIGHT_BITS))


def _support(support: float) -> int:
    from ngsgpu.align.rules import SUPPORT_BITS

    return math.ceil((support - TOLERANCE) * (1 << SUPPORT_BITS))
