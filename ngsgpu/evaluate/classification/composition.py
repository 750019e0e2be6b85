"""Abundances estimated from calls, compared with the sample's composition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.evaluate.classification.result import AbundanceDeviation, TaxonShare
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
