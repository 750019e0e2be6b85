"""How often a repeat is there, by its depth."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from ngsgpu.assemble.contigs.joins.paths import Path
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces

_LIKELIER: Final = 8.0
_MOST_DEPTH: Final = 16
"""One of several paths is taken, if its logarithm of likelihood is ahead by as much as that of four
standard errors. Depths count as those of a genome of this depth at most."""


class Copies:
    """How often pieces are there by their depth, by which one of several paths is chosen.

    Args:
        pieces: the graph.
        paths: all between two ends that may be meant.
        source: the first end.
        target: the second end.
        one: depth of one copy.
    """

    def __init__(
        self, pieces: Pieces, paths: list[Path], source: int, target: int, one: int
    ) -> None:
        typical = max(1, one) / DEPTH_UNIT
        # Coverage depends on the sequence as well, so that more depth does not tell more.
        self._one = min(typical, _MOST_DEPTH)
        self._depths = pieces.depths * (self._one / typical / DEPTH_UNIT)
        inner = {d >> 1 for _, steps in paths for d in steps}
        around = {source ^ 1, target}
        self._is_closed = all(
            e >> 1 in inner or e in around
            for piece in inner
            for d in (2 * piece, 2 * piece + 1)
            for e in pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist()
        )

    def chosen(self, paths: list[Path], gap: int, error: int) -> list[Path]:
        """The path that is likelier than each of the others, if there is one.

        Args:
            paths: the paths.
            gap: bases between the ends, by the pairs.
            error: standard error of ``gap``.
        """

        def is_likelier(one: Path, other: Path) -> bool:
            by_gap = ((other[0] - gap) ** 2 - (one[0] - gap) ** 2) / (2 * error**2)
            return by_gap + self._by_depth(one, other) >= _LIKELIER

        return [
            one for one in paths if all(is_likelier(one, other) for other in paths if other != one)
        ]

    def _by_depth(self, one: Path, other: Path) -> float:
        """Logarithm of how much likelier a path is than another, by the mean of pieces.

        What is deeper than a path passes it may belong to other places too, unless there is no way
        out to them.
        """
        own, its = (Counter(d >> 1 for d in path[1]) for path in (one, other))
        found = []
        for piece in (own - its) + (its - own):
            more, fewer = max(own[piece], its[piece]), min(own[piece], its[piece])
            depth = float(self._depths[piece])
            if fewer:
                score = depth * math.log(more / fewer) - self._one * (more - fewer)
            else:
                score = _LIKELIER if 2 * depth >= self._one else 0.0
            if not self._is_closed:
                score = min(score, 0.0)
            found.append(score if own[piece] == more else -score)
        return sum(found) / max(1, len(found))
