"""Genomes with their taxa, changed copies of them, and which of them a database has."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.ranks import GENUS, SPECIES
from ngsgpu.taxonomy.tree import Taxonomy

ACGT: Final = np.frombuffer(b"ACGT", dtype=np.uint8)
COMPLEMENT: Final = bytes.maketrans(b"ACGT", b"TGCA")
CHANGED: Final = ("changed 1 %", "changed 2 %", "changed 3 %", "changed 4 %", "changed 5 %",
                  "changed 5 %", "changed 4 %")  # fmt: skip
"""Roles of genomes that the database has otherwise."""

Bases = NDArray[np.uint8]
Roles = dict[int, str]


@dataclass(frozen=True, slots=True)
class Genome:
    """A genome: its file, names of its sequences, taxids of species and genus (or -1)."""

    path: Path
    names: tuple[str, ...]
    species: int
    genus: int


@dataclass(frozen=True, slots=True)
class Library:
    """Genomes with a taxonomy.

    Attributes:
        genomes: those whose sequences have a taxon.
        taxonomy: folder of the dump files.
        map: table of sequence name and taxid.
        tree: the taxonomy.
    """

    genomes: tuple[Genome, ...]
    taxonomy: Path
    map: Path
    tree: Taxonomy


def text_of(path: Path) -> bytes:
    """The text of a file, decompressed by its name's ending."""
    packed = path.read_bytes()
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    return unpack(packed)


def records_of(path: Path) -> list[tuple[str, Bases]]:
    """Names and bases of a FASTA file's sequences."""
    found = []
    for record in text_of(path).split(b">")[1:]:
        header, _, body = record.partition(b"\n")
        bases = np.frombuffer(body.replace(b"\n", b"").upper(), dtype=np.uint8)
        found.append((header.split()[0].decode(), bases))
    return found


def sequences(path: Path) -> list[Bases]:
    """The bases of a FASTA file's sequences."""
    return [bases for _, bases in records_of(path)]


def read_library(references: Path, taxonomy: Path, table: Path) -> Library:
    """All genomes of a folder whose sequences have a taxon."""
    tree = load_taxonomy(taxonomy)
    ranked = tree.ranked_lineages()
    taxid = dict(line.split("\t")[:2] for line in table.read_text().splitlines() if line)
    genomes = []
    for path in sorted(references.glob("*.f*a*")):
        headers = (line for line in text_of(path).split(b"\n") if line.startswith(b">"))
        names = tuple(line[1:].split()[0].decode() for line in headers)
        known = [taxid[name] for name in names if name in taxid]
        if known:
            above = ranked[tree.index_of(int(known[0]))]
            species, genus = (
                int(tree.taxid[above[rank]]) if above[rank] >= 0 else -1
                for rank in (SPECIES, GENUS)
            )
            genomes.append(Genome(path, names, species, genus))
    return Library(tuple(genomes), taxonomy, table, tree)


def changed(bases: Bases, rate: float, source: np.random.Generator) -> Bases:
    """A sequence with substitutions, whose rate varies from 500 bases to the next."""
    local = np.minimum(source.gamma(2.0, rate / 2, len(bases) // 500 + 1), 0.3)
    places = np.flatnonzero(source.random(len(bases)) < np.repeat(local, 500)[: len(bases)])
    found = bases.copy()
    codes = np.minimum(np.searchsorted(ACGT, found[places]), 3)
    found[places] = ACGT[(codes + source.integers(1, 4, len(places))) % 4]
    return found


def deal(genomes: Sequence[Genome], seed: int) -> tuple[Roles, list[Genome]]:
    """The role of each genome that reads are drawn from, and the genomes of the database.

    5 genomes whose strain the database lacks while it has another of the species, 5 whose species
    and 4 whose genus it lacks, 3 that it has, and 7 that it has with 1 to 5 % of the bases changed.
    """
    order = [int(i) for i in np.random.default_rng(seed).permutation(len(genomes))]
    species = [genome.species for genome in genomes]
    genus = [genome.genus for genome in genomes]
    roles: Roles = {}
    for i in order:
        left = species.count(species[i]) - sum(species[j] == species[i] for j in roles)
        if left > 1 and len(roles) < 5:
            roles[i] = "strain"

    def others(taxon: list[int], of: list[int]) -> list[int]:
        taken = {taxon[i] for i in of}
        return [i for i in order if i not in roles and taxon[i] not in taken]

    rest = others(species, list(roles))
    lacked = [i for i in rest if genus.count(genus[i]) > 1][:5]
    rest = [i for i in others(species, [*roles, *lacked]) if i not in lacked]
    unrelated = {genus[i] for i in [*roles, *lacked]}
    strangers = [i for i in rest if genus[i] not in unrelated][:4]
    foreign = {genus[i] for i in strangers}
    rest = [i for i in rest if i not in strangers and genus[i] not in foreign]
    strains = list(roles)
    roles |= dict.fromkeys(lacked, "species") | dict.fromkeys(strangers, "genus")
    roles |= dict.fromkeys(rest[:3], "stays") | dict(zip(rest[3:10], CHANGED, strict=False))
    there = [
        genome
        for i, genome in enumerate(genomes)
        if i not in strains
        and genome.species not in {species[j] for j in lacked}
        and genome.genus not in foreign
    ]
    return roles, there


def drawn_bases(genome: Genome, role: str, source: np.random.Generator) -> list[Bases]:
    """What reads of a genome in a role are drawn from."""
    own = sequences(genome.path)
    if role not in CHANGED:
        return own
    return [changed(bases, float(role.split()[1]) / 100, source) for bases in own]
