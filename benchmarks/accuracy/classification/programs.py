"""The programs: databases of genomes, calls of reads, abundances.

``ngsgpu`` is run as a command, so that other versions can be measured by the same benchmark; Kraken
2 and Bracken if they are on the ``PATH``, sylph if ``pysylph`` is installed.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.accuracy.classification.genomes import Genome, Library, records_of, sequences
from benchmarks.harness.measuring import BenchmarkError

Calls = list[tuple[str, int]]
"""Name and taxid of each read; 0 without a call."""
Shares = dict[int, float]
"""Shares by taxid of species."""
Sample = tuple[str, Sequence[Path]]
"""A name, and its reads or mates."""

KRAKEN: Final = "kraken2"
THREADS: Final = "2"


def run(command: Sequence[str | Path]) -> str:
    """Run a command; its standard output."""
    words = [*map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{shlex.join(words)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def calls_of(text: str) -> Calls:
    """Calls in Kraken's per-read format."""
    fields = [line.split("\t", 3)[:3] for line in text.splitlines()]
    return [(name, int(taxid) if called == "C" else 0) for called, name, taxid in fields]


def folder_bytes(folder: Path) -> int:
    """Bytes of the files of a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def scaled(shares: Mapping[int, float]) -> Shares:
    """Shares that add up to 1."""
    total = sum(shares.values()) or 1.0
    return {species: share / total for species, share in shares.items() if share > 0}


@dataclass(frozen=True)
class Ngsgpu:
    """A version of ``ngsgpu``, and its databases.

    Attributes:
        name: of the version.
        command: that runs it.
        options: of ``classify``.
    """

    name: str = "ngsgpu"
    command: tuple[str, ...] = (sys.executable, "-m", "ngsgpu")
    options: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Ngsgpu:
        """From ``NAME=COMMAND``."""
        name, _, command = text.partition("=")
        return cls(name, tuple(shlex.split(command)))

    def build(self, genomes: Sequence[Genome], library: Library, folder: Path) -> Path:
        """The database of some genomes; an older one of this name stays."""
        database = folder / f"db-{self.name}"
        if not (database / "manifest.json").exists():
            paths = [genome.path for genome in genomes]
            run([*self.command, "db", "build", *paths, "-d", database, "--taxonomy",
                 library.taxonomy, "--map", library.map, "-t", THREADS, "--backend", "cpu",
                 "-q"])  # fmt: skip
        return database

    def classify(
        self, database: Path, samples: Sequence[Sample]
    ) -> dict[str, tuple[Calls, Shares]]:
        """Calls and abundances (percent of genome copies) of samples."""
        place = database.parent / f"out-{self.name}"
        place.mkdir(exist_ok=True)
        sheet = place / "samples.tsv"
        with sheet.open("w", newline="") as file:
            rows = csv.writer(file, delimiter="\t", lineterminator="\n")
            rows.writerow(["sample", "fastq_1", "fastq_2"])
            for name, reads in samples:
                rows.writerow([name, *(path.resolve() for path in reads), *[""][len(reads) - 1 :]])
        run([*self.command, "classify", "-d", database, "--samples", sheet, "-t", THREADS,
             "--backend", "cpu", "-q", "--kraken-reads", place / "{sample}.calls",
             "--abundance", place / "{sample}.abundance", *self.options])  # fmt: skip
        found = {}
        for name, _ in samples:
            calls = calls_of((place / f"{name}.calls").read_text())
            found[name] = calls, _abundances(place / f"{name}.abundance")
        shutil.rmtree(place)
        return found


def _abundances(path: Path) -> Shares:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {
        int(row["taxid"]): float(row["percent_of_genomes"])
        for row in rows
        if row["rank"] == "species" and row["percent_of_genomes"]
    }


class Kraken:
    """Kraken 2 with a database of the same genomes.

    Args:
        genomes: of the database.
        library: their taxonomy.
        folder: where the database is or becomes.
    """

    def __init__(self, genomes: Sequence[Genome], library: Library, folder: Path) -> None:
        self.database = folder / KRAKEN
        self._genomes = genomes
        if not (self.database / "hash.k2d").exists():
            self._build(library)

    def _build(self, library: Library) -> None:
        shutil.rmtree(self.database, ignore_errors=True)
        shutil.copytree(library.taxonomy, self.database / "taxonomy")
        rows = library.map.read_text().splitlines()
        taxid = dict(line.split("\t")[:2] for line in rows if line)
        labelled = self.database / "all.fna"
        with labelled.open("wb") as out:
            for genome in self._genomes:
                for name, bases in records_of(genome.path):
                    if name in taxid:
                        out.write(f">{name}|kraken:taxid|{taxid[name]}\n".encode())
                        out.write(bases.tobytes() + b"\n")
        build: list[str | Path] = ["kraken2-build", "--db", self.database, "--threads", THREADS]
        run([*build, "--no-masking", "--add-to-library", labelled])
        run([*build, "--build"])
        labelled.unlink()

    def classify(self, reads: Sequence[Path], confidence: float = 0.0) -> Calls:
        """Calls of reads or pairs."""
        return calls_of(run(self._command(reads, confidence)))

    def _command(self, reads: Sequence[Path], confidence: float) -> list[str | Path]:
        pairs = ["--paired"] if len(reads) > 1 else []
        return ["kraken2", "--db", self.database, "--threads", THREADS, "--confidence",
                str(confidence), *pairs, *reads]  # fmt: skip

    def bracken(self, reads: Sequence[Path], length: int, sizes: Mapping[int, int]) -> Shares:
        """Shares of genome copies by Bracken: its reads, by sizes of the species' genomes."""
        report, output = self.database / "report.txt", self.database / "bracken.tsv"
        if not (self.database / f"database{length}mers.kmer_distrib").exists():
            run(["bracken-build", "-d", self.database, "-t", THREADS, "-l", str(length)])
        run([*self._command(reads, 0.0), "--report", report, "--output", "-"])
        run(["bracken", "-d", self.database, "-i", report, "-o", output, "-r", str(length),
             "-t", "1"])  # fmt: skip
        with output.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        reads_of = {int(row["taxonomy_id"]): float(row["new_est_reads"]) for row in rows}
        return {taxid: own / sizes[taxid] for taxid, own in reads_of.items() if taxid in sizes}


def has_sylph() -> bool:
    """Whether pysylph is installed."""
    return importlib.util.find_spec("pysylph") is not None


def sylph(genomes: Sequence[Genome], reads: Sequence[Path]) -> Shares:
    """Abundances of species by sylph with its defaults."""
    program = importlib.import_module("pysylph")
    sketcher = program.Sketcher()
    by_name = {own.path.name: own.species for own in genomes}
    database = program.Database(
        [
            sketcher.sketch_genome(
                name=own.path.name,
                contigs=[bases.tobytes().decode() for bases in sequences(own.path)],
            )
            for own in genomes
        ]
    )
    mates = [path.read_text().splitlines()[1::4] for path in reads]
    sample = sketcher.sketch_paired(name="mixture", r1=mates[0], r2=mates[1])
    shares: Shares = defaultdict(float)
    for result in program.Profiler(database).profile(sample):
        shares[by_name[result.genome_sketch.name]] += result.taxonomic_abundance
    return dict(shares)
