"""Ways through a read in which all k-mers are solid, and the cheapest of them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.kmers import roll
from ngsgpu.spectrum.kmers.reads import UNKNOWN, ReadSpace
from ngsgpu.spectrum.kmers.solid import SOLID, Solid, level_of
from ngsgpu.spectrum.params import SearchRules

NONE: Final = 1 << 30
"""More than any cost."""

_READ: Final = 0
_END: Final = 5

# Ends of a walk.
COMPLETE: Final = 0
PARTIAL: Final = 1
AMBIGUOUS: Final = 2

_1 = np.uint64(1)


class WalkSpace(NamedTuple):
    """Ways through a read; arrays have an entry for each base behind the first k-mer.

    Attributes:
        forward: uint64, the k-mer that ends in front of the base.
        backward: uint64, its reverse complement.
        history: uint64, which bases were changed so far, the last one in the lowest bit.
        cost: int64, of the way so far.
        known: int64, the first base from which on k-mers have no replaced base.
        option: uint8, the next base to try: the read's, then A, C, G and T.
        base: uint8, the base taken.
        level: uint8, level of the k-mer that ends with it.
        own: uint8, that with the read's base.
        best: uint8, the bases of the best way.
        best_level: uint8, its levels.
    """

    forward: NDArray[np.uint64]
    backward: NDArray[np.uint64]
    history: NDArray[np.uint64]
    cost: NDArray[np.int64]
    known: NDArray[np.int64]
    option: NDArray[np.uint8]
    base: NDArray[np.uint8]
    level: NDArray[np.uint8]
    own: NDArray[np.uint8]
    best: NDArray[np.uint8]
    best_level: NDArray[np.uint8]

    @classmethod
    def allocate(cls, max_length: int) -> Self:
        """Arrays for reads of a length."""
        size = max_length + 1
        kinds: list[Any] = [*[np.uint64] * 3, *[np.int64] * 2, *[np.uint8] * 6]
        return cls(*(np.zeros(size, dtype=kind) for kind in kinds))


@njit(nogil=True, cache=True, inline="always")
def changes_in(history: np.uint64, window: Integer) -> Integer:
    """Changes among the last bases."""
    count = 0
    history &= (_1 << np.uint64(window)) - _1
    while history != 0:
        history &= history - _1
        count += 1
    return count


@njit(nogil=True, cache=True)
def find_way(
    solid: Solid,
    rules: SearchRules,
    read: ReadSpace,
    length: Integer,
    start: Integer,
    last_change: Integer,
    kept: Integer,
    walk: WalkSpace,
) -> tuple[Integer, Integer, Integer]:
    """Find the best way from the solid k-mer at ``start``; bases up to ``last_change`` may change.

    Bases whose k-mer is solid do only if their quality is below ``kept``.

    Returns:
        How it ended, the number of bases in ``walk.best``, and on how many of them all ways agree
        that are nearly as cheap.
    """
    k = rules.kmer
    first = start + k
    stop = min(length, last_change + k)
    walk.forward[0] = 0
    walk.backward[0] = 0
    for i in range(start, first):
        code = np.uint64(read.codes[i])
        walk.forward[0], walk.backward[0] = roll(walk.forward[0], walk.backward[0], code, k)
    walk.cost[0] = 0
    walk.history[0] = 0
    walk.known[0] = first
    walk.option[0] = 0
    walk.own[0] = 0
    depth = 0
    reach = 0
    nodes = 0
    best = NONE
    agreed = length
    while depth >= 0:
        at = first + depth
        if at == stop:
            cost = walk.cost[depth]
            same = 0
            while same < depth and best != NONE and walk.base[same] == walk.best[same]:
                same += 1
            if cost < best:
                agreed = min(agreed, same) if best < cost + rules.margin else length
                best = cost
                walk.best[:depth] = walk.base[:depth]
                walk.best_level[:depth] = walk.level[:depth]
                reach = depth
            else:
                agreed = min(agreed, same)
            depth -= 1
            continue
        option = walk.option[depth]
        if option == _END:
            if best == NONE and depth > reach:
                reach = depth
                walk.best[:depth] = walk.base[:depth]
                walk.best_level[:depth] = walk.level[:depth]
            depth -= 1
            continue
        walk.option[depth] = option + 1
        original = read.codes[at]
        changed = np.uint64(0)
        cost = walk.cost[depth]
        if option == _READ:
            if original == UNKNOWN:
                continue
            base = original
        else:
            base = option - 1
            if base == original:
                continue
            cost += rules.change_cost + read.scores[at]
            changed = np.uint64(original != UNKNOWN)
            if (
                at > last_change
                or (walk.own[depth] >= SOLID and read.scores[at] >= kept)
                or (best != NONE and cost >= best + rules.margin)
                or (
                    changed
                    and changes_in(walk.history[depth], rules.window - 1) >= rules.max_changes
                )
            ):
                walk.option[depth] = _END
                continue
        nodes += 1
        if nodes > rules.max_nodes:
            return AMBIGUOUS, 0, 0
        code = np.uint64(base)
        forward, backward = roll(walk.forward[depth], walk.backward[depth], code, k)
        known = walk.known[depth]
        if option == _READ:
            # A k-mer without replaced bases is the read's own.
            if known <= at:
                level = np.int64(read.levels[at - k + 1])
            else:
                level = level_of(solid, min(forward, backward))
            walk.own[depth] = level
        else:
            level = level_of(solid, min(forward, backward))
            known = at + k
        if level < SOLID:
            continue
        walk.base[depth] = base
        walk.level[depth] = level
        depth += 1
        walk.forward[depth] = forward
        walk.backward[depth] = backward
        walk.history[depth] = (walk.history[depth - 1] << np.uint64(1)) | changed
        walk.cost[depth] = cost
        walk.known[depth] = known
        walk.option[depth] = 0
        walk.own[depth] = 0
    if best == NONE:
        return PARTIAL, reach, reach
    return COMPLETE, reach, min(agreed, reach)
