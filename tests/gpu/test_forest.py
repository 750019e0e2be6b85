"""The GPU decides with forests as the CPU does: random ones, and those of the package."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.correct.cpu_run import correct_on_cpu
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from tests.support.correct.forests import Forests
from tests.support.correct.gpu_cases import assert_equal, correct_with_tables
from tests.support.correct.random_reads import simulate

pytestmark = pytest.mark.gpu


def compare(reads: ReadSet, parameters: CorrectionParameters, coverage: float) -> int:
    """Correct on both; return the number of edits."""
    from ngsgpu.minhash.gpu import build_tables_on_gpu
    from ngsgpu.readset.gpu import DeviceReadSet

    expected = correct_on_cpu(reads, build_tables(reads, parameters.minhash), parameters, coverage)
    device_reads = DeviceReadSet.from_host(reads)
    tables = build_tables_on_gpu(device_reads, parameters.minhash)
    assert_equal(correct_with_tables(device_reads, tables, parameters, coverage), expected)
    return int(expected.edit_count.sum())


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_cpu(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    paired = rng.random() < 0.6
    sequences, qualities = simulate(rng, paired=paired, quality=rng.random() < 0.8)
    reads = ReadSet.from_sequences(
        sequences, qualities, paired=paired, quality_bits=rng.choice([8, 8, 2, 1, 0])
    )
    path = tmp_path / "model"
    Forests.random(rng).model.save(path)
    parameters = CorrectionParameters(
        minhash=MinhashParameters(kmer=rng.choice([12, 16, 20, 31]), hashes=rng.choice([4, 16, 48]))
    )
    coverage = rng.choice([2.5, 10.0, 30.0, 60.0])
    for model in (str(path), "default"):
        compare(reads, replace(parameters, model=model), coverage)


@pytest.mark.parametrize("length", [64, 65, 512, 513, 600])
def test_long_reads_equal_the_cpu(length: int, tmp_path: Path) -> None:
    """Votes on reads of more than 512 bases decide twice."""
    rng = random.Random(length)
    genome = "".join(rng.choices("ACGT", k=3 * length))
    complement = str.maketrans("ACGT", "TGCA")
    letters, qualities = [], []
    for _ in range(80):
        start = rng.randint(0, 2 * length)
        read = genome[start : start + length]
        read = "".join(rng.choice("ACGT") if rng.random() < 0.01 else base for base in read)
        letters.append(read if rng.random() < 0.5 else read[::-1].translate(complement))
        qualities.append("".join(chr(33 + rng.choice([2, 15, 25, 38])) for _ in read))
    reads = ReadSet.from_sequences(letters, qualities, paired=False)
    path = tmp_path / "model"
    Forests.random(rng).model.save(path)
    parameters = CorrectionParameters(minhash=MinhashParameters(hashes=16))
    edits = [
        compare(reads, replace(parameters, model=model), 20.0) for model in (str(path), "default")
    ]
    assert sum(edits) > 0
