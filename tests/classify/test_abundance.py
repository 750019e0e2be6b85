"""Abundances at a rank and the coverage filter, against plain oracles."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.classify.call.coverage import CoverageCounter, drop_sparse
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import NO_RANK, RANK_CODES, RANKS, rank_code
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.classify.world import make_world
from tests.support.commands import Commands
from tests.support.properties import examples


def test_reads_of_references_without_a_taxon_are_unknown(ngsgpu: Commands, tmp_path: Path) -> None:
    """They were shared among the taxa that are there: 131 % in all."""
    world, database, table = make_world(tmp_path), tmp_path / "db", tmp_path / "abundance.tsv"
    built = ngsgpu(
        "db", "build", *world.references, "-d", database, "--taxonomy", world.taxonomy,
        "--map", world.map, "--kmer", 10, "--sketch", 8, "--window", 60, "--stride", 51, "-q",
    )  # fmt: skip
    assert built.status == 0, built.err
    # Half of the genomes are random: 6 is of taxon 40, 7 of none.
    starts = {6: range(300, 500, 10), 7: range(300, 400, 10)}
    reads = [world.sequences[i][at : at + 100] for i, own in starts.items() for at in own]
    fastq = world.fastq("own.fq", reads)
    words = ["classify", "-d", database, "-i", fastq, "--abundance", table, "-q"]
    assert ngsgpu(*words).status == 0
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    assert sum(float(row[4]) for row in rows) == pytest.approx(100, abs=0.001)
    assert ngsgpu(*words, "--metacache").status == 0
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    percent = {row[2]: float(row[4]) for row in rows}
    assert percent.pop("unclassified") == 0
    assert sum(percent.values()) == pytest.approx(100, abs=0.001)
    assert percent["unknown"] == pytest.approx(100 / 3, abs=0.001)


def oracle(taxonomy: Taxonomy, direct: list[int], rank: int) -> dict[int, int]:
    """The rule in words: move up, then share from the root down."""
    counts: dict[int, int] = {}
    for node, reads in enumerate(direct):
        if reads == 0:
            continue
        ranked = [at for at in taxonomy.lineage(node) if taxonomy.rank[at] != NO_RANK]
        place = node
        if taxonomy.rank[ranked[0]] <= rank:
            place = next(at for at in ranked if taxonomy.rank[at] >= rank)
        counts[place] = counts.get(place, 0) + reads

    def share(node: int) -> None:
        below = [
            at
            for at in counts
            if at != node
            and node in taxonomy.lineage(at)
            and not any(
                between in counts and between not in (at, node)
                for between in taxonomy.lineage(at)[: taxonomy.lineage(at).index(node)]
            )
        ]
        if not below:
            return
        weight = {
            at: sum(counts[other] for other in counts if at in taxonomy.lineage(other))
            for at in below
        }
        reads = counts.pop(node)
        for at in below:
            counts[at] += reads * weight[at] // sum(weight.values())
        for at in below:
            share(at)

    for top in [at for at in counts if not any(x in counts for x in taxonomy.lineage(at)[1:])]:
        share(top)
    return counts


@given(taxonomy=trees.taxonomies(16), data=st.data())
@examples(120)
def test_abundance_as_the_rule_says(taxonomy: Taxonomy, data: st.DataObject) -> None:
    size = len(taxonomy)
    direct = data.draw(st.lists(st.sampled_from([0, 0, 1, 7, 100]), min_size=size, max_size=size))
    rank = data.draw(st.integers(0, len(RANKS) - 1))
    found = estimate_abundance(taxonomy, np.array(direct, dtype=np.int64), rank, 5)
    expected = oracle(taxonomy, direct, rank)
    assert {node: int(found.reads[node]) for node in np.flatnonzero(found.reads)} == {
        node: reads for node, reads in expected.items() if reads
    }
    assert int(found.reads.sum()) + found.left_over == found.classified == sum(direct)
    assert 0 <= found.left_over < size
    called = [
        any(taxonomy.rank[at] == rank for at in taxonomy.lineage(node)) for node in range(size)
    ]
    known = sum(reads for reads, is_known in zip(direct, called, strict=True) if is_known)
    assert found.unknown == 5 + sum(direct) - known
    assert found.fractions().sum() <= 1


def test_worked_example(tmp_path: Path) -> None:
    taxonomy = trees.small(tmp_path)
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    for taxid, reads in ((83333, 30), (562, 20), (623, 10), (543, 12), (1280, 40), (1, 3)):
        direct[taxonomy.index_of(taxid)] = reads
    species = estimate_abundance(taxonomy, direct, RANK_CODES["species"])
    by_taxid = {int(taxonomy.taxid[at]): int(species.reads[at]) for at in np.flatnonzero(direct)}
    # The root's 3: 112 of its reads are below, 72 in the family and 40 in S. aureus, so 1 and 1,
    # and 1 is left over. The family's 13: 50 and 10 below, so 10 and 2, and 1 is left over.
    assert by_taxid == {83333: 0, 562: 60, 623: 12, 543: 0, 1280: 41, 1: 0}
    assert species.left_over == 2
    genus = estimate_abundance(taxonomy, direct, RANK_CODES["genus"])
    assert int(genus.reads[taxonomy.index_of(561)]) == 60


def test_large_counts_do_not_overflow(tmp_path: Path) -> None:
    taxonomy = trees.small(tmp_path)
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    direct[taxonomy.index_of(562)] = direct[taxonomy.index_of(561)] = 10**12
    found = estimate_abundance(taxonomy, direct, RANK_CODES["species"])
    assert int(found.reads[taxonomy.index_of(562)]) == 2 * 10**12


def test_unknown_ranks_are_refused() -> None:
    assert rank_code("genus") == RANK_CODES["genus"]
    with pytest.raises(UsageError, match="unknown rank 'tribes'"):
        rank_code("tribes")


counts = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=8)


@given(pairs=counts, share=st.sampled_from([0.0, 0.05, 0.3, 0.9]))
@examples(80)
def test_filter_as_the_rule_says(pairs: list[tuple[int, int]], share: float) -> None:
    covered = [low for low, _ in pairs]
    windows = [low + more for low, more in pairs]
    found = drop_sparse(np.array(covered, np.int64), np.array(windows, np.int64), share)
    exact = [Fraction(a, b) if b else Fraction(0) for a, b in zip(covered, windows, strict=True)]
    limit = Fraction(share) * sum(exact)
    running = Fraction(0)
    expected = [False] * len(pairs)
    near = False
    for target in sorted(range(len(pairs)), key=lambda target: (exact[target], target)):
        running += exact[target]
        near = near or abs(running - limit) < Fraction(1, 10**9)
        expected[target] = running <= limit or exact[target] == 0
    assert near or found.tolist() == expected


def test_counter_marks_ranges_of_enough_hits() -> None:
    counter = CoverageCounter(np.array([5, 3, 0, 4], dtype=np.int64), min_hits=5)

    def candidates(rows: list[list[tuple[int, int, int, int]]]) -> CandidateArrays:
        table = np.array(rows, dtype=np.int32)
        fields = [np.ascontiguousarray(table[:, :, i]) for i in range(4)]
        return CandidateArrays(*fields, np.full_like(fields[0], -1))

    counter.add(candidates([[(0, 9, 0, 1), (1, 4, 0, 2)], [(3, 5, 3, 3), (-1, 0, 0, 0)]]))
    counter.add(candidates([[(0, 6, 1, 2), (-1, 0, 0, 0)]]))
    assert counter.covered().tolist() == [3, 0, 0, 1]
    # Coverages 0.6 and 0.25: of 0.85, 0.25 is less than a third.
    assert counter.dropped(0.3).tolist() == [False, True, True, True]
    assert counter.dropped(0.29).tolist() == [False, True, True, False]
    assert counter.dropped(0).tolist() == [False, True, True, False]


@pytest.mark.parametrize("share", [-0.1, 1.0, 100, 250])
def test_shares_that_make_no_sense_are_refused(share: float) -> None:
    with pytest.raises(UsageError, match="coverage filter"):
        drop_sparse(np.ones(2, np.int64), np.ones(2, np.int64), share)
