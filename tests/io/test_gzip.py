"""Gzip files that are inflated by several threads have the bytes and errors of those by one."""

from __future__ import annotations

import gzip as standard
import os
import random
import threading
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.compress import gzip
from ngsgpu.io.compress.gzip import GzipStream
from ngsgpu.io.compress.members import member_start
from ngsgpu.io.compress.pieces import MOST_MEMBERS, IrregularError, inflate
from ngsgpu.io.compress.source import Source

CHUNK = 1 << 14


def fastq(records: int, seed: int = 1) -> bytes:
    """Text like that of a sequencer: matches at all distances, so windows matter."""
    rng = random.Random(seed)
    genome = "".join(rng.choices("ACGT", k=5000))
    text = []
    for number in range(records):
        at = rng.randrange(4900)
        quality = "".join(rng.choices("FFFFF:,#", k=100))
        text.append(f"@RUN:1:{number // 50}:{number}\n{genome[at : at + 100]}\n+\n{quality}\n")
    return "".join(text).encode()


def member(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    return packer.compress(data) + packer.flush()


def named(data: bytes) -> bytes:
    """A member whose header has a name, a comment and an extra field."""
    body = member(data)
    return body[:3] + b"\x1c" + body[4:10] + b"\x04\x00abcdname\0comment\0" + body[10:]


@cache
def reads(records: int = 5000) -> bytes:
    return fastq(records)


def cut(whole: bytes) -> bytes:
    """Many members."""
    return b"".join(member(whole[at : at + 9000]) for at in range(0, len(whole), 9000))


FILES: dict[str, Callable[[bytes], bytes]] = {
    "one member": member,
    "level 1": lambda text: member(text, 1),
    "level 9": lambda text: member(text, 9),
    "stored": lambda text: member(text, 0),
    "fixed codes": lambda text: member(text, 6, zlib.Z_FIXED),
    "literals only": lambda text: member(text, 6, zlib.Z_HUFFMAN_ONLY),
    "two members": lambda text: member(text) + named(text),
    "header with everything": named,
    "many members": cut,
    "members of all sizes": lambda text: b"".join(member(text[: 7**k]) for k in range(8)),
    "empty members": lambda text: 2 * (member(b"") * 3 + member(text)),
    "zeros at the end": lambda text: member(text) + bytes(100),
    "zeros between members": lambda text: member(text) + bytes(1000) + member(text),
    "random": lambda _: member(random.Random(1).randbytes(300_000)),
    "compressed twice": lambda text: member(member(text)),
    "one byte for long": lambda text: member(b"A" * 50_000_000 + text),
    "empty": lambda _: member(b""),
}
"""Made of a text when a test needs it."""


@cache
def packed(name: str, records: int = 5000) -> bytes:
    return FILES[name](reads(records))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip, "CHUNK_BYTES", CHUNK)


def read(path: Path | str, threads: int, size: int = 100_000) -> tuple[bytes, str]:
    """The bytes of a file, and how reading it ended."""
    source = Source(path, threads=threads, chunk_bytes=size)
    data = []
    try:
        for chunk in source.chunks():
            data.append(chunk.data.tobytes())
    except InputError as error:
        return b"".join(data), str(error)
    finally:
        source.close()
    return b"".join(data), ""


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "reads.fq.gz"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("threads", [4, 9])
def test_same_bytes(tmp_path: Path, name: str, threads: int) -> None:
    path = write(tmp_path, packed(name))
    assert read(path, threads) == read(path, 1)
    assert read(path, threads)[0] == standard.decompress(packed(name))


@pytest.mark.parametrize(
    "name",
    ["one member", "level 1", "level 9", "two members", "many members", "zeros at the end"],
)
def test_pieces_are_inflated_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nothing is left to a single thread; nearly all is inflated before its window is known.

    Unless other processes keep all but one thread from running.
    """
    blind = []
    inflate = gzip.inflate

    def seen(data: memoryview, start: int, end: int | None, window: bytes | None) -> object:
        time.sleep(0.001)
        blind.append(window is None)
        return inflate(data, start, end, window)

    def never(self: GzipStream, piece: object) -> None:
        raise AssertionError

    monkeypatch.setattr(gzip, "inflate", seen)
    monkeypatch.setattr(GzipStream, "_continue_serially", never)
    data = packed(name, 20_000)
    for _ in range(10):
        blind.clear()
        assert read(write(tmp_path, data), 4)[0] == standard.decompress(data)
        assert len(blind) > 5
        if any(blind):
            break
    assert any(blind)


@pytest.mark.parametrize("name", ["one member", "many members", "zeros at the end"])
def test_damage(tmp_path: Path, name: str) -> None:
    """Flipped and missing bytes are found, and said in the same words."""
    whole = packed(name, 3000)  # of at least six pieces
    assert len(whole) > 6 * CHUNK
    rng = random.Random(name)
    places = [*range(12), *rng.sample(range(len(whole)), 30), *range(len(whole) - 10, len(whole))]
    for at in places:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << rng.randrange(8)
        for data in (bytes(flipped), whole[: at + 1], whole[:at] + whole[at + 1 :]):
            path = write(tmp_path, data)
            (several, error), (one, wanted) = read(path, 4), read(path, 1)
            assert error == wanted, at
            # What is given before an error depends on the sizes of buffers.
            assert several.startswith(one) or one.startswith(several), at
            assert error or several == one, at


def test_every_seventh_byte_of_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flipped or cut there: an error, or what one thread makes of it, whose text is right."""
    monkeypatch.setattr(gzip, "CHUNK_BYTES", 1024)
    text = reads()[:10_000]
    whole = b"".join(member(text[at : at + 2000], 1 + at % 9) for at in range(0, 10_000, 2000))
    for at in range(2, len(whole), 7):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        for data in (bytes(flipped), whole[:at]):
            path = write(tmp_path, data)
            several, one = read(path, 4), read(path, 1)
            assert several[1] == one[1], at
            assert several[1] or several == one, at
            assert several[1] or text.startswith(several[0]), at


@pytest.mark.parametrize(
    "end", [b"garbage", b"\0\0garbage", b"\x1f\x8b", member(fastq(20))[:1000]], ids=len
)
def test_what_follows(tmp_path: Path, end: bytes) -> None:
    path = write(tmp_path, packed("one member") + end)
    assert read(path, 4) == read(path, 1)
    assert read(path, 4)[1]


def test_many_small_members_are_inflated_one_after_the_other(tmp_path: Path) -> None:
    """Each would take as much memory and time as a piece."""
    data = memoryview(standard.compress(b"", mtime=0) * (MOST_MEMBERS + 2))
    start = member_start(data, 0)
    assert start is not None
    with pytest.raises(IrregularError):
        inflate(data, 8 * start, None, b"")
    path = write(tmp_path, bytes(data) + packed("one member"))
    assert read(path, 4) == read(path, 1) == (reads(), "")


def test_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(packed("one member"),))
    writer.start()
    assert read(path, 4) == (reads(), "")
    writer.join()


def test_pieces_for_a_slow_consumer_are_inflated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stock of pieces, further ones wait for their windows, however many threads there are.

    At most those that were begun before there was a stock are inflated without.
    """
    blind: list[bool] = []
    inflate = gzip.inflate

    def seen(data: memoryview, start: int, end: int | None, window: bytes | None) -> object:
        blind.append(window is None)
        return inflate(data, start, end, window)

    monkeypatch.setattr(gzip, "inflate", seen)
    text = np.random.default_rng(1).choice(np.frombuffer(b"ACGT\n", dtype=np.uint8), 8_000_000)
    data = member(text.tobytes(), level=1)
    source = Source(write(tmp_path, data), threads=16, chunk_bytes=10_000)
    stream = source._stream
    assert isinstance(stream, GzipStream)
    found, buffer = bytearray(), memoryview(bytearray(10_000))
    while size := source.fill(buffer):
        found += buffer[:size]
        # Until all pieces that have begun are there.
        while any(own.task is not None and not own.task.done() for own in stream._pieces):
            time.sleep(0.0005)
    source.close()
    assert bytes(found) == standard.decompress(data)
    assert len(blind) > 40
    assert sum(blind) < 20


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_close_early(tmp_path: Path, chunks: int) -> None:
    source = Source(write(tmp_path, packed("one member")), threads=4, chunk_bytes=10_000)
    given = source.chunks()
    for _ in range(chunks):
        next(given)
    source.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ngsgpu-inflate")]


def test_memory_of_the_caller(tmp_path: Path) -> None:
    """What is filled is whole but at the end, then empty."""
    source = Source(write(tmp_path, packed("one member")), threads=4, chunk_bytes=10_000)
    buffer = np.zeros(len(reads()) - 5, dtype=np.uint8)
    assert source.fill(buffer.data) == len(buffer)
    assert buffer.tobytes() == reads()[:-5]
    assert source.fill(buffer.data) == 5
    assert source.fill(buffer.data) == 0
    source.close()
