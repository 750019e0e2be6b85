"""The files of a merging run: where reads go, and histograms of lengths.

These are FLASH's two, and BBMap's table of insert sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.merge import cpu
from ngsgpu.merge.cpu import FIRST_OUTPUT, MERGED_OUTPUT, SECOND_OUTPUT, Tally, Wanted
from ngsgpu.merge.params import MergeParameters

_WIDTH: Final = 72
"""Asterisks of the longest bar."""


def numbers(counts: NDArray[np.int64]) -> str:
    """FLASH's ``hist``: a line for each length that occurs, with its count.

    Args:
        counts: int64, how many have each length.
    """
    return "".join(f"{length}\t{counts[length]}\n" for length in np.flatnonzero(counts).tolist())


def bars(counts: NDArray[np.int64]) -> str:
    """FLASH's ``histogram``: a bar of asterisks for each length from the shortest to the longest.

    Args:
        counts: int64, how many have each length.
    """
    lengths = np.flatnonzero(counts)
    if len(lengths) == 0:
        return ""
    # In this order of operations, which is FLASH's, some bars are shorter by one.
    scale = _WIDTH / int(counts.max())
    return "".join(
        f"{length}\t{'*' * int(int(counts[length]) * scale)}\n"
        for length in range(int(lengths[0]), int(lengths[-1]) + 1)
    )


def insert_sizes(counts: NDArray[np.int64], pairs: int) -> str:
    """BBMap's ``ihist``, which MultiQC reads: mean, median, mode, deviation, and the table.

    Args:
        counts: int64, number of fragments of each length.
        pairs: total number of pairs.
    """
    known = summary(counts)
    total = int(counts.sum())
    lines = [
        f"#Mean\t{known['mean']:.3f}",
        f"#Median\t{known['median']:.0f}",
        f"#Mode\t{known['mode']:.0f}",
        f"#STDev\t{known['deviation']:.3f}",
        f"#PercentOfPairs\t{100 * total / max(1, pairs):.3f}",
        "#InsertSize\tCount",
    ]
    lengths = np.flatnonzero(counts)
    if len(lengths):
        span = range(int(lengths[0]), int(lengths[-1]) + 1)
        lines += [f"{length}\t{counts[length]}" for length in span]
    return "\n".join(lines) + "\n"


def summary(counts: NDArray[np.int64]) -> dict[str, float]:
    """Mean, median, mode and standard deviation of lengths; zeros if there are none.

    Args:
        counts: int64, how many have each length.
    """
    total = int(counts.sum())
    if total == 0:
        return dict.fromkeys(("mean", "median", "mode", "deviation"), 0.0)
    lengths = np.arange(len(counts))
    mean = float((counts * lengths).sum()) / total
    variance = float((counts * (lengths - mean) ** 2).sum()) / total
    below = np.cumsum(counts)
    return {
        "mean": mean,
        "median": float(np.searchsorted(below, (total + 1) // 2)),
        "mode": float(np.argmax(counts)),
        "deviation": variance**0.5,
    }


@dataclass(frozen=True, slots=True)
class MergeOutputs:
    """Output files; None: not written.

    Attributes:
        out: the merged reads.
        unmerged1: first mates of unmerged pairs, or of all pairs if they are only corrected.
        unmerged2: second mates; without it, mates are interleaved in ``unmerged1``.
        hist: numbers of merged reads by length.
        histogram: the same as bars.
        ihist: fragments by length, in BBMap's format.
        by_direction: also write ``hist`` and ``histogram`` of inward and outward pairs separately,
            with the suffixes ``.innie`` and ``.outie``.
        stats: statistics as JSON.
    """

    out: str | Path | None = None
    unmerged1: str | Path | None = None
    unmerged2: str | Path | None = None
    hist: str | Path | None = None
    histogram: str | Path | None = None
    ihist: str | Path | None = None
    by_direction: bool = False
    stats: str | Path | None = None

    @classmethod
    def of_flash(
        cls,
        prefix: str | Path,
        *,
        interleaved: bool = False,
        compressed: bool = False,
        by_direction: bool = False,
        ihist: str | Path | None = None,
        stats: str | Path | None = None,
    ) -> MergeOutputs:
        """FLASH's output files.

        Args:
            prefix: prefix of their names.
            interleaved: whether unmerged pairs go to one file.
            compressed: whether reads are compressed.
            by_direction: as the attribute; FLASH does so with ``--allow-outies``.
            ihist: as the attribute.
            stats: as the attribute.
        """
        ending = "fastq.gz" if compressed else "fastq"
        first, second = "notCombined_1", "notCombined_2"
        if interleaved:
            first = "notCombined"
        return cls(
            out=f"{prefix}.extendedFrags.{ending}",
            unmerged1=f"{prefix}.{first}.{ending}",
            unmerged2=None if interleaved else f"{prefix}.{second}.{ending}",
            hist=f"{prefix}.hist",
            histogram=f"{prefix}.histogram",
            ihist=ihist,
            by_direction=by_direction,
            stats=stats,
        )

    @property
    def reads(self) -> dict[int, str]:
        """Files of reads, by what the kernels call them."""
        named = {
            MERGED_OUTPUT: self.out,
            FIRST_OUTPUT: self.unmerged1,
            SECOND_OUTPUT: self.unmerged2,
        }
        return {number: str(path) for number, path in named.items() if path is not None}

    def texts(self, tally: Tally) -> dict[str, str]:
        """Small output files and their content, except for the statistics."""
        both = tally.lengths.sum(axis=0)
        parts = {"": both}
        if self.by_direction:
            parts |= {".innie": tally.lengths[0], ".outie": tally.lengths[1]}
        texts = {}
        for ending, counts in parts.items():
            if self.hist is not None:
                texts[f"{self.hist}{ending}"] = numbers(counts)
            if self.histogram is not None:
                texts[f"{self.histogram}{ending}"] = bars(counts)
        if self.ihist is not None:
            texts[str(self.ihist)] = insert_sizes(tally.inserts, tally[cpu.PAIRS])
        return texts

    @property
    def text_paths(self) -> list[str]:
        """The small files, except for the statistics."""
        return list(self.texts(Tally()))

    @property
    def wanted(self) -> Wanted:
        """Whether and how unmerged pairs are written."""
        pairs = self.unmerged1 is not None
        return Wanted(pairs, pairs and self.unmerged2 is None)

    def check(self, parameters: MergeParameters) -> None:
        """Refuse contradictory outputs.

        Raises:
            UsageError: names them.
        """
        if self.unmerged2 is not None and self.unmerged1 is None:
            raise UsageError("`unmerged2` needs `unmerged1`")
        if parameters.correct_only:
            if self.out is not None:
                raise UsageError("`correct_only` merges nothing; omit `out`")
            if self.unmerged1 is None:
                raise UsageError(
                    "`correct_only` needs an output for the reads: `unmerged1` and `unmerged2`, or "
                    "`unmerged1` and `interleaved_out`"
                )
        elif self.out is None:
            raise UsageError("no output given; name one for the merged reads with `out`")
