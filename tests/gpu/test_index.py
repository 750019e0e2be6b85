"""Suffix arrays and indexes: the GPU makes the CPU's."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.collectives import Exchange
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.run.options import RunOptions
from ngsgpu.suffix import (
    FmIndex,
    QueryParameters,
    build_index,
    fm_index,
    gpu_team,
    is_index,
    is_suffix_array,
    query_files,
    suffix_array,
)
from ngsgpu.suffix.bucket import BucketPlan, fm_index_by_buckets
from ngsgpu.suffix.bwa import ENDINGS
from ngsgpu.suffix.gpu import is_suffix_array_on_gpu, suffix_array_on_gpu
from ngsgpu.suffix.query.gpu import is_index_on_gpu
from tests.support.crowd import crowd
from tests.support.suffix import oracle

DATA = Path(__file__).parents[1] / "data" / "bwa_index"
cupy = pytest.importorskip("cupy")
SIZES = [1, 2, 31, 32, 33, 64, 127, 128, 129, 1000, 5000]


def letters(rng: random.Random, size: int, kind: str, highest: int) -> list[int]:
    """A text: of random letters, of one letter, of repeats, or of a copy behind a run of 0."""
    text = [rng.randrange(highest) for _ in range(size)]
    if kind == "one":
        return [0] * size
    if kind == "repeats":
        unit = text[: rng.choice([1, 2, 5, 40, 70])]
        return (unit * size)[:size]
    if kind == "copies":
        return (text[: size // 2] + [0] * rng.choice([1, 30, 33, 70]) + text)[-size:]
    return text


@pytest.mark.parametrize("kind", ["random", "one", "repeats", "copies"])
@pytest.mark.parametrize("bases", [False, True])
def test_texts(kind: str, bases: bool) -> None:
    for size in SIZES:
        rng = random.Random(f"{size} {kind}")
        own = letters(rng, size, kind, 4 if bases else 256)
        for end in (0, 1, 40):
            own[size - min(end, size) :] = [0] * min(end, size)
            text = np.array(own, dtype=np.uint8)
            places = suffix_array_on_gpu(text, bases=bases)
            assert places.dtype == np.int32
            assert is_suffix_array(text, places)
            assert is_suffix_array_on_gpu(text, places)


def assert_same(found: FmIndex, wanted: FmIndex) -> None:
    assert (found.primary, len(found)) == (wanted.primary, len(wanted))
    for name in ("totals", "sample", "words"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), name


def bucket_plan(size: int, period: int, most: int) -> BucketPlan:
    return BucketPlan(doing="", allocations=(), budget=0, size=size, period=period, most=most)


def assert_index(text: np.ndarray, both: bool, most: int, period: int, gpus: int = 1) -> None:
    """An index of buckets of at most ``most`` is the CPU's."""
    full = np.concatenate([text, 3 - text[::-1]]) if both else text
    plan = bucket_plan(len(full), period, most)
    found = fm_index_by_buckets(text, both_strands=both, plan=plan, gpus=gpus)
    assert_same(found, fm_index(full, suffix_array(full)))


@settings(deadline=None, max_examples=150)
@given(
    unit=st.lists(st.integers(0, 3), min_size=1, max_size=90),
    size=st.sampled_from([1, 2, 31, 32, 33, 127, 128, 129, 640, 2000]),
    changes=st.lists(st.integers(0, 1999), max_size=6),
    end=st.sampled_from([0, 1, 16, 40]),
    both=st.booleans(),
    period=st.sampled_from([32, 64, 512]),
    share=st.sampled_from([1, 3, 12]),
)
def test_buckets(
    unit: list[int], size: int, changes: list[int], end: int, both: bool, period: int, share: int
) -> None:
    """Several buckets and repeats far longer than a period, some with changes, and A at the end."""
    text = np.array((unit * size)[:size], dtype=np.uint8)
    text[[at for at in changes if at < size]] ^= 1
    text[size - min(end, size) :] = 0
    assert_index(text, both, max(60, len(text) * (1 + both) // share), period)


@pytest.mark.parametrize("count", [2, 3])
def test_buckets_of_several_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    crowd(monkeypatch)
    unit = np.random.default_rng(4).integers(0, 4, 40_000).astype(np.uint8)
    text = np.concatenate([unit, unit[:30_000], unit[5:25_000]])
    assert_index(text, True, 9_000, 64, count)


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("most", [10, 1 << 31])
def test_suffix_arrays_of_several_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: int, most: int
) -> None:
    """Places of both sizes; texts with far copies, of few letters, of one, with zeros behind."""
    crowd(monkeypatch)
    monkeypatch.setattr(gpu_team, "MOST_LETTERS", most)
    exchange = Exchange(Team(gpus))
    rng = np.random.default_rng(gpus)
    unit = rng.integers(0, 256, 300_000).astype(np.uint8)
    bases = rng.integers(0, 4, 400_000).astype(np.uint8)
    for text in (
        np.concatenate([unit, unit[5:200_000], unit[:100]]),
        np.concatenate([bases, bases[1000:], bases[:7], np.zeros(99, np.uint8)]),
        np.zeros(5000, np.uint8),
        *(unit[:size] for size in (0, 1, 2, 5, 9)),
    ):
        found = gpu_team.sorted_by_team(text, exchange)
        assert found.dtype == (np.int32 if len(text) <= most else np.int64)
        assert np.array_equal(found, suffix_array(text))


def test_proofs() -> None:
    rng = np.random.default_rng(9)
    text = rng.integers(0, 4, 10_000).astype(np.uint8)
    index = fm_index_by_buckets(text)
    assert is_index_on_gpu(index, text)
    assert is_index(index, np.concatenate([text, 3 - text[::-1]]))
    for number in rng.integers(0, len(index.words), 20):
        words = index.words.copy()
        words[number] ^= np.uint32(1 << 5)
        assert not is_index_on_gpu(dataclasses.replace(index, words=words), text)
    for at in rng.integers(0, len(text), 20):
        other = text.copy()
        other[at] ^= 1
        assert not is_index_on_gpu(index, other)
    places = suffix_array_on_gpu(text)
    places[[5, 6]] = places[[6, 5]]
    assert not is_suffix_array_on_gpu(text, places)
    places[5] = places[6]
    assert not is_suffix_array_on_gpu(text, places)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("max_places", [0, 3, 10**6])
def test_matches(tmp_path: Path, whole: bool, max_places: int) -> None:
    rng = random.Random(7)
    unit = "".join(rng.choices("ACGT", k=3000))
    reference = unit + "".join(rng.choices("AC", k=500)) + unit[:1000]
    (tmp_path / "r.fa").write_text(f">a\n{reference[:2000]}\n>b x\n{reference[2000:]}\n")
    build_index(tmp_path / "r.fa", tmp_path / "i")
    with (tmp_path / "q.fa").open("w") as file:
        for number in range(500):
            begin = rng.randrange(len(reference) - 250)
            read = list(reference[begin : begin + rng.randrange(250)])
            for _ in range(rng.choice([0, 1, 4, 30]) if read else 0):
                read[rng.randrange(len(read))] = rng.choice("ACGTN")
            file.write(f">{number} c\n{''.join(read)}\n")
    parameters = QueryParameters(min_length=6, whole=whole, max_places=max_places)
    summaries = []
    for backend in ("cpu", "cuda"):
        options = RunOptions(backend=backend, threads=3, chunk_bytes=20_000)
        out = tmp_path / f"{backend}.paf"
        summaries.append(query_files(tmp_path / "i", [tmp_path / "q.fa"], out, parameters, options))
    counts = [(own.reads, own.with_matches, own.matches) for own in summaries]
    assert counts[0] == counts[1]
    assert [own.backend for own in summaries] == ["cpu", "cuda"]
    assert summaries[0].matches > 50
    assert (tmp_path / "cpu.paf").read_bytes() == (tmp_path / "cuda.paf").read_bytes()


def test_large_text() -> None:
    """Several blocks of threads, mutated copies."""
    rng = np.random.default_rng(5)
    unit = rng.integers(0, 4, 300_000).astype(np.uint8)
    copy = unit.copy()
    copy[rng.integers(0, len(copy), 30)] ^= 1
    text = np.concatenate([unit, copy, unit[:1000]])
    places = suffix_array_on_gpu(text, bases=True)
    assert is_suffix_array(text, places)
    assert np.array_equal(suffix_array_on_gpu(text), places)
    assert is_suffix_array_on_gpu(text, places)
    found = fm_index_by_buckets(text, both_strands=False)
    assert_same(found, fm_index(text, places, 4))
    plan = bucket_plan(len(text), 512, 100_000)
    assert_same(fm_index_by_buckets(text, both_strands=False, plan=plan), found)


def test_files(tmp_path: Path) -> None:
    options = RunOptions(backend="cuda", threads=2)
    build_index(DATA / "reference.fa", tmp_path / "own", options=options)
    for ending in ENDINGS:
        own = (tmp_path / f"own{ending}").read_bytes()
        assert own == (DATA / f"reference{ending}").read_bytes(), ending
    build_index(DATA / "reference.fa", tmp_path / "sa", "sa", options=options)
    text = np.load(tmp_path / "sa" / "text.npy").tobytes()
    assert np.load(tmp_path / "sa" / "places.npy").tolist() == oracle.suffix_array(text)


def test_memory_that_does_not_suffice() -> None:
    with pytest.raises(DeviceMemoryError, match="suffix array"):
        suffix_array_on_gpu(np.zeros(1 << 20, dtype=np.uint8), limit=1 << 20)
    with pytest.raises(DeviceMemoryError, match="both strands"):
        fm_index_by_buckets(np.zeros(1 << 20, dtype=np.uint8), limit=1 << 20)
