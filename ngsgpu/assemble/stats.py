"""Sizes of assembled sequences; statistics of unitigs, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ngsgpu.assemble.chains import Unitigs
from ngsgpu.assemble.params import UnitigParameters
from ngsgpu.run.progress import Run
from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class UnitigSummary(RunStatistics):
    """Summary of written unitigs; see also ``RunStatistics``.

    Attributes:
        kmer: k-mer length.
        min_abundance: lowest count of a k-mer of the graph.
        kmers: k-mers of the graph.
        unitigs: their number.
        bases: their letters.
        longest: letters of the longest one.
        n50: unitigs of this length and more have half of the letters.
        links: links between ends, each once.
    """

    SCHEMA = "ngsgpu.unitigs"
    kmer: int
    min_abundance: int
    kmers: int
    unitigs: int
    bases: int
    longest: int
    n50: int
    links: int

    def summary(self) -> list[str]:
        """Lines for people."""
        return [
            f"{self.kmers:,} {self.kmer}-mers that occur {self.min_abundance} times or more",
            f"{self.unitigs:,} unitigs of {self.bases:,} bases, {self.links:,} links; "
            f"longest {self.longest:,}, N50 {self.n50:,}",
            self.resources(),
        ]


def n50_of(lengths: ArrayLike) -> int:
    """Length at which half of the bases are in sequences as long or longer; 0 without any."""
    ordered = np.sort(np.asarray(lengths, dtype=np.int64))[::-1]
    if not len(ordered):
        return 0
    sums = np.cumsum(ordered)
    return int(ordered[np.searchsorted(sums, sums[-1] / 2)])


def sizes_of(lengths: ArrayLike) -> dict[str, int]:
    """``number``, ``bases``, ``longest`` and ``n50`` of sequences of some lengths."""
    found = np.asarray(lengths, dtype=np.int64)
    return {
        "number": len(found),
        "bases": int(found.sum()),
        "longest": int(found.max(initial=0)),
        "n50": n50_of(found),
    }


def summary_of(unitigs: Unitigs, k: int, least: int, run: Run[UnitigParameters]) -> UnitigSummary:
    """Sum up unitigs.

    Args:
        unitigs: the unitigs.
        k: k-mer length of the graph, which may be a database's.
        least: lowest count of its k-mers.
        run: that made them.
    """
    sizes = sizes_of(unitigs.sizes + (k - 1))
    own = np.repeat(np.arange(2 * len(unitigs)), np.diff(unitigs.link_starts))
    return UnitigSummary.after(
        run,
        parameters={"kmer": k},
        kmer=k,
        min_abundance=least,
        kmers=int(unitigs.sizes.sum()),
        unitigs=sizes["number"],
        bases=sizes["bases"],
        longest=sizes["longest"],
        n50=sizes["n50"],
        links=int(np.count_nonzero(unitigs.links ^ 1 >= own)),
    )
