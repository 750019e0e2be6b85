"""The kernels decide and write as the oracle does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.merge import MergeParameters, RunOptions
from tests.support.io.records import Record, fastq
from tests.support.merge import oracle
from tests.support.merge.data import (
    merge_to_bytes,
    random_parameters,
    simulated_pairs,
    simulated_tandems,
    write_pairs,
)
from tests.support.merge.likelihood import learn_from
from tests.support.properties import examples


def expected(
    files: tuple[Path, Path],
    pairs: list[tuple[Record, Record]],
    parameters: MergeParameters,
    offset: int = 33,
) -> tuple[bytes, bytes, bytes]:
    learnt = None
    if parameters.overlap == "likelihood":
        learnt = learn_from(files[:1], files[1:], parameters, offset)
    result = oracle.merge(pairs, parameters, offset=offset, learnt=learnt)
    return fastq(result.merged), fastq(result.first), fastq(result.second)


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_oracle(tmp_path: Path, backend: str, seed: int) -> None:
    rng = random.Random(seed)
    offset = rng.choice([33, 33, 33, 64])
    pairs = simulated_pairs(
        seed,
        60,
        lengths=(rng.choice([20, 63, 64, 65, 100, 150]), rng.choice([20, 64, 100, 128, 150])),
        inserts=(1, 220),
        mixed=rng.random() < 0.5,
        ambiguous=rng.choice([0, 0.02, 0.2]),
        errors=rng.choice([0, 0.02, 0.1, 0.25]),
        outward=rng.choice([0, 0.4]),
        scores=rng.choice([(2, 41), (30, 32), (0, 3), (0, 62)]),
        offset=offset,
    )
    parameters = random_parameters(rng)
    files = write_pairs(tmp_path, pairs)
    found = merge_to_bytes(
        tmp_path,
        files,
        parameters,
        RunOptions(backend=backend),
        phred_offset=offset,
    )
    assert found == expected(files, pairs, parameters, offset)


def bases(most: int) -> st.SearchStrategy[str]:
    return st.text("ACGTN", max_size=most) | st.text("AC", max_size=most)


@examples(120)
@given(data=st.data())
def test_equals_the_oracle_on_any_reads(
    tmp_path_factory: pytest.TempPathFactory, backend: str, data: st.DataObject
) -> None:
    pairs = []
    for number in range(data.draw(st.integers(1, 5))):
        records = []
        for _ in range(2):
            letters = data.draw(bases(80))
            scores = data.draw(
                st.lists(st.integers(0, 45), min_size=len(letters), max_size=len(letters))
            )
            qualities = bytes(33 + score for score in scores)
            records.append(Record(b"%d" % number, letters.encode(), qualities))
        pairs.append((records[0], records[1]))
    parameters = random_parameters(random.Random(data.draw(st.integers(0, 1000))))
    folder = tmp_path_factory.mktemp("any")
    options = RunOptions(backend=backend)
    files = write_pairs(folder, pairs)
    found = merge_to_bytes(folder, files, parameters, options)
    assert found == expected(files, pairs, parameters)


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_oracle_on_tandem_repeats(tmp_path: Path, backend: str, seed: int) -> None:
    """Exact and diverged copies, so that several placements are no chance."""
    rng = random.Random(seed)
    pairs = simulated_tandems(rng, 150, divergence=rng.choice([0, 0.02, 0.1]))
    files = write_pairs(tmp_path, pairs)
    parameters = MergeParameters()
    found = merge_to_bytes(tmp_path, files, parameters, RunOptions(backend=backend))
    assert found == expected(files, pairs, parameters)
    assert 20 < found[0].count(b"\n") / 4 < 150


@pytest.mark.parametrize("length", [5_000, 16_385])
def test_long_reads(tmp_path: Path, backend: str, length: int) -> None:
    """Longer than what mismatch densities can be told apart by as numbers of 24 bits."""
    rng = random.Random(length)
    fragment = "".join(rng.choices("ACGT", k=length + 30))
    pairs = []
    for number in range(2):
        mates: list[Record] = []
        for strand in (fragment, fragment.translate(str.maketrans("ACGT", "TGCA"))[::-1]):
            called = "".join(rng.choice("ACGT") if rng.random() < 0.01 else b for b in strand)
            qualities = bytes(33 + rng.randint(2, 41) for _ in range(length))
            mates.append(Record(b"%d" % number, called[:length].encode(), qualities))
        pairs.append((mates[0], mates[1]))
    parameters = MergeParameters(overlap="flash", min_overlap=length - 31, max_overlap=length)
    options = RunOptions(backend=backend)
    files = write_pairs(tmp_path, pairs)
    found = merge_to_bytes(tmp_path, files, parameters, options)
    assert found == expected(files, pairs, parameters)
    assert len(found[0]) > 2 * length


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("pairs_per_task", "chunk"), [(1, 1 << 20), (7, 3_000), (10_000, 20_000)])
def test_threads_and_batches_decide_nothing(
    tmp_path: Path, threads: int, pairs_per_task: int, chunk: int
) -> None:
    pairs = simulated_pairs(3, 300, mixed=True, ambiguous=0.01)
    parameters = MergeParameters()
    options = RunOptions(threads=threads, units_per_task=pairs_per_task, chunk_bytes=chunk)
    files = write_pairs(tmp_path, pairs)
    found = merge_to_bytes(tmp_path, files, parameters, options)
    assert found == expected(files, pairs, parameters)
