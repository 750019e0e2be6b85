"""A table of taxa and samples in the format BIOM 1.0 (JSON), for QIIME, phyloseq and the like."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ngsgpu._version import __version__
from ngsgpu.classify.outputs.tree import MAIN_CODES, CountedTree
from ngsgpu.taxonomy.ranks import RANKS


def biom_table(samples: Sequence[tuple[str, CountedTree]]) -> str:
    """A sparse table: a row for every taxon that reads of any sample were called as, itself.

    Rows are named by taxids and have their lineage at the main ranks (``k__`` to ``s__``).
    Unclassified reads are not in it. The format insists on a date: that of the environment's
    SOURCE_DATE_EPOCH, otherwise the beginning of 1970, so that equal runs give equal files.

    Args:
        samples: names and counts, all of one taxonomy.
    """
    if not samples:
        raise ValueError("a table needs at least one sample")
    taxonomy = samples[0][1].taxonomy
    used = np.zeros(len(taxonomy), dtype=np.bool_)
    for _, tree in samples:
        used |= tree.direct > 0
    nodes = np.flatnonzero(used).tolist()
    data = [
        [row, column, int(tree.direct[node])]
        for row, node in enumerate(nodes)
        for column, (_, tree) in enumerate(samples)
        if tree.direct[node] > 0
    ]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    document: dict[str, Any] = {
        "id": None,
        "format": "Biological Observation Matrix 1.0.0",
        "format_url": "http://biom-format.org",
        "type": "Taxon table",
        "generated_by": f"ngsgpu {__version__}",
        "date": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "matrix_type": "sparse",
        "matrix_element_type": "int",
        "shape": [len(nodes), len(samples)],
        "rows": [
            {
                "id": str(taxonomy.taxid[node]),
                "metadata": {"taxonomy": lineage_at_main_ranks(samples[0][1], node)},
            }
            for node in nodes
        ],
        "columns": [{"id": name, "metadata": None} for name, _ in samples],
        "data": data,
    }
    return json.dumps(document) + "\n"


def lineage_at_main_ranks(tree: CountedTree, node: int) -> list[str]:
    """Names at the main ranks below the kingdom level, as ``p__Bacillota``; empty if missing.

    Domains stand for kingdoms, as is usual in this format.
    """
    taxonomy = tree.taxonomy
    names: dict[str, str] = {}
    for at in taxonomy.lineage(node):
        rank = int(taxonomy.rank[at])
        if rank < len(RANKS):
            names.setdefault(RANKS[rank], taxonomy.name(at))
    levels = [rank for rank in MAIN_CODES if rank not in ("domain", "kingdom")]
    first = names.get("domain", names.get("kingdom", ""))
    return [
        f"k__{first}",
        *(f"{MAIN_CODES[rank].lower()}__{names.get(rank, '')}" for rank in levels),
    ]
