"""A small world to classify in: a taxonomy, related genomes, reads of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from ngsgpu.classify.params import SketchParameters
from tests.support.classify.oracle import Oracle

SKETCH = SketchParameters(kmer=10, stride=51, smer=4)
WINDOWS = SketchParameters(kmer=10, sketch=8, window=60, stride=51)

# taxid, parent, rank, name
NODES = (
    (1, 1, "no rank", "root"),
    (2, 1, "superkingdom", "Bacteria"),
    (10, 2, "phylum", "P"),
    (20, 10, "genus", "G one"),
    (30, 10, "genus", "G two"),
    (21, 20, "species", "G one a"),
    (22, 20, "species", "G one b"),
    (31, 30, "species", "G two a"),
    (32, 31, "strain", "G two a x"),
    (40, 2, "species", "lonely"),
)
TAXA = (21, 21, 22, 22, 31, 32, 40, None, 21, 30, 22, 31, 40, 21, 30, 32, 22)


@dataclass(frozen=True)
class World:
    """Where the files are, and what is in them."""

    folder: Path
    references: list[Path]
    names: list[str]
    sequences: list[str]
    reads: list[str]
    oracle: Oracle

    @property
    def taxonomy(self) -> Path:
        return self.folder / "tax"

    @property
    def map(self) -> Path:
        return self.folder / "map.tsv"

    def fasta(self, name: str, reads: list[str]) -> Path:
        path = self.folder / name
        path.write_text("".join(f">r{i} comment\n{read}\n" for i, read in enumerate(reads)))
        return path

    def fastq(self, name: str, reads: list[str], suffix: str = "") -> Path:
        path = self.folder / name
        path.write_text(
            "".join(
                f"@r{i}{suffix} x\n{read}\n+\n{'I' * len(read)}\n" for i, read in enumerate(reads)
            )
        )
        return path


def lineage_of(taxid: int | None) -> dict[str, int]:
    above = {node: (parent, rank) for node, parent, rank, _ in NODES}
    lineage: dict[str, int] = {}
    while taxid is not None:
        parent, rank = above[taxid]
        rank = {"superkingdom": "domain", "strain": ""}.get(rank, rank)
        if taxid == 1:
            rank = "root"
        if rank:
            lineage[rank] = taxid
        taxid = None if parent == taxid else parent
    return lineage


def mutated(sequence: str, rate: float, source: random.Random) -> str:
    return "".join(source.choice("ACGT") if source.random() < rate else base for base in sequence)


def make_world(folder: Path, *, genome: int = 1200, reads: int = 150) -> World:
    source = random.Random(5)
    ancestor = "".join(source.choices("ACGT", k=genome))
    sequences = []
    for i in range(len(TAXA)):
        own = mutated(ancestor, 0.002 + 0.03 * (i % 4), source)
        if i in (6, 7):
            own = "".join(source.choices("ACGT", k=genome)) + ancestor[:300]
        sequences.append(own[: genome - 97 * (i % 10)])
    sequences[2] = sequences[2][:400] + "N" * 70 + sequences[2][470:]
    sequences[9] = sequences[9][:57]
    sequences[8] = sequences[0]  # equal: ties
    names = [f"NC_{i:06d}.1" for i in range(len(TAXA))]
    references = []
    for file, members in enumerate(([0, 1, 2], [3], list(range(4, len(TAXA))))):
        path = folder / f"ref{file}.fna"
        with path.open("w") as out:
            for i in members:
                text = sequences[i].lower() if i == 3 else sequences[i]
                lines = [text[at : at + 70] for at in range(0, len(text), 70)]
                out.write(f">{names[i]} something\n" + "\n".join(lines) + "\n")
        references.append(path)
    tax = folder / "tax"
    tax.mkdir()
    (tax / "nodes.dmp").write_text(
        "".join(f"{node}\t|\t{parent}\t|\t{rank}\t|\n" for node, parent, rank, _ in NODES)
    )
    (tax / "names.dmp").write_text(
        "".join(f"{node}\t|\t{name}\t|\t\t|\tscientific name\t|\n" for node, _, _, name in NODES)
    )
    (folder / "map.tsv").write_text(
        "".join(f"{name}\t{taxid}\n" for name, taxid in zip(names, TAXA, strict=True) if taxid)
    )
    drawn = []
    for i in range(reads):
        genome_text = source.choice(sequences)
        length = source.choice([12, 45, 60, 61, 100, 130, 240])
        start = source.randrange(max(1, len(genome_text) - length))
        read = mutated(genome_text[start : start + length], source.choice([0, 0.01, 0.05]), source)
        if i % 3 == 0:
            read = read[::-1].translate(str.maketrans("ACGTN", "TGCAN"))
        if i % 17 == 0:
            read = "".join(source.choices("ACGTN", k=length))
        drawn.append(read)
    oracle = Oracle(sequences, [lineage_of(taxid) for taxid in TAXA], SKETCH)
    return World(folder, references, names, sequences, drawn, oracle)


def more_references(folder: Path, count: int) -> list[Path]:
    """Write references for adding to a database: a sequence a file, named as its file."""
    paths = []
    for number in range(count):
        paths.append(folder / f"more{number}.fa")
        text = "".join("ACGT"[(at * at + at // 7 * number) % 7 % 4] for at in range(600))
        paths[-1].write_text(f">more{number}\n{text}\n")
    return paths
