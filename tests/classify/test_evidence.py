"""Species that a sample holds and species that only have relatives in it, against plain Python."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.call.evidence import (
    ACCEPTED,
    GENUS_ACCEPTED,
    REJECTED,
    EvidenceParameters,
    SpeciesEvidence,
    raise_rank,
    weigh,
)
from ngsgpu.classify.params import PER_MILLION, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.tree import RANK_CODES, Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples

RULES = QueryRules(
    min_hits=2, difference=PER_MILLION, confidence=0, species_confidence=0, insert_size=0,
    lowest=0, highest=RANK_CODES["domain"], best_alone=0,
)  # fmt: skip
TARGETS = [83333, 562, 623, 1280, 10710, 543, None]
"""Taxa of the reference sequences; the last but one has no species, the last no taxon."""

Row = list[tuple[int, int]]


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    return trees.small(tmp_path_factory.mktemp("dump"))


def nodes(taxonomy: Taxonomy) -> np.ndarray:
    found = [-1 if taxid is None else taxonomy.index_of(taxid) for taxid in TARGETS]
    return np.array(found, dtype=np.int32)


def arrays(rows: list[Row], most: int = 3) -> CandidateArrays:
    best = CandidateArrays.empty(len(rows), most)
    for i, row in enumerate(rows):
        for j, (target, hits) in enumerate(row):
            best.target[i, j], best.hits[i, j] = target, hits
            best.window_begin[i, j] = 10 * i + j
            best.window_end[i, j] = 10 * i + j + 1
    return best


def taxon_of(taxonomy: Taxonomy, target: int, rank: str) -> int | None:
    taxid = TARGETS[target]
    if taxid is None:
        return None
    lineage = taxonomy.lineage(taxonomy.index_of(taxid))
    return next((at for at in lineage if taxonomy.rank[at] == RANK_CODES[rank]), None)


def species_of(taxonomy: Taxonomy, target: int) -> int | None:
    return taxon_of(taxonomy, target, "species")


@st.composite
def reads(draw: st.DrawFn) -> list[tuple[Row, int]]:
    found = []
    for _ in range(draw(st.integers(0, 12))):
        targets = draw(st.permutations(range(len(TARGETS))))[: draw(st.integers(0, 3))]
        hits = sorted((draw(st.integers(1, 24)) for _ in targets), reverse=True)
        found.append((list(zip(targets, hits, strict=True)), draw(st.integers(24, 30))))
    return found


def oracle_medians(taxonomy: Taxonomy, sample: list[tuple[Row, int]]) -> dict[int, int]:
    shares: dict[int, list[int]] = {}
    for row, features in sample:
        if not row or row[0][1] < RULES.min_hits:
            continue
        ties = {species_of(taxonomy, target) for target, hits in row if hits == row[0][1]}
        species = ties.pop()
        if not ties and species is not None and row[0][1] * 100 // features >= 8:
            shares.setdefault(species, []).append(row[0][1] * 100 // features)
    return {species: sorted(values)[(len(values) - 1) // 2] for species, values in shares.items()}


@given(
    sample=reads(),
    share=st.sampled_from([0.1, 0.35, 0.5, 1.0]),
    genus_share=st.sampled_from([0.0, 0.2, 0.35, 0.9]),
)
@examples(120)
def test_belief_is_by_the_median(
    taxonomy: Taxonomy, sample: list[tuple[Row, int]], share: float, genus_share: float
) -> None:
    lineages = taxonomy.ranked_lineages()
    evidence = SpeciesEvidence(nodes(taxonomy), lineages, RULES.min_hits)
    features = np.array([count for _, count in sample], dtype=np.int64)
    rows = [row for row, _ in sample]
    half = len(rows) // 2
    evidence.add(arrays(rows[:half]), features[:half])
    evidence.add(arrays(rows[half:]), features[half:])
    medians = oracle_medians(taxonomy, sample)
    assert evidence.medians() == medians
    for target, found in enumerate(
        evidence.accepted(EvidenceParameters(share, genus_share)).tolist()
    ):
        species, genus = species_of(taxonomy, target), taxon_of(taxonomy, target, "genus")
        of_genus = max(
            medians.get(species_of(taxonomy, other) or -1, -1)
            for other in range(len(TARGETS))
            if taxon_of(taxonomy, other, "genus") == genus
        )
        if species is None or medians.get(species, -1) >= Fraction(str(share)) * 100:
            assert found == ACCEPTED
        elif genus is None or of_genus >= Fraction(str(genus_share)) * 100:
            assert found == GENUS_ACCEPTED
        else:
            assert found == REJECTED


@given(
    sample=reads(),
    accepted=st.lists(
        st.sampled_from([REJECTED, GENUS_ACCEPTED, ACCEPTED]), min_size=7, max_size=7
    ),
)
@examples(120)
def test_doubted_candidates_give_way(sample: list[tuple[Row, int]], accepted: list[int]) -> None:
    best = arrays([row for row, _ in sample])
    left, acceptance = weigh(best, np.array(accepted, dtype=np.uint8), RULES)
    for i, (row, _) in enumerate(sample):
        near = [
            target
            for place, (target, hits) in enumerate(row)
            if place == 0 or hits > row[0][1] - RULES.min_hits
        ]
        assert acceptance[i] == max((accepted[target] for target in near), default=ACCEPTED)
        expected = row
        if row and acceptance[i] == ACCEPTED:
            expected = [(target, hits) for target, hits in row if accepted[target] == ACCEPTED]
        kept = [
            (int(target), int(hits))
            for target, hits in zip(left.target[i], left.hits[i], strict=True)
            if target >= 0
        ]
        assert kept == expected
        places = [row.index(pair) for pair in expected]
        assert left.window_begin[i, : len(places)].tolist() == [10 * i + at for at in places]


def test_doubtful_calls_go_up(taxonomy: Taxonomy) -> None:
    lineages = taxonomy.ranked_lineages()
    at = {taxid: taxonomy.index_of(taxid) for taxid in taxonomy.taxid.tolist()}
    first = len(taxonomy)
    #        sequence, strain's species, species without a genus, genus, not doubtful, too few hits
    calls = [first + 0, at[562], first + 4, at[561], first + 3, first + 3, -1]
    expected = [at[561], at[561], at[10239], at[561], first + 3, -1, -1]
    call = np.array(calls, dtype=np.int32)
    acceptance = np.array([1, 1, 1, 1, 2, 1, 1], dtype=np.uint8)
    hits = np.array([9, 9, 9, 9, 1, 4, 9], dtype=np.int32)
    features = np.full(7, 24, dtype=np.int64)
    least = round(0.2 * PER_MILLION)
    raise_rank(call, acceptance, hits, features, nodes(taxonomy), lineages, RULES.highest, least)
    assert call.tolist() == expected
    call = np.array(calls[:3], dtype=np.int32)
    raise_rank(call, acceptance[:3], hits[:3], features[:3], nodes(taxonomy), lineages,
         RANK_CODES["genus"], least)  # fmt: skip
    assert call.tolist() == [at[561], at[561], -1]
    # The genus is doubted as well.
    call = np.array([first + 0, at[562], first + 4, at[561], at[543]], dtype=np.int32)
    raise_rank(
        call, np.full(5, REJECTED, dtype=np.uint8), hits[:5] + 9, features[:5], nodes(taxonomy),
        lineages, RULES.highest, least,
    )  # fmt: skip
    assert call.tolist() == [at[543], at[543], at[10239], at[543], at[543]]


@pytest.mark.parametrize("name", ["species_evidence", "genus_evidence", "doubtful_confidence"])
def test_parameters_are_parts(name: str) -> None:
    for value in (-0.1, 1.5):
        with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} must be 0 to 1"):
            replace(EvidenceParameters(), **{name: value})
