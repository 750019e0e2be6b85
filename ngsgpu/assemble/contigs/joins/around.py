"""What is around the ends of a join: their pieces, and those that other joins put behind these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.join import Join, turned
from ngsgpu.assemble.contigs.pieces import Pieces, begin_of, turn


class Around:
    """The chains that closed joins make.

    Args:
        pieces: the graph.
        joins: of its ends.
    """

    def __init__(self, pieces: Pieces, joins: Sequence[Join]) -> None:
        self._pieces = pieces
        self._after: dict[int, tuple[int, ...]] = {}
        for join in joins:
            if join.closed:
                self._after[join.source] = (*join.between, join.target)
                self._after[join.target ^ 1] = turned((join.source, *join.between))

    def behind(self, d: int, size: int) -> NDArray[np.uint8]:
        """The codes from the begin of a direction on, as far as its chain is known.

        Args:
            d: the direction.
            size: codes, at most.
        """
        overlap = self._pieces.k - 1
        parts = [begin_of(self._pieces, d, size)]
        found = len(parts[0])
        while found < size and d in self._after:
            steps = self._after[d]
            for step in steps:
                parts.append(begin_of(self._pieces, step, size + overlap)[overlap:])
                found += len(parts[-1])
            d = steps[-1]
        return np.concatenate(parts)[:size]

    def before(self, d: int, size: int) -> NDArray[np.uint8]:
        """The codes up to the end of a direction, as far as its chain is known."""
        return turn(self.behind(d ^ 1, size))
