"""The GPU corrects to the same bytes as the CPU, on random configurations."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.correct.cpu_run import correct_on_cpu
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from tests.support.correct.gpu_cases import assert_tables_equal, correct_with_tables
from tests.support.correct.random_reads import simulate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(30))
def test_equals_the_cpu(seed: int) -> None:
    from ngsgpu.minhash.gpu import build_tables_on_gpu
    from ngsgpu.readset.gpu import DeviceReadSet

    rng = random.Random(seed)
    paired = rng.random() < 0.6
    sequences, qualities = simulate(rng, paired=paired, quality=rng.random() < 0.8)
    reads = ReadSet.from_sequences(
        sequences, qualities, paired=paired, quality_bits=rng.choice([8, 8, 2, 1, 0])
    )
    parameters = CorrectionParameters(
        minhash=MinhashParameters(
            kmer=rng.choice([12, 16, 20, 20, 31, 32]),
            hashes=rng.choice([4, 16, 48, 48, 60]),
            seed=rng.choice([0, 0, 7]),
        ),
        min_overlap=rng.choice([20, 30]),
    )
    coverage = rng.choice([2.5, 10.0, 30.0, 60.0, 200.0])
    tables = build_tables(reads, parameters.minhash)
    expected = correct_on_cpu(reads, tables, parameters, coverage)

    device_reads = DeviceReadSet.from_host(reads)
    device_tables = build_tables_on_gpu(device_reads, parameters.minhash)
    assert_tables_equal(device_reads, device_tables, reads, tables)
    found = correct_with_tables(device_reads, device_tables, parameters, coverage)
    for field in fields(expected):
        if field.name in ("edits", "edit_start", "counters"):
            continue
        assert np.array_equal(getattr(found, field.name), getattr(expected, field.name)), field.name
    assert found.counters.tolist() == expected.counters.tolist()
    for read in np.flatnonzero(expected.edit_count):
        count = expected.edit_count[read]
        ours = found.edits[found.edit_start[read] :][:count]
        assert np.array_equal(ours, expected.edits[expected.edit_start[read] :][:count])
