"""The sample of a run is the same from the GPU's reader as from the CPU's."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text import sample as module
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.readset.gpu_read import read_to_device
from tests.support.backends import need_gpu
from tests.support.io.records import Record, fastq, write

pytestmark = pytest.mark.gpu


def records(rng: random.Random, count: int, mate: int) -> list[Record]:
    sizes = [rng.choice((1, 30, 31, 32, 33, 150, 512, 513, 700)) for _ in range(count)]
    return [
        Record(b"r%d/%d" % (i, mate), bytes(rng.choices(b"ACGTNacgt", k=size)), b"I" * size)
        for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 2000])
@pytest.mark.parametrize("layout", ["single", "pairs", "interleaved"])
@pytest.mark.parametrize("chunk_bytes", [1 << 12, 1 << 16, 1 << 22])
def test_same_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, layout: str, chunk_bytes: int
) -> None:
    need_gpu()
    monkeypatch.setattr(module, "MOST_SAMPLED", 64)
    rng = random.Random(count)
    lanes = []
    for number in range(2):
        ones, twos = records(rng, count, 1), records(rng, count, 2)
        both = [record for pair in zip(ones, twos, strict=True) for record in pair]
        files = {"single": [ones], "pairs": [ones, twos], "interleaved": [both]}[layout]
        paths = [write(tmp_path / f"{number}_{i}.fq", fastq(own)) for i, own in enumerate(files)]
        lanes.append(ReadFiles(tuple(map(str, paths)), (0, 0), layout == "interleaved"))
    expected = ReadSample()
    for lane in lanes:
        batches = lane.batches(threads=1, phred_offset=33, chunk_bytes=1 << 20)
        for _ in expected.of_lane(batches, interleaved=lane.interleaved):
            pass
    found = ReadSample()
    read_to_device(lanes, threads=2, chunk_bytes=chunk_bytes, sample=found)
    assert found.units == expected.units == 2 * count
    for one, two in zip(found.reads(), expected.reads(), strict=True):
        width = max(one.shape[1], two.shape[1])
        padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (one, two)]
        assert np.array_equal(*padded)
