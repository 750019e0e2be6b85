"""A sample's report as Kraken writes it, for MultiQC, TAXPASTA, Bracken, Pavian; Krona's text.

Name it ``SAMPLE.kraken2.report.txt``: MultiQC then finds it and calls the sample ``SAMPLE``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ngsgpu.classify.outputs.tree import MAIN_CODES, CountedTree
from ngsgpu.taxonomy.ranks import RANKS, ROOT


def kraken_report(tree: CountedTree) -> str:
    """Lines of per cent, reads of the clade, reads of the taxon itself, rank, taxid, name.

    The first line is that of the unclassified reads, also where there are none. Ranks other than
    the main ones have the letter of the one above and the number of steps below it (``S1``).
    """
    return "".join(_lines(tree))


def _lines(tree: CountedTree) -> Iterator[str]:
    total = max(tree.total, 1)

    def line(clade: int, direct: int, code: str, taxid: int, name: str) -> str:
        return f"{100 * clade / total:6.2f}\t{clade}\t{direct}\t{code}\t{taxid}\t{name}\n"

    yield line(tree.unclassified, tree.unclassified, "U", 0, "unclassified")
    taxonomy = tree.taxonomy
    codes: list[tuple[str, int]] = []
    for node, depth in tree.walk():
        del codes[depth:]
        letter = _letter(int(taxonomy.rank[node]))
        above = codes[-1] if codes else ("R", -1)
        letter, steps = (letter, 0) if letter else (above[0], above[1] + 1)
        codes.append((letter, steps))
        yield line(
            int(tree.clade[node]),
            int(tree.direct[node]),
            f"{letter}{steps}" if steps else letter,
            int(taxonomy.taxid[node]),
            "  " * depth + taxonomy.name(node),
        )


def _letter(rank: int) -> str | None:
    if rank == ROOT:
        return "R"
    return MAIN_CODES.get(RANKS[rank]) if rank < len(RANKS) else None


def krona_text(tree: CountedTree) -> str:
    """Krona's text, a line for every taxon that reads were called as; the root's has no names.

    For ``ktImportText``. The counts add up to all reads.
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
