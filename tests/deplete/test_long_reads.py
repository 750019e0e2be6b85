"""Reads that are so long that they share k-mers with a large host by chance."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from ngsgpu.chance import at_least
from ngsgpu.deplete import DepletionParameters, IndexParameters
from ngsgpu.deplete.params import NEVER
from tests.support.backends import seeds
from tests.support.commands import Commands
from tests.support.deplete.world import World, depleted, index_of, read_from, texts
from tests.support.io.records import Record, write

HUMAN = 670_000_000
"""K-mers in the index of a human genome."""


@pytest.mark.parametrize("kmers", [1_000_000, HUMAN, 4_000_000_000])
@pytest.mark.parametrize("share", [0, 0.01])
def test_kmers_that_chance_explains_are_not_enough(kmers: int, share: float) -> None:
    index, depletion = IndexParameters(), DepletionParameters(min_share=share)
    bounds = depletion.bounds(index, kmers)
    longest = [bases for bases in bounds.longest if bases < NEVER]
    assert longest == sorted(longest)
    # A k-mer of the sampled ones of all 24-mers, of which a k-mer and its complement are one.
    each = 2 * kmers / 4**24 + 8 / 2**34
    for more, bases in enumerate(longest):
        mean = bases * each
        others = sum(mean**i * math.exp(-mean) / math.factorial(i) for i in range(2 + more))
        assert 1 - others < 1.0001e-5
        assert at_least(2 + more, (bases + 1) * each) > 1e-5
        assert share * bases < 36 + 24 * (more + 1)
    assert (len(longest) == 0) == (share > 0 and kmers == 1_000_000)
    # Pairs of 2 x 250 bases are decided as ever.
    assert kmers > HUMAN or not longest or longest[0] > 600


def test_bases_that_are_stated_hold_for_all_reads() -> None:
    bounds = DepletionParameters(min_bases=30).bounds(IndexParameters(), HUMAN)
    assert bounds.to_json() == {"least": 30, "most": 30, "millionths": 10_000, "short_bases": 0}


@seeds(cpu=3, cuda=10)
def test_random_reads(
    tmp_path: Path, backend: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host of which random sequence has a k-mer in each thousand bases, or in each ten."""
    rng = random.Random(seed)
    rate = rng.choice([0.001, 0.01, 0.1])
    monkeypatch.setattr(IndexParameters, "expected_by_chance", lambda *_: rate)
    world = World.of(seed, 0, paired=False)
    for number in range(60):
        other = "".join(rng.choices("ACGT", k=rng.choice([0, 200, 1000])))
        own = read_from(rng, rng.choice(world.host), rng.choice([24, 40, 60, 90, 300]), 0)
        bases = other.encode() + own + other.encode()
        world.units.append((Record(b"r%d" % number, bases, b"F" * len(bases)),))
    depletion = DepletionParameters(min_share=0)
    index = index_of(tmp_path, world, IndexParameters())
    kept = world.kept(IndexParameters(), depletion)
    assert 0 < len(kept) < 60
    found = depleted(backend, tmp_path, index, texts(world.units, interleaved=False), depletion)
    assert found == texts(kept, interleaved=False)


def test_statistics_tell_them(
    tmp_path: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.of(1, 3, paired=False)
    index = index_of(tmp_path, world, IndexParameters())
    reads = write(tmp_path / "r.fq", texts(world.units, interleaved=False)[0])
    found = []
    for rate in (0.0, 1e-4):
        monkeypatch.setattr(IndexParameters, "expected_by_chance", lambda *_, own=rate: own)
        stats = tmp_path / "s.json"
        done = ngsgpu("deplete", "-d", index, "-i", reads, "-o", tmp_path / "o.fq", "--stats",
                      stats, "--backend", "cpu", "-q")  # fmt: skip
        assert done.status == 0, done.err
        found.append(json.loads(stats.read_text())["bounds"].get("longest"))
    assert found == [None, [44, 395, 1276, 2725, 4697, 7130, 9965, 13150]]
