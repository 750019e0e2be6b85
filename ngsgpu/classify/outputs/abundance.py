"""The table of abundances at a rank."""

from __future__ import annotations

import numpy as np

from ngsgpu.classify.call.abundance import Abundance
from ngsgpu.taxonomy.tree import rank_name

HEADER = "taxid\trank\tname\treads\tpercent_of_reads\tpercent_of_classified\n"


def abundance_table(abundance: Abundance) -> str:
    """A line a taxon, most reads first, equal ones by taxid; the unclassified reads come last.

    Reads that rounding gave to no taxon are missing from the sums.
    """
    taxonomy, reads = abundance.taxonomy, abundance.reads
    classified = max(abundance.classified, 1)
    total = max(abundance.classified + abundance.unclassified, 1)
    seen = np.flatnonzero(reads)
    lines = [HEADER]
    for node in seen[np.argsort(-reads[seen], kind="stable")].tolist():
        count = int(reads[node])
        lines.append(
            f"{taxonomy.taxid[node]}\t{rank_name(int(taxonomy.rank[node]))}\t{taxonomy.name(node)}"
            f"\t{count}\t{100 * count / total:.4f}\t{100 * count / classified:.4f}\n"
        )
    share = f"{100 * abundance.unclassified / total:.4f}"
    lines.append(f"0\tno rank\tunclassified\t{abundance.unclassified}\t{share}\t\n")
    return "".join(lines)
