"""Krona's text: a count and the names down to the taxon (``ktImportText SAMPLE.krona.txt``)."""

from __future__ import annotations

from ngsgpu.classify.outputs.tree import CountedTree


def krona_text(tree: CountedTree) -> str:
    """A line for every taxon that reads were called as, itself; the root's has no names.

    The counts add up to all reads.
    """
    lines = []
    if tree.unclassified > 0:
        lines.append(f"{tree.unclassified}\tUnclassified\n")
    names: list[str] = []
    for node, depth in tree.walk():
        del names[max(depth - 1, 0) :]
        if depth > 0:
            names.append(tree.taxonomy.name(node))
        if tree.direct[node] > 0:
            lines.append("\t".join([str(tree.direct[node]), *names]) + "\n")
    return "".join(lines)
