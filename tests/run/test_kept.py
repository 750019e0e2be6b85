"""Compressed inputs are inflated once, where their records may be kept."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from ngsgpu.io.compress import source
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.run.kept import KeptRecords
from tests.support.commands import Commands
from tests.support.io.gzip_files import fastq_text


@pytest.fixture
def mates(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"r{mate}.fq.gz" for mate in (1, 2)]
    for path in paths:
        path.write_bytes(gzip.compress(fastq_text(random.Random(1), 3000)))
    return paths


def openings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths whose chunks are read."""
    found: list[str] = []
    chunks = source.Source.chunks

    def noted(own: source.Source) -> object:
        found.append(Path(own.path).name)
        return chunks(own)

    monkeypatch.setattr(source.Source, "chunks", noted)
    return found


@pytest.mark.parametrize(("share", "readings"), [(4, 1), (1 << 20, 2)])
def test_readings(
    tmp_path: Path,
    ngsgpu: Commands,
    mates: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    share: int,
    readings: int,
) -> None:
    monkeypatch.setattr("ngsgpu.run.options._KEPT_SHARE", share)
    one, two = mates
    outputs = ["-o", tmp_path / "1.fq", "-O", tmp_path / "2.fq", "--backend", "cpu"]
    ngsgpu.corrects("-i", one, "-I", two, *outputs, "--hashes", 4, "--memory", "8G")
    expected = [(tmp_path / f"{mate}.fq").read_bytes() for mate in (1, 2)]
    found = openings(monkeypatch)
    monkeypatch.setattr("ngsgpu.run.read_set.warn_of_mates", lambda lanes: None)
    ngsgpu.corrects("-i", one, "-I", two, *outputs, "--hashes", 4, "--memory", "8G")
    assert sorted(found) == sorted(["r1.fq.gz", "r2.fq.gz"] * readings)
    assert [(tmp_path / f"{mate}.fq").read_bytes() for mate in (1, 2)] == expected


def test_as_plain_files(tmp_path: Path, ngsgpu: Commands, mates: list[Path]) -> None:
    plain = []
    for path in mates:
        plain.append(path.with_suffix(""))
        plain[-1].write_bytes(gzip.decompress(path.read_bytes()))
    for paths, name in ((mates, "gz"), (plain, "plain")):
        ngsgpu.corrects(
            *("-i", paths[0], "-I", paths[1], "--hashes", 4, "--backend", "cpu"),
            *("-o", tmp_path / f"{name}.1", "-O", tmp_path / f"{name}.2"),
        )
    for mate in (1, 2):
        found = (tmp_path / f"gz.{mate}").read_bytes()
        assert found == (tmp_path / f"plain.{mate}").read_bytes()


def test_room(mates: list[Path]) -> None:
    lane = ReadFiles(tuple(map(str, mates)))

    def batches() -> list[tuple[bytes, ...]]:
        read = lane.batches(threads=1, phred_offset="auto", chunk_bytes=1 << 16)
        return [tuple(own.text.tobytes() for own in mates) for mates in kept.keep(lane, read)]

    kept = KeptRecords(1 << 30)
    first = batches()
    assert kept.nbytes > sum(len(text) for mates in first for text in mates)
    again = kept.take(lane)
    assert again is not None
    assert [tuple(own.text.tobytes() for own in mates) for mates in again] == first
    assert kept.take(lane) is None
    kept = KeptRecords(1 << 16)
    assert batches() == first
    assert kept.nbytes == 0
    assert kept.take(lane) is None
    kept = KeptRecords(1 << 30)
    batches()
    kept.drop()
    assert kept.nbytes == 0
    assert kept.take(lane) is None


@pytest.mark.parametrize(
    ("memory", "said"),
    [("8G", "once, and kept for the second reading"), ("1M", "kept for the second reading, the")],
)
def test_dry_run(ngsgpu: Commands, mates: list[Path], memory: str, said: str) -> None:
    done = ngsgpu.correct(
        *("-i", mates[0], "-I", mates[1], "--dry-run", "--backend", "cpu", "--memory", memory)
    )
    (line,) = [line for line in done.out.splitlines() if line.startswith("inflates")]
    assert said in line
    plain = mates[0].with_suffix("")
    plain.write_bytes(gzip.decompress(mates[0].read_bytes()))
    assert "inflates" not in ngsgpu.correct("-i", plain, "--dry-run", "--backend", "cpu").out
