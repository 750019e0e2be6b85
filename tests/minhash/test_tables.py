"""Signatures, sorting and buckets of the minhash tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import UsageError
from ngsgpu.minhash import MinhashParameters, MinhashTables, build_tables, cpu
from ngsgpu.minhash.params import MAX_ENTRIES
from ngsgpu.readset import ReadSet
from tests.support.minhash import oracle
from tests.support.minhash.reads import GENOME, make_reads, reads_with_much_in_common
from tests.support.minhash.slots import slot_of_key
from tests.support.properties import examples


def as_dicts(tables: MinhashTables) -> list[list[list[oracle.Entry]]]:
    """Buckets of each table in the order they are stored."""
    result = []
    for table, entries in enumerate(tables.entries):
        ids = tables.arrays.ids[table]
        buckets: list[list[oracle.Entry]] = []
        for entry in range(entries):
            if ids[entry] & cpu.BUCKET_START:
                buckets.append([])
            place = int(tables.arrays.positions[table, entry])
            read = int(ids[entry] & cpu.READ_MASK)
            buckets[-1].append(oracle.Entry(read, place >> 1, bool(place & 1)))
        assert ids[entries] & cpu.BUCKET_START, "walks end behind the last entry"
        assert len(buckets) == tables.buckets[table]
        result.append(buckets)
    return result


@given(
    reads_with_much_in_common,
    st.sampled_from([8, 9, 12, 20, 31, 32]),
    st.integers(1, 18),
    st.sampled_from([0, 1, 7, (1 << 32) - 1]),
    st.sampled_from([1, 2, 4]),
)
@examples(150)
def test_tables_equal_the_oracle(
    pieces: list[tuple[int, int, bool, int]], k: int, hashes: int, seed: int, threads: int
) -> None:
    letters = make_reads(pieces)
    parameters = MinhashParameters(kmer=k, hashes=hashes, seed=seed)
    built: list[int] = []
    tables = build_tables(
        ReadSet.from_sequences(letters), parameters, threads=threads, advance=built.append
    )
    assert sum(built) == hashes
    expected = oracle.make_tables(letters, k, hashes, seed)
    found = as_dicts(tables)
    # Buckets lie in the order of their keys, their reads in ascending order.
    assert found == [[table[key] for key in sorted(table)] for table in expected]
    for table, buckets in enumerate(found):
        entries = [entry.read for bucket in buckets for entry in bucket]
        for read, bases in enumerate(letters):
            signature = oracle.signature(bases, k, 256 * seed + table)
            if signature is not None:
                slot = slot_of_key(tables.arrays, table, np.uint64(signature[0]), read)
                assert slot == (entries.index(read) if read in entries else -1)


@given(st.integers(0, 1 << 30), st.sampled_from([0, 1, 4, 9]))
@examples(30)
def test_reads_find_themselves_in_buckets_of_any_size(seed: int, bits: int) -> None:
    """Also where a cell has several long ones."""
    random = np.random.default_rng(seed)
    sizes = random.choice([1, 2, 3, 63, 64, 65, 66, 130, 400], size=random.integers(1, 40))
    k, below = 10, 20 - bits
    distinct = np.sort(random.choice(1 << 20, len(sizes), replace=False)).astype(np.uint64)
    keys = np.repeat(distinct, sizes)
    reads = np.concatenate([[], *np.split(random.permutation(len(keys)), np.cumsum(sizes)[:-1])])
    order = np.lexsort((reads, keys))
    ids = reads[order].astype(np.uint32)
    entries, _, long_buckets = cpu.count_shared(keys)
    tables = cpu.TableArrays(
        np.zeros((1, len(keys) + 1), np.uint32), np.zeros((1, len(keys) + 1), np.uint8),
        np.zeros((1, (1 << bits) + 1), np.uint32), np.zeros((long_buckets, 2), np.uint32),
        np.array([0, long_buckets]), 0, below,
    )  # fmt: skip
    positions = np.zeros(len(keys), np.uint8)
    cpu.fill_table(
        keys, ids, positions, 0, below, 0, tables.ids[0], tables.positions[0],
        tables.cells[0, :-1], tables.long_buckets,
    )  # fmt: skip
    tables.ids[0, entries] = cpu.BUCKET_START
    tables.cells[0, -1] = entries
    assert k and long_buckets == (sizes > cpu.NEAR_ENTRIES).sum()
    for key, read in zip(keys, ids, strict=True):
        slot = slot_of_key(tables, 0, key, int(read))
        if sizes[np.searchsorted(distinct, key)] == 1:
            assert slot == -1
        else:
            assert tables.ids[0, slot] & cpu.READ_MASK == read


def test_key_is_the_low_part_of_the_smallest_hash() -> None:
    bases = GENOME[:50]
    for k in (8, 20, 32):
        for function in (0, 5, 300):
            hashes = [
                oracle.mix(oracle.number(oracle.canonical(bases[i : i + k])) + function)
                for i in range(51 - k)
            ]
            key, position, reverse_complemented = oracle.signature(bases, k, function) or (
                0,
                0,
                False,
            )
            assert key == min(hashes) & (4**k - 1)
            assert position == hashes.index(min(hashes))
            kmer = bases[position : position + k]
            assert reverse_complemented == (
                oracle.number(oracle.reverse_complement(kmer)) < oracle.number(kmer)
            )


@given(st.data(), st.integers(1, 64), st.integers(0, 3000))
@examples(60)
def test_radix_sort_is_a_stable_sort(data: st.DataObject, bits: int, count: int) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    few = data.draw(st.sampled_from([1, 3, 1 << 62]))
    keys = generator.integers(0, 1 << 63, count, dtype=np.uint64) % np.uint64(few)
    keys &= np.uint64((1 << bits) - 1)
    ids = generator.permutation(count).astype(np.uint32)
    arrays = keys.copy(), ids.copy(), np.empty_like(keys), np.empty_like(ids)
    swapped = cpu.sort_by_key(*arrays, bits)
    order = np.argsort(keys, kind="stable")
    assert np.array_equal(arrays[2 if swapped else 0], keys[order])
    assert np.array_equal(arrays[3 if swapped else 1], ids[order])


@given(st.lists(st.integers(0, 9), max_size=60).map(sorted))
@examples(60)
def test_reads_alone_in_a_bucket_are_left_out(keys: list[int]) -> None:
    count = len(keys)
    ids = np.arange(count, dtype=np.uint32)[::-1].copy()
    positions = (np.arange(count) * 3).astype(np.uint16)
    table_ids = np.zeros(count + 1, dtype=np.uint32)
    table_positions = np.zeros(count + 1, dtype=np.uint16)
    cells = np.zeros(10, dtype=np.uint32)
    entries, buckets, long_buckets = cpu.count_shared(np.array(keys, dtype=np.uint64))
    assert long_buckets == 0
    cpu.fill_table(
        np.array(keys, dtype=np.uint64), ids, positions, 0, 0, 0, table_ids, table_positions,
        cells, np.zeros((0, 2), dtype=np.uint32),
    )  # fmt: skip
    sizes = Counter(keys)
    kept = [int(read) for read, key in zip(ids, keys, strict=True) if sizes[key] > 1]
    assert (table_ids[:entries] & cpu.READ_MASK).tolist() == kept
    assert table_positions[:entries].tolist() == [3 * read for read in kept]
    assert buckets == sum(size > 1 for size in sizes.values())
    shared = [key for key in keys if sizes[key] > 1]
    assert cells.tolist() == [sum(key < cell for key in shared) for cell in range(10)]


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.integers(1, 30),
    st.integers(1, 30),
)
@examples(150)
def test_window_of_a_bucket(sizes: list[int], max_bucket_size: int, window: int) -> None:
    """Every entry of buckets of any size, in the middle of a table or at its ends."""
    window = min(window, max_bucket_size)
    ids = np.zeros(sum(sizes) + 1, dtype=np.uint32)
    starts = np.cumsum([0, *sizes])
    ids[starts] |= cpu.BUCKET_START
    for start, size in zip(starts, sizes, strict=False):
        bucket = [oracle.Entry(start + i, 0, False) for i in range(size)]
        for index in range(size):
            slot = np.uint32(start + index)
            begin, end, crowded = cpu.bucket_window(ids, slot, max_bucket_size, window)
            looked_at = oracle.looked_at(bucket, index, window)
            assert list(range(begin, end)) == [entry.read for entry in looked_at]
            assert crowded == (size > max_bucket_size)
            assert begin <= slot < end


def test_parameters() -> None:
    parameters = MinhashParameters()
    assert (parameters.kmer, parameters.k, parameters.hashes, parameters.tables) == (
        None,
        20,
        None,
        48,
    )
    crowds = {1: 10, 4: 10, 4.4: 11, 30: 75, 30.1: 75, 100: 250}
    for coverage, max_bucket_size in crowds.items():
        assert (
            parameters.max_bucket_size(coverage) == parameters.window(coverage) == max_bucket_size
        )
    assert parameters.max_bucket_size(1000) == 2500
    assert parameters.window(1000) == MAX_ENTRIES // 48
    assert MinhashParameters(seed=3).first_function == 768


def test_as_many_kmers_as_16_times_the_bases() -> None:
    lengths = {0: 16, 1: 16, 1 << 28: 16, (1 << 28) + 1: 17, 1 << 30: 17, (1 << 30) + 1: 18}
    lengths |= {1 << 34: 19, (1 << 34) + 1: 20, 1 << 50: 20}
    for bases, k in lengths.items():
        assert MinhashParameters().for_reads(1, bases).kmer == k
        assert k in (16, 20) or 4 ** (k - 1) < 16 * bases <= 4**k
    assert MinhashParameters(kmer=25).for_reads(1, 1, 1.0).kmer == 25


def test_fewer_tables_of_more_reads() -> None:
    tables = {0: 48, 178_956_970: 48, 178_956_971: 47, 304_000_000: 28, 536_870_912: 16}
    tables |= {914_700_000: 16, (1 << 31) - 1: 16}
    for reads, count in tables.items():
        assert MinhashParameters().for_number(reads).tables == count
        assert MinhashParameters().for_reads(reads, 100 * reads).hashes == count
        assert MinhashParameters(hashes=48).for_number(reads).tables == 48


def test_longest_kmers_for_repeats() -> None:
    assert MinhashParameters().for_reads(10, 1000, 0.04).kmer == 16
    assert MinhashParameters().for_reads(10, 1000, 0.041).kmer == 20


def test_longest_kmers_where_buckets_have_more_reads_than_are_looked_at() -> None:
    assert MinhashParameters().for_reads(10, 1000, coverage=341).kmer == 16
    assert MinhashParameters().for_reads(10, 1000, coverage=341.1).kmer == 20
    assert MinhashParameters(hashes=16).for_reads(10, 1000, coverage=1024).kmer == 16


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kmer": 7}, "`kmer` must be auto or from 8 to 32, not 7"),
        ({"kmer": 33}, "`kmer` must be auto or from 8 to 32, not 33"),
        ({"hashes": 0}, "`hashes` must be auto or from 1 to 255, not 0"),
        ({"hashes": 256}, "`hashes` must be auto or from 1 to 255, not 256"),
        ({"seed": -1}, "`seed` must be from 0 to 4,294,967,295, not -1"),
        ({"seed": 1 << 32}, "`seed` must be from 0 to 4,294,967,295, not 4294967296"),
    ],
)
def test_wrong_parameters(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        MinhashParameters(**wrong)
