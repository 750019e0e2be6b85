"""Equal sequence has equal hits, wherever it begins in a reference, repeats and errors included."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.params import DatabaseParameters, QueryParameters, SketchParameters
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import NO_MATES, Mates, Queries
from tests.support.classify import oracle

SHARED = 3000
INSERT = 480


def bases(source: random.Random, count: int) -> str:
    return "".join(source.choices("ACGT", k=count))


def turned(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGTN", "TGCAN"))


def misread(source: random.Random, read: str, rate: float) -> str:
    return "".join(source.choice("ACGTN") if source.random() < rate else base for base in read)


def mates_of(reads: list[str]) -> Mates:
    length = np.array([len(read) for read in reads], dtype=np.int32)
    end = np.cumsum(length, dtype=np.int64)
    return Mates(np.frombuffer("".join(reads).encode(), dtype=np.uint8), end - length, end, length)


@pytest.mark.parametrize("fraction", [1, 0.25])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_hits_are_equal_at_every_phase(
    tmp_path: Path, seed: int, paired: bool, fraction: float
) -> None:
    source = random.Random(seed)
    shared = bases(source, SHARED - 800) + bases(source, 37) * 10 + bases(source, 150) * 2
    shared += bases(source, SHARED - len(shared))
    references = [
        bases(source, source.randrange(400)) + own + bases(source, source.randrange(400))
        for own in [shared, turned(shared)] * 6
    ]
    path = tmp_path / "refs.fa"
    path.write_text("".join(f">s{i}\n{text}\n" for i, text in enumerate(references)))
    sketch = SketchParameters(fraction=fraction)
    database = build_database([path], None, parameters=DatabaseParameters(sketch))
    engine = Engine(database, QueryParameters(candidates=len(references)))
    reads: list[list[str]] = []
    for number in range(120):
        length = source.choice([50, 75, 100, 151, 240])
        insert = source.randrange(length, INSERT) if paired else length
        begin = source.randrange(SHARED - insert + 1)
        fragment = shared[begin : begin + insert]
        mates = [fragment[:length], turned(fragment)[:length]] if paired else [fragment]
        reads.append([misread(source, mate, 0.02 * (number % 2)) for mate in mates])
    second = mates_of([read[1] for read in reads]) if paired else NO_MATES
    names = np.zeros(len(reads), dtype=np.int64)
    found = engine.find_candidates(
        Queries(mates_of([read[0] for read in reads]), second, names, names)
    )
    hits = found.candidates.hits
    known = set(oracle.sketch(shared, sketch))
    for number, mates in enumerate(reads):
        features = {each for mate in mates for each in oracle.sketch(mate, sketch)}
        assert found.features[number] == len(features)
        assert hits[number].tolist() == [len(features & known)] * len(references)
