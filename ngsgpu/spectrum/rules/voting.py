"""The corrections of the papers.

``vote_read``: Shi and others (2010), algorithms 2 and 3. Every k-mer of the read that is not solid
votes for the changes of one base (then of two) that make it solid; the base with most votes is
changed, and the result counts if all k-mers are solid. ``try_all``: Mahmood (2012), chapter 4. Of
all reads with one base changed, the one with most solid k-mers is taken, until all are solid.

Equal votes or scores go to the first position, and there to the first base.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.kmers import roll
from ngsgpu.spectrum.kmers.reads import UNKNOWN, ReadSpace, find_levels
from ngsgpu.spectrum.kmers.solid import SOLID, Solid, level_of


@njit(nogil=True, cache=True)
def _vote(
    solid: Solid,
    k: Integer,
    codes: NDArray[np.uint8],
    start: Integer,
    mutations: Integer,
    votes: NDArray[np.int32],
) -> None:
    """Count the votes of a k-mer that is not solid; k-mers with unknown bases have none."""
    top = np.uint64(2 * (k - 1))
    forward = np.uint64(0)
    backward = np.uint64(0)
    for i in range(start, start + k):
        if codes[i] == UNKNOWN:
            return
        code = np.uint64(codes[i])
        forward, backward = roll(forward, backward, code, k)
    for i in range(k):
        left = top - np.uint64(2 * i)
        right = np.uint64(2 * i)
        for first in range(1, 4):
            one = forward ^ (np.uint64(first) << left)
            back = backward ^ (np.uint64(first) << right)
            base = codes[start + i] ^ first
            if mutations == 1:
                if level_of(solid, min(one, back)) >= SOLID:
                    votes[start + i, base] += 1
                continue
            for j in range(i + 1, k):
                left_two = top - np.uint64(2 * j)
                right_two = np.uint64(2 * j)
                for second in range(1, 4):
                    change = np.uint64(second)
                    both = min(one ^ (change << left_two), back ^ (change << right_two))
                    if level_of(solid, both) >= SOLID:
                        votes[start + i, base] += 1
                        votes[start + j, codes[start + j] ^ second] += 1


@njit(nogil=True, cache=True)
def vote_read(
    solid: Solid,
    k: Integer,
    mutations: Integer,
    read: ReadSpace,
    length: Integer,
    votes: NDArray[np.int32],
) -> Integer:
    """Correct a loaded read whose levels are known; return the number of solid k-mers then.

    Args:
        solid: the solid k-mers.
        k: k-mer length.
        mutations: 1, or 2 to try two changes where one does not suffice.
        read: the read; its codes change, and its levels are those of the changed read.
        length: of the read.
        votes: int32[length, 4], room.
    """
    kmers = length - k + 1
    found = 0
    for most in range(1, mutations + 1):
        votes[:length] = 0
        for start in range(kmers):
            if read.before[start] < SOLID:
                _vote(solid, k, read.original, start, most, votes)
        read.codes[:length] = read.original[:length]
        for _ in range(most):
            place = 0
            base = 0
            for i in range(length):
                for j in range(4):
                    if votes[i, j] > votes[place, base]:
                        place, base = i, j
            if votes[place, base] == 0:
                break
            read.codes[place] = base
            votes[place] = 0
        found = find_levels(solid, k, read.codes, 0, length, read.levels)
        if found == kmers:
            return found
    return found


@njit(nogil=True, cache=True)
def try_all(
    solid: Solid,
    k: Integer,
    mutations: Integer,
    read: ReadSpace,
    length: Integer,
    found: Integer,
    levels: NDArray[np.uint8],
) -> Integer:
    """The same by trying every change of one base, as often as ``mutations``.

    ``found`` is the number of solid k-mers in the read, and ``levels`` room as long as the read.
    """
    kmers = length - k + 1
    for _ in range(mutations):
        best = found
        place = -1
        best_base = 0
        for i in range(length):
            own = read.codes[i]
            # Only the k-mers that hold the base change.
            first = max(0, i - k + 1)
            last = min(i + k, length)
            outside = found
            for j in range(first, last - k + 1):
                outside -= read.levels[j] >= SOLID
            for base in range(4):
                if base == own:
                    continue
                read.codes[i] = base
                solid_now = outside + find_levels(solid, k, read.codes, first, last, levels)
                if solid_now > best:
                    best, place, best_base = solid_now, i, base
            read.codes[i] = own
        if place < 0:
            break
        read.codes[place] = best_base
        found = find_levels(solid, k, read.codes, 0, length, read.levels)
        if found == kmers:
            break
    return found
