"""The parameters of trimming as kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.trim.params import AUTO, TrimParameters

LOWEST: Final = 33
"""The quality character of zero."""

NO_UMI: Final = 0
UMI_PLACES: Final = ("", "index1", "index2", "read1", "read2", "per_index", "per_read")


class Window(NamedTuple):
    """A window that is cut if the sum of its quality characters is too low.

    Attributes:
        size: bases; 0: nothing is cut.
        least: the sum it needs.
        character: a quality character that is not too low.
    """

    size: int
    least: int
    character: int


class Rules(NamedTuple):
    """The parameters; see there.

    Attributes:
        fronts: bases cut from the start of first and second mates.
        tails: from their end.
        longest: their longest length; 0: any.
        cut_front: window.
        cut_tail: window.
        cut_right: window.
        poly_g: shortest tail of G; 0: they are left.
        poly_x: shortest tail of one base; 0: they are left.
        adapters: uint8, all sequences: the adapters of first and of second mates, then others.
        adapter_ends: int64[n + 1], where each ends, behind a 0.
        trims_adapters: whether adapters are looked for.
        others_need: bases by which others must be found.
        corrects: whether bases are corrected where mates overlap.
        overlap_least: shortest overlap.
        overlap_most: most differences in one.
        overlap_share: most differences as a part of its length.
        by_quality: whether reads are kept by quality and N.
        qualified: lowest quality character of a qualified base.
        unqualified: most others, in percent.
        most_n: most N.
        mean: lowest mean quality; 0: any.
        by_length: whether reads are kept by length.
        shortest: shortest read that is kept.
        most_length: longest; 0: any.
        complexity: bases that differ from the next, in percent; -1: any.
        umi: index in ``UMI_PLACES``.
        umi_length: of a UMI in a read.
        umi_skip: bases behind it.
        umi_prefix: uint8.
        is_64: whether qualities are Phred+64.
        as_fastp: whether of pairs whose mates both fail nothing is written.
    """

    fronts: tuple[int, int]
    tails: tuple[int, int]
    longest: tuple[int, int]
    cut_front: Window
    cut_tail: Window
    cut_right: Window
    poly_g: int
    poly_x: int
    adapters: NDArray[np.uint8]
    adapter_ends: NDArray[np.int64]
    trims_adapters: bool
    others_need: int
    corrects: bool
    overlap_least: int
    overlap_most: int
    overlap_share: float
    by_quality: bool
    qualified: int
    unqualified: int
    most_n: int
    mean: int
    by_length: bool
    shortest: int
    most_length: int
    complexity: int
    umi: int
    umi_length: int
    umi_skip: int
    umi_prefix: NDArray[np.uint8]
    is_64: bool
    as_fastp: bool


def rules_of(
    own: TrimParameters,
    *,
    paired: bool,
    two_colours: bool,
    adapters: tuple[str, str],
    others: Sequence[str],
    is_64: bool,
) -> Rules:
    """The form for kernels.

    Args:
        own: the parameters.
        paired: whether reads have mates.
        two_colours: whether the instrument is one in which no signal reads as G.
        adapters: of first and second mates; empty or ``auto`` if there is none.
        others: sequences of ``adapter_fasta``.
        is_64: whether qualities are Phred+64.
    """
    sequences = ["" if one == AUTO else one for one in adapters] + list(others)
    poly_g = own.trim_poly_g or (two_colours and not own.disable_trim_poly_g)
    return Rules(
        fronts=_both(own.trim_front1, own.trim_front2),
        tails=_both(own.trim_tail1, own.trim_tail2),
        longest=_both(own.max_len1, own.max_len2),
        cut_front=_window(
            own, own.cut_front, own.cut_front_window_size, own.cut_front_mean_quality
        ),
        cut_tail=_window(own, own.cut_tail, own.cut_tail_window_size, own.cut_tail_mean_quality),
        cut_right=_window(
            own, own.cut_right, own.cut_right_window_size, own.cut_right_mean_quality
        ),
        poly_g=own.poly_g_min_len if poly_g else 0,
        poly_x=own.poly_x_min_len if own.trim_poly_x else 0,
        adapters=np.frombuffer("".join(sequences).encode(), dtype=np.uint8),
        adapter_ends=np.cumsum([0, *map(len, sequences)], dtype=np.int64),
        trims_adapters=not own.disable_adapter_trimming,
        others_need=4 + (len(others) > 16) + (len(others) > 256),
        corrects=own.correction and paired,
        overlap_least=own.overlap_len_require,
        overlap_most=own.overlap_diff_limit,
        overlap_share=own.overlap_diff_percent_limit / 100.0,
        by_quality=not own.disable_quality_filtering,
        qualified=own.qualified_quality_phred + LOWEST,
        unqualified=own.unqualified_percent_limit,
        most_n=own.n_base_limit,
        mean=own.average_qual,
        by_length=not own.disable_length_filtering,
        shortest=own.length_required,
        most_length=own.length_limit,
        complexity=own.complexity_threshold if own.low_complexity_filter else -1,
        umi=UMI_PLACES.index(own.umi_loc or "") if own.umi else NO_UMI,
        umi_length=own.umi_len,
        umi_skip=own.umi_skip,
        umi_prefix=np.frombuffer(own.umi_prefix.encode(), dtype=np.uint8),
        is_64=is_64,
        as_fastp=own.fastp,
    )


def _both(first: int, second: int | None) -> tuple[int, int]:
    """A number for both mates, of which the second's follows the first's."""
    return first, first if second is None else second


def _window(own: TrimParameters, cuts: bool, size: int | None, mean: int | None) -> Window:
    size = own.cut_window_size if size is None else size
    lowest = LOWEST + (own.cut_mean_quality if mean is None else mean)
    return Window(size if cuts else 0, lowest * size, lowest)
