"""What is drawn of corrections: errors by position, and k-mer histograms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.report.files import numbered_lines


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Errors by position of one mate's reads, all int64 [positions].

    Attributes:
        mate: 1 or 2.
        bases: reads that reach the position.
        before: errors in the input.
        after: errors in the output.
    """

    mate: int
    bases: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A k-mer histogram.

    Attributes:
        k: length of the k-mers; 0 when the file does not say.
        sampled: share of the k-mers that was counted, 1 for all.
        multiplicity: int64 [n], ascending.
        count: int64 [n], distinct k-mers that occur so often.
    """

    k: int
    sampled: float
    multiplicity: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def once(self) -> int:
        """Distinct k-mers that occur once; errors, nearly all of them, where coverage is high."""
        return int(self.count[self.multiplicity == 1].sum())


def read_spectrum(path: Path) -> Spectrum:
    """Read a histogram as ``ngsgpu kmers`` writes it: ``# k=21 sampled=1/16``, header, two columns.

    Raises:
        InputError: the file cannot be read or a line is not what it should be.
    """
    remedy = "make the histogram again with ngsgpu kmers"
    k, sampled = 0, 1.0
    rows: list[tuple[int, int]] = []
    for number, line in numbered_lines(path, remedy):
        if line.startswith("#"):
            words = dict(word.split("=", 1) for word in line[1:].split() if "=" in word)
            try:
                k = int(words.get("k", k))
                part, _, whole = words.get("sampled", "1").partition("/")
                sampled = int(part) / int(whole or 1)
            except (ValueError, ZeroDivisionError) as error:
                raise InputError(path, "the comment is damaged", remedy, line=number) from error
        elif line and line != "multiplicity\tcount":
            try:
                multiplicity, count = (int(cell) for cell in line.split("\t"))
            except ValueError as error:
                cause = "this is not a multiplicity and a count"
                raise InputError(path, cause, remedy, line=number) from error
            if multiplicity < 1 or count < 0 or (rows and multiplicity <= rows[-1][0]):
                raise InputError(path, "multiplicities must ascend", remedy, line=number)
            rows.append((multiplicity, count))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Spectrum(k, sampled, table[:, 0], table[:, 1])
