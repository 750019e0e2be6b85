"""The GPU inflates gzip files as zlib does; what it refuses, the host reads or refuses."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.compress import seek
from ngsgpu.io.gpu import inflate, inflated_feed
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.reread import open_again
from ngsgpu.readset import ReadSet
from tests.support.io.gzip_files import FLAWS, KINDS, fastq_text, gzip_file, member
from tests.support.io.random_fastq import assert_equal_reads, read_on_host


def inflated(data: bytes, batch_bytes: int) -> bytes:
    """The text of a file, by the GPU alone."""
    import cupy

    from ngsgpu.device.pinned import pinned_empty

    stream = cupy.cuda.get_current_stream()
    inflater = inflate.Inflater(batch_bytes)
    text = cupy.empty(inflate.text_room(batch_bytes) + 1, dtype=cupy.uint8)
    pinned = pinned_empty(max(1, len(data)))
    pinned[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    found = []
    for start in range(0, len(data), batch_bytes):
        size = min(batch_bytes, len(data) - start)
        inflater.add(pinned[start:].ctypes.data, size, stream)
        more = True
        while more:
            size, more = inflater.inflate(text)
            found.append(cupy.asnumpy(text[:size]).tobytes())
    inflater.finish()
    return b"".join(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_inflates_as_zlib(kind: str, seed: int) -> None:
    data, text = gzip_file(kind, random.Random(f"{kind} {seed}"))
    for batch_bytes in (1 << 18, 1 << 20, 16 << 20):
        assert inflated(data, batch_bytes) == text


def test_a_large_file(tmp_path: Path) -> None:
    rng = random.Random(1)
    text = fastq_text(rng, 20_000) * 20
    assert inflated(member(text), 4 << 20) == text


@pytest.mark.parametrize("flaw", FLAWS)
def test_refuses_damage(flaw: str) -> None:
    rng = random.Random(flaw)
    data, _ = gzip_file(rng.choice(["gzip -6", "bgzf", "members"]), rng)
    with pytest.raises(inflate.NotForGpuError):
        inflated(FLAWS[flaw](data, rng), 1 << 18)


def read(path: Path, rng: random.Random) -> ReadSet:
    """Read a file on the GPU; any part of it can be read again, in any order."""
    from ngsgpu.readset.gpu_read import read_to_device

    lanes = [ReadFiles((str(path),), (0,))]
    found = read_to_device(lanes, threads=4, chunk_bytes=1 << 20, keep_bytes=1 << 30)
    assert found.layouts is not None
    (file,) = found.layouts[0].files
    text = gzip.decompress(path.read_bytes())
    assert file.size == len(text)
    if file.takes_offsets:
        reader = open_again(file, threads=1)
        parts = [(0, len(text)), *(sorted(rng.choices(range(len(text)), k=2)) for _ in range(20))]
        for start, end in parts:
            data = np.empty(end - start, dtype=np.uint8)
            reader.prepare(start, end)(data)
            assert data.tobytes() == text[start:end]
        reader.close()
    return found.reads.to_host()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("long matches", "empty")])
def test_reads_are_those_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(inflated_feed, "BATCH_BYTES", 1 << 18)
    monkeypatch.setattr(inflated_feed, "_LEAST_BATCH", 1 << 16)
    monkeypatch.setattr(seek, "SPACING", 100_000)
    data, _ = gzip_file(kind, random.Random(kind))
    path = tmp_path / "reads.fq.gz"
    path.write_bytes(data)
    expected = read_on_host([ReadFiles((str(path),), (0,))])
    assert_equal_reads(read(path, random.Random(kind)), expected)


def test_a_large_file_is_read_again_from_many_places(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = tmp_path / "reads.fq.gz"
    path.write_bytes(member(fastq_text(rng, 20_000) * 20))
    expected = read_on_host([ReadFiles((str(path),), (0,))])
    assert_equal_reads(read(path, rng), expected)


def test_the_host_goes_on_where_the_gpu_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member whose header has a checksum of its own is left to the host."""
    monkeypatch.setattr(inflated_feed, "BATCH_BYTES", 1 << 18)
    monkeypatch.setattr(inflated_feed, "_LEAST_BATCH", 1 << 16)
    first, _ = gzip_file("gzip -6", random.Random(1))
    second = member(fastq_text(random.Random(2), 5000))
    header = second[:3] + b"\x02" + second[4:10]
    checked = header + struct.pack("<H", zlib.crc32(header) & 0xFFFF) + second[10:]
    path = tmp_path / "reads.fq.gz"
    path.write_bytes(first + checked)
    with pytest.raises(inflate.NotForGpuError):
        inflated(path.read_bytes(), 1 << 18)
    expected = read_on_host([ReadFiles((str(path),), (0,))])
    assert_equal_reads(read(path, random.Random(1)), expected)


@pytest.mark.parametrize("flaw", FLAWS)
def test_damage_is_worded_as_by_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    monkeypatch.setattr(inflated_feed, "BATCH_BYTES", 1 << 18)
    monkeypatch.setattr(inflated_feed, "_LEAST_BATCH", 1 << 16)
    from ngsgpu.readset.gpu_read import read_to_device

    rng = random.Random(flaw)
    path = tmp_path / "reads.fq.gz"
    data, _ = gzip_file("gzip -6", rng)
    path.write_bytes(FLAWS[flaw](data, rng))
    lanes = [ReadFiles((str(path),), (0,))]
    with pytest.raises(InputError) as by_host:
        read_on_host(lanes)
    with pytest.raises(InputError) as by_gpu:
        read_to_device(lanes, threads=3, chunk_bytes=1 << 20)
    assert str(by_gpu.value) == str(by_host.value)
