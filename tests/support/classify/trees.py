"""Taxonomies and labels for tests: a small written one, and random ones for Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from ngsgpu.classify.database.targets import Labels
from ngsgpu.classify.params import SketchParameters
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.ranks import NO_RANK, RANKS, ROOT
from ngsgpu.taxonomy.tree import Taxonomy

NODES = """\
1 1 no rank root
131567 1 no rank cellular organisms
2 131567 superkingdom Bacteria
1224 2 phylum Pseudomonadota
1236 1224 class Gammaproteobacteria
543 1236 family Enterobacteriaceae
561 543 genus Escherichia
562 561 species Escherichia coli
83333 562 strain Escherichia coli K-12
620 543 genus Shigella
623 620 species Shigella flexneri
1239 2 phylum Bacillota
1279 1239 genus Staphylococcus
1280 1279 species Staphylococcus aureus
10239 1 acellular root Viruses
10710 10239 species Lambda
"""


def rows() -> list[tuple[int, int, str, str]]:
    """Taxid, parent, rank and name of the written taxonomy."""
    ranks = ("no rank", "acellular root", "superkingdom", *RANKS, "strain")
    found = []
    for line in NODES.splitlines():
        taxid, parent, rest = line.split(" ", 2)
        rank = next(rank for rank in sorted(ranks, key=len, reverse=True) if rest.startswith(rank))
        found.append((int(taxid), int(parent), rank, rest[len(rank) + 1 :]))
    return found


def write_dump(
    folder: Path,
    nodes: Sequence[tuple[int, int, str, str]] | None = None,
    merged: Sequence[tuple[int, int]] = (),
) -> Path:
    """Write nodes.dmp, names.dmp and merged.dmp as NCBI does."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = rows() if nodes is None else nodes
    tail = "\t|\tXX\t|\t0\t|\t1\t|\t11\t|\t1\t|\t0\t|\t1\t|\t1\t|\t0\t|\t\t|\n"
    (folder / "nodes.dmp").write_text(
        "".join(f"{taxid}\t|\t{parent}\t|\t{rank}{tail}" for taxid, parent, rank, _ in entries)
    )
    (folder / "names.dmp").write_text(
        "".join(
            f"{taxid}\t|\talias of {name}\t|\t\t|\tsynonym\t|\n"
            f"{taxid}\t|\t{name}\t|\t{name} <unique>\t|\tscientific name\t|\n"
            for taxid, _, _, name in entries
        )
    )
    (folder / "merged.dmp").write_text("".join(f"{old}\t|\t{new}\t|\n" for old, new in merged))
    return folder


def small(folder: Path) -> Taxonomy:
    """The written taxonomy, read from files."""
    return load_taxonomy(write_dump(folder, merged=[(99, 562), (98, 99), (97, 4711)]))


def make_taxonomy(parents: Sequence[int], ranks: Sequence[int]) -> Taxonomy:
    """A taxonomy of nodes 0 (the root) to n - 1 with taxids 1 to n."""
    names = [f"taxon {node}".encode() for node in range(len(parents))]
    return Taxonomy(
        taxid=np.arange(1, len(parents) + 1, dtype=np.int64),
        parent=np.array(parents, dtype=np.int32),
        rank=np.array([ROOT, *ranks[1:]], dtype=np.uint8),
        name_bytes=np.frombuffer(b"".join(names), dtype=np.uint8),
        name_start=np.cumsum([0, *map(len, names)]).astype(np.int64),
        merged_taxid=np.zeros(0, dtype=np.int64),
        merged_index=np.zeros(0, dtype=np.int32),
    )


@st.composite
def taxonomies(draw: st.DrawFn, most: int = 24) -> Taxonomy:
    """Random trees whose ranks fall from the root down, with nodes that have none."""
    size = draw(st.integers(1, most))
    parents, ranks, lowest = [0], [ROOT], [ROOT]
    for node in range(1, size):
        parent = draw(st.integers(0, node - 1))
        limit = lowest[parent]
        rank = draw(st.integers(0, limit - 1)) if limit > 0 and draw(st.booleans()) else NO_RANK
        parents.append(parent)
        ranks.append(rank)
        lowest.append(limit if rank == NO_RANK else rank)
    return make_taxonomy(parents, ranks)


def make_labels(
    taxonomy: Taxonomy, target_taxon: Sequence[int], lengths: Sequence[int] | None = None
) -> Labels:
    """Labels with reference sequences of the given nodes."""
    names = [f"ref_{number}.1".encode() for number in range(len(target_taxon))]
    return Labels(
        taxonomy=taxonomy,
        target_taxon=np.array(target_taxon, dtype=np.int32),
        target_bytes=np.frombuffer(b"".join(names), dtype=np.uint8),
        target_start=np.cumsum([0, *map(len, names)]).astype(np.int64),
        target_length=np.array(lengths or [1000] * len(names), dtype=np.int64),
        sketch=SketchParameters(),
    )
