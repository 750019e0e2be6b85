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
from ngsgpu.merge.likelihood import likeliest
from ngsgpu.merge.overlap import pack
from ngsgpu.merge.params import Rules
from ngsgpu.merge.qualities import Tables
from ngsgpu.merge.records import load, load_reversed, recalibrate, room_for

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
    batches: Sequence[tuple[Mates, Mates, int]], rules: Rules, tables: Tables
) -> NDArray[np.uint64]:
    """Bases that mates agree on, with those around them, on which they also agree.

    Args:
        batches: of pairs, and how many to look at.
        rules: of certain overlaps.
        tables: for them.

    Returns:
        uint64[n], the bases on both sides, in two bits each, and the one between them in the lowest
        two; at most ``_MOST_COLUMNS`` of the first pairs.
    """
    found = np.empty(_MOST_COLUMNS, dtype=np.uint64)
    count = 0
    for first, second, pairs in batches:
        longest = 1 + max(int(mate.seq_len[:pairs].max(initial=0)) for mate in (first, second))
        count = _collect(first, second, pairs, longest, rules, tables, found, count)
    return found[:count]


@njit(nogil=True, cache=True)
def _collect(
    mates1: Mates,
    mates2: Mates,
    pairs: int,
    longest: int,
    rules: Rules,
    tables: Tables,
    found: NDArray[np.uint64],
    count: int,
) -> int:
    """Add to ``found`` from ``count`` on; return its end."""
    first, second = room_for(longest), room_for(longest)
    scores = np.empty(3, dtype=np.int64)
    window = 2 * _FLANK + 1
    middle = np.uint64(2 * _FLANK)
    low = (np.uint64(1) << middle) - np.uint64(1)
    for i in range(pairs):
        length1, length2 = np.int64(mates1.seq_len[i]), np.int64(mates2.seq_len[i])
        load(mates1, i, rules.phred_offset, first)
        load_reversed(mates2, i, rules.phred_offset, second)
        known1 = pack(first.words, length1, first.planes)
        known2 = pack(second.words, length2, second.planes)
        recalibrate(first, length1, tables, 0, False)
        recalibrate(second, length2, tables, 1, True)
        known = known1 and known2
        code = likeliest(first, length1, second, length2, known, rules, tables, scores)
        if code < 0:
            continue
        shift = -(code >> 1) if code & 1 else code >> 1
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
