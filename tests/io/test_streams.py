"""bzip2 and xz: files of several streams, whole and damaged, and the same formats written."""

from __future__ import annotations

import bz2
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.compress.streams import BZIP2_PIECE_BYTES, XZ_PIECE_BYTES
from ngsgpu.io.output.writer import OutputSet
from tests.support.io.records import compression, decompressed, fastq, reads, text_of, write

TEXT = fastq(reads(60, length=70))
HALVES = TEXT[:2999], TEXT[2999:]
"""No record ends where the first does."""

Pack = Callable[[bytes], bytes]
FORMATS = pytest.mark.parametrize(
    "name, pack", [("bz2", bz2.compress), ("xz", lzma.compress)], ids=["bz2", "xz"]
)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        text_of(path)
    return caught.value.cause


@FORMATS
@pytest.mark.parametrize("zeros", [0, 4, 512, 100_000])
def test_several_streams_and_zeros(tmp_path: Path, name: str, pack: Pack, zeros: int) -> None:
    parts = [pack(HALVES[0]), bytes(zeros), pack(b""), pack(HALVES[1]), bytes(zeros)]
    path = write(tmp_path / f"reads.{name}", b"".join(parts))
    assert text_of(path, chunk_bytes=997) == TEXT


@FORMATS
def test_damage_behind_a_stream_is_refused(tmp_path: Path, name: str, pack: Pack) -> None:
    """Whichever bit of the next stream's first bytes it is; none of its reads are left out."""
    first, second = map(pack, HALVES)
    path = tmp_path / f"reads.{name}"
    for at in range(len(first), len(first) + 24):
        for bit in range(8):
            damaged = bytearray(first + second)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                found = text_of(path)
            except InputError as error:
                assert "damaged" in error.cause or "truncated" in error.cause
            else:
                assert found == TEXT, (at - len(first), bit)
    for tail in (bytes(8) + second[8:], b"x", bytes(9) + b"x", second[1:]):
        assert "damaged" in refusal(write(path, first + tail))


@FORMATS
def test_cut_streams_are_truncated(tmp_path: Path, name: str, pack: Pack) -> None:
    first, second = map(pack, HALVES)
    path = tmp_path / f"reads.{name}"
    for cut in range(1, len(second), 7):
        assert "truncated" in refusal(write(path, first + second[:cut]))


def test_zeros_of_xz_come_in_fours(tmp_path: Path) -> None:
    assert "damaged" in refusal(write(tmp_path / "reads.xz", lzma.compress(TEXT) + bytes(3)))


@FORMATS
@pytest.mark.parametrize("level", [1, 12])
def test_output(tmp_path: Path, name: str, pack: Pack, level: int) -> None:
    """The same for any number of threads; the programs read it, and so does this one."""
    del pack
    text = TEXT * (2 * max(BZIP2_PIECE_BYTES, XZ_PIECE_BYTES) // len(TEXT) + 1)
    found = []
    for threads in (1, 3):
        path = tmp_path / f"{threads}.fq.{name}"
        with OutputSet([path], threads=threads, compression_level=level) as outputs:
            for at in range(0, len(text), 1_000_003):
                outputs.write(0, text[at : at + 1_000_003])
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert decompressed(path) == text
    if program := shutil.which({"bz2": "bzip2", "xz": "xz"}[name]):
        assert subprocess.run([program, "-dc", path], stdout=-1, check=True).stdout == text


@FORMATS
def test_empty_output(tmp_path: Path, name: str, pack: Pack) -> None:
    del pack
    path = tmp_path / f"none.fq.{name}"
    with OutputSet([path]):
        pass
    assert decompressed(path) == b""
    assert compression(path) == {"bz2": "bzip2"}.get(name, name)


@pytest.mark.parametrize("name", ["x.bam", "x.CRAM", "x.sam", "x.fq.lz4", "x.fq.Z", "x.zip"])
def test_formats_that_are_not_written_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not written here"):
        OutputSet([tmp_path / name])
    assert list(tmp_path.iterdir()) == []


def test_case_of_endings_does_not_matter(tmp_path: Path) -> None:
    with OutputSet([tmp_path / "x.FQ.GZ"]) as outputs:
        outputs.write(0, TEXT)
    assert compression(tmp_path / "x.FQ.GZ") == "bgzf"
