"""Suffix arrays and indexes: the GPU makes the CPU's."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import DeviceMemoryError
from ngsgpu.run.options import RunOptions
from ngsgpu.suffix import build_index, fm_index, is_suffix_array
from ngsgpu.suffix.bwa import ENDINGS
from ngsgpu.suffix.gpu import fm_index_on_gpu, suffix_array_on_gpu
from tests.support.suffix import oracle

DATA = Path(__file__).parents[1] / "data" / "bwa_index"
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
            if not bases:
                continue
            found, wanted = fm_index_on_gpu(text), fm_index(text, places)
            assert (found.primary, len(found)) == (wanted.primary, len(wanted))
            for name in ("totals", "words", "sample"):
                one, other = getattr(found, name), getattr(wanted, name)
                assert one.dtype == other.dtype
                assert np.array_equal(one, other), name


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
    assert np.array_equal(fm_index_on_gpu(text).words, fm_index(text, places, 4).words)


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
