"""Simulated reads whose truth is known, made by ART, many processes at a time.

Three data sets have names, and are made from a folder of genomes; any FASTA file makes one too:

- S: the first 5 Mb of human chromosome 20 and yeast, 2 x 100 bases, 30 x, fragments of 300;
- L: bacterial genomes of about 102 Mb in all, the same profile: about 30.6 million reads;
- M: E. coli K-12, 834,552 pairs of 2 x 150 bases whose mates overlap, fragments of 240;
  M20 is M twenty times, one copy behind the other, and so is any other number.

``python -m benchmarks.harness.datasets S L --genomes GENOMES --folder DATA`` writes
``DATA/S/r1.fq`` and so on, and leaves alone what is there already. References are cut into pieces
of a megabase, so that the same reads come from any number of processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.harness.document import write_document
from benchmarks.harness.measuring import BenchmarkError, measure
from scripts.simulation_chunks import ChunkError, cut_sequences, read_fasta

PIECE_BASES = 1_000_000
L_BASES = 104_000_000
"""L takes bacterial genomes in the order of their names as long as they have fewer bases."""

COPY_BYTES = 8 << 20
DESCRIPTION = "dataset.json"
MATES = ("r1.fq", "r2.fq")
TRUTH = "r_errFree.sam"


@dataclass(frozen=True, slots=True)
class DataSet:
    """What is drawn from which genomes.

    Attributes:
        name: of the data set, and of its folder.
        genomes: FASTA files, plain or gzip-compressed.
        stage: the stage of the analysis that it is for.
        profile: ART's name for the sequencing machine.
        read_length: bases.
        coverage: bases of the reads for a base of the genomes; 0 where ``pairs`` says how many.
        pairs: number of pairs; 0 where ``coverage`` does.
        insert: mean length of the fragments, in bases.
        deviation: standard deviation of that.
        seed: of the first piece; each has its own.
        copies: how often the pairs are in the files, one after the other.
    """

    name: str
    genomes: tuple[Path, ...]
    stage: str = "correct"
    profile: str = "HS20"
    read_length: int = 100
    coverage: float = 30
    pairs: int = 0
    insert: int = 300
    deviation: int = 10
    seed: int = 1
    copies: int = 1

    @property
    def art(self) -> str:
        """ART's command but for the number of reads, the truth, the seed and the piece."""
        return (
            f"art_illumina -ss {self.profile} -p -l {self.read_length} -m {self.insert} "
            f"-s {self.deviation} -na -q -i genome.fa -o r"
        )


def s_genomes(folder: Path) -> list[Path]:
    """A mammal's and a fungus's sequence."""
    names = ("human_chr20_first_5Mb.fa.gz", "saccharomyces_cerevisiae_R64.fa.gz")
    return [folder / "eukaryote" / name for name in names]


def l_genomes(folder: Path) -> list[Path]:
    """The first bacterial genomes that have less than ``L_BASES`` together."""
    paths = sorted((folder / "bacteria").glob("*.fna.gz"))
    sizes = accumulate(sum(len(bases) for _, bases in read_fasta(path)) for path in paths)
    # Lazy: genomes behind the first that does not fit are not read.
    return [path for path, _ in _taken_while_below(paths, sizes)]


def _taken_while_below(paths: list[Path], sizes: Iterator[int]) -> Iterator[tuple[Path, int]]:
    for path, size in zip(paths, sizes, strict=True):
        if size > L_BASES:
            return
        yield path, size


def m_genomes(folder: Path) -> list[Path]:
    """One chromosome."""
    return [folder / "bacteria" / "escherichia_coli__K_12_MG1655.fna.gz"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named data set before its genomes are looked for."""

    genomes: Callable[[Path], list[Path]]
    settings: dict[str, Any]


NAMED = {
    "S": Recipe(s_genomes, {}),
    "L": Recipe(l_genomes, {}),
    "L4": Recipe(l_genomes, {"coverage": 120}),
    "M": Recipe(
        m_genomes,
        {
            "stage": "merge",
            "profile": "HS25",
            "read_length": 150,
            "coverage": 0,
            "pairs": 834_552,
            "insert": 240,
            "deviation": 20,
        },
    ),
}


REPEATED = re.compile(r"M([1-9]\d*)")
"""Names of the data sets that are M several times."""


def data_set(name: str, genomes: Path | None, **drawn: int) -> DataSet:
    """A named data set, or that of a FASTA file.

    Args:
        name: S, L, M, M20 and so on, or the path of a FASTA file.
        genomes: folder of genomes for those with names, with folders ``bacteria`` and
            ``eukaryote``.
        drawn: settings of a FASTA file's data set.

    Raises:
        BenchmarkError: the genomes are not there.
    """
    repeated = REPEATED.fullmatch(name)
    if name not in NAMED and not repeated:
        path = Path(name)
        made = DataSet(path.name.removesuffix(".gz").rpartition(".")[0] or path.name, (path,))
        made = replace(made, **drawn)  # type: ignore[arg-type]
    elif genomes is None:
        raise BenchmarkError(f"data set {name} is made from genomes; name their folder: --genomes")
    else:
        recipe = NAMED["M" if repeated else name]
        made = DataSet(name, tuple(recipe.genomes(genomes)), **recipe.settings)
        if repeated:
            made = replace(made, copies=int(repeated[1]))
    for path in made.genomes:
        if not path.is_file():
            raise BenchmarkError(f"data set {name}: {path} is not there")
    if not made.genomes:
        raise BenchmarkError(f"data set {name}: {genomes} has no genomes for it")
    return made


def make(data: DataSet, folder: Path, *, processes: int, truth: bool) -> dict[str, Any]:
    """Make ``r1.fq`` and ``r2.fq`` in ``folder``, and ``r_errFree.sam`` if the truth is wanted.

    Nothing is done where they are there already, made in the same way.

    Args:
        data: what to draw.
        folder: where the files go.
        processes: how many of ART run at a time; the reads do not depend on it.
        truth: whether the error-free reads are wanted; that takes twice the time.

    Returns:
        Name, genomes and their bases, number of reads, how they were made.

    Raises:
        BenchmarkError: a genome cannot be used, or ART fails.
    """
    spec = asdict(data) | {"genomes": [path.name for path in data.genomes]}
    described = folder / DESCRIPTION
    if described.is_file():
        found: dict[str, Any] = json.loads(described.read_text())
        if found["made"] == spec and found["truth"] >= truth:
            return found
    shutil.rmtree(folder, ignore_errors=True)
    pieces = folder / "pieces"
    if truth and data.copies > 1:
        raise BenchmarkError(f"{data.name}: reads that are there several times have no truth")
    bases = _cut(data, pieces)
    count = len(list(pieces.iterdir()))
    names = [*MATES, *([TRUTH] if truth else [])]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda piece: _simulate(data, pieces, piece, count, truth), range(count)))
        lines = [
            _join([pieces / str(piece) / name for piece in range(count)], folder / name, pool)
            for name in names
        ]
    shutil.rmtree(pieces)
    for name in MATES:
        _repeat(folder / name, data.copies)
    document = {
        "name": data.name,
        "made": spec,
        "genome_bases": bases,
        "reads": 2 * (lines[0] // 4) * data.copies,
        "pieces": count,
        "simulation": data.art,
        "truth": truth,
    }
    write_document(document, described)
    return document


def _cut(data: DataSet, pieces: Path) -> int:
    """Write the genomes as ``pieces/0.fasta`` and so on; return their bases."""
    sequences: dict[str, str] = {}
    try:
        for path in data.genomes:
            for name, bases in read_fasta(path):
                if name in sequences:
                    raise BenchmarkError(f"two of the genomes have a sequence named {name}")
                sequences[name] = bases
        total = sum(map(len, sequences.values()))
        cut_sequences(sequences, max(1, round(total / PIECE_BASES)), data.insert, pieces)
    except ChunkError as error:
        raise BenchmarkError(f"{data.name}: {error}") from error
    return total


def write_pieces(data: DataSet, path: Path) -> None:
    """Write what reads are drawn from, the pieces of the genomes, to one FASTA file.

    Raises:
        BenchmarkError: a genome cannot be used.
    """
    pieces = path.with_name(f"{path.name}.pieces")
    _cut(data, pieces)
    with path.open("wb") as whole:
        for piece in range(len(list(pieces.iterdir()))):
            whole.write((pieces / f"{piece}.fasta").read_bytes())
    shutil.rmtree(pieces)


def _simulate(data: DataSet, pieces: Path, piece: int, count: int, truth: bool) -> None:
    """Draw the reads of one piece in a separate folder."""
    folder = pieces / str(piece)
    folder.mkdir()
    (pieces / f"{piece}.fasta").rename(folder / "genome.fa")
    if data.pairs:
        # Pieces of one sequence, for each of which ART makes the requested number of pairs.
        share = data.pairs * (piece + 1) // count - data.pairs * piece // count
        amount = f"-c {share}"
    else:
        amount = f"-f {data.coverage}"
    command = f"{data.art} {amount} -rs {data.seed + piece}" + (" -ef" if truth else "")
    measure(command.split(), folder)


def _join(parts: list[Path], target: Path, pool: ThreadPoolExecutor) -> int:
    """Move the contents of files into one, in order; return its number of lines."""
    sizes = [part.stat().st_size for part in parts]
    starts = accumulate(sizes, initial=0)
    with target.open("wb") as out:
        return sum(pool.map(lambda part, at: _move(part, out.fileno(), at), parts, starts))


def _move(part: Path, target: int, at: int) -> int:
    """Copy a file to a place in an open one and remove it; return its number of lines."""
    lines = 0
    with part.open("rb", buffering=0) as source:
        while block := source.read(COPY_BYTES):
            lines += block.count(b"\n")
            view = memoryview(block)
            while view:
                written = os.pwrite(target, view, at)
                view, at = view[written:], at + written
    part.unlink()
    return lines


def _repeat(path: Path, copies: int) -> None:
    """Append a file to itself until it is there so often."""
    size = path.stat().st_size
    with path.open("rb", buffering=0) as source, path.open("ab", buffering=0) as target:
        left = size * (copies - 1)
        while left:
            # Never beyond the first copy, which stays as it is.
            source.seek((size * copies - left) % size)
            block = source.read(min(COPY_BYTES, size - source.tell()))
            left -= target.write(block)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make data sets and say what they are."""
    parser = argparse.ArgumentParser(prog="datasets", description="Make simulated reads.")
    add = parser.add_argument
    add("data", nargs="+", help="S, L, M, M20 and so on, or FASTA files")
    add("--genomes", type=Path, help="folder of genomes for S, L and M")
    add("--folder", type=Path, required=True, help="each data set gets a folder in it")
    add("--truth", action="store_true", help="write the error-free reads as well")
    add("-t", "--processes", type=int, default=os.cpu_count() or 1, help="ART's at a time")
    settings = parser.parse_args(arguments)
    try:
        for name in settings.data:
            begin = time.perf_counter()
            data = data_set(name, settings.genomes)
            folder = settings.folder / data.name
            made = make(data, folder, processes=settings.processes, truth=settings.truth)
            print(
                f"{folder}: {made['reads']:,} reads of {made['genome_bases']:,} bases, "
                f"{time.perf_counter() - begin:.1f} s"
            )
    except (BenchmarkError, OSError) as error:
        print(f"datasets: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
