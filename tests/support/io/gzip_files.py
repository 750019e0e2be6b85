"""Gzip files of many kinds, and flaws of them."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

from ngsgpu.io.compress.bgzf_blocks import EOF_BLOCK, bgzf_blocks

KINDS = (
    "gzip -1", "gzip -6", "gzip -9", "fixed", "stored", "huffman", "flushed", "named", "members",
    "empty members", "bgzf", "bgzf then gzip", "long matches", "small", "empty",
)  # fmt: skip


def fastq_text(rng: random.Random, reads: int) -> bytes:
    """Reads of a genome, with qualities."""
    genome = "".join(rng.choices("ACGT", k=20_000))
    lines = []
    for number in range(reads):
        at = rng.randrange(len(genome) - 100)
        quals = "".join(rng.choices("#,:AFI", (1, 1, 2, 4, 20, 30), k=100))
        lines.append(f"@read.{number} {at}/1\n{genome[at : at + 100]}\n+\n{quals}\n")
    return "".join(lines).encode()


def member(text: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """A gzip member."""
    deflater = zlib.compressobj(level, zlib.DEFLATED, 31, 9, strategy)
    return deflater.compress(text) + deflater.flush()


def _whole_reads(text: bytes, size: int) -> bytes:
    """The reads within the first bytes of a text."""
    return text[: text.rindex(b"\n@", 0, size) + 1]


def gzip_file(kind: str, rng: random.Random) -> tuple[bytes, bytes]:
    """A file of one of ``KINDS``, and its text."""
    text = fastq_text(rng, rng.randrange(2000, 6000))
    if kind.startswith("gzip"):
        return member(text, int(kind[-1])), text
    if kind in ("fixed", "stored", "huffman"):
        text = _whole_reads(text, 200_000)
        level = 0 if kind == "stored" else 6
        strategy = {"fixed": zlib.Z_FIXED, "huffman": zlib.Z_HUFFMAN_ONLY}.get(kind, 0)
        return member(text, level, strategy), text
    if kind == "flushed":
        deflater = zlib.compressobj(6, zlib.DEFLATED, 31)
        parts = [
            deflater.compress(text[at : at + 50_000])
            + deflater.flush(
                rng.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_PARTIAL_FLUSH])
            )
            for at in range(0, len(text), 50_000)
        ]
        return b"".join(parts) + deflater.flush(), text
    if kind == "named":
        data = member(text)
        extra = b"XY\x04\x001234"
        header = data[:3] + b"\x1c" + data[4:10] + struct.pack("<H", len(extra)) + extra
        return header + b"reads.fq\0a comment\0" + data[10:], text
    if kind == "members":
        cuts = sorted(rng.sample(range(len(text)), 6))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        return b"".join(member(part, rng.choice([1, 6, 9])) for part in parts), text
    if kind == "empty members":
        half = len(text) // 2
        empty = member(b"")
        return empty + member(text[:half]) + empty * 3 + member(text[half:]) + empty, text
    if kind == "bgzf":
        return bytes(bgzf_blocks(text, 6)) + EOF_BLOCK, text
    if kind == "bgzf then gzip":
        half = len(text) // 2
        return bytes(bgzf_blocks(text[:half], 2)) + member(text[half:]), text
    if kind == "long matches":
        text = b"ACGT" * 60_000 + text[:1000] * 300 + b"\n" * 70_000 + text[:100_000]
        return member(text, 9), text
    if kind == "small":
        text = _whole_reads(text, 2000)
        return member(text[:1500]) + member(text[1500:]), text
    return member(b""), b""


def _changed_end(data: bytes, rng: random.Random) -> bytes:
    return data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]


def _changed_inside(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data) // 4, len(data) // 2)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _zeroed(data: bytes, rng: random.Random) -> bytes:
    at = len(data) // 3
    return data[:at] + bytes(5000) + data[at + 5000 :]


FLAWS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "checksum": _changed_end,
    "a bit": _changed_inside,
    "zeros": _zeroed,
    "cut": lambda data, rng: data[: rng.randrange(100, len(data) - 30)],
    "cut in the trailer": lambda data, rng: data[:-29],
    "letters behind": lambda data, rng: data + b"ACGT" * 50,
    "no gzip": lambda data, rng: b"ACGT" * 5000,
    "left out": lambda data, rng: data[: len(data) // 2] + data[len(data) // 2 + 1000 :],
}
