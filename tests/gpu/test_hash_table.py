"""The multi-bucket hash table holds what a dictionary of lists does, whatever its load."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.errors import DeviceError
from ngsgpu.hashtable.gpu import BUCKETS, HashTable, groups_for, slots_taken, table_bytes

LAST_KEY = (1 << 32) - 1


def on_device(pairs: Sequence[int] | NDArray[np.uint64]) -> Any:
    import cupy

    return cupy.asarray(np.array(pairs, dtype=np.uint64))


def filled(batches: Sequence[Sequence[int]], slots: int, bucket: int, most: int) -> HashTable:
    table = HashTable(slots, bucket, most)
    for batch in batches:
        pairs = on_device(batch)
        radix_sort(pairs)
        table.insert(pairs)
    return table


def held(table: HashTable, prefix: int = 0, bits: int = 0) -> list[int]:
    pairs = sorted(table.retrieve(prefix, bits).get().tolist())
    assert table.count(prefix, bits) == len(pairs)
    return pairs


def first_of_each_key(batches: Sequence[Sequence[int]], most: int) -> dict[int, list[int]]:
    """What is to be held, by a dictionary."""
    lists: dict[int, list[int]] = defaultdict(list)
    for word in (word for batch in batches for word in sorted(batch)):
        if len(lists[word >> 32]) < most:
            lists[word >> 32].append(word)
    return lists


def made_up(
    source: random.Random, keys: int, locations: int, batches: int, heavy: float
) -> list[list[int]]:
    """Batches of words; some keys have a large share of the locations, ``heavy``."""
    some = [source.randrange(LAST_KEY) for _ in range(keys)]
    if source.random() < 0.5:  # close neighbours
        some = list(range(some[0] % 1000, some[0] % 1000 + keys))
    few = some[: max(1, keys // 20)]
    pairs = [
        (source.choice(few if source.random() < heavy else some) << 32) | window
        for window in range(locations)
    ]
    bounds = sorted(source.randrange(locations + 1) for _ in range(batches - 1))
    return [pairs[begin:end] for begin, end in zip([0, *bounds], [*bounds, locations], strict=True)]


def slots_needed(lists: dict[int, list[int]], bucket: int) -> int:
    return sum(-(-len(pairs) // bucket) for pairs in lists.values())


@pytest.mark.parametrize("seed", range(24))
def test_holds_the_first_locations_of_each_key(seed: int):
    """Random multisets, loads up to 0.95, buckets of every size."""
    source = random.Random(seed)
    batches = made_up(
        source,
        source.choice([1, 7, 300, 3000]),
        source.choice([1, 40, 5000]),
        source.choice([1, 2, 9]),
        source.choice([0.0, 0.3, 1.0]),
    )
    most = source.choice([1, 2, 3, 9, 254, 1 << 16])
    expected = first_of_each_key(batches, most)
    pairs = sorted(word for own in expected.values() for word in own)
    for bucket in BUCKETS:
        needed = slots_needed(expected, bucket)
        table = filled(batches, int(needed / source.uniform(0.3, 0.95)), bucket, most)
        used, spilled = table.used()
        assert spilled == 0 or table.slots < 64
        assert used == needed or spilled > 0
        assert held(table) == pairs
        bits = source.choice([1, 3, 10])
        number = source.choice([0, (1 << bits) - 1, pairs[0] >> (64 - bits)])
        assert held(table, number, bits) == [
            word for word in pairs if word >> (64 - bits) == number
        ]
        everything = on_device(sorted(word for batch in batches for word in batch))
        assert slots_taken(everything, most)[BUCKETS.index(bucket)] == needed


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_table_that_is_nearly_full_spills(bucket: int):
    """Words without a slot are kept beside the table, as far as there is room."""
    source = random.Random(bucket)
    batches = made_up(source, 4000, 4000, 5, 0.0)
    lists = first_of_each_key(batches, 254)
    slots = groups_for(slots_needed(lists, bucket) - 20) * 8
    table = filled(batches, slots, bucket, 254)
    if not table.is_full:
        assert held(table) == sorted(word for own in lists.values() for word in own)
    assert table.used()[0] <= table.slots == slots


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_full_table_says_so(bucket: int):
    source = random.Random(bucket)
    table = filled(made_up(source, 5000, 5000, 3, 0.0), 100, bucket, 254)
    assert table.is_full
    with pytest.raises(DeviceError, match="full"):
        table.retrieve()


def test_the_key_that_marks_free_slots_has_locations_too():
    batches = [[LAST_KEY << 32 | window for window in range(5)], [5, LAST_KEY << 32 | 7]]
    for bucket in BUCKETS:
        table = filled(batches, 500, bucket, 254)
        assert held(table) == sorted([*batches[0], *batches[1]])
        assert held(table, 1, 1) == sorted([*batches[0], batches[1][1]])


def test_empty_batches_and_tables():
    for bucket in BUCKETS:
        table = filled([[], []], 0, bucket, 254)
        assert held(table) == [] and table.used() == (0, 0)
        assert table.nbytes == table_bytes(table.slots, bucket)
    assert slots_taken(on_device([]), 254).tolist() == [0] * 4


def test_one_key_with_very_many_locations():
    pairs = [(12345 << 32) | window for window in range(30_000)]
    batches = [pairs[:1], pairs[1:20_000], pairs[20_000:]]
    for bucket in (4, 8):
        assert held(filled(batches, 9000, bucket, 40_000)) == pairs
        assert held(filled(batches, 9000, bucket, 20_001)) == pairs[:20_001]


def test_slots_beyond_what_32_bits_number():
    """Keys of all parts of a table of more than 2^32 slots; needs some 46 GB."""
    import cupy

    slots = 5 << 30
    pool = cupy.get_default_memory_pool()
    free = cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    if table_bytes(slots, 1) > 0.9 * free:
        pytest.skip(f"a table of {slots:,} slots does not fit into {free:,} bytes")
    pool.free_all_blocks()
    source = random.Random(6)
    # Of a fifth of the keys the groups lie beyond; none has the key that marks free slots.
    pairs = sorted({source.randrange(LAST_KEY << 32) for _ in range(20_000)})
    try:
        table = filled([pairs[::2], pairs[1::2]], slots, 1, 254)
    except cupy.cuda.memory.OutOfMemoryError:
        pytest.skip("another process has taken the memory meanwhile")
    assert table.used() == (len(pairs), 0)
    assert held(table) == pairs
    beyond = int(cupy.count_nonzero(table._keys[1 << 32 :] != cupy.uint32(LAST_KEY)))
    assert 0.15 * len(pairs) < beyond < 0.25 * len(pairs)
    del table
    pool.free_all_blocks()
