"""Work on a stream of items by threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.pool import Shared, map_ahead, parts_within, working


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_parts_are_as_large_as_the_limit_lets_them_be(sizes: list[int], most: int) -> None:
    parts = list(parts_within(np.cumsum(sizes, dtype=np.int64), most))
    assert [i for begin, end in parts for i in range(begin, end)] == list(range(len(sizes)))
    for begin, end in parts:
        assert end == begin + 1 or sum(sizes[begin:end]) <= most
        assert end == len(sizes) or sum(sizes[begin : end + 1]) > most


def test_results_come_in_order_and_few_are_under_way():
    lock, under_way, most = threading.Lock(), 0, 0

    def items() -> Iterator[int]:
        nonlocal under_way, most
        for i in range(100):
            with lock:
                under_way += 1
                most = max(most, under_way)
            yield i

    def work(i: int) -> int:
        time.sleep(0.002 * (i % 3))
        return i * i

    found = []
    with ThreadPoolExecutor(3) as pool:
        for result in map_ahead(pool, work, items(), 5):
            found.append(result)
            with lock:
                under_way -= 1
    assert found == [i * i for i in range(100)]
    assert most <= 5


def test_results_as_they_are_done():
    first = threading.Event()

    def work(i: int) -> int:
        if i == 0:
            assert first.wait(30)
        return i

    found = []
    with ThreadPoolExecutor(2) as pool:
        for result in map_ahead(pool, work, range(10), 4, in_order=False):
            found.append(result)
            first.set()
    assert found[0] != 0
    assert sorted(found) == list(range(10))


def test_a_failure_cancels_what_waits():
    done = []

    def work(i: int) -> None:
        if i == 0:
            time.sleep(0.05)
            raise ValueError("no")
        time.sleep(0.05)
        done.append(i)

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="no"):
        list(map_ahead(pool, work, range(100), 50))
    assert len(done) < 10


def test_what_is_shared_comes_back_after_a_failure():
    spaces = Shared([1, 2])

    def work(i: int) -> int:
        with spaces.borrowed() as space:
            if i % 3 == 0:
                raise MemoryError
            return space

    for _ in range(5):
        with ThreadPoolExecutor(4) as pool, pytest.raises(MemoryError):
            list(map_ahead(pool, work, range(20), 8))


@pytest.mark.parametrize("fails", ["task", "block", "items"])
def test_a_failure_reaches_the_caller_and_stops_the_others(fails):
    """Also one of the block, in which results are taken; no thread works after the block."""
    begun: list[int] = []
    running = 0
    lock = threading.Lock()

    def work(item: int) -> int:
        nonlocal running
        with lock:
            begun.append(item)
            running += 1
        time.sleep(0.01)
        with lock:
            running -= 1
        if fails == "task" and item == 3:
            raise ValueError(fails)
        return item

    def items():
        for item in range(1000):
            if fails == "items" and item == 3:
                raise ValueError(fails)
            yield item

    with pytest.raises(ValueError, match=fails), working(2, work, items()) as results:
        for result in results:
            if fails == "block" and result == 3:
                raise ValueError(fails)
    assert running == 0
    assert len(begun) < 20
