"""The sample of a run is even, bounded, and the same however the reads come."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text import sample as module
from ngsgpu.io.text.sample import MAX_SAMPLED_LENGTH, ReadSample
from tests.support.io.records import Record, bgzf, fastq, write

LETTERS = {65, 67, 71, 78, 84}


def records(count: int, mate: int = 1, longest: int = 60) -> list[Record]:
    rng = random.Random(mate)
    return [
        Record(b"r%d/%d" % (i, mate), bytes(rng.choices(b"ACGTN", k=size)), b"I" * size)
        for i in range(count)
        for size in [rng.randrange(1, longest)]
    ]


def sampled(lane: ReadFiles, chunk_bytes: int = 1 << 16) -> ReadSample:
    sample = ReadSample()
    batches = lane.batches(threads=2, phred_offset=33, chunk_bytes=chunk_bytes)
    for _ in sample.of_lane(batches, interleaved=lane.interleaved):
        pass
    return sample


def texts(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes().rstrip(b"\0") for row in rows]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33, 500])
def test_every_so_many_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(module, "MOST_SAMPLED", 16)
    ones, twos = records(count, 1), records(count, 2)
    step = 1
    while -(-count // step) > 16:
        step *= 2
    paths = [write(tmp_path / f"{i}.fq", fastq(own)) for i, own in enumerate((ones, twos))]
    packed = [write(tmp_path / f"{i}.gz", bgzf(path.read_bytes())) for i, path in enumerate(paths)]
    both = [record for pair in zip(ones, twos, strict=True) for record in pair]
    mixed = write(tmp_path / "both.fq", fastq(both))
    for lane in (
        ReadFiles(tuple(map(str, paths))),
        ReadFiles(tuple(map(str, packed))),
        ReadFiles((str(mixed),), interleaved=True),
    ):
        for chunk_bytes in (100, 1000, 1 << 16):
            sample = sampled(lane, chunk_bytes)
            first, second = sample.reads()
            assert sample.units == count
            assert texts(first) == [record.bases for record in ones[::step]]
            assert texts(second) == [record.bases for record in twos[::step]]


def test_pairs_and_single_reads(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{i}.fq", fastq(records(3, i))) for i in (1, 2))
    sample = ReadSample()
    for lane in (ReadFiles((str(one), str(two))), ReadFiles((str(one),))):
        for mates in lane.batches(threads=1, phred_offset=33, chunk_bytes=1 << 16):
            sample.take(mates)
    first, second = sample.reads()
    assert texts(first) == [record.bases for record in records(3)] * 2
    assert texts(second) == [*(record.bases for record in records(3, 2)), b"", b"", b""]


def test_wrapped_and_long_sequences(tmp_path: Path) -> None:
    rng = random.Random(1)
    long = bytes(rng.choices(b"ACGT", k=MAX_SAMPLED_LENGTH))
    path = write(
        tmp_path / "r.fa",
        b">a\nACGT\r\nAC\r\n>b\n" + long[:300] + b"\n" + long[300:] + b"\n>c\n" + long + b"A\n",
    )
    sample = sampled(ReadFiles((str(path),)))
    assert texts(sample.reads().first) == [b"ACGTAC", long, b""]
    assert not sample.has_qualities


def test_begin_again(tmp_path: Path) -> None:
    path = write(tmp_path / "r.fq", fastq(records(30)))
    sample = sampled(ReadFiles((str(path),)))
    sample.clear()
    assert sample.units == 0 and len(sample.reads().first) == 0
