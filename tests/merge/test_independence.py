"""The same bytes on both backends, whatever threads and chunks: random pairs, real reads."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ngsgpu.merge import MergeParameters, RunOptions
from tests.support import DATA
from tests.support.backends import seeds
from tests.support.io.records import Record, fastq, write
from tests.support.merge.data import (
    REAL,
    assert_same,
    random_parameters,
    simulated_pairs,
    write_pairs,
)


def lane(rng: random.Random, offset: int) -> list[tuple[Record, Record]]:
    return simulated_pairs(
        rng.randrange(1 << 30),
        rng.choice([0, 1, 63, 64, 65, 1000, 3000]),
        lengths=(rng.choice([20, 64, 100, 150, 300]), rng.choice([20, 32, 64, 100, 250])),
        inserts=(1, rng.choice([220, 500])),
        mixed=rng.random() < 0.5,
        ambiguous=rng.choice([0, 0.02, 0.2]),
        errors=rng.choice([0, 0.02, 0.1]),
        outward=rng.choice([0, 0.4]),
        scores=rng.choice([(2, 41), (30, 32), (0, 3), (0, 62)]),
        offset=offset,
    )


@seeds(cpu=8, cuda=60)
def test_random_pairs(tmp_path: Path, backend: str, seed: int) -> None:
    rng = random.Random(seed)
    offset = rng.choice([33, 33, 64])
    parameters = random_parameters(rng)
    if rng.random() < 0.3:
        parameters = replace(parameters, max_overlap=None)
    if parameters.quality != "flash" and rng.random() < 0.3:
        parameters = replace(parameters, mask_ties=True)
    interleaved = rng.random() < 0.3
    first, second = [], []
    for number in range(rng.choice([1, 1, 2])):
        folder = tmp_path / str(number)
        folder.mkdir()
        pairs = lane(rng, offset)
        if interleaved:
            both = fastq(record for pair in pairs for record in pair)
            first.append(write(folder / "both.fq", both))
        else:
            one, two = write_pairs(folder, pairs)
            first.append(one)
            second.append(two)
    if rng.random() < 0.3:
        for path in (*first, *second):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    assert_same(
        backend,
        tmp_path,
        first,
        second,
        parameters,
        options=RunOptions(threads=4, chunk_bytes=rng.choice([1 << 16, 1 << 18, 1 << 24])),
        interleaved_out=rng.random() < 0.3,
        ending=rng.choice(["fq", "fq", "fq.gz"]),
        phred_offset=offset,
    )


@pytest.mark.parametrize("overlap", ["likelihood", "flash"])
@pytest.mark.parametrize("reads", REAL)
def test_real_reads(tmp_path: Path, backend: str, reads: str, overlap: str) -> None:
    files = [DATA / "reads" / f"{reads}_R{mate}.fastq.gz" for mate in (1, 2)]
    plain = [write(tmp_path / path.stem, gzip.decompress(path.read_bytes())) for path in files]
    parameters = MergeParameters()
    if overlap == "flash":
        parameters = MergeParameters.flash(allow_outies=True)
    assert_same(backend, tmp_path, plain[:1], plain[1:], parameters)
