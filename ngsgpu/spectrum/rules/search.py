"""The default correction: the cheapest way through solid k-mers, by quality, or none.

Between solid k-mers of a read, weak ones tell of errors. From the last trusted k-mer in front of
them, ``find_way`` goes through the read base by base. A way may keep the base or replace it, if the
k-mer that ends there is solid; a replacement costs its quality and a constant. The cheapest way
through all k-mers that hold a base in question is taken, as far as those nearly as cheap agree.
The reverse complement of the read is treated alike, for its start and for what one direction
cannot tell.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.kmers import roll
from ngsgpu.spectrum.kmers.reads import UNKNOWN, ReadSpace, find_levels
from ngsgpu.spectrum.kmers.solid import RARE, SOLID, STRONG, Solid, level_of
from ngsgpu.spectrum.params import SearchRules
from ngsgpu.spectrum.rules.walk import AMBIGUOUS, COMPLETE, NONE, WalkSpace, changes_in, find_way

_ANY: Final = 256
"""Above any quality."""


@njit(nogil=True, cache=True)
def _is_safe(
    rules: SearchRules, read: ReadSpace, first: Integer, at: Integer, end: Integer, walk: WalkSpace
) -> bool:
    """Whether the k-mers that hold the changed base ``at`` suffice as evidence.

    A base of good quality near the end of the read is confirmed by few k-mers, and a base of low
    quality in front of it may be what is wrong. If other reads have most k-mers of a base of good
    quality, most of the new ones must be strong; and one of ``end_quality`` stays, since errors of
    that quality hardly ever meet, but rare strains have such bases.
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
    return 2 * rare <= checks or (score < rules.end_quality and 2 * strong > checks)


@njit(nogil=True, cache=True)
def _take(
    solid: Solid,
    rules: SearchRules,
    read: ReadSpace,
    length: Integer,
    start: Integer,
    reach: Integer,
    agreed: Integer,
    complete: bool,
    low_only: bool,
    walk: WalkSpace,
) -> None:
    """Change the read as the best way says, up to the first change that is not safe.

    Of a way that does not reach its end, changes count that all their k-mers confirm.
    """
    k = rules.kmer
    first = start + k
    end = first + reach
    safe = first
    last = -1
    while safe < first + agreed:
        if walk.best[safe - first] != read.codes[safe]:
            if (
                (not complete and safe + k > end)
                or (low_only and read.scores[safe] >= rules.low_quality)
                or not _is_safe(rules, read, first, safe, end, walk)
            ):
                break
            last = safe
        safe += 1
    if last < 0:
        return
    read.codes[first : last + 1] = walk.best[: last + 1 - first]
    # K-mers on the way are joined to the solid one in front; those behind it stay in doubt.
    joined = max(start + 1, safe - k + 1)
    for i in range(start + 1, joined):
        read.levels[i] = walk.best_level[i - start - 1]
        read.trusted[i] = 1
    if last >= joined:
        find_levels(solid, k, read.codes, joined, min(length, last + k), read.levels)
        read.trusted[joined : last + 1] = 0


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
def _find_trusted(rules: SearchRules, read: ReadSpace, kmers: Integer) -> bool:
    """Find the runs of solid k-mers to start from; return whether there is one.

    A base of low quality in all k-mers of a run may be an error that makes them those of another
    copy of a repeat: whoever starts there changes correct bases into that copy.
    """
    found = False
    run = 0
    for at in range(1, kmers + 1):
        if at < kmers and (read.levels[at] >= SOLID) == (read.levels[at - 1] >= SOLID):
            continue
        trusted = read.levels[at - 1] >= SOLID and at - run >= rules.min_run
        for i in range(at - 1, run + rules.kmer):
            trusted &= read.scores[i] >= rules.low_quality
        read.trusted[run:at] = trusted
        found |= trusted
        run = at
    return found


@njit(nogil=True, cache=True)
def _changes_good(
    rules: SearchRules, read: ReadSpace, first: Integer, reach: Integer, walk: WalkSpace
) -> bool:
    """Whether the best way changes a base that is not of low quality."""
    for i in range(reach):
        if walk.best[i] != read.codes[first + i] and read.scores[first + i] >= rules.low_quality:
            return True
    return False


@njit(nogil=True, cache=True)
def _one_way(
    solid: Solid,
    rules: SearchRules,
    read: ReadSpace,
    length: Integer,
    low_only: bool,
    walk: WalkSpace,
) -> None:
    """Correct behind every trusted k-mer that others follow."""
    k = rules.kmer
    kmers = length - k + 1
    run = 0
    at = 1
    while at < kmers:
        if read.trusted[at] or not read.trusted[at - 1]:
            if not read.trusted[at - 1]:
                run = at
            at += 1
            continue
        weak = at
        while at < kmers and not read.trusted[at]:
            at += 1
        # K-mers from `weak` to `at` - 1 are in question; the read ends or a trusted one follows.
        last = length - 1 if at == kmers else at - 1
        short = last < weak + k - 1
        last = max(last, weak + k - 1)
        start = _start(rules, read, run, weak)
        kept = rules.low_quality
        ended, reach, agreed = find_way(solid, rules, read, length, start, last, kept, walk)
        if ended != AMBIGUOUS and _changes_good(rules, read, start + k, reach, walk):
            # Rather than a good base, one within the trusted k-mers may be wrong.
            start = max(run, weak - k)
            if not short:
                last = min(length - 1, last + k - 1)
            ended, reach, agreed = find_way(solid, rules, read, length, start, last, _ANY, walk)
        if ended != AMBIGUOUS:
            _take(
                solid, rules, read, length, start, reach, agreed, ended == COMPLETE,
                short or low_only, walk,
            )  # fmt: skip


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
        read.trusted[i], read.trusted[j] = read.trusted[j], read.trusted[i]
        read.before[i], read.before[j] = read.before[j], read.before[i]


@njit(nogil=True, cache=True)
def _both_ways(
    solid: Solid,
    rules: SearchRules,
    read: ReadSpace,
    length: Integer,
    low_only: bool,
    walk: WalkSpace,
) -> None:
    for _ in range(2):
        _one_way(solid, rules, read, length, low_only, walk)
        _turn(read, length, length - rules.kmer + 1)


@njit(nogil=True, cache=True)
def _from_each(
    solid: Solid, rules: SearchRules, read: ReadSpace, length: Integer, walk: WalkSpace
) -> None:
    """Start from each run of solid k-mers in turn, none of which is trusted; take the cheapest end.

    Bases of good quality change only if all k-mers are solid then.
    """
    k = rules.kmer
    kmers = length - k + 1
    least = NONE
    run = 0
    for at in range(1, kmers + 1):
        if at < kmers and (read.before[at] >= SOLID) == (read.before[at - 1] >= SOLID):
            continue
        if read.before[at - 1] >= SOLID:
            weak = kmers
            for low_only in (False, True):
                if weak:
                    read.codes[:length] = read.original[:length]
                    read.levels[:kmers] = read.before[:kmers]
                    read.trusted[:kmers] = 0
                    read.trusted[run:at] = 1
                    _both_ways(solid, rules, read, length, low_only, walk)
                    weak = kmers - _solid_kmers(read, kmers)
            cost = rules.weak_cost * weak
            for i in range(length):
                if read.codes[i] != read.original[i]:
                    cost += rules.change_cost + read.scores[i]
            if cost < least:
                least = cost
                read.cheapest[:length] = read.codes[:length]
        run = at
    read.codes[:length] = read.cheapest[:length]
    find_levels(solid, k, read.codes, 0, length, read.levels)


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
        forward, backward = roll(forward, backward, code, k)
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
        if _find_trusted(rules, read, kmers):
            _both_ways(solid, rules, read, length, False, walk)
        else:
            _from_each(solid, rules, read, length, walk)
        return _solid_kmers(read, kmers)
    for start in range(0, kmers, max(1, k // 4)):
        place, base = _only_mutant(solid, k, read.codes, start)
        if place < 0:
            continue
        read.codes[place] = base
        find_levels(solid, k, read.codes, 0, length, read.levels)
        for i in range(kmers):
            read.trusted[i] = read.levels[i] >= SOLID
        _both_ways(solid, rules, read, length, False, walk)
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
        if changes_in(history, rules.window) > rules.max_changes:
            return False
    return True
