"""Tables of taxa by samples: reads, abundances, TAXPASTA's standard profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.classify.outputs.biom import lineage_at_main_ranks
from ngsgpu.classify.outputs.tree import MAIN_CODES, CountedTree
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES

Samples = Sequence[tuple[str, CountedTree]]

MERGED_RANKS: Final = tuple(rank for rank in MAIN_CODES if rank != "kingdom")
"""Ranks of the tables, from the highest to the lowest."""
_COLUMNS: Final = ("rank", "taxid", "name", "lineage")


def checked_ranks(names: Iterable[str]) -> list[str]:
    """Ranks in the order of the tables.

    Raises:
        UsageError: none is given, or a table has no such rank.
    """
    wanted = list(names)
    unknown = [name for name in wanted if name not in MERGED_RANKS]
    if unknown or not wanted:
        said = ", ".join(map(repr, unknown)) or "none"
        raise UsageError(f"`ranks`: {said}; choose from {','.join(MERGED_RANKS)}")
    return [rank for rank in MERGED_RANKS if rank in wanted]


def reads_table(samples: Samples, ranks: Sequence[str] = MERGED_RANKS) -> str:
    """Reads of each taxon and all below it, a line for every taxon of a rank.

    Within a rank, taxa with the most reads in all samples come first, equal ones by taxid. The
    unclassified reads stand in the first line.

    Args:
        samples: names and counts, all on one tree.
        ranks: names of ranks.
    """
    taxonomy = samples[0][1].taxonomy
    clades = np.stack([tree.clade for _, tree in samples])
    lines = [_header(samples), _unclassified([str(tree.unclassified) for _, tree in samples])]
    for rank in ranks:
        at_rank = np.where(taxonomy.rank == RANK_CODES[rank], clades, 0)
        lines += _rows(samples, rank, at_rank, [[str(n) for n in row] for row in at_rank.tolist()])
    return "".join(lines)


def abundance_tables(samples: Samples, ranks: Sequence[str] = MERGED_RANKS) -> str:
    """Estimated abundances at each rank, in per cent of a sample's reads.

    ``rank`` is the rank of the estimate; a taxon whose lineage lacks it is of a higher one. The
    unclassified reads stand in the first line.

    Args:
        samples: names and counts, all on one tree.
        ranks: names of ranks.
    """
    totals = [max(tree.total, 1) for _, tree in samples]
    shares = [
        f"{100 * tree.unclassified / total:.4f}"
        for (_, tree), total in zip(samples, totals, strict=True)
    ]
    lines = [_header(samples), _unclassified(shares)]
    lineages = samples[0][1].taxonomy.ranked_lineages()
    for rank in ranks:
        reads = np.stack(
            [
                estimate_abundance(
                    tree.taxonomy, tree.direct, RANK_CODES[rank], lineages=lineages
                ).reads
                for _, tree in samples
            ]
        )
        cells = [
            [f"{100 * count / total:.4f}" for count in row]
            for row, total in zip(reads.tolist(), totals, strict=True)
        ]
        lines += _rows(samples, rank, reads, cells)
    return "".join(lines)


def taxpasta_table(samples: Samples) -> str:
    """What ``taxpasta merge`` makes of the samples' reports: reads called as each taxon itself.

    Like there, taxa without directly assigned reads are in it, taxa are in the order of the first
    report that has them, and taxid 0 has the unclassified reads, if a report states them.
    """
    taxonomy = samples[0][1].taxonomy
    rows = {"taxonomy_id": [name for name, _ in samples]}
    for _, tree in samples:
        if tree.states_unclassified and "0" not in rows:
            rows["0"] = [str(other.unclassified) for _, other in samples]
        for node, _ in tree.walk():
            taxid = str(taxonomy.taxid[node])
            if taxid not in rows:
                rows[taxid] = [str(other.direct[node]) for _, other in samples]
    return "".join("\t".join([taxid, *cells]) + "\n" for taxid, cells in rows.items())


def _header(samples: Samples) -> str:
    return "\t".join([*_COLUMNS, *(name for name, _ in samples)]) + "\n"


def _unclassified(cells: list[str]) -> str:
    return "\t".join(["no rank", "0", "unclassified", "", *cells]) + "\n"


def _rows(
    samples: Samples, rank: str, reads: NDArray[np.int64], cells: Sequence[Sequence[str]]
) -> list[str]:
    """Lines of the taxa with reads; ``reads`` and ``cells`` are by sample and node."""
    tree = samples[0][1]
    level = MERGED_RANKS.index(rank) + 1
    sums = reads.sum(axis=0)
    seen = np.flatnonzero(sums)
    lines = []
    for node in seen[np.argsort(-sums[seen], kind="stable")].tolist():
        lineage = ";".join(lineage_at_main_ranks(tree, node)[:level])
        taxid, name = str(tree.taxonomy.taxid[node]), tree.taxonomy.name(node)
        lines.append("\t".join([rank, taxid, name, lineage, *(own[node] for own in cells)]) + "\n")
    return lines
