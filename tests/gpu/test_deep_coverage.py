"""Coverage so deep that an anchor has thousands of candidates."""

from __future__ import annotations

import random

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.correct.cpu_run import correct_on_cpu
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from tests.support.correct.gpu_cases import assert_equal, correct_with_tables

pytestmark = pytest.mark.gpu


@pytest.mark.timeout(120)
@pytest.mark.parametrize("paired", [False, True])
def test_long_reads_at_a_thousandfold_coverage(paired: bool) -> None:
    """All threads of a block insert thousands of candidates at once into the smallest set."""
    from ngsgpu.minhash.gpu import build_tables_on_gpu
    from ngsgpu.readset.gpu import DeviceReadSet

    rng = random.Random(2)
    genome = "".join(rng.choices("ACGT", k=600))
    complement = str.maketrans("ACGT", "TGCA")
    sequences = []
    for _ in range(2400 // 2):
        begin = rng.randrange(len(genome) - 300)
        fragment = genome[begin : begin + 300]
        for mate in (fragment, fragment.translate(complement)[::-1]):
            letters = [rng.choice("ACGT") if rng.random() < 0.01 else base for base in mate[:250]]
            sequences.append("".join(letters))
    reads = ReadSet.from_sequences(sequences, paired=paired)
    parameters = CorrectionParameters(minhash=MinhashParameters(hashes=48))
    expected = correct_on_cpu(reads, build_tables(reads, parameters.minhash), parameters, 1000.0)
    device_reads = DeviceReadSet.from_host(reads)
    tables = build_tables_on_gpu(device_reads, parameters.minhash)
    assert_equal(correct_with_tables(device_reads, tables, parameters, 1000.0), expected)
