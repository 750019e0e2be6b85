"""The inputs: reads of a folder, simulated pairs with their truth, references, damaged files."""

from __future__ import annotations

import functools
import gzip
import hashlib
import random
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path


def records(path: Path) -> Iterator[list[bytes]]:
    """The records of a FASTA file, or of a FASTQ file with four lines a record."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        first = file.readline()
        if not first.startswith(b">"):
            lines = chain([first], file)
            while record := list(islice(lines, 4)):
                yield record
            return
        record = [first]
        for line in file:
            if line.startswith(b">"):
                yield record
                record = []
            record.append(line)
        yield record


def write_mate(start: str, taken: Iterable[list[bytes]]) -> bool:
    """Write reads plain and gzipped, as FASTA and, if they are, as FASTQ; whether they are."""
    reads = list(taken)
    fasta = [[b">" + read[0][1:], *read[1:2]] if len(read) == 4 else read for read in reads]
    is_fastq = bool(reads) and reads[0][0].startswith(b"@")
    for suffix, own in ((".fq", reads), (".fa", fasta)):
        if suffix == ".fa" or is_fastq:
            text = b"".join(chain.from_iterable(own))
            Path(start + suffix).write_bytes(text)
            # Two members, as files that were concatenated have them.
            half = len(text) // 2
            packed = gzip.compress(text[:half], 6, mtime=0) + gzip.compress(text[half:], 6, mtime=0)
            Path(f"{start}{suffix}.gz").write_bytes(packed)
    return is_fastq


def write_libraries(folder: Path, head: int | None, inputs: Path) -> dict[str, set[str]]:
    """Write the first records of the files of a folder, a library for each pair or single file.

    Args:
        folder: FASTQ and FASTA files, plain or gzipped; mates by _R1/_R2, _1/_2 or .1/.2.
        head: records taken of each file; None for all.
        inputs: where ``LIBRARY.MATE.{fq,fa}{,.gz}`` are written.

    Returns:
        Of each library ``pairs`` if it has two files, ``fastq`` if it has qualities.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        name = re.fullmatch(r"(.*?)([._]R?[12])?\.(fastq|fq|fasta|fa|fna)(\.gz)?", path.name)
        if name:
            found.setdefault(re.sub(r"[^\w-]", "_", name[1]), []).append(path)
    libraries: dict[str, set[str]] = {}
    for library, paths in found.items():
        libraries[library] = {"pairs"} if len(paths) == 2 else set()
        for mate, path in enumerate(paths, 1):
            if write_mate(f"{inputs}/{library}.{mate}", islice(records(path), head)):
                libraries[library].add("fastq")
    return libraries


def write_simulated(genome: str, inputs: Path, pairs: int = 3000) -> None:
    """Write pairs with errors and their truth, also interleaved, as library ``simulated``."""
    rng = random.Random(1)
    complement = str.maketrans("ACGTN", "TGCAN")
    mates: tuple[list[list[bytes]], list[list[bytes]]] = ([], [])
    with (inputs / "truth.sam").open("w") as truth:
        truth.write(f"@HD\tVN:1.4\n@SQ\tSN:source\tLN:{len(genome)}\n")
        for number in range(pairs):
            size = max(110, int(rng.gauss(230, 40)))
            begin = rng.randrange(len(genome) - size)
            true = genome[begin : begin + 100], genome[begin + size - 100 : begin + size]
            starts, first = (begin + 1, begin + size - 99), rng.randrange(2)
            for mate in range(2):
                side = mate ^ first
                flag = (64, 128)[mate] + (35, 19)[side]
                truth.write(f"s{number}\t{flag}\tsource\t{starts[side]}\t99\t100=\t=\t")
                span = (size, -size)[side]
                truth.write(f"{starts[1 - side]}\t{span}\t{true[side]}\t{'~' * 100}\n")
                read = true[1].translate(complement)[::-1] if side else true[0]
                bases = "".join(rng.choice("ACGTN") if rng.random() < 0.01 else c for c in read)
                record = (
                    f"@s{number}/{mate + 1}\n{bases}\n+\n{''.join(rng.choices('#5?I', k=100))}\n"
                )
                mates[mate].append([line.encode() for line in record.splitlines(keepends=True)])
    (inputs / "source.fa").write_text(f">source\n{genome}\n")
    for number, mate_reads in enumerate(mates, 1):
        write_mate(f"{inputs}/simulated.{number}", mate_reads)
    mixed = chain.from_iterable(chain.from_iterable(zip(*mates, strict=True)))
    (inputs / "mixed.fq").write_bytes(b"".join(mixed))


def write_references(genomes: list[Path], taxonomy: Path | None, inputs: Path) -> None:
    """Write genomes to ``genomes/``, the last one to ``added/``, and the taxonomy's files."""
    for name in ("genomes", "added", "taxonomy"):
        (inputs / name).mkdir()
    for number, path in enumerate(genomes):
        folder = "added" if 1 < len(genomes) == number + 1 else "genomes"
        text = b"".join(chain.from_iterable(records(path)))
        (inputs / folder / f"{number}.fa").write_bytes(text)
    for path in sorted(taxonomy.glob("*.dmp*")) if taxonomy else []:
        packed = path.read_bytes()
        text = gzip.decompress(packed) if path.suffix == ".gz" else packed
        (inputs / "taxonomy" / path.name.removesuffix(".gz")).write_bytes(text)


def piece_of_genome(inputs: Path, length: int = 30_000) -> str:
    """A piece of the first genome; random bases without one."""
    first = inputs / "genomes/0.fa"
    if not first.exists():
        return "".join(random.Random(2).choices("ACGT", k=length))
    bases = b"".join(next(records(first))[1:]).replace(b"\n", b"").upper()
    return re.sub("[^ACGT]", "A", bases[-length:].decode())


def write_damaged(inputs: Path) -> list[str]:
    """Write files that are to be refused, from the simulated reads; their names."""
    for mate in (1, 2):
        shutil.copyfile(inputs / f"simulated.{mate}.fq", inputs / f"first.{mate}.fq")
    shutil.copyfile(inputs / "simulated.1.fq", inputs / "same.fq")
    shutil.copyfile(inputs / "simulated.1.fa", inputs / "first.fa")
    (inputs / "foreign").mkdir()
    (inputs / "foreign/notes.txt").write_text("no database\n")
    lines = (inputs / "first.2.fq").read_bytes().splitlines(keepends=True)
    packed = gzip.compress(b"".join(lines), mtime=0)
    damaged = {
        "empty": b"",
        "shorter": b"".join(lines[:-4]),
        "no-plus": b"".join([*lines[:402], b"no plus\n", *lines[403:]]),
        "quality": b"".join([*lines[:403], lines[403][1:], *lines[404:]]),
        "letter": b"".join([*lines[:401], b"!" + lines[401][1:], *lines[402:]]),
        "no-at": b"".join([*lines[:400], lines[400][1:], *lines[401:]]),
        "cut": b"".join(lines)[:-150],
        "cut-gzip": packed[: len(packed) // 2],
        "crc-gzip": packed[:-8] + b"\0" * 8,
        "binary": random.Random(3).randbytes(5000),
    }
    for name, content in damaged.items():
        (inputs / f"{name}.fq").write_bytes(content)
    return [*damaged, "missing"]


@functools.cache
def digest(path: Path) -> str:
    """A digest of the content of a file, or of the names and contents of a folder's files."""
    whole = hashlib.sha256()
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []
    for file in files:
        if file.is_file():
            whole.update(f"{file.name} {file.stat().st_size}\n".encode())
            whole.update(file.read_bytes())
    return whole.hexdigest()
