"""Parameters of the spectrum correction, and the integers that the kernels compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

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
        end_quality: see ``end_checks``.
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


@dataclass(frozen=True, slots=True)
class SpectrumParameters:
    """How reads are corrected by their k-mers.

    Attributes:
        kmer: k-mer length, 11 to 31; None: by the size of the genome.
        min_count: count from which a k-mer is solid; None: from the histogram.
        rule: ``search`` for the cheapest changes by quality; ``voting`` as Shi and others 2010;
            ``exhaustive`` as Mahmood 2012.
        filter: table of the solid k-mers, or the Bloom filter of Shi and others.
        mutations: changes of a k-mer (``voting``), or of a read (``exhaustive``), at most.
        max_changes: most changes in a window (``search``).
        window: its length in bases, up to 64.
        quality_bits: bits of quality kept a base: 8, 2, 1 or 0.
        mask: write N in place of the corrected base.
        quality: set the qualities of changed bases.
    """

    kmer: int | None = None
    min_count: int | None = None
    rule: Rule = "search"
    filter: Filter = "exact"
    mutations: int = 2
    max_changes: int = 4
    window: int = 20
    quality_bits: int = 8
    mask: bool = False
    quality: bool = False

    def __post_init__(self) -> None:
        if self.kmer is not None and not MIN_KMER <= self.kmer <= MAX_KMER:
            raise UsageError(f"--kmer must be from {MIN_KMER} to {MAX_KMER}, not {self.kmer}")
        if self.min_count is not None and not 2 <= self.min_count <= 65_535:
            raise UsageError(f"--min-count must be auto or 2 to 65535, not {self.min_count}")
        if self.rule not in get_args(Rule):
            raise UsageError(f"--rule must be {', '.join(get_args(Rule))}, not {self.rule}")
        if self.filter not in get_args(Filter):
            raise UsageError(f"--filter must be {', '.join(get_args(Filter))}, not {self.filter}")
        if self.mutations not in (1, 2):
            raise UsageError(f"--mutations must be 1 or 2, not {self.mutations}")
        if not 1 <= self.window <= 63 or not 1 <= self.max_changes <= self.window:
            raise UsageError(
                f"--max-changes must be 1 up to the window of 1 to 63 bases, not "
                f"{self.max_changes} in {self.window}"
            )
        if self.quality_bits not in (8, 2, 1, 0):
            raise UsageError(f"--quality-bits must be 8, 2, 1 or 0, not {self.quality_bits}")

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
