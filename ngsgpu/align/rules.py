"""What the kernels of alignment and consensus compare with."""

from __future__ import annotations

from typing import Final, NamedTuple

from ngsgpu.device.cuda.structs import Struct, fields_of

SUPPORT_BITS = 20
"""A support of 1 is ``1 << SUPPORT_BITS``."""


class Rules(NamedTuple):
    """What the kernels compare with, all integers, so that no result depends on rounding.

    Ratios of mismatches to overlap are in thousandths and compared by cross-multiplication;
    supports are in 2^-20, weights in 2^-14. ``variant_reads`` reads with a base make it an allele,
    one more from each of ``variant_depths`` Q20 reads in the column on; 0 for none, as CARE. Up to
    ``pair_depth`` Q20 reads in the column, two reads of Q30 do as well; -1 where they never do.
    """

    kmer: int
    max_bucket_size: int
    window: int
    paired: int
    min_overlap: int
    min_overlap_permille: int
    max_mismatch_permille: int
    pair_mismatch_permille: int
    bin_permille: tuple[int, int, int]
    bin_reads: int
    refine_rounds: int
    refine_reads: int
    refine_keep_weight: int
    min_coverage: int
    mean_support: int
    min_support: int
    high_mean_support: int
    high_min_support: int
    position_support: int
    position_max_reads: int
    margin: int
    variant_reads: int
    variant_depths: tuple[int, int, int, int, int, int, int, int]
    pair_depth: int
    compared_weight: int
    evidence_weight: int
    evidence_ratio: int


RULES: Final = Struct(__name__, "Rules", fields_of(Rules))
