"""Gaps between pieces, by pairs of reads.

A pair of which the mates lie on two pieces says how many bases of its fragment are on both; the
rest is between them. Not every pair shows: its fragment has to reach a word that counts on either
piece, and the words next to links do not. The wider the gap, the longer the fragments that are
left. So the gap is the one at which fragments are as long as those of their library that are long
enough, on average; and where few of them are, the gap is known less exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import Pieces
from ngsgpu.assemble.contigs.places import Places
from ngsgpu.jit import njit

_LEAST_PAIRS: Final = 100
"""Pairs within pieces from which the insert size is known."""

_LONGEST_INSERT: Final = 20_000
_LONG: Final = 2000
_LEAST_TAIL: Final = 8
"""Fragments of a length or more from which their mean is taken."""

_UNIT: Final = 16
_EXACT: Final = 2.0**40
"""Units of ``Libraries.means`` and of ``Libraries.precisions``, as fractions."""


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert sizes of pairs, reads included.

    Attributes:
        median: their median.
        deviation: about their standard deviation, by the median of absolute differences.
        longest: of nearly all.
        pairs: number of pairs by which they are known.
    """

    median: int
    deviation: int
    longest: int
    pairs: int


class Libraries(NamedTuple):
    """Insert sizes, and what they say of fragments of at least a length.

    Attributes:
        inserts: the insert sizes of each library.
        of_pair: int64[n], the library of each pair; -1, if its insert size is not known.
        means: int64[l, m], mean size of a library's fragments of at least ``i`` bases, in
            sixteenths.
        precisions: int64[l, m], what such a fragment adds to the inverse of a gap's squared error.
        outward: files, by number, of which the mates point away from each other.
    """

    inserts: tuple[Insert, ...]
    of_pair: NDArray[np.int64]
    means: NDArray[np.int64]
    precisions: NDArray[np.int64]
    outward: tuple[int, ...]

    @property
    def main(self) -> Insert | None:
        """The insert size that most pairs tell, if any is known."""
        return max(self.inserts, key=lambda insert: insert.pairs, default=None)

    @property
    def longest(self) -> int:
        """Bases of the longest fragments."""
        return max((insert.longest for insert in self.inserts), default=0)


class Links(NamedTuple):
    """Directions that pairs put one after the other.

    Attributes:
        source: int64[n], the first, ascending.
        target: int64[n], what follows.
        pairs: int64[n], that say so.
        gaps: int64[n], bases between; negative, if they overlap.
        errors: int64[n], standard errors of the gaps.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    pairs: NDArray[np.int64]
    gaps: NDArray[np.int64]
    errors: NDArray[np.int64]


def libraries_of(pieces: Pieces, places: Places, ends: Sequence[int]) -> Libraries:
    """The libraries of pairs, by those of which both mates lie on one long piece.

    Files with few of them are taken for one library.

    Args:
        pieces: the graph.
        places: of the paired reads.
        ends: pairs up to the end of each file.
    """
    of_pair = np.full(len(places.direction) // 2, -1, dtype=np.int64)
    found: list[tuple[Insert, NDArray[np.int64]]] = []
    outward, few = [], []
    for number, (begin, end) in enumerate(pairwise([0, *ends])):
        sizes = _sizes(pieces, places, slice(begin, end))
        inward = sizes[sizes > 0]
        if len(sizes) - len(inward) >= max(_LEAST_PAIRS, len(inward)):
            outward.append(number)
        elif len(inward) < _LEAST_PAIRS:
            few.append((slice(begin, end), inward))
        else:
            of_pair[begin:end] = len(found)
            found.append(_insert(inward))
    together = np.concatenate([np.empty(0, dtype=np.int64), *(sizes for _, sizes in few)])
    if len(together) >= _LEAST_PAIRS:
        for pairs, _ in few:
            of_pair[pairs] = len(found)
        found.append(_insert(together))
    longest = max((int(sizes.max()) for _, sizes in found), default=0)
    tables = [_tails(sizes, longest + 1) for _, sizes in found]
    means, precisions = (
        np.array([table[i] for table in tables], dtype=np.int64).reshape(len(found), longest + 1)
        for i in range(2)
    )
    inserts = tuple(insert for insert, _ in found)
    return Libraries(inserts, of_pair, means, precisions, tuple(outward))


def _sizes(pieces: Pieces, places: Places, pairs: slice) -> NDArray[np.int64]:
    """Bases from mate to mate on one long piece; negative, if they point away from each other."""
    one, two = places.direction[0::2][pairs], places.direction[1::2][pairs]
    lengths = pieces.lengths
    least = min(_LONG, int(lengths.max(initial=0)) // 2)
    same = np.flatnonzero((one >= 0) & (two == one ^ 1))
    same = same[lengths[one[same] >> 1] >= least]
    sizes = lengths[one[same] >> 1] - places.at[0::2][pairs][same] - places.at[1::2][pairs][same]
    return sizes[(sizes != 0) & (np.abs(sizes) <= _LONGEST_INSERT)]


def _insert(sizes: NDArray[np.int64]) -> tuple[Insert, NDArray[np.int64]]:
    """The summary of insert sizes, and those without the tail of false pairs."""
    sizes = np.sort(sizes)
    median = int(sizes[len(sizes) // 2])
    spread = int(np.sort(np.abs(sizes - median))[len(sizes) // 2])
    deviation = max(1, spread * 3 // 2)
    near = sizes[sizes <= median + 6 * deviation]
    return Insert(median, deviation, int(near[len(near) * 999 // 1000]), len(sizes)), near


def _tails(sizes: NDArray[np.int64], room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``means`` and ``precisions`` of a library.

    Args:
        sizes: its insert sizes.
        room: lengths of the tables.
    """
    counts = np.bincount(sizes, minlength=room)
    own = np.arange(room)
    number, sums, squares = (
        np.cumsum(each[::-1])[::-1] for each in (counts, counts * own, counts * own * own)
    )
    enough = number >= min(_LEAST_TAIL, len(sizes))
    number = np.maximum(1, number)
    means = np.where(enough, sums * _UNIT // number, own * _UNIT)
    # Every operation on floats is rounded once, so that the result is the same everywhere.
    variances = np.where(enough, squares / number - (sums / number) ** 2, 1.0)
    precisions = np.maximum(0.0, variances) * _EXACT / max(1.0, variances[0]) ** 2
    return means, np.maximum(1, precisions.astype(np.int64))


def followed(
    pieces: Pieces, places: Places, libraries: Libraries, among: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Directions and what follows them, as keys, by each pair on two pieces ``among`` all.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
        among: bool[n], pieces that count.

    Returns:
        A direction times their number, plus the one that follows; the bases of the pair's fragment
        on the first and on the second; and its library. Every pair counts in both directions.
    """
    one, two = places.direction[0::2], places.direction[1::2]
    lengths = pieces.lengths
    apart = (one >= 0) & (two >= 0) & (one >> 1 != two >> 1)
    # From the end of a circle to its beginning.
    apart |= (one >= 0) & (one == two ^ 1) & (lengths[one >> 1] > 2 * libraries.longest)
    apart &= among[one >> 1] & among[two >> 1] & (libraries.of_pair >= 0)
    rows = np.flatnonzero(apart)
    source, target = one[rows], two[rows] ^ 1
    first = lengths[source >> 1] - places.at[0::2][rows]
    second = lengths[target >> 1] - places.at[1::2][rows]
    library = libraries.of_pair[rows]
    longest = np.array([insert.longest for insert in libraries.inserts], dtype=np.int64)
    near = first + second - (pieces.k - 1) <= longest[library]
    source, target, first, second = source[near], target[near], first[near], second[near]
    directions = 2 * len(pieces)
    keys = np.concatenate([source * directions + target, (target ^ 1) * directions + (source ^ 1)])
    return (
        keys, np.concatenate([first, second]), np.concatenate([second, first]),
        np.tile(library[near], 2),
    )  # fmt: skip


def linked(
    pieces: Pieces, places: Places, libraries: Libraries, among: NDArray[np.bool_], least: int
) -> Links:
    """What pairs say about the order of pieces.

    Args:
        pieces: the graph.
        places: of the paired reads.
        libraries: of the pairs.
        among: bool[n], pieces that count.
        least: pairs from which on two directions are linked.
    """
    keys, first, second, library = followed(pieces, places, libraries, among)
    order = np.argsort(keys, kind="stable")
    keys, begins, pairs = np.unique(keys[order], return_index=True, return_counts=True)
    kept = pairs >= least
    source, target = np.divmod(keys[kept], 2 * len(pieces))
    gaps = np.empty(len(source), dtype=np.int64)
    precision = np.empty(len(source), dtype=np.int64)
    fit_gaps(
        libraries.means, libraries.precisions, library[order], first[order], second[order],
        begins[kept], pairs[kept], places.first[source ^ 1], places.first[target], gaps, precision,
    )  # fmt: skip
    errors = np.sqrt(_EXACT / precision).astype(np.int64)
    return Links(source, target, pairs[kept], gaps, errors)


@njit(nogil=True, cache=True)
def fit_gaps(
    means: NDArray[np.int64],
    precisions: NDArray[np.int64],
    library: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    begins: NDArray[np.int64],
    pairs: NDArray[np.int64],
    least_first: NDArray[np.int64],
    least_second: NDArray[np.int64],
    gaps: NDArray[np.int64],
    precision: NDArray[np.int64],
) -> None:
    """Find the gaps at which fragments are as long as they are expected to be.

    What a pair has on the first piece is taken as given, then what it has on the second.

    Args:
        means: of the libraries.
        precisions: of the libraries.
        library: of each pair.
        first: bases of each pair's fragment on the first piece.
        second: bases on the second.
        begins: where the pairs of each gap begin.
        pairs: number of pairs of each gap.
        least_first: fewest bases that show on the first piece.
        least_second: fewest bases that show on the second.
        gaps: gets the gaps.
        precision: gets the inverse of their squared errors, in units of ``precisions``.
    """
    longest = means.shape[1] - 1
    for i in range(len(begins)):
        low, high = -longest, longest
        while low < high:
            gap = (low + high) >> 1
            excess = np.int64(0)
            for row in range(begins[i], begins[i] + pairs[i]):
                one = min(longest, max(0, first[row] + gap + least_second[i]))
                two = min(longest, max(0, second[row] + gap + least_first[i]))
                excess += means[library[row], one] + means[library[row], two]
                excess -= 2 * _UNIT * (first[row] + second[row] + gap)
            if excess > 0:
                low = gap + 1
            else:
                high = gap
        total = np.int64(0)
        for row in range(begins[i], begins[i] + pairs[i]):
            one = min(longest, max(0, first[row] + low + least_second[i]))
            two = min(longest, max(0, second[row] + low + least_first[i]))
            total += precisions[library[row], one] + precisions[library[row], two]
        gaps[i] = low
        precision[i] = max(np.int64(1), total >> 1)
