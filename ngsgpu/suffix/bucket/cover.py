"""Ranks of the suffixes that begin at places of a difference cover.

A difference cover of a period is a set of residues of which each residue is the difference of two.
For any two places there is so a distance, less than the period, at which both come to residues of
the set: suffixes that agree in a period are told apart by the ranks there, in one step, however
long they agree [Burkhardt and Kaerkkaeinen 2003]. The set is that of Colbourn and Ling (2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def difference_cover(period: int) -> NDArray[np.int64]:
    """Residues of which each residue of the period is a difference, ascending."""
    r = 0
    while 24 * r * r + 36 * r + 13 < period:
        r += 1
    steps = (
        [1] * r + [r + 1] + [2 * r + 1] * r + [4 * r + 3] * (2 * r + 1) + [2 * r + 2] * (r + 1)
    ) + [1] * r
    found: NDArray[np.int64] = np.unique(np.concatenate([[0], np.cumsum(steps)]) % period)
    return found


@dataclass(frozen=True)
class Cover:
    """A difference cover of a text, on the current GPU.

    Attributes:
        ranks: CuPy uint32, by class of residues and place; None as long as they are not known.
        tables: CuPy int32[2 * period], the class of each residue, or -1; and for each difference a
            residue of the set whose sum with it is in the set, too.
        period: a power of two, at least 32.
        stride: ranks of a class.
    """

    ranks: Any
    tables: Any
    period: int
    stride: int

    def arguments(self) -> tuple[Any, Any, Any, Any]:
        """What kernels take."""
        ranks = np.uint64(0) if self.ranks is None else self.ranks
        return ranks, self.tables, np.int64(self.period), np.int64(self.stride)


def cover_tables(period: int) -> NDArray[np.int32]:
    """The tables of ``Cover``."""
    residues = difference_cover(period)
    tables = np.full(2 * period, -1, dtype=np.int32)
    tables[residues] = np.arange(len(residues))
    for residue in residues:
        tables[period + (residues - residue) % period] = residue
    return tables


def cover_stride(size: int, period: int) -> int:
    """Ranks of a class in a text of this size."""
    return -(-size // period)
