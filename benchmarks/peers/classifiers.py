"""The classifiers that are compared, and their command lines for building and classifying.

Standard library only, as ``commands``, and for the same reason.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DATABASE = "db"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What all programs get.

    Attributes:
        references: plain FASTA files, in order.
        labelled: the same in one file, with taxids in the headers, for Kraken 2.
        taxonomy: directory of nodes.dmp, names.dmp and ``map.accession2taxid``.
        map: name and taxid of each sequence.
        reads: FASTQ or FASTA, one file or two, plain or all .gz.
        threads: for each program.
        backend: of ngsgpu.
    """

    references: tuple[Path, ...]
    labelled: Path
    taxonomy: Path
    map: Path
    reads: tuple[Path, ...]
    threads: int
    backend: str


@dataclass(frozen=True, slots=True)
class Program:
    """How a program builds, and how it classifies; commands run in a separate folder.

    Attributes:
        name: in file names.
        executable: what is started.
        build: the commands that build the database ``DATABASE``.
        classify: the command that writes a line for each read to ``calls.tsv`` or ``calls.txt``.
        title: its name, for people.
        environment: its environment in ``envs/``; None if there is no conda package.
    """

    name: str
    executable: str
    build: Callable[[Inputs], list[list[str]]]
    classify: Callable[[Inputs], list[str]]
    title: str = ""
    environment: str | None = None

    @property
    def path(self) -> str | None:
        """Where the program is: on the PATH, or beside this Python."""
        beside = shutil.which(self.executable, path=str(Path(sys.executable).parent))
        return shutil.which(self.executable) or beside

    @property
    def version(self) -> str:
        """Command whose answer holds the version; MetaCache tells that of its databases only."""
        if self.executable.startswith("metacache"):
            return f"{self.executable} info {DATABASE}"
        return f"{self.executable} --version"

    @property
    def kept(self) -> str:
        """Pattern of its database's files, without what only building needs."""
        if self.executable == "ngsgpu":
            return f"{DATABASE}/**/*"
        return f"{DATABASE}/*.k2d" if self.executable == "kraken2" else f"{DATABASE}.*"

    @property
    def calls(self) -> str:
        """The file with a line for each read."""
        return "calls.tsv" if self.executable == "ngsgpu" else "calls.txt"


def ngsgpu_build(*options: str) -> Callable[[Inputs], list[list[str]]]:
    def commands(own: Inputs) -> list[list[str]]:
        return [
            ["ngsgpu", "db", "build", *map(str, own.references), "-d", DATABASE, "--taxonomy",
             str(own.taxonomy), "--map", str(own.map), "-t", str(own.threads), "--backend",
             own.backend, "-q", *options]
        ]  # fmt: skip

    return commands


def ngsgpu_classify(*options: str) -> Callable[[Inputs], list[str]]:
    def command(own: Inputs) -> list[str]:
        mates = ["-I", str(own.reads[1])] if len(own.reads) == 2 else []
        return [
            "ngsgpu", "classify", "-d", DATABASE, "-i", str(own.reads[0]), *mates, "-o",
            "calls.tsv", "--report", "report.txt", "-t", str(own.threads), "--backend",
            own.backend, "-q", *options,
        ]  # fmt: skip

    return command


def kraken_build(own: Inputs) -> list[list[str]]:
    script = (
        f"mkdir -p {DATABASE}/taxonomy && cp {own.taxonomy}/*.dmp {DATABASE}/taxonomy && "
        f"cp {own.taxonomy}/map.accession2taxid {DATABASE}/taxonomy/nucl.accession2taxid && "
        f"kraken2-build --add-to-library {own.labelled} --db {DATABASE} --no-masking && "
        f"kraken2-build --build --db {DATABASE} --threads {own.threads}"
    )
    return [["bash", "-c", script]]


def kraken_classify(own: Inputs) -> list[str]:
    paired = ["--paired"] if len(own.reads) == 2 else []
    packed = ["--gzip-compressed"] if own.reads[0].suffix == ".gz" else []
    return [
        "kraken2", "--db", DATABASE, *paired, *packed, "--threads", str(own.threads), "--output",
        "calls.txt", "--report", "report.txt", *map(str, own.reads),
    ]  # fmt: skip


def metacache_build(executable: str, *options: str) -> Callable[[Inputs], list[list[str]]]:
    def commands(own: Inputs) -> list[list[str]]:
        return [
            [executable, "build", DATABASE, *map(str, own.references), "-taxonomy",
             str(own.taxonomy), "-taxpostmap", str(own.taxonomy / "map.accession2taxid"),
             *(option.format(threads=own.threads) for option in options)]
        ]  # fmt: skip

    return commands


def metacache_classify(executable: str) -> Callable[[Inputs], list[str]]:
    def command(own: Inputs) -> list[str]:
        paired = ["-pairfiles"] if len(own.reads) == 2 else []
        return [
            executable, "query", DATABASE, *map(str, own.reads), *paired, "-taxids", "-threads",
            str(own.threads), "-out", "calls.txt",
        ]  # fmt: skip

    return command


def centrifuge_build(own: Inputs) -> list[list[str]]:
    return [
        ["centrifuge-build", "-p", str(own.threads), "--conversion-table", str(own.map),
         "--taxonomy-tree", str(own.taxonomy / "nodes.dmp"), "--name-table",
         str(own.taxonomy / "names.dmp"), ",".join(map(str, own.references)), DATABASE]
    ]  # fmt: skip


def centrifuge_classify(own: Inputs) -> list[str]:
    """One taxon a read (``-k 1``), as lines of Kraken."""
    mates = " ".join(f"-{mate} {path}" for mate, path in enumerate(own.reads, start=1))
    reads = mates if len(own.reads) == 2 else f"-U {own.reads[0]}"
    is_fasta = f'$(zcat -f {own.reads[0]} | head -c 1 | grep -q ">" && echo -f)'
    lines = r"""awk -F "\t" 'NR > 1 {print ($3 ? "C" : "U") "\t" $1 "\t" $3}' raw.txt > calls.txt"""
    script = (
        f"centrifuge {is_fasta} -k 1 -p {own.threads} -x {DATABASE} {reads} -S raw.txt "
        f"--report-file report.txt && {lines}"
    )
    return ["bash", "-c", script]


PROGRAMS = (
    Program("ngsgpu", "ngsgpu", ngsgpu_build(), ngsgpu_classify(), "ngsgpu", "ngsgpu"),
    Program(
        "ngsgpu-metacache",
        "ngsgpu",
        ngsgpu_build("--sketch", "16"),
        ngsgpu_classify("--metacache"),
        "ngsgpu, MetaCache's values",
        "ngsgpu",
    ),
    Program("kraken2", "kraken2", kraken_build, kraken_classify, "Kraken 2", "kraken2"),
    Program(
        "metacache",
        "metacache",
        metacache_build("metacache", "-threads", "{threads}"),
        metacache_classify("metacache"),
        "MetaCache, CPU",
        "metacache",
    ),
    # A part of its database lies on one GPU, and without this option it wants 65,535 of them.
    Program(
        "metacache-gpu",
        "metacache_gpu",
        metacache_build("metacache_gpu", "-parts", "1"),
        metacache_classify("metacache_gpu"),
        "MetaCache, GPU",
    ),
    Program(
        "centrifuge",
        "centrifuge",
        centrifuge_build,
        centrifuge_classify,
        "Centrifuge",
        "centrifuge",
    ),
)
