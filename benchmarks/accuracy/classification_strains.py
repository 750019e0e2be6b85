"""Calls of reads of genomes that no rule was chosen on, beside Kraken 2, by kind of reads.

    python -m benchmarks.accuracy.classification_strains --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --strains FOLDER --work FOLDER --draws 4 5 -o out.json

``--strains`` holds the genomes of Debian's ``ragout-examples`` and ``kleborate-examples``, unpacked
(``dpkg -x``): strains of three species, and four genomes of two genera that no reference is of. The
database has all references, or none of two of the three species, so that only their relatives are
there. ``--draws`` are draws of ``classification_lengths``. Databases are whole.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.classification_curves import RANKS
from benchmarks.accuracy.classification_density import labels_of
from benchmarks.accuracy.classification_holdout import read_genomes
from benchmarks.accuracy.classification_lengths import (
    LENGTHS,
    Sample,
    measure,
    named,
    samples,
    shown,
    summary,
)
from benchmarks.accuracy.classification_sets import READS, Drawn, files_of, sequences, write_reads
from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.classification_strains"
SCHEMA_VERSION: Final = 1
STRAINS: Final = {
    "DH1.fasta.gz": (562, 561),
    "COL.fasta.gz": (1280, 1279),
    "JKD6008.fasta.gz": (1280, 1279),
    "N315.fasta.gz": (1280, 1279),
    "RF122.fasta.gz": (1280, 1279),
    "Klebs_HS11286.fna.xz": (573, 570),
    "Klebs_Kp1084.fna.xz": (573, 570),
    "MGH78578.fna.xz": (573, 570),
    "G27.fasta.gz": (210, 209),
    "ELS37.fasta.gz": (210, 209),
    "O395.fasta.gz": (666, 662),
    "H1.fasta.gz": (666, 662),
}
"""Taxids of species and genus by file."""
LACKED: Final = frozenset((1280, 573))
"""Species that the second database lacks."""


def strains(wanted: argparse.Namespace, lacked: frozenset[int]) -> Sample:
    """Reads of ``STRAINS``, and the references without some species."""
    there = [own for own in read_genomes(wanted) if own.species not in lacked]
    folder = wanted.work / f"strains{len(lacked)}"
    if not (folder / "labels.tsv").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = np.random.default_rng(7)
        write_reads(drawn(wanted.strains, folder), there, source, folder, LENGTHS)
    reads = {kind: files_of(folder, kind, LENGTHS) for kind in LENGTHS}
    name = "strains, species lacked" if lacked else "strains"
    return Sample(name, reads, labels_of(folder / "labels.tsv"), there, folder, whole_only=True)


def drawn(places: Path, folder: Path) -> Iterator[Drawn]:
    """The genomes of ``STRAINS``."""
    for file, (own, genus) in STRAINS.items():
        yield Drawn(own, genus, file, sequences(unpacked(next(places.rglob(file)), folder)), READS)


def unpacked(path: Path, folder: Path) -> Path:
    """The genome as gzip."""
    if path.suffix == ".gz":
        return path
    copy = folder / f"{path.stem}.gz"
    copy.write_bytes(gzip.compress(lzma.decompress(path.read_bytes()), 1))
    return copy


def sets(wanted: argparse.Namespace) -> Iterator[tuple[str, list[Sample]]]:
    """Samples by set."""
    yield "strains", [strains(wanted, frozenset())]
    yield "strains, species lacked", [strains(wanted, LACKED)]
    if wanted.draws:
        whole = [replace(own, whole_only=True) for own in samples(wanted, wanted.draws)]
        yield "draws", whole


def table(document: dict[str, Any]) -> str:
    """Kinds of reads by program, sets side by side."""
    parts = document["sets"]
    rows = [["reads", "program", *(f"{part}: {rank}" for part in parts for rank in RANKS)]]
    for kind in ("all", *LENGTHS):
        for program in ("fraction 1", "kraken2"):
            own = [part["databases"][program]["kinds"][kind]["all"] for part in parts.values()]
            name = "ngsgpu" if program == "fraction 1" else named(program)
            rows.append([kind, name, *(cell for one in own for cell in shown(one))])
    return markdown(rows, names=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "strains", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, nargs="*", default=[4, 5], metavar="SEED")
    wanted = parser.parse_args()
    document: dict[str, Any] = {**head(SCHEMA, SCHEMA_VERSION), "sets": {}}
    for part, own in sets(wanted):
        measured = [measure(sample, wanted) for sample in own]
        names = [sample.name for sample in own]
        document["sets"][part] = {"samples": names, "databases": summary(measured)}
        print(part, file=sys.stderr, flush=True)
    write_document(document, wanted.out)
    print(table(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
