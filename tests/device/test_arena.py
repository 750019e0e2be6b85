"""Cutting one piece of memory into arrays."""

from __future__ import annotations

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.device.arena import Arena, Extents, persistent, room


@given(st.integers(0, 1 << 30), st.sampled_from([0, 1, 50, 400]))
def test_parts_never_overlap_and_free_ones_join(seed: int, size: int) -> None:
    random = Random(seed)
    extents = Extents(size)
    taken: dict[int, int] = {}
    peak = 0
    for _ in range(200):
        if taken and random.random() < 0.45:
            at = random.choice(list(taken))
            extents.release(at)
            del taken[at]
        else:
            wanted = random.randrange(1, 40)
            before = extents.largest
            found = extents.take(wanted, from_end=random.random() < 0.5)
            assert (found is None) == (wanted > before)
            if found is not None:
                taken[found] = wanted
        parts = sorted((at, at + length) for at, length in taken.items())
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(parts))
        edges = [0, *itertools.chain.from_iterable(parts), size]
        gaps = [end - begin for begin, end in zip(edges[::2], edges[1::2], strict=True)]
        assert extents.largest == max(gaps)
        assert extents.used == sum(taken.values())
        peak = max(peak, extents.used)
    assert extents.peak == peak
    for at in taken:
        extents.release(at)
    assert (extents.used, extents.largest) == (0, size)


def test_lasting_parts_lie_at_the_beginning() -> None:
    extents = Extents(100)
    assert extents.take(10, from_end=True) == 90
    assert extents.take(10, from_end=False) == 0
    assert extents.take(10, from_end=True) == 80
    extents.release(90)
    assert extents.take(5, from_end=True) == 95
    assert extents.take(71, from_end=False) is None
    assert extents.take(70, from_end=False) == 10


def test_without_an_arena() -> None:
    assert room() is None
    with persistent():
        assert room() is None


def test_an_array_may_outlive_what_the_collector_left_of_its_arena() -> None:
    """As in a cycle of a traceback, its frame, an arena and the arrays that were made in it."""
    for arena in (Arena.__new__(Arena), Arena.__new__(Arena)):  # emptied, or never made
        vars(arena).clear()
        arena._give_back(512, 0)
