"""The default correction: the cheapest way through solid k-mers, by quality, or none.

Between solid k-mers of a read, weak ones tell of errors. From the last solid k-mer in front of
them, ``_walk`` goes through the read base by base. A way may keep the base or replace it, if the
k-mer that ends there is solid; a replacement costs its quality and a constant. The cheapest way
through all k-mers that hold a base in question is taken, if no other is nearly as cheap. The
reverse complement of the read is treated alike, for its start and for what one direction cannot
tell.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.spectrum.params import SearchRules
from ngsgpu.spectrum.reads import UNKNOWN, ReadSpace, find_levels
from ngsgpu.spectrum.solid import RARE, SOLID, STRONG, Solid, level_of

_NONE: Final = 1 << 30
_READ: Final = 0
_END: Final = 5

# Ends of a walk.
COMPLETE: Final = 0
PARTIAL: Final = 1
AMBIGUOUS: Final = 2

_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)


class WalkSpace(NamedTuple):
    """Ways through a read; arrays have an entry for each base behind the first k-mer.

    Attributes:
        forward: uint64, the k-mer that ends in front of the base.
        backward: uint64, its reverse complement.
        history: uint64, which bases were changed so far, the last one in the lowest bit.
        cost: int64, of the way so far.
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
        kinds: list[Any] = [*[np.uint64] * 3, np.int64, *[np.uint8] * 6]
        return cls(*(np.zeros(size, dtype=kind) for kind in kinds))


@njit(nogil=True, cache=True, inline="always")
def _changes(history: np.uint64, window: Integer) -> Integer:
    """Changes among the last bases."""
    count = 0
    history &= (_1 << np.uint64(window)) - _1
    while history != 0:
        history &= history - _1
        count += 1
    return count


@njit(nogil=True, cache=True)
def _walk(
    solid: Solid,
    rules: SearchRules,
    codes: NDArray[np.uint8],
    scores: NDArray[np.uint8],
    length: Integer,
    start: Integer,
    last_change: Integer,
    walk: WalkSpace,
) -> tuple[Integer, Integer]:
    """Find the best way from the solid k-mer at ``start``; bases up to ``last_change`` may change.

    Returns:
        How it ended, and the number of bases in ``walk.best``.
    """
    k = rules.kmer
    mask = (np.uint64(1) << np.uint64(2 * k)) - np.uint64(1)
    top = np.uint64(2 * (k - 1))
    first = start + k
    stop = min(length, last_change + k)
    walk.forward[0] = 0
    walk.backward[0] = 0
    for i in range(start, first):
        code = np.uint64(codes[i])
        walk.forward[0] = (walk.forward[0] << _2) | code
        walk.backward[0] = (walk.backward[0] >> _2) | ((_3 - code) << top)
    walk.cost[0] = 0
    walk.history[0] = 0
    walk.option[0] = 0
    walk.own[0] = 0
    depth = 0
    reach = 0
    nodes = 0
    best = _NONE
    second = _NONE
    while depth >= 0:
        at = first + depth
        if at == stop:
            if walk.cost[depth] < best:
                second = best
                best = walk.cost[depth]
                walk.best[:depth] = walk.base[:depth]
                walk.best_level[:depth] = walk.level[:depth]
                reach = depth
            elif walk.cost[depth] < second:
                second = walk.cost[depth]
            depth -= 1
            continue
        option = walk.option[depth]
        if option == _END:
            if best == _NONE and depth > reach:
                reach = depth
                walk.best[:depth] = walk.base[:depth]
                walk.best_level[:depth] = walk.level[:depth]
            depth -= 1
            continue
        walk.option[depth] = option + 1
        read = codes[at]
        changed = np.uint64(0)
        cost = walk.cost[depth]
        if option == _READ:
            if read == UNKNOWN:
                continue
            base = read
        else:
            base = option - 1
            if base == read or at > last_change:
                continue
            if walk.own[depth] >= SOLID and scores[at] >= rules.low_quality:
                continue
            cost += rules.change_cost + scores[at]
            if best != _NONE and cost >= best + rules.margin:
                continue
            if read != UNKNOWN:
                changed = np.uint64(1)
                if _changes(walk.history[depth], rules.window - 1) >= rules.max_changes:
                    continue
        nodes += 1
        if nodes > rules.max_nodes:
            return AMBIGUOUS, 0
        code = np.uint64(base)
        forward = ((walk.forward[depth] << _2) | code) & mask
        backward = (walk.backward[depth] >> _2) | ((_3 - code) << top)
        level = level_of(solid, min(forward, backward))
        if option == _READ:
            walk.own[depth] = level
        if level < SOLID:
            continue
        walk.base[depth] = base
        walk.level[depth] = level
        depth += 1
        walk.forward[depth] = forward
        walk.backward[depth] = backward
        walk.history[depth] = (walk.history[depth - 1] << np.uint64(1)) | changed
        walk.cost[depth] = cost
        walk.option[depth] = 0
        walk.own[depth] = 0
    if best == _NONE:
        return PARTIAL, reach
    if second < best + rules.margin:
        return AMBIGUOUS, 0
    return COMPLETE, reach


@njit(nogil=True, cache=True)
def _is_safe(
    rules: SearchRules, read: ReadSpace, first: Integer, at: Integer, end: Integer, walk: WalkSpace
) -> bool:
    """Whether the k-mers that hold the changed base ``at`` suffice as evidence.

    A base of good quality near the end of the read is confirmed by few k-mers, and a base of low
    quality in front of it may be what is wrong. If other reads have
    most k-mers of a base of good quality, most of the new ones must be strong.
    """
    score = read.scores[at]
    checks = min(rules.kmer, end - at)
    if score >= rules.end_quality and checks < rules.doubted_checks:
        if checks < rules.end_checks:
            return False
        for i in range(at - rules.kmer + 1, at):
            kept = i < first or walk.best[i - first] == read.codes[i]
            if kept and read.scores[i] < rules.low_quality:
                return False
    if score < rules.low_quality:
        return True
    rare = 0
    strong = 0
    for i in range(at, at + checks):
        rare += read.before[i - rules.kmer + 1] >= RARE
        strong += walk.best_level[i - first] == STRONG
    return 2 * rare <= checks or 2 * strong > checks


@njit(nogil=True, cache=True)
def _take(
    rules: SearchRules,
    read: ReadSpace,
    start: Integer,
    reach: Integer,
    complete: bool,
    short: bool,
    walk: WalkSpace,
) -> Integer:
    """Change the read as the best way says; return the number of changes.

    Of a way that does not reach its end, changes count that all their k-mers confirm.
    """
    first = start + rules.kmer
    end = first + reach
    safe = first
    while safe < end:
        if walk.best[safe - first] != read.codes[safe] and (
            (not complete and safe + rules.kmer > end)
            or (short and read.scores[safe] >= rules.low_quality)
            or not _is_safe(rules, read, first, safe, end, walk)
        ):
            break
        safe += 1
    changes = 0
    for at in range(first, safe):
        changes += walk.best[at - first] != read.codes[at]
        read.codes[at] = walk.best[at - first]
    return changes


@njit(nogil=True, cache=True, inline="always")
def _start(rules: SearchRules, read: ReadSpace, run: Integer, weak: Integer) -> Integer:
    """Where to begin in front of the weak k-mer ``weak``, in solid k-mers from ``run`` on.

    An error in the last solid k-mers can make them those of a repeat, and correct bases behind it
    look wrong. So the first base of low quality among those that the weak k-mer may have is tried.
    """
    for i in range(weak, weak + rules.kmer - 1):
        if read.scores[i] < rules.low_quality:
            return max(run, i - rules.kmer)
    return weak - 1


@njit(nogil=True, cache=True)
def _one_way(
    solid: Solid, rules: SearchRules, read: ReadSpace, length: Integer, walk: WalkSpace
) -> None:
    """Correct behind every solid k-mer that weak ones follow."""
    k = rules.kmer
    kmers = length - k + 1
    run = 0
    at = 1
    while at < kmers:
        if read.levels[at] >= SOLID or read.levels[at - 1] < SOLID:
            if read.levels[at - 1] < SOLID:
                run = at
            at += 1
            continue
        weak = at
        while at < kmers and read.levels[at] < SOLID:
            at += 1
        # Weak k-mers from `weak` to `at` - 1; the read ends or a solid one follows.
        last = length - 1 if at == kmers else at - 1
        short = last < weak + k - 1
        last = max(last, weak + k - 1)
        start = _start(rules, read, run, weak)
        ended, reach = _walk(solid, rules, read.codes, read.scores, length, start, last, walk)
        if ended == AMBIGUOUS:
            continue
        if _take(rules, read, start, reach, ended == COMPLETE, short, walk):
            end = min(length, last + k)
            find_levels(solid, k, read.codes, start + 1, end, read.levels)
            # What is still weak behind the changes waits for the other direction.


@njit(nogil=True, cache=True)
def _turn(read: ReadSpace, length: Integer, kmers: Integer) -> None:
    """Turn a read into its reverse complement."""
    for i in range((length + 1) // 2):
        j = length - 1 - i
        a, b = read.codes[i], read.codes[j]
        read.codes[i] = b if b == UNKNOWN else 3 - b
        read.codes[j] = a if a == UNKNOWN else 3 - a
        read.scores[i], read.scores[j] = read.scores[j], read.scores[i]
    for i in range(kmers // 2):
        j = kmers - 1 - i
        read.levels[i], read.levels[j] = read.levels[j], read.levels[i]
        read.before[i], read.before[j] = read.before[j], read.before[i]


@njit(nogil=True, cache=True)
def _both_ways(
    solid: Solid, rules: SearchRules, read: ReadSpace, length: Integer, walk: WalkSpace
) -> None:
    for _ in range(2):
        _one_way(solid, rules, read, length, walk)
        _turn(read, length, length - rules.kmer + 1)


@njit(nogil=True, cache=True)
def _only_mutant(
    solid: Solid, k: Integer, codes: NDArray[np.uint8], start: Integer
) -> tuple[Integer, Integer]:
    """The one change of the k-mer at ``start`` that makes it solid: position and base, or -1."""
    top = np.uint64(2 * (k - 1))
    forward = np.uint64(0)
    backward = np.uint64(0)
    for i in range(start, start + k):
        if codes[i] == UNKNOWN:
            return -1, 0
        code = np.uint64(codes[i])
        forward = (forward << _2) | code
        backward = (backward >> _2) | ((_3 - code) << top)
    place = -1
    found = np.uint64(0)
    for i in range(k):
        shift = np.uint64(2 * i)
        back = top - shift
        for difference in range(1, 4):
            change = np.uint64(difference)
            mutant = min(forward ^ (change << shift), backward ^ (change << back))
            if level_of(solid, mutant) >= SOLID:
                if place >= 0:
                    return -1, 0
                place = start + k - 1 - i
                found = np.uint64(codes[place]) ^ change
    return place, np.int64(found)


@njit(nogil=True, cache=True)
def _solid_kmers(read: ReadSpace, kmers: Integer) -> Integer:
    """How many k-mers of a read are solid."""
    found = 0
    for i in range(kmers):
        found += read.levels[i] >= SOLID
    return found


@njit(nogil=True, cache=True)
def search_read(
    solid: Solid, rules: SearchRules, read: ReadSpace, length: Integer, walk: WalkSpace
) -> Integer:
    """Correct a loaded read whose levels are known; return the number of solid k-mers then.

    A read without a solid k-mer is corrected where one change makes a k-mer solid, if all k-mers
    of the result are.
    """
    k = rules.kmer
    kmers = length - k + 1
    if _solid_kmers(read, kmers):
        _both_ways(solid, rules, read, length, walk)
        return _solid_kmers(read, kmers)
    for start in range(0, kmers, max(1, k // 4)):
        place, base = _only_mutant(solid, k, read.codes, start)
        if place < 0:
            continue
        read.codes[place] = base
        find_levels(solid, k, read.codes, 0, length, read.levels)
        _both_ways(solid, rules, read, length, walk)
        if _solid_kmers(read, kmers) == kmers and _is_sparse(rules, read, length):
            return kmers
        read.codes[:length] = read.original[:length]
        read.levels[:kmers] = 0
    return 0


@njit(nogil=True, cache=True)
def _is_sparse(rules: SearchRules, read: ReadSpace, length: Integer) -> bool:
    """Whether no window has more changes than are allowed."""
    history = np.uint64(0)
    for i in range(length):
        changed = read.codes[i] != read.original[i] and read.original[i] != UNKNOWN
        history = (history << np.uint64(1)) | np.uint64(changed)
        if _changes(history, rules.window) > rules.max_changes:
            return False
    return True
