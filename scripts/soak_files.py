"""Files of ``scripts/soak.py``: the reads that its runs take, and the content of its outputs."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Final

from tests.attack.world import zstd_frames
from tests.support.io.records import bgzf

PAIRS: Final = 300
GENOME: Final = 4000
READ: Final = 100
COMPLEMENT: Final = bytes.maketrans(b"ACGT", b"TGCA")
FORMS: Final = ("plain", "gz", "members", "bgzf", "zst", "stream")


def write_inputs(folder: Path) -> None:
    """Write pairs in every form, apart and interleaved, a host and references.

    Args:
        folder: a new folder.
    """
    source = random.Random(11)
    genomes = [bytes(source.choices(b"ACGT", k=GENOME)) for _ in range(2)]
    mates = simulate_pairs(source, genomes)
    pairs = [record for pair in zip(*mates, strict=True) for record in pair]
    folder.mkdir(parents=True)
    for name, records in (("1", mates[0]), ("2", mates[1]), ("both", pairs)):
        text = b"".join(records)
        third = len(text) // 3
        pieces = text[:third], text[third : 2 * third], text[2 * third :]
        packed = {
            "plain": text,
            "gz": gzip.compress(text, 6, mtime=0),
            "members": b"".join(gzip.compress(piece, 1, mtime=0) for piece in pieces),
            "bgzf": bgzf(text, 5000),
            "zst": zstd_frames(text),
            "stream": text,
        }
        for form, data in packed.items():
            (folder / f"{name}.{form}").write_bytes(data)
    (folder / "host.fa").write_bytes(b">host\n" + genomes[1] + b"\n")
    both = b"".join(b">g%d\n%b\n" % (number, text) for number, text in enumerate(genomes))
    (folder / "refs.fa").write_bytes(both)


def simulate_pairs(source: random.Random, genomes: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """FASTQ records of first and second mates with errors, two thirds from the first genome."""
    mates: tuple[list[bytes], list[bytes]] = ([], [])
    for number in range(PAIRS):
        genome = genomes[number % 3 == 0]
        length = source.randint(130, 260)
        start = source.randrange(len(genome) - length)
        fragment = genome[start : start + length]
        for mate, strand in enumerate((fragment, fragment[::-1].translate(COMPLEMENT))):
            bases = bytes(
                source.choice(b"ACGT") if source.random() < 0.01 else base for base in strand[:READ]
            )
            qualities = bytes(source.choices(b"#5AFI", weights=(1, 2, 5, 10, 20), k=len(bases)))
            mates[mate].append(b"@p%d/%d\n%b\n+\n%b\n" % (number, mate + 1, bases, qualities))
    return mates


def contents_of(folder: Path) -> dict[str, bytes]:
    """Decompressed outputs by name, mates interleaved, without files of times or input names."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in {".json", ".log"}:
            data = path.read_bytes()
            name = str(path.relative_to(folder)).removesuffix(".gz")
            found[name] = gzip.decompress(data) if path.suffix == ".gz" else data
    for name in [name for name in found if "_1.f" in name]:
        mates = found.pop(name), found.pop(name.replace("_1.f", "_2.f"), b"")
        records = [_records(text) for text in mates]
        text = b"".join(record for pair in zip(*records, strict=False) for record in pair)
        same = len(records[0]) == len(records[1])
        found[name.replace("_1.f", ".f")] = text if same else b"mates differ in number"
    return found


def _records(text: bytes) -> list[bytes]:
    lines = text.splitlines(keepends=True)
    return [b"".join(lines[at : at + 4]) for at in range(0, len(lines), 4)]
