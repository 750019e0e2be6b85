"""The profile of CAMI and Bioboxes, which OPAL reads; name it ``SAMPLE.profile``."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from ngsgpu.classify.outputs.tree import CountedTree
from ngsgpu.taxonomy.ranks import RANK_CODES

VERSION: Final = "0.10.0"

CAMI_RANKS: Final = {
    "superkingdom": "domain",
    "phylum": "phylum",
    "class": "class",
    "order": "order",
    "family": "family",
    "genus": "genus",
    "species": "species",
}
"""CAMI's ranks and ours, from the root down."""


def cami_profile(tree: CountedTree, sample: str) -> str:
    """Percentages of all reads by taxon, at each of CAMI's ranks.

    Unclassified reads and calls above a rank are missing from that rank's sum. Ranks missing from a
    lineage are empty in its paths.

    Args:
        tree: the sample's counts.
        sample: its name; characters that CAMI does not allow are replaced by underscores.
    """
    lines = [
        f"@SampleID:{re.sub(r'[^A-Za-z0-9._]', '_', sample)}\n",
        f"@Version:{VERSION}\n",
        f"@Ranks:{'|'.join(CAMI_RANKS)}\n",
        "@@TAXID\tRANK\tTAXPATH\tTAXPATHSN\tPERCENTAGE\n",
    ]
    taxonomy, total = tree.taxonomy, max(tree.total, 1)
    ranked = {rank: RANK_CODES[ours] for rank, ours in CAMI_RANKS.items()}
    rows: dict[str, list[tuple[int, int]]] = {rank: [] for rank in CAMI_RANKS}
    for node in np.flatnonzero(tree.clade).tolist():
        for rank, code in ranked.items():
            if int(taxonomy.rank[node]) == code:
                rows[rank].append((-int(tree.clade[node]), node))
    for rank, found in rows.items():
        for clade, node in sorted(found):
            path = _path(tree, node, rank)
            taxids = "|".join("" if at < 0 else str(taxonomy.taxid[at]) for at in path)
            names = "|".join("" if at < 0 else taxonomy.name(at).replace("|", " ") for at in path)
            share = f"{100 * -clade / total:.10f}"
            lines.append(f"{taxonomy.taxid[node]}\t{rank}\t{taxids}\t{names}\t{share}\n")
    return "".join(lines)


def _path(tree: CountedTree, node: int, rank: str) -> list[int]:
    """Nodes at CAMI's ranks from the root down to this one; -1 where there is none."""
    at_rank = {int(tree.taxonomy.rank[at]): at for at in tree.taxonomy.lineage(node)[1:]}
    path: list[int] = []
    for name, ours in CAMI_RANKS.items():
        if name == rank:
            return [*path, node]
        path.append(at_rank.get(RANK_CODES[ours], -1))
    raise AssertionError(rank)
