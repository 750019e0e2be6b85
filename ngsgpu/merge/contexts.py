"""Errors that both mates have, from other fragments with the same sequence.

Mates agree on what went wrong before sequencing: polymerase errors, damage. Where many fragments of
the sample have the same bases on both sides of one, a base that next to none of them has is such an
error; bases that several have may be variants, and are not counted. Amplicons, small genomes and
deep sequencing tell; where no sequence is seen often enough nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import njit
from ngsgpu.merge.likelihood import second_start
from ngsgpu.merge.records import load, load_reversed, room_for

_FLANK = 12
"""Bases on both sides that tell a place."""
_MOST_COLUMNS = 400_000
_LEAST_FRAGMENTS = 20
"""That a place must be seen in."""
_LEAST_BASES = 20_000
"""In such places, for an error rate."""
_RARE = 0.005
"""Part of a place's fragments that have the same error, beyond a single one."""


def shared_errors(found: NDArray[np.uint64]) -> float | None:
    """The rate of errors that both mates have; None if too few places are seen often enough.

    Args:
        found: uint64[n], places and bases as ``contexts`` returns them.
    """
    own, counts = np.unique(found, return_counts=True)
    places, first = np.unique(own >> np.uint64(2), return_index=True)
    if len(places) == 0:
        return None
    totals = np.add.reduceat(counts, first)
    most = np.maximum.reduceat(counts, first)
    rare = np.where(
        counts <= np.repeat(np.maximum(1, _RARE * totals), _sizes(first, own)), counts, 0
    )
    errors = np.add.reduceat(rare, first)
    often = (totals >= _LEAST_FRAGMENTS) & (most > totals // 2)
    bases = int(totals[often].sum())
    if bases < _LEAST_BASES:
        return None
    return float((errors[often].sum() + 1) / (bases + 1))


def _sizes(first: NDArray[np.int64], own: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Sizes of groups by where they begin."""
    return np.diff(np.append(first, len(own)))


def contexts(
    batches: Sequence[tuple[Mates, Mates, int]], codes: Sequence[NDArray[np.int64]]
) -> NDArray[np.uint64]:
    """Bases that mates agree on, with those around them, on which they also agree.

    Args:
        batches: of pairs, and how many to look at.
        codes: of each batch, where its mates overlap, as ``likeliest`` returns it.

    Returns:
        uint64[n], the bases on both sides, in two bits each, and the one between them in the lowest
        two; at most ``_MOST_COLUMNS`` of the first pairs.
    """
    found = np.empty(_MOST_COLUMNS, dtype=np.uint64)
    count = 0
    for (first, second, pairs), own in zip(batches, codes, strict=True):
        if pairs:
            longest = 1 + max(int(mate.seq_len[:pairs].max()) for mate in (first, second))
            count = _collect(first, second, own, longest, found, count)
    return found[:count]


@njit(nogil=True, cache=True)
def _collect(
    mates1: Mates,
    mates2: Mates,
    codes: NDArray[np.int64],
    longest: int,
    found: NDArray[np.uint64],
    count: int,
) -> int:
    """Add to ``found`` from ``count`` on; return its end."""
    first, second = room_for(longest), room_for(longest)
    window = 2 * _FLANK + 1
    middle = np.uint64(2 * _FLANK)
    low = (np.uint64(1) << middle) - np.uint64(1)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        shift = second_start(codes[i])
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        load(mates1, i, 0, first)  # whatever the offset of qualities is: only bases count
        load_reversed(mates2, i, 0, second)
        bases, run = np.uint64(0), 0
        for k in range(max(0, shift), min(length1, shift + length2)):
            letter = first.letters[k]
            if letter != second.letters[k - shift] or letter == 78:
                run = 0
                continue
            bases = (bases << np.uint64(2)) | np.uint64(((letter >> 1) & 3) ^ ((letter >> 2) & 1))
            run += 1
            if run >= window and count < len(found):
                right = bases & low
                base = (bases >> middle) & np.uint64(3)
                left = (bases >> (middle + np.uint64(2))) & low
                found[count] = (((left << middle) | right) << np.uint64(2)) | base
                count += 1
    return count
