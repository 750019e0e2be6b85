"""zstd files in and out, against the library and the program."""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.compress import zstd as module
from ngsgpu.io.compress.zstd import library as zstd
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.reader import read_batches
from tests.support.io.records import compression, fastq, reads, text_of, write

TEXT = fastq(reads(300, length=70))
NEEDS_PROGRAM = pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")


def frame(data: bytes, *, checksum: bool = True, sized: bool = True) -> bytes:
    parameters = zstd.CompressionParameter
    options = {parameters.checksum_flag: int(checksum), parameters.content_size_flag: int(sized)}
    compressor = zstd.ZstdCompressor(options=options)
    if sized:
        return compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
    half = len(data) // 2
    start = compressor.compress(data[:half], zstd.ZstdCompressor.FLUSH_BLOCK)
    return start + compressor.compress(data[half:], zstd.ZstdCompressor.FLUSH_FRAME)


def skippable(data: bytes, number: int = 0) -> bytes:
    return bytes([0x50 + number]) + b"\x2a\x4d\x18" + struct.pack("<I", len(data)) + data


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        list(read_batches(path, threads=2))
    return caught.value


@given(
    pieces=st.lists(
        st.tuples(st.binary(max_size=400), st.booleans(), st.booleans(), st.booleans()), min_size=1
    ),
    task=st.sampled_from([1, 300, 1 << 20]),
    held=st.sampled_from([1, 60, 1 << 20]),
    read=st.sampled_from([1, 7, 1 << 20]),
    chunk=st.sampled_from([1, 100]),
)
def test_frames_of_any_kind(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[tuple[bytes, bool, bool, bool]],
    task: int,
    held: int,
    read: int,
    chunk: int,
) -> None:
    """Short ones by threads, long ones as streams, whatever a read of the file gives."""
    path = tmp_path_factory.getbasetemp() / "reads.zst"
    data = b""
    for content, checksum, sized, skipped in pieces:
        data += skippable(content, 3) if skipped else b""
        data += frame(content, checksum=checksum, sized=sized)
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TASK_BYTES", task)
        patch.setattr(module, "_MOST_HELD", held)
        patch.setattr(module, "_READ_BYTES", read)
        assert text_of(path, chunk_bytes=chunk) == b"".join(piece[0] for piece in pieces)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("size", [500, 4000, len(TEXT)])
def test_threads_change_nothing(tmp_path: Path, threads: int, size: int) -> None:
    frames = [frame(TEXT[at : at + size]) for at in range(0, len(TEXT), size)]
    path = write(tmp_path / "reads.zst", b"".join(frames))
    assert compression(path) == "zstd"
    assert text_of(path, threads=threads, chunk_bytes=999) == TEXT


def test_frames_that_inflate_to_much_are_streamed(tmp_path: Path) -> None:
    data = bytes(40 << 20)
    path = write(tmp_path / "zeros.zst", frame(data) + frame(b"x", sized=False))
    assert text_of(path) == data + b"x"


@NEEDS_PROGRAM
@pytest.mark.parametrize("options", [[], ["-19"], ["--no-check"], ["--long=24"], ["-T2", "-B1KB"]])
def test_files_of_the_program(tmp_path: Path, options: list[str]) -> None:
    plain = write(tmp_path / "reads.fq", TEXT)
    subprocess.run(["zstd", "-q", *options, plain], check=True)
    assert text_of(tmp_path / "reads.fq.zst") == TEXT


def test_cut_or_followed_by_something_else(tmp_path: Path) -> None:
    # No frame ends where a record does.
    whole = b"".join(frame(TEXT[at : at + 1999]) for at in range(0, len(TEXT), 1999))
    for cut in [*range(4, len(whole), 23), len(whole) - 1]:
        error = refused(write(tmp_path / "reads.zst", whole[:cut]))
        assert "truncated" in error.cause or "ends" in error.cause
    for tail in (b"x", b"garbage", skippable(b"abc")[:-1], skippable(b"abc")[:6]):
        assert "zstd data" in refused(write(tmp_path / "reads.zst", whole + tail)).cause
    assert text_of(write(tmp_path / "reads.zst", whole + skippable(b"abc"))) == TEXT


@pytest.mark.parametrize("held", [1, 1 << 20])
def test_flipped_bytes_change_nothing_or_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(module, "_MOST_HELD", held)
    text = fastq(reads(4))
    whole = frame(text[:60]) + frame(text[60:])
    whole += module.seek_table([(60, 60)])
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        path = write(tmp_path / "reads.zst", bytes(damaged))
        try:
            found = b"".join(batch.text.tobytes() for batch in read_batches(path))
        except InputError:
            continue
        assert found == text, at


def test_long_mode_is_refused_with_the_command(tmp_path: Path) -> None:
    # A frame's header with a window of 2 GiB.
    path = write(tmp_path / "reads.zst", module.MAGIC + bytes([0x04, 21 << 3]) + bytes(20))
    error = refused(path)
    assert "2,048 MiB" in error.cause
    assert "--long=31" in error.remedy


def test_long_mode_of_one_segment_is_refused_too(tmp_path: Path) -> None:
    """The ``zstd`` program writes one if it knows the size, which is the window then."""
    size = (200 << 20).to_bytes(4, "little")
    path = write(tmp_path / "reads.zst", module.MAGIC + bytes([0xA4]) + size + bytes(20))
    error = refused(path)
    assert "long mode, with a window of 200 MiB" in error.cause
    assert "zstd -d --long=31" in error.remedy
    size = (1 << 62).to_bytes(8, "little")
    path = write(tmp_path / "reads.zst", module.MAGIC + bytes([0xE4]) + size + bytes(20))
    assert "damaged" in refused(path).cause


@pytest.mark.parametrize("level", [1, 3, 12])
def test_output_is_that_of_any_number_of_threads(tmp_path: Path, level: int) -> None:
    source = random.Random(1)
    data = bytes(source.choices(b"ACGT\n", k=2 * module.FRAME_BYTES + 999))
    written = set()
    for threads, step in ((1, len(data)), (2, 300_001), (4, 1 << 20)):
        path = tmp_path / f"{threads}.fq.zst"
        with OutputSet([path], threads=threads, compression_level=level) as outputs:
            for at in range(0, len(data), step):
                outputs.write(0, data[at : at + step])
        written.add(path.read_bytes())
    (whole,) = written
    assert zstd.decompress(whole) == data
    assert text_of(path) == data


def test_output_is_of_the_seekable_format(tmp_path: Path) -> None:
    data = bytes(random.Random(1).choices(b"ACGT", k=module.FRAME_BYTES + 5))
    path = tmp_path / "out.zst"
    with OutputSet([path]) as outputs:
        outputs.write(0, data)
    whole = path.read_bytes()
    frames, descriptor, magic = struct.unpack("<IBI", whole[-9:])
    assert (frames, descriptor, magic) == (2, 0, 0x8F92EAB1)
    table = struct.unpack("<4I", whole[-25:-9])
    assert table[1::2] == (module.FRAME_BYTES, 5)
    assert whole[table[0] + table[2] :][:8] == b"\x5e\x2a\x4d\x18" + struct.pack("<I", 25)
    second = whole[table[0] : table[0] + table[2]]
    assert zstd.decompress(second) == data[-5:]
    assert second[4] & 4  # it has a checksum


def test_empty_output(tmp_path: Path) -> None:
    path = tmp_path / "out.zst"
    with OutputSet([path]):
        pass
    assert zstd.decompress(path.read_bytes()) == b""
    with zstd.open(io.BytesIO(path.read_bytes())) as file:
        assert file.read() == b""
    assert text_of(path) == b""


@NEEDS_PROGRAM
def test_the_program_reads_the_output(tmp_path: Path) -> None:
    for data in (b"", TEXT, TEXT * 200):
        path = tmp_path / "out.zst"
        with OutputSet([path], threads=2) as outputs:
            outputs.write(0, data)
        found = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True)
        assert found.stdout == data
