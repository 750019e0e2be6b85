"""Species that a sample holds and species that only have relatives in it, against plain Python."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.chance import at_least
from ngsgpu.classify.call.acceptance import (
    ACCEPTED,
    GENUS_ACCEPTED,
    REJECTED,
    Acceptance,
    raise_rank,
    weigh,
)
from ngsgpu.classify.call.evidence import LEAST_KEPT, SpeciesEvidence
from ngsgpu.classify.call.verdicts import verdicts
from ngsgpu.classify.outputs.tables import evidence_table
from ngsgpu.classify.params import PER_MILLION, EvidenceParameters, QueryRules
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples

RULES = QueryRules(
    min_hits=3, near_hits=2, few_hits=6, many_hits=16, unit=112, chance=112,
    difference=PER_MILLION, confidence=0, species_confidence=0, insert_size=0, lowest=0,
    highest=RANK_CODES["domain"], best_alone=0,
)  # fmt: skip
TARGETS = [83333, 562, 623, 1280, 10710, 543, None]
"""Taxa of the reference sequences; the last but one has no species, the last no taxon."""
KMER = 16

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


def near(row: Row, hits: int) -> Row:
    """Those of a row that are near a candidate with ``hits``."""
    margin = RULES.near_hits + (hits <= RULES.few_hits) - (hits >= RULES.many_hits)
    return [(target, own) for target, own in row if own > hits - margin]


@st.composite
def reads(draw: st.DrawFn) -> list[tuple[Row, int]]:
    """Candidates of reads, and ``expected_hits``; some reads several times."""
    found = []
    for _ in range(draw(st.integers(0, 12))):
        targets = draw(st.permutations(range(len(TARGETS))))[: draw(st.integers(0, 3))]
        hits = sorted((draw(st.integers(1, 24)) for _ in targets), reverse=True)
        read = (list(zip(targets, hits, strict=True)), draw(st.integers(112, 2600)))
        found += [read] * draw(st.sampled_from([1, 1, 2, 6, 25]))
    return found


class Oracle:
    """What is known of each species of a sample, from the description in docs/classify.md."""

    def __init__(self, taxonomy: Taxonomy, sample: list[tuple[Row, int]]) -> None:
        self.taxonomy = taxonomy
        self.shares: dict[int, list[int]] = {}
        self.own: dict[int, int] = {}
        self.shared: dict[int, int] = {}
        self.together: dict[tuple[int | None, ...], int] = {}
        for row, expected in sample:
            if not row or row[0][1] < RULES.near_hits:
                continue
            best = row[0][1]
            ties = {species_of(taxonomy, target) for target, hits in row if hits == best}
            if len(ties) == 1 and None not in ties:
                share = min(200, (best - 1) * RULES.unit * 200 // expected)
                self.shares.setdefault(next(iter(ties)) or 0, []).append(share)
            around = {species_of(taxonomy, target) for target, _ in near(row, best)}
            if best >= RULES.min_hits:
                count = self.own if len(around) == 1 else self.shared
                for species in around - {None}:
                    count[species or 0] = count.get(species or 0, 0) + 1
                for pair in permutations(around - {None}, 2):
                    self.together[pair] = self.together.get(pair, 0) + 1

    def median(self, species: int) -> Fraction:
        values = sorted(self.shares.get(species, []))
        if not values:
            return Fraction(0)
        return min(Fraction(2 * values[(len(values) - 1) // 2] + 1, 400), Fraction(1))

    def total(self) -> int:
        return sum(map(len, self.shares.values()))

    def is_many(self, species: int, reads: int) -> bool:
        own = len(self.shares.get(species, []))
        return own > 0 and (own >= reads or own * 5000 >= self.total() * reads)

    def kept(self) -> Fraction:
        many = [
            self.median(species)
            for species, values in self.shares.items()
            if len(values) >= 20 and 100 * len(values) >= self.total()
        ]
        return max(max(many, default=Fraction(1)), Fraction(LEAST_KEPT, PER_MILLION))

    def reaches(self, species: int, identity: float) -> bool:
        needed = Fraction(round(identity**KMER * PER_MILLION), PER_MILLION)
        return self.median(species) + Fraction(1, 400) >= needed * self.kept()

    def above(self, species: int, rank: str) -> int | None:
        lineage = self.taxonomy.lineage(species)
        return next((at for at in lineage if self.taxonomy.rank[at] == RANK_CODES[rank]), None)

    def passing(self, identity: float) -> set[int]:
        return {
            species
            for species in self.shares
            if self.is_many(species, 10) and self.reaches(species, identity)
        }

    def explaining(self, species: int, passing: set[int]) -> set[int]:
        own = self.own.get(species, 0)
        if species not in passing or 3 * own >= self.shared.get(species, 0):
            return set()
        kin = self.above(species, "family") or self.above(species, "genus")
        return {
            other
            for other in passing
            if kin is not None
            and (self.above(other, "family") or self.above(other, "genus")) == kin
            and self.own.get(other, 0) >= max(3 * own, 1)
            and 2 * self.together.get((species, other), 0) >= self.shared.get(species, 0)
        }

    def level(self, target: int, parameters: EvidenceParameters) -> int:
        species = species_of(self.taxonomy, target)
        passing = self.passing(parameters.species_identity)
        if species is None or (species in passing and not self.explaining(species, passing)):
            return ACCEPTED
        genus = self.above(species, "genus")
        for other in self.shares if genus is not None else []:
            kin = {self.above(each, "genus") for each in self.explaining(other, passing)}
            if (
                self.above(other, "genus") == genus
                and self.is_many(other, 5)
                and self.reaches(other, parameters.genus_identity)
                and (not kin or genus in kin)
            ):
                return GENUS_ACCEPTED
        return GENUS_ACCEPTED if genus is None else REJECTED


def add(evidence: SpeciesEvidence, rows: list[Row], expected: int, features: int) -> None:
    """Add reads of as many features, of which so many above chance are expected to be hit."""
    numbers = (expected * evidence.rules.unit, features)
    evidence.add(arrays(rows), *(np.full(len(rows), number, dtype=np.int64) for number in numbers))


@given(
    sample=reads(),
    identity=st.sampled_from([0.9, 0.94, 0.99]),
    genus_identity=st.sampled_from([0.0, 0.85, 0.92]),
)
@examples(120)
def test_species_are_accepted_by_their_identity(
    taxonomy: Taxonomy, sample: list[tuple[Row, int]], identity: float, genus_identity: float
) -> None:
    evidence = SpeciesEvidence(nodes(taxonomy), taxonomy.ranked_lineages(), RULES)
    expected = np.array([own for _, own in sample], dtype=np.int64)
    rows = [row for row, _ in sample]
    half = len(rows) // 2
    evidence.add(arrays(rows[:half]), expected[:half], expected[:half])
    evidence.add(arrays(rows[half:]), expected[half:], expected[half:])
    parameters = EvidenceParameters(identity, genus_identity)
    found, oracle = evidence.accepted(parameters, KMER), Oracle(taxonomy, sample)
    for target in range(len(TARGETS)):
        species = species_of(taxonomy, target)
        assert found.level[target] == oracle.level(target, parameters)
        if species is None:
            assert (found.reads[target], found.least[target]) == (-1, 0)
        else:
            assert found.reads[target] == len(oracle.shares.get(species, []))
            assert found.least[target] == oracle.median(species) * PER_MILLION * 16 // 100
            passing = oracle.passing(identity)
            assert found.passes[target] == (species in passing)


def test_errors_in_reads_are_allowed_for(taxonomy: Taxonomy) -> None:
    """A tenth of the k-mers is enough where reads have 10 % errors."""
    evidence = SpeciesEvidence(nodes(taxonomy), taxonomy.ranked_lineages(), RULES)
    add(evidence, [[(3, 3)]] * 30, 12, 21)
    level = {
        errors: int(evidence.accepted(EvidenceParameters(0.94, 0.9, 0.1, errors), KMER).level[3])
        for errors in (None, 0.0, 0.03, 0.1)
    }
    assert level == {None: GENUS_ACCEPTED, 0.0: REJECTED, 0.03: GENUS_ACCEPTED, 0.1: ACCEPTED}


def test_verdicts_are_shown_with_their_uncertainty(taxonomy: Taxonomy) -> None:
    windows = np.array([30, 20, 10, 50, 5, 5, 5], dtype=np.int64)
    evidence = SpeciesEvidence(nodes(taxonomy), taxonomy.ranked_lineages(), RULES, windows)
    # 40 reads that share all k-mers with a sequence of one species, 9 that share few with another.
    rows: list[Row] = [[(3, 11)]] * 40 + [[(2, 5), (1, 5)]] * 9 + [[(2, 4)]] * 9
    add(evidence, rows, 10, 21)
    window_reads = np.zeros(windows.sum(), dtype=np.int32)
    window_reads[60:100] = 1
    parameters = EvidenceParameters(0.94)
    first, second = verdicts(evidence, parameters, KMER, windows, window_reads)
    assert (first.node, first.level) == (species_of(taxonomy, 3), ACCEPTED)
    assert (first.reads, first.own, first.shared) == (40, 40, 0)
    assert (first.low, first.identity, first.high) == (1, 1, 1) and first.note == ""
    assert (first.windows, first.covered) == (50, 40)
    assert first.evenness == pytest.approx(40 / (50 * (1 - math.exp(-40 / 50))))
    assert first.chance == pytest.approx(at_least(40, 9 * 50 / 115), rel=1e-9, abs=0)
    assert (second.node, second.level) == (species_of(taxonomy, 2), GENUS_ACCEPTED)
    assert (second.reads, second.own, second.shared, second.note) == (9, 9, 9, "")
    assert second.identity == pytest.approx(0.3025 ** (1 / KMER))
    assert (second.covered, second.evenness) == (0, 0)
    lines = evidence_table(taxonomy, [first, second]).splitlines()
    assert [line.split("\t")[2] for line in lines] == ["called", "species", "genus"]

    # The chance is that of the reads of species that are rejected for what they are.
    for highest, note, level in (
        (first.chance, "", ACCEPTED), (first.chance / 2, "accident", GENUS_ACCEPTED)
    ):  # fmt: skip
        strict = replace(parameters, max_accident=highest)
        found = verdicts(evidence, strict, KMER, windows, window_reads)
        assert found == [first._replace(note=note, level=level), second]
        assert evidence.accepted(strict, KMER).level[3] == level


@pytest.mark.parametrize(
    ("count", "mean"),
    [(0, 3.0), (2, 3.0), (3, 3.0), (9, 3.0), (1, 0.1), (1, 9.0), (140, 150.0), (3, 0.0)],
)
def test_chance_of_reads(count: int, mean: float) -> None:
    below = math.fsum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(count))
    assert at_least(count, mean) == pytest.approx(1 - below, abs=1e-12)


def test_chance_of_very_many_reads() -> None:
    """As of a normal variable: 2 standard deviations from the mean."""
    assert at_least(10**6 + 2000, 1e6) == pytest.approx(0.0228, abs=2e-4)
    assert at_least(10**6 - 2000, 1e6) == pytest.approx(0.9772, abs=2e-4)
    assert at_least(10**6, 1.0) == 1e-300


@given(
    sample=reads(),
    level=st.lists(st.sampled_from([REJECTED, GENUS_ACCEPTED, ACCEPTED]), min_size=7, max_size=7),
    counted=st.lists(st.integers(0, 9), min_size=7, max_size=7),
    passes=st.lists(st.booleans(), min_size=7, max_size=7),
)
@examples(120)
def test_candidates_give_way(
    taxonomy: Taxonomy,
    sample: list[tuple[Row, int]],
    level: list[int],
    counted: list[int],
    passes: list[bool],
) -> None:
    counted[5:] = [-1, -1]
    best = arrays([row for row, _ in sample])
    accepted = Acceptance(
        np.array(level, np.uint8), np.array(counted, np.int64), np.zeros(7, np.int32),
        np.array(passes, np.uint8),
    )  # fmt: skip
    left, acceptance = best.copy(), np.empty(len(sample), dtype=np.uint8)
    weigh(left, accepted, RULES, nodes(taxonomy), taxonomy.ranked_lineages(), acceptance)
    for i, (row, _) in enumerate(sample):
        around = [row[0], *near(row[1:], row[0][1])] if row else []
        assert acceptance[i] == max((level[target] for target, _ in around), default=ACCEPTED)
        expected = row
        if row and acceptance[i] == ACCEPTED:
            allowed = [own for own in row if level[own[0]] == ACCEPTED]
            around = [allowed[0], *near(allowed[1:], allowed[0][1])]
            most = max(counted[target] for target, _ in around)
            staying = [own for own in allowed if not 0 <= 3 * counted[own[0]] < most]
            first, most_hits = staying[0], staying[0][1]
            least = most_hits - (most_hits <= RULES.few_hits) + (most_hits >= RULES.many_hits)
            genus = taxon_of(taxonomy, first[0], "genus")
            rivals = [
                (target, hits)
                for target, hits in row
                if hits >= least and passes[target] and taxon_of(taxonomy, target, "genus") != genus
            ]
            others = [own for own in row if own != first and own in staying + rivals]
            expected = [first, *others]
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
    expected_hits = np.full(7, 24 * RULES.unit, dtype=np.int64)
    least = round(0.2 * PER_MILLION)
    raise_rank(call, acceptance, hits, expected_hits, nodes(taxonomy), lineages, RULES, least)
    assert call.tolist() == expected
    call = np.array(calls[:3], dtype=np.int32)
    raise_rank(
        call, acceptance[:3], hits[:3], expected_hits[:3], nodes(taxonomy), lineages,
        RULES._replace(highest=RANK_CODES["genus"]), least,
    )  # fmt: skip
    assert call.tolist() == [at[561], at[561], -1]
    # The genus is doubted as well.
    call = np.array([first + 0, at[562], first + 4, at[561], at[543]], dtype=np.int32)
    raise_rank(
        call, np.full(5, REJECTED, dtype=np.uint8), hits[:5] + 9, expected_hits[:5],
        nodes(taxonomy), lineages, RULES, least,
    )  # fmt: skip
    assert call.tolist() == [at[543], at[543], at[10239], at[543], at[543]]


@pytest.mark.parametrize(
    "name",
    [
        "species_identity",
        "genus_identity",
        "doubtful_confidence",
        "read_errors",
        "max_accident",
    ],
)
def test_parameters_are_parts(name: str) -> None:
    for value in (-0.1, 1.5):
        with pytest.raises(UsageError, match=f"`{name}` must be (auto or )?from 0 to "):
            replace(EvidenceParameters(), **{name: value})


def test_accidents_are_those_of_judged_species() -> None:
    with pytest.raises(UsageError, match="`max_accident` needs `species_identity` above 0"):
        EvidenceParameters(0.0, max_accident=0.01)


def test_a_species_is_explained_only_by_one_that_it_shares_reads_with(taxonomy: Taxonomy) -> None:
    """Relatives that are plentiful, but have other reads, say nothing about it; nor few of them."""
    shigella, coli = 2, 1
    rows: list[Row] = [[(shigella, 12)]] * 20 + [[(coli, 12)]] * 100
    levels = []
    with_coli: Row = [(shigella, 12), (coli, 12)]
    for shared in ([with_coli] * 80, [[(shigella, 12), (5, 12)]] * 80, [with_coli] * 60):
        evidence = SpeciesEvidence(nodes(taxonomy), taxonomy.ranked_lineages(), RULES)
        add(evidence, rows + shared, 11, 21)
        levels.append(int(evidence.accepted(EvidenceParameters(), KMER).level[shigella]))
    assert levels[0] < ACCEPTED and levels[1:] == [ACCEPTED, ACCEPTED]


def test_a_fraction_of_the_features_gives_identities_with_wider_intervals(
    taxonomy: Taxonomy,
) -> None:
    """Two of four features are found of each read, in a database with a quarter of them."""
    thin = RULES._replace(unit=4 * 112, chance=112, min_hits=2)
    evidence = SpeciesEvidence(nodes(taxonomy), taxonomy.ranked_lineages(), thin)
    add(evidence, [[(3, 2)]] * 30 + [[(3, 4)]] * 60, 4, 5)
    found = evidence.findings(EvidenceParameters(), KMER)
    species = int(np.flatnonzero(found.reads)[0])
    assert found.reads.sum() == 90
    low, middle, high = evidence.interval(species)
    assert low < middle < high <= 1
    assert found.medians[species] == pytest.approx(min(middle, 1) * PER_MILLION)
    assert 0.7 < evidence.found() < 0.9
