"""Genomes, samples of equal size drawn from them, and the config of their study."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint8]

READ_LENGTH: Final = 150
INSERT_MEAN, INSERT_SD = 300, 40
ERROR_RATE: Final = 0.005
_GENOMES: Final = 8
_PAIRS_AT_ONCE: Final = 1 << 16
_LETTERS: Final = np.frombuffer(b"ACGT", dtype=np.uint8)


@dataclass(frozen=True)
class Size:
    """How much data.

    Attributes:
        samples: number of samples.
        pairs: pairs of each.
        coverage: bases of a sample's reads per base of the genomes, which sets their length.
        partitions: of the database.
    """

    samples: int = 8
    pairs: int = 1_000_000
    coverage: float = 30
    partitions: int = 4

    @property
    def genome_length(self) -> int:
        """Bases of each genome."""
        return int(2 * READ_LENGTH * self.pairs / self.coverage) // _GENOMES


def write_study(folder: Path, size: Size, threads: int) -> None:
    """Write genomes, reads, sheets and config of a study into a folder.

    Args:
        folder: the study's working directory.
        size: how much data.
        threads: of each job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(1)
    genomes = [generator.integers(0, 4, size.genome_length, np.uint8) for _ in range(_GENOMES)]
    np.save(folder / "genomes.npy", np.stack(genomes))
    names = [f"genome{number}" for number in range(_GENOMES)]
    (folder / "genomes").mkdir(exist_ok=True)
    for name, genome in zip(names, genomes, strict=True):
        (folder / f"genomes/{name}.fa").write_bytes(
            b">%s\n%s\n" % (name.encode(), _LETTERS[genome].tobytes())
        )
    _write_taxonomy(folder, names)
    samples = [f"sample{number + 1:02}" for number in range(size.samples)]
    with ProcessPoolExecutor() as pool:
        jobs = [pool.submit(_write_reads, folder, n, i, size) for i, n in enumerate(samples)]
        for job in jobs:
            job.result()
    rows = [f"{name}\t{name}_R1.fastq\t{name}_R2.fastq\n" for name in samples]
    (folder / "samples.tsv").write_text("sample\tfastq_1\tfastq_2\n" + "".join(rows))
    (folder / "databases.tsv").write_text(
        "database\treferences\ttaxonomy\tmap\tpartitions\n"
        f"all\tgenomes\ttaxonomy\ttaxonomy/map.tsv\t{size.partitions}\n"
    )
    each = {"threads": threads, "mem_mb": 8000}
    config = {
        "title": f"{size.samples} equal samples of {size.pairs:,} pairs",
        "samples": "samples.tsv",
        "databases": "databases.tsv",
        "correct": each,
        "merge": each | {"reads": "corrected"},
        "extend": each | {"reads": "corrected"},
        "database": {"threads": threads},
        "classify": {"threads": threads, "reads": "corrected"},
        "assemble": {"enabled": False},
        "qc": False,
        "multiqc": False,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def _write_taxonomy(folder: Path, names: list[str]) -> None:
    """A species for each genome, all of one genus."""
    home = folder / "taxonomy"
    home.mkdir(exist_ok=True)
    nodes = [(1, 1, "no rank", "root"), (2, 1, "genus", "Studia")]
    nodes += [(10 + i, 2, "species", f"Studia {name}") for i, name in enumerate(names)]
    (home / "nodes.dmp").write_text("".join(f"{t}\t|\t{p}\t|\t{r}\t|\n" for t, p, r, _ in nodes))
    (home / "names.dmp").write_text(
        "".join(f"{t}\t|\t{n}\t|\t\t|\tscientific name\t|\n" for t, _, _, n in nodes)
    )
    (home / "map.tsv").write_text("".join(f"{n}\t{10 + i}\n" for i, n in enumerate(names)))


def _write_reads(folder: Path, name: str, seed: int, size: Size) -> None:
    """Pairs from random places of all genomes, with substitutions of low quality."""
    genomes = np.load(folder / "genomes.npy", mmap_mode="r").reshape(-1)
    generator = np.random.default_rng((2, seed))
    paths = [folder / f"{name}_R{mate}.fastq" for mate in (1, 2)]
    with paths[0].open("wb") as first, paths[1].open("wb") as second:
        for begin in range(0, size.pairs, _PAIRS_AT_ONCE):
            count = min(_PAIRS_AT_ONCE, size.pairs - begin)
            length = generator.normal(INSERT_MEAN, INSERT_SD, count).astype(np.int64)
            length = length.clip(READ_LENGTH, INSERT_MEAN + 4 * INSERT_SD)
            genome = generator.integers(0, _GENOMES, count)
            start = (generator.random(count) * (size.genome_length - length)).astype(np.int64)
            start += genome * size.genome_length
            position = np.arange(READ_LENGTH)
            forward = genomes[start[:, None] + position]
            backward = 3 - genomes[(start + length)[:, None] - 1 - position]
            swapped = generator.random(count)[:, None] < 0.5
            for file, mate, bases in (
                (first, b"1", np.where(swapped, backward, forward)),
                (second, b"2", np.where(swapped, forward, backward)),
            ):
                file.write(_records(begin, mate, bases, generator))


def _records(begin: int, mate: bytes, bases: Codes, generator: np.random.Generator) -> bytes:
    """FASTQ records of some reads, all of the same length and with names of the same length."""
    count = len(bases)
    wrong = generator.random(bases.shape, np.float32) < ERROR_RATE
    bases = (bases + wrong * generator.integers(1, 4, bases.shape, np.uint8)) % 4
    names = b"".join(b"@pair%010d/%s\n" % (begin + number, mate) for number in range(count))
    parts = [
        np.frombuffer(names, np.uint8).reshape(count, -1),
        _LETTERS[bases],
        np.tile(np.frombuffer(b"\n+\n", np.uint8), (count, 1)),
        np.where(wrong, np.uint8(ord("/")), np.uint8(ord("I"))),
        np.full((count, 1), ord("\n"), np.uint8),
    ]
    return np.concatenate(parts, axis=1).tobytes()
