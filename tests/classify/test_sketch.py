"""Windows, sketches and the index, against plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.database.cpu_build import Unpacked, sketch_batches
from ngsgpu.classify.index import index as indexes
from ngsgpu.classify.index.cpu import build_index
from ngsgpu.classify.index.index import (
    Limits,
    Pairs,
    WindowTaxa,
    find_key,
    keys_of_locations,
    removed_keys,
)
from ngsgpu.classify.params import KEEP_ALL, SketchParameters
from ngsgpu.classify.query.cpu import max_keys
from ngsgpu.classify.sketch.cpu import sketch_pieces, unpack_bases, windows_of
from ngsgpu.classify.sketch.references import assign_partitions, unpack_batch, windows_of_lengths
from ngsgpu.errors import UsageError
from ngsgpu.io.text.reader import read_batches
from tests.support.classify import oracle
from tests.support.properties import examples

parameters = st.builds(
    lambda kmer, sketch, more, stride, smer: SketchParameters(
        kmer, sketch, kmer + more, min(stride, kmer + more), smer=min(smer, kmer - 1)
    ),
    st.integers(4, 16),
    st.none() | st.integers(1, 20),
    st.integers(0, 40),
    st.integers(1, 60),
    st.integers(2, 8),
)


def keys_of(sequence: str, own: SketchParameters) -> list[tuple[int, int]]:
    data = np.frombuffer(sequence.encode(), dtype=np.uint8)
    codes = np.empty(len(data), dtype=np.uint8)
    end = unpack_bases(data, 0, len(data), codes, 0)
    room = len(data) + max_keys(np.array([end], dtype=np.int32), own.rules)
    keys, windows = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    start = np.empty(2, dtype=np.int64)
    one, last = np.zeros(1, dtype=np.int64), np.array([windows_of(end, own.rules)])
    sketch_pieces(codes, one, one + end, one, last, own.rules, keys, windows, start)
    count = int(start[1])
    return list(zip(windows[:count].tolist(), keys[:count].tolist(), strict=True))


def expected_keys(sequence: str, own: SketchParameters) -> list[tuple[int, int]]:
    return [
        (number, oracle.hash32(feature))
        for number, window in enumerate(oracle.windows(sequence, own))
        for feature in oracle.sketch(window, own)
    ]


def turned(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGTacgt", "TGCAtgca"))


@given(st.text("ACGTacgtNRU", max_size=300), parameters)
@examples(150)
def test_features_are_those_of_the_oracle(sequence: str, own: SketchParameters):
    assert keys_of(sequence, own) == expected_keys(sequence, own)


@given(st.text("ACGT", min_size=1, max_size=400), parameters)
@examples(100)
def test_windows_are_counted_alike(sequence: str, own: SketchParameters):
    count = len(oracle.windows(sequence, own))
    assert own.windows(len(sequence)) == count
    assert windows_of(len(sequence), own.rules) == count
    assert windows_of_lengths(np.array([len(sequence)]), own).tolist() == [count]


@given(st.text("ACGTN", max_size=200), st.integers(5, 16), st.integers(2, 8))
@examples(50)
def test_both_strands_have_the_same_syncmers(sequence: str, kmer: int, smer: int):
    own = SketchParameters(kmer, stride=1000, smer=min(smer, kmer - 1))
    assert set(keys_of(sequence, own)) == set(keys_of(turned(sequence), own))


def test_repeats_of_few_bases_have_no_syncmers():
    own = SketchParameters()
    for unit in ("A", "AC", "ACGTTGCAAC"):
        assert keys_of(unit * 20, own) == []


def test_keys_repeat_only_in_further_batches():
    own = SketchParameters(stride=5000)
    piece = "".join(random.Random(3).choices("ACGT", k=800))
    once = {key for _, key in keys_of(piece, own)}
    assert len(once) == len(keys_of(piece, own)) > 100
    keys = [key for _, key in keys_of(piece * 4, own)]
    assert len(once) < len(keys) < 4 * len(once)


def test_line_ends_are_left_out():
    own = SketchParameters(8, 4, 20, 13)
    sequence = "ACGTTGCATGCAACGGTTAACCATGCAAGT"
    assert keys_of(sequence[:11] + "\r\n" + sequence[11:] + "\n", own) == keys_of(sequence, own)


@pytest.mark.parametrize("windows_per_task", [1, 3, 8192])
@pytest.mark.parametrize("threads", [1, 3])
def test_sketching_files_does_not_depend_on_tasks(world: Any, windows_per_task: int, threads: int):
    own = world.oracle.sketch
    pairs = []
    first = 0
    for path in world.references:
        batches = []
        for batch in read_batches(path):
            target = np.arange(first, first + len(batch))
            batches.append(Unpacked(*unpack_batch(batch), target))
            first += len(batch)
        pairs += sketch_batches(batches, own, threads=threads, windows_per_task=windows_per_task)
    found = [
        (int(target), int(window), int(key))
        for chunk in pairs
        for piece, target in enumerate(chunk.target)
        for window, key in zip(
            chunk.windows[chunk.start[piece] : chunk.start[piece + 1]],
            chunk.keys[chunk.start[piece] : chunk.start[piece + 1]],
            strict=True,
        )
    ]
    assert found == [
        (target, *pair)
        for target, sequence in enumerate(world.sequences)
        for pair in expected_keys(sequence, own)
    ]


def as_pairs(pairs: list[tuple[int, int]], cut: int) -> list[Pairs]:
    """Pairs in chunks, all of one target."""
    chunks = [pairs[at : at + cut] for at in range(0, len(pairs), cut)]
    return [
        Pairs(
            np.array([key for key, _ in chunk], dtype=np.uint32),
            np.array([window for _, window in chunk], dtype=np.uint32),
            np.array([0, len(chunk)], dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        for chunk in chunks
    ]


def look_up_all(index: indexes.Index, keys: list[int]) -> dict[int, list[int]]:
    found = {}
    for key in keys:
        start, count = find_key(index.directory, index.entries, index.bits, np.uint32(key))
        found[key] = index.locations[start : start + count].tolist()
    return found


key_values = st.one_of(
    st.integers(0, 40), st.integers(0, (1 << 32) - 1), st.integers((1 << 32) - 9, (1 << 32) - 1)
)


@given(
    st.lists(key_values, max_size=60),
    st.integers(1, 4),
    st.booleans(),
    st.integers(1, 70),
    st.integers(1, 3),
)
@examples(120)
def test_index_holds_the_first_locations_of_each_key(
    keys: list[int], most: int, remove: bool, cut: int, threads: int
):
    pairs = [(key, window) for window, key in enumerate(keys)]
    expected: dict[int, list[int]] = {}
    for key, window in pairs:
        expected.setdefault(key, []).append(window)
    for key, own in expected.items():
        expected[key] = [] if remove and len(own) > most else own[:most]
    chunks = as_pairs(pairs, cut)
    index = build_index(
        chunks,
        [np.zeros(1, dtype=np.int64)] * len(chunks),
        Limits(most, int(remove), 0),
        threads=threads,
    )
    absent = [key ^ 1 for key in keys if key ^ 1 not in expected]
    assert look_up_all(index, [*expected, *absent]) == expected | {key_0: [] for key_0 in absent}
    assert index.locations.tolist() == [own for key in sorted(expected) for own in expected[key]]
    assert keys_of_locations(index).tolist() == [
        key for key in sorted(expected) for _ in expected[key]
    ]
    assert removed_keys(index).tolist() == [key for key in sorted(expected) if not expected[key]]
    assert len(index.entries) == len(expected)


def test_index_takes_keys_with_very_many_locations():
    many = 2 * 65535 + 7
    keys = np.full(many + 1, 1 << 20, dtype=np.uint32)
    keys[-1] += 1
    windows = np.arange(many + 1, dtype=np.uint32)
    one = np.zeros(1, dtype=np.int64)
    chunk = Pairs(keys, windows, np.array([0, many + 1]), one)
    index = build_index([chunk], [one], Limits(KEEP_ALL, 0, 0))
    found = look_up_all(index, [1 << 20, (1 << 20) + 1])
    assert found == {1 << 20: list(range(many)), (1 << 20) + 1: [many]}
    assert len(index.entries) == 4


def test_index_drops_keys_of_many_taxa():
    # Windows 0-1 are of taxon 5, 2-3 of 6, 4-5 of none.
    taxa = WindowTaxa(np.array([0, 2, 4, 6], dtype=np.uint32), np.array([5, 6, -1], dtype=np.int32))
    pairs = [(7, 0), (7, 1), (8, 1), (8, 2), (9, 3), (9, 4), (9, 5)]
    one = np.zeros(1, dtype=np.int64)
    index = build_index(as_pairs(pairs, 100), [one], Limits(254, 0, 1), taxa=taxa)
    assert look_up_all(index, [7, 8, 9]) == {7: [0, 1], 8: [], 9: [3, 4, 5]}


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 6)), min_size=1, max_size=30),
    st.integers(1, 8),
)
@examples(100)
def test_targets_are_dealt_out_evenly(files: list[tuple[int, int]], partitions: int):
    windows = np.array([size for size, count in files for _ in range(count)], dtype=np.int64)
    file = [number for number, (_, count) in enumerate(files) for _ in range(count)]
    if len(windows) < partitions:
        with pytest.raises(UsageError, match="cannot fill"):
            assign_partitions(windows, file, partitions)
        return
    dealt = assign_partitions(windows, file, partitions)
    loads = np.bincount(dealt, weights=windows, minlength=partitions)
    largest_piece = max(int(windows.max()), int(windows.sum()) // (8 * partitions))
    assert loads.max() - loads.min() <= max(largest_piece, len(windows))
    assert set(dealt.tolist()) == set(range(partitions))
