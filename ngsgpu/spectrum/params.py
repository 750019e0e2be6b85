"""Parameters of the spectrum correction, and the integers that the kernels compare with."""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

from ngsgpu.declared.common import Mask, QualityBits, SetQuality
from ngsgpu.declared.options import option, value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

MIN_KMER: Final = 11
MAX_KMER: Final = 31
"""So that two bits of a word are left beside the k-mer."""

Rule = Literal["search", "voting", "exhaustive"]
Filter = Literal["exact", "bloom"]

_SPARE_BASES: Final = 18
"""Bases of a k-mer beyond those that number the positions of the genome: one k-mer in 4^18 that
is not the genome's is found in it by chance."""

_MIN_AUTO: Final = 15
_KMER_SHARE: Final = 0.6
"""Longest k-mer that is chosen, as a part of the mean read length."""

_LOW_QUALITY: Final = 20
_CHANGE_COST: Final = 30
_MARGIN: Final = 10
_MAX_NODES: Final = 512
_END_CHECKS: Final = 3
_DOUBTED_CHECKS: Final = 6
_END_QUALITY: Final = 30
_MIN_RUN: Final = 3
_WEAK_COST: Final = 4


class SearchRules(NamedTuple):
    """What the search compares with; costs are in Phred units.

    Attributes:
        kmer: k-mer length.
        low_quality: a base of lower quality may be changed although its k-mer is solid.
        change_cost: of every change, beside the quality of the base.
        margin: by which the cheapest path must be cheaper than the next.
        max_nodes: bases that a search tries at most.
        window: positions in which ``max_changes`` counts, at most 63.
        max_changes: most changes in a window.
        end_checks: k-mers that must confirm a change of a base of at least ``end_quality``.
        doubted_checks: the same behind a base below ``low_quality`` that is not changed.
        end_quality: see ``end_checks``; a base of it, most of whose k-mers other reads have, stays.
        min_run: fewer solid k-mers in a row are not trusted.
        weak_cost: of a weak k-mer that is left, if several beginnings are compared.
    """

    kmer: int
    low_quality: int
    change_cost: int
    margin: int
    max_nodes: int
    window: int
    max_changes: int
    end_checks: int
    doubted_checks: int
    end_quality: int
    min_run: int
    weak_cost: int


@parameters
class SpectrumParameters:
    """How reads are corrected by their k-mers.

    Rules are those of Shi and others 2010 (``voting``) and Mahmood 2012 (``exhaustive``).
    """

    kmer: int | None = value(
        None, "k-mer length; None: by the size of the genome.", least=MIN_KMER, most=MAX_KMER
    )
    min_count: int | None = option(
        None,
        "N",
        "With --method spectrum, count from which a k-mer is solid; auto: from the histogram.",
        word="auto",
        least=2,
        most=65_535,
        group="k-mers (--method spectrum)",
    )
    rule: Rule = option(
        "search",
        "search|voting|exhaustive",
        "With --method spectrum: search by qualities, vote as CUDA-EC does, or try every change "
        "of one base as GPU-Euler does.",
        group="k-mers (--method spectrum)",
    )
    filter: Filter = option(
        "exact",
        "exact|bloom",
        "With --method spectrum, how solid k-mers are kept: a table, or a Bloom filter.",
        group="k-mers (--method spectrum)",
    )
    mutations: int = option(
        2,
        "N",
        "With --rule voting or exhaustive, most changes of a k-mer or read: 1 or 2.",
        choices=(1, 2),
        group="k-mers (--method spectrum)",
    )
    max_changes: int = option(
        4,
        "N",
        "With --method spectrum and --rule search, most changes in any 20 bases, 1 to 20.",
        least=1,
        most=63,
        group="k-mers (--method spectrum)",
    )
    window: int = value(20, "Bases in which max_changes counts.", least=1, most=63)
    quality_bits: QualityBits = 8
    mask: Mask = False
    quality: SetQuality = False

    def __post_init__(self) -> None:
        if self.max_changes > self.window:
            raise UsageError(
                f"`max_changes` must be 1 up to the window of {self.window} bases, not "
                f"{self.max_changes}"
            )

    def kmer_for(self, genome_size: float, mean_length: float) -> int:
        """The k-mer length given, or that for a genome of some bases and reads of a length."""
        if self.kmer is not None:
            return self.kmer
        wanted = math.ceil(math.log(max(4.0, genome_size), 4)) + _SPARE_BASES
        return max(MIN_KMER, min(max(wanted, _MIN_AUTO), MAX_KMER, int(_KMER_SHARE * mean_length)))

    def search_rules(self, kmer: int) -> SearchRules:
        """The integers for a k-mer length."""
        return SearchRules(
            kmer=kmer,
            low_quality=_LOW_QUALITY,
            change_cost=_CHANGE_COST,
            margin=_MARGIN,
            max_nodes=_MAX_NODES,
            window=self.window,
            max_changes=self.max_changes,
            end_checks=_END_CHECKS,
            doubted_checks=_DOUBTED_CHECKS,
            end_quality=_END_QUALITY,
            min_run=_MIN_RUN,
            weak_cost=_WEAK_COST,
        )
