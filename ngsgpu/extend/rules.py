"""Parameters of the extension in the form of the kernels."""

from __future__ import annotations

from typing import Final, NamedTuple

from ngsgpu.device.cuda.structs import Struct, fields_of


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
