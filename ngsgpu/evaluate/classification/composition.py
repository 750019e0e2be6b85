"""Abundances estimated from calls, and profiles by rank, compared with a sample's composition.

The metrics of profiles are those of CAMI and OPAL (Meyer et al., Genome Biology 2019, 20:51), over
the taxa of a rank, with shares of all reads; reads that are unclassified, or called above the rank,
belong to no taxon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.evaluate.classification.result import AbundanceDeviation, ProfileDistance, TaxonShare
from ngsgpu.evaluate.classification.tally import Tally
from ngsgpu.evaluate.truth.origins import Origins
from ngsgpu.taxonomy.ranks import RANKS
from ngsgpu.taxonomy.tree import Taxonomy


def deviation(
    tally: Tally,
    taxonomy: Taxonomy,
    ranked: NDArray[np.int32],
    origins: Origins | None,
    composition: Mapping[int, float] | None,
    rank: str,
) -> AbundanceDeviation | None:
    """Compare abundances with a composition, or with the truth's reads; None without either.

    Args:
        tally: the calls.
        taxonomy: the tree.
        ranked: its ``ranked_lineages()``.
        origins: the truth about the reads.
        composition: share of each taxid.
        rank: rank of the taxa.
    """
    code = RANKS.index(rank)
    if composition is not None:
        expected = _expected_of_composition(composition, taxonomy, ranked, code)
    elif origins is not None:
        expected = _expected_of_truth(tally, taxonomy, origins, code)
    else:
        return None
    _, node, _, reads = tally.rows.T
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    np.add.at(direct, node[node >= 0], reads[node >= 0])
    unclassified = int(reads[node < 0].sum())
    abundance = estimate_abundance(taxonomy, direct, code, unclassified, ranked)
    shares = abundance.fractions()
    observed = {int(taxonomy.taxid[at]): float(shares[at]) for at in np.flatnonzero(shares)}
    elsewhere = float(reads[node == -2].sum() / max(int(reads.sum()), 1))
    above = {
        int(taxonomy.taxid[at])
        for taxid in expected
        if (known := taxonomy.index_of(taxid)) >= 0
        for at in taxonomy.lineage(known)[1:]
    }
    taxa = [
        TaxonShare(taxid, _name(taxonomy, taxid), share, observed.get(taxid, 0.0))
        for taxid, share in expected.items()
    ]
    # Taxa above the rank, on the lineage of a taxon of the sample, are not false.
    false = [
        TaxonShare(taxid, _name(taxonomy, taxid), 0.0, share)
        for taxid, share in observed.items()
        if taxid not in expected and taxid not in above
    ]
    taxa = sorted(
        [*taxa, *false], key=lambda taxon: (-taxon.expected, -taxon.observed, taxon.taxid)
    )
    wrong = elsewhere + sum(taxon.observed for taxon in false)
    missed = sum(abs(taxon.observed - taxon.expected) for taxon in taxa if taxon.expected > 0)
    return AbundanceDeviation(rank, tuple(taxa), wrong, wrong + missed)


def _name(taxonomy: Taxonomy, taxid: int) -> str:
    node = taxonomy.index_of(taxid)
    return taxonomy.name(node) if node >= 0 else f"taxid {taxid}"


def _at_rank(taxonomy: Taxonomy, ranked: NDArray[np.int32], taxid: int, rank: int) -> int:
    """Taxid of a taxon's ancestor at a rank; its own if it has none or is not known."""
    node = taxonomy.index_of(taxid)
    at = int(ranked[node, rank]) if node >= 0 else -1
    return int(taxonomy.taxid[at]) if at >= 0 else taxid


def _expected_of_composition(
    composition: Mapping[int, float], taxonomy: Taxonomy, ranked: NDArray[np.int32], rank: int
) -> dict[int, float]:
    expected: dict[int, float] = {}
    for taxid, share in composition.items():
        at = _at_rank(taxonomy, ranked, taxid, rank)
        expected[at] = expected.get(at, 0.0) + share
    return expected


def _expected_of_truth(
    tally: Tally, taxonomy: Taxonomy, origins: Origins, rank: int
) -> dict[int, float]:
    origin, _, _, reads = tally.rows.T
    known = origin >= 0
    counts = np.bincount(origin[known], weights=reads[known], minlength=len(origins.taxid))
    total = max(int(reads[known].sum()), 1)
    expected: dict[int, float] = {}
    for number in np.flatnonzero(counts).tolist():
        node = int(origins.lineage[number, rank])
        taxid = int(taxonomy.taxid[node]) if node >= 0 else int(origins.taxid[number])
        expected[taxid] = expected.get(taxid, 0.0) + float(counts[number]) / total
    return expected


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
