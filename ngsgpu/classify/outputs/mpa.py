"""A sample's taxa in MetaPhlAn's style, as Kraken 2 writes them with ``--use-mpa-style``."""

from __future__ import annotations

from ngsgpu.classify.outputs.tree import MAIN_CODES, CountedTree
from ngsgpu.taxonomy.ranks import rank_name


def mpa_report(tree: CountedTree) -> str:
    """A line for each taxon of a main rank: its lineage at these ranks, and reads of its clade.

    Taxa are in the order of ``kraken_report``. Unclassified reads have no line.
    """
    lines: list[str] = []
    lineage: list[str] = []
    for node, depth in tree.walk():
        del lineage[depth:]
        letter = MAIN_CODES.get(rank_name(int(tree.taxonomy.rank[node])))
        lineage.append(f"{letter.lower()}__{tree.taxonomy.name(node)}" if letter else "")
        if letter:
            lines.append(f"{'|'.join(filter(None, lineage))}\t{tree.clade[node]}\n")
    return "".join(lines)
