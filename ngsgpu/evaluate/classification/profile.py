"""Taxonomic profiles by rank against the truth: which taxa are found, and in which shares.

The metrics are those of CAMI and OPAL (Meyer et al., Genome Biology 2019, 20:51), over the taxa of
a rank, with shares of all reads; reads that are unclassified, or called above the rank, belong to
no taxon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.classification.result import ProfileDistance
from ngsgpu.evaluate.classification.tally import Tally
from ngsgpu.evaluate.truth.origins import Origins
from ngsgpu.taxonomy.ranks import RANKS

_NONE: Final = -1


def profile_distances(
    tally: Tally, ranked: NDArray[np.int32], origins: Origins | None, ranks: Sequence[str]
) -> dict[str, ProfileDistance]:
    """Distances between the profile of the calls and that of the truth, by rank.

    Args:
        tally: the calls.
        ranked: ``ranked_lineages()`` of the taxonomy.
        origins: the truth; without it there are no distances.
        ranks: ranks of the taxa.
    """
    if origins is None:
        return {}
    rows = tally.rows[tally.rows[:, 0] >= 0]
    origin, node, _, reads = rows.T
    found = {}
    for rank in ranks:
        code = RANKS.index(rank)
        called = np.where(node >= 0, ranked[np.maximum(node, 0), code], _NONE)
        expected = _shares(origins.lineage[origin, code], reads, len(ranked))
        observed = _shares(called, reads, len(ranked))
        is_expected, is_observed = expected > 0, observed > 0
        found[rank] = ProfileDistance(
            tp=int((is_expected & is_observed).sum()),
            fp=int((is_observed & ~is_expected).sum()),
            fn=int((is_expected & ~is_observed).sum()),
            l1_norm=float(np.abs(expected - observed).sum()),
            shares=float(expected.sum() + observed.sum()),
        )
    return found


def _shares(node: NDArray[np.integer], reads: NDArray[np.int64], nodes: int) -> NDArray[np.float64]:
    """Share of all reads by node, float64[nodes]; negative nodes are none."""
    has = node >= 0
    counts = np.bincount(node[has], weights=reads[has], minlength=nodes)
    return counts / max(int(reads.sum()), 1)
