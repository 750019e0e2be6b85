"""Inputs that change while they are read are refused: whatever was read is of no version."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import Source
from tests.support.io.records import bgzf, fastq, reads

DATA = fastq(reads(2000))


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(DATA[:1000])


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-1000, os.SEEK_END)
        file.write(b"A" * 1000)


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize("change", [append, cut, overwrite, replace, Path.unlink])
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, bgzf, bz2.compress], ids=["plain", "gzip", "bgzf", "bzip2"]
)
def test_a_stream_of_chunks(
    tmp_path: Path, pack: Callable[[bytes], bytes], change: Callable[[Path], object]
) -> None:
    path = tmp_path / "reads.fq"
    path.write_bytes(pack(DATA))
    os.utime(path, ns=(1, 1))  # file systems tell times apart that are some milliseconds apart
    source = Source(path, threads=2, chunk_bytes=1 << 10)
    try:
        chunks = source.chunks()
        next(chunks)
        change(path)
        with pytest.raises(InputError, match="the file changed during the run"):
            list(chunks)
    finally:
        source.close()


@pytest.mark.parametrize("change", [append, cut, overwrite, replace, Path.unlink])
def test_chunks_in_any_order(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "reads.fq"
    path.write_bytes(DATA)
    os.utime(path, ns=(1, 1))
    source = Source(path, threads=2, chunk_bytes=1 << 10)
    try:
        assert source.chunk_at(3).size == 1 << 10
        change(path)
        with pytest.raises(InputError, match="the file changed during the run"):
            source.chunk_at(0)
    finally:
        source.close()


def test_a_count_of_what_was_appended_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "reads.fq"
    path.write_bytes(DATA)
    os.utime(path, ns=(1, 1))
    read = Source.chunk_at

    def changed(self: Source, index: int) -> object:
        append(path)
        return read(self, index)

    monkeypatch.setattr(Source, "chunk_at", changed)
    arguments = ["kmers", "count", "-q", "--backend", "cpu", "-t", "2", "-i", str(path)]
    assert main([*arguments, "-o", str(tmp_path / "counts")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{path}: the file changed during the run" in error
    assert sorted(own.name for own in tmp_path.iterdir()) == ["reads.fq"]
