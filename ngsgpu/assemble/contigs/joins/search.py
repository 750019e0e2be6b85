"""The path between two ends that pairs join.

Of several paths that are as long as the pairs say, as where copies of a repeat differ inside, pairs
choose one, of which one mate lies on an end and the other on what only one path passes; or length
and depth together do.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.joins.copies import Copies
from ngsgpu.assemble.contigs.joins.gaps import Libraries, linked
from ngsgpu.assemble.contigs.joins.join import LEAST_ERROR, SLACK, is_tandem, spelled
from ngsgpu.assemble.contigs.joins.paths import Path, find_paths
from ngsgpu.assemble.contigs.pieces import Pieces
from ngsgpu.assemble.contigs.places import Places

MARGIN: Final = 4
"""What has this part of the pairs of the best one, 1 / this, is a rival."""


class Search:
    """The search for paths between ends.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
        unique: bool[n], which pieces are unique.
        least: pairs that choose a path, at least.
    """

    def __init__(
        self,
        pieces: Pieces,
        places: Places,
        libraries: Libraries,
        unique: NDArray[np.bool_],
        least: int,
    ) -> None:
        self._pieces, self._places, self._libraries = pieces, places, libraries
        self._unique, self._least = unique, least
        self._depths = pieces.copy_depths()
        self._support: Support | None = None

    def path(self, source: int, target: int, gap: int, error: int) -> Path | None:
        """The path between two ends, if there is one beyond doubt.

        Pieces that are unique may lie on it: those between copies of a repeat can be so short that
        pairs say less of them than of what is behind. If there are too many paths, only those
        without them count.

        Args:
            source: the first end.
            target: the second end.
            gap: bases between, by the pairs.
            error: standard error of ``gap``.
        """
        error = max(error, LEAST_ERROR)
        wide = 7 * error + SLACK
        ends = np.zeros_like(self._unique)
        ends[[source >> 1, target >> 1]] = True
        for barred in (ends, self._unique):
            found = find_paths(self._pieces, barred, source, target, gap - wide, gap + wide)
            if found:
                break
        if not found:
            return None
        best = min(abs(size - gap) for size, _ in found)
        if best > max(3 * error, 5 * LEAST_ERROR) + SLACK:
            return None
        near = [each for each in found if abs(each[0] - gap) <= best + 4 * error]
        if len(near) > 1:
            near = self._chosen(near, source, target, gap, error)
        if not near:
            return None
        size, steps = near[0]
        text = spelled(self._pieces, source, steps, target)
        # Paths with more or fewer units have been there to be chosen.
        others = {other for other, _ in found}
        return None if is_tandem(text, size, gap, error, others) else near[0]

    def _chosen(
        self, paths: list[Path], source: int, target: int, gap: int, error: int
    ) -> list[Path]:
        """The path that pairs choose, or their gap together with the depth of what it passes."""
        self._support = self._support or Support(self._pieces, self._places, self._libraries)
        chosen = self._support.chosen(paths, source, target, self._least)
        if not chosen:
            one = int(self._depths[source >> 1])
            chosen = Copies(self._pieces, paths, source, target, one).chosen(paths, gap, error)
        return chosen


class Support:
    """Pairs between all pieces, by which one of several paths is chosen.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
    """

    def __init__(self, pieces: Pieces, places: Places, libraries: Libraries) -> None:
        self._pieces = pieces
        self._links = linked(pieces, places, libraries, np.ones(len(pieces), dtype=np.bool_), 1)
        self._keys = self._links.source * 2 * len(pieces) + self._links.target

    def chosen(self, paths: list[Path], source: int, target: int, least: int) -> list[Path]:
        """The path for which pairs speak against each of the others, if there is one."""

        def pairs(path: Path, other: Path) -> int:
            passed = {*path[1]} - {*other[1]}
            gaps = self._gaps(path)
            return sum(
                self._between(source, d, {before for e, before, _ in gaps if e == d})
                + self._between(d, target, {behind for e, _, behind in gaps if e == d})
                for d in passed
            )

        def is_better(one: Path, other: Path) -> bool:
            own = pairs(one, other)
            return own >= least and own > MARGIN * pairs(other, one)

        return [
            one for one in paths if all(is_better(one, other) for other in paths if other != one)
        ][:1]

    def _gaps(self, path: Path) -> list[tuple[int, int, int]]:
        """Each direction of a path, and the bases before it and behind it, as far as the ends."""
        overlap = self._pieces.k - 1
        size, found, before = path[0], [], -overlap
        for d in path[1]:
            behind = before + int(self._pieces.lengths[d >> 1])
            found.append((d, before, size - behind))
            before = behind - overlap
        return found

    def _between(self, source: int, target: int, gaps: set[int]) -> int:
        """Pairs that put a direction behind another one, at one of some distances.

        In a tandem repeat, a piece may be on a path and behind it as well.
        """
        row = int(np.searchsorted(self._keys, source * 2 * len(self._pieces) + target))
        links = self._links
        if row == len(self._keys) or (links.source[row], links.target[row]) != (source, target):
            return 0
        most = 3 * max(int(links.errors[row]), LEAST_ERROR) + SLACK
        is_near = any(abs(gap - int(links.gaps[row])) <= most for gap in gaps)
        return int(links.pairs[row]) if is_near else 0
