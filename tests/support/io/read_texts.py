"""Texts of reads of many kinds, and others, for the encoder made for reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

from tests.support.io.gzip_files import fastq_text


def _bases(rng: random.Random, size: int, letters: str = "ACGT") -> str:
    return "".join(rng.choices(letters, k=size))


def _binned(rng: random.Random, size: int) -> str:
    """Qualities in runs."""
    quals = ""
    while len(quals) < size:
        quals += rng.choice("FFFFFF:,#") * rng.choice((1, 1, 2, 5, 30, 300))
    return quals[:size]


def _illumina(rng: random.Random) -> Iterator[str]:
    for _ in count():
        x, y, size = rng.randrange(30_000), rng.randrange(30_000), rng.randrange(30, 151)
        name = f"A00742:412:HN2:1:{rng.randrange(1101, 1110)}:{x}:{y} 1:N:0:CGGATGAT+GCGAGTTA"
        yield f"@{name}\n{_bases(rng, size)}\n+\n{_binned(rng, size)}\n"


def _sra(rng: random.Random) -> Iterator[str]:
    for number in count(9_990):
        name = f"SRR1.{number} {number} length=250"
        yield f"@{name}\n{_bases(rng, 250, 'ACGTN')}\n+{name}\n{'?' * 250}\n"


def _amplicons(rng: random.Random) -> Iterator[str]:
    kinds = [_bases(rng, 400) for _ in range(9)]
    for number in count():
        at, kind = rng.randrange(60), rng.choice(kinds)
        read = list(kind[at : at + 250])
        read[rng.randrange(250)] = "N"
        quals = _bases(rng, 250, "!#%'+-579;=?ACEG")
        yield f"@M00967:43:{number * 977 % 9973}\n{''.join(read)}\n+\n{quals}\n"


def _fasta(rng: random.Random) -> Iterator[str]:
    for number in count():
        sequence = _bases(rng, rng.randrange(20, 700))
        width = rng.choice((60, 1000))
        lines = "".join(f"{sequence[at : at + width]}\n" for at in range(0, len(sequence), width))
        yield f">contig_{number // 3}:{number} len={len(sequence)}\n{lines}"


def _long_lines(rng: random.Random) -> Iterator[str]:
    for _ in count():
        yield f"@long\n{_bases(rng, 50_000)}\n+\n{_binned(rng, 50_000)}\n"


def _windows(rng: random.Random) -> Iterator[str]:
    for read in _illumina(rng):
        yield read.replace("\n", "\r\n")


def _odd(rng: random.Random) -> Iterator[str]:
    """Lines of reads in any order, cut and repeated."""
    lines = "".join(read for read, _ in zip(_illumina(rng), range(50), strict=False)).split("\n")
    lines += ["", "", "+", "@", ">", "@a:b:c d", ">a:b c", "+" + lines[0][1:]]
    for _ in count():
        line = rng.choice(lines)
        yield line[: rng.choice((3, 20, 500))] + rng.choice(("\n", "\n", "\n\n", ""))


def _noise(rng: random.Random) -> Iterator[str]:
    """What looks like sequences, but cannot be compressed."""
    letters = [chr(byte) for byte in range(256) if byte != 10]
    for _ in count():
        yield "ACGTACGTACGTACGT" + "".join(rng.choices(letters, k=5000)) + "\n"


def _table(rng: random.Random) -> Iterator[str]:
    for number in count():
        yield f"{number}\tread_{rng.randrange(999)}\t{rng.random():.4f}\n"


def _short_lines(rng: random.Random) -> Iterator[str]:
    for _ in count():
        yield _bases(rng, 16) + "\n" + rng.choice(("\n", "+\n", "A\n"))


_KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "illumina": _illumina, "sra": _sra, "amplicons": _amplicons, "fasta": _fasta,
    "long lines": _long_lines, "windows": _windows, "odd": _odd, "noise": _noise,
    "table": _table, "short lines": _short_lines,
}  # fmt: skip

KINDS = ("plain", *_KINDS)


def read_text(kind: str, rng: random.Random, size: int) -> bytes:
    """So many bytes of a text of one of ``KINDS``, from anywhere in a read on."""
    begin = rng.randrange(300)
    if kind == "plain":
        return fastq_text(rng, (size + 600) // 210 + 1)[begin : begin + size]
    parts, found = [], 0
    for part in _KINDS[kind](rng):
        parts.append(part)
        found += len(part)
        if found >= begin + size:
            return "".join(parts).encode("latin-1")[begin : begin + size]
    raise AssertionError("texts have no end")
