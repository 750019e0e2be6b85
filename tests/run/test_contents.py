"""Reads are estimated from the beginnings of files; what is too large is refused before."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from ngsgpu.correct import correct_files
from ngsgpu.errors import HostMemoryError
from ngsgpu.io.compress.formats import EOF_BLOCK, reads_blocks
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.run import contents, read_set
from ngsgpu.run.contents import contents_of, text_size
from ngsgpu.run.options import Contents, RunOptions
from ngsgpu.run.staged import CpuRun
from tests.support.io.records import write


def fastq_text(records: int) -> bytes:
    rng = random.Random(records)
    bases = ["".join(rng.choices("ACGT", k=100)) for _ in range(100)]
    text = (f"@read{i:07}\n{bases[i % 100]}\n+\n{'F' * 100}\n" for i in range(records))
    return "".join(text).encode()


@pytest.fixture(params=["plain", "gzip", "bgzf"])
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> ReadFiles:
    """Pairs of 40,000 reads in each file."""
    text = fastq_text(40_000)
    data = {
        "plain": text,
        "gzip": gzip.compress(text, 1),
        "bgzf": bytes(reads_blocks(text, 1)) + EOF_BLOCK,
    }[request.param]
    suffix = "" if request.param == "plain" else ".gz"
    paths = [write(tmp_path / f"{mate}.fq{suffix}", data) for mate in (1, 2)]
    assert abs(text_size(paths[0]) / len(text) - 1) < 0.05
    return ReadFiles((str(paths[0]), str(paths[1])), (0, 1))


def test_small_files_are_counted_and_large_ones_estimated(
    lane: ReadFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = contents_of([lane], RunOptions(), 33)
    assert (counted.reads, counted.bases, counted.longest) == (80_000, 8_000_000, 100)
    assert not counted.estimated and counted.paired
    monkeypatch.setattr(contents, "SAMPLED_BYTES", 1 << 20)
    about = contents_of([lane], RunOptions(), 33, counted_bytes=1 << 22)
    assert about.estimated
    assert abs(about.reads / counted.reads - 1) < 0.05
    assert about.bases == 100 * about.reads or abs(about.bases / counted.bases - 1) < 0.05
    assert about.line().startswith("reads    about ")


def test_what_is_too_large_is_refused_before_it_is_read(
    lane: ReadFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "SAMPLED_BYTES", 1 << 20)
    monkeypatch.setattr(read_set, "SAMPLED_BYTES", 1 << 20)
    outputs = [str(tmp_path / f"out{mate}.fq") for mate in (1, 2)]
    planned = CpuRun.read

    def read(run: CpuRun, lanes: list[ReadFiles]) -> None:  # type: ignore[type-arg]
        raise AssertionError("the reads are read")

    monkeypatch.setattr(CpuRun, "read", read)
    options = RunOptions(memory=230 << 20)
    with pytest.raises(HostMemoryError, match=r"correcting about [0-9,]* reads takes about"):
        correct_files(*lane.inputs[:1], outputs[0], lane.inputs[1], outputs[1], options=options)
    monkeypatch.setattr(CpuRun, "read", planned)
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["1", "2"]


def test_estimates_stay_estimates() -> None:
    assert Contents(10, 100, 10, False, estimated=True).times(0.9).estimated
