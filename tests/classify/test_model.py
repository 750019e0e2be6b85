"""The model of a sample: probabilities of hits, classes of reads, presence, calls."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.classify.call.classes import ReadClasses, Sources, unpacked
from ngsgpu.classify.call.likelihood import COMPONENTS, LEAST_HITS, likelihoods
from ngsgpu.classify.call.presence import _at_most
from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    EvidenceParameters,
    OutputRules,
    QueryParameters,
)
from ngsgpu.classify.query.queries import CandidateArrays
from ngsgpu.run.options import RunOptions
from tests.support.classify.runs import misread, rows, run, single
from tests.support.classify.world import World

RULES = OutputRules(evidence=EvidenceParameters())
ONE, OTHER = "NC_000000.1", "NC_000004.1"
"""Of two species of two genera."""


def test_probabilities_of_hits() -> None:
    """They add up to one, and are those of reads with substitutions at random places."""
    found = likelihoods(16, 2 / 11, 0.95, 0.01)
    sums = found.probability[LEAST_HITS:, LEAST_HITS:].sum(axis=1)
    assert np.allclose(sums[:, :COMPONENTS], 1)
    source, features, length = np.random.default_rng(1), 20, 120
    hits = Counter[int]()
    for _ in range(4000):
        places = source.choice(length - 15, features, replace=False)
        wrong = np.concatenate([[0], np.cumsum(source.random(length) < 0.01)])
        hits[int((wrong[places + 16] == wrong[places]).sum())] += 1
    for least in (8, 14, 20):
        seen = sum(count for own, count in hits.items() if own >= least) / 4000
        assert found.probability[features, least:, 0].sum() == pytest.approx(seen, abs=0.05)


def test_classes_are_those_of_plain_python() -> None:
    source = random.Random(2)
    reads = 500
    lists = [
        sorted((source.randint(1, 30), target) for target in source.sample(range(6), 3))[::-1]
        for _ in range(reads)
    ]
    best = CandidateArrays.empty(reads, 8)
    for i, own in enumerate(lists):
        for j, (hits, target) in enumerate(own):
            best.target[i, j], best.hits[i, j] = target, hits
    tables = likelihoods(16, 2 / 11, 0.95, 0.0)
    of_target = np.array([0, 1, 2, 3, 4, 5], dtype=np.int32)
    classes = ReadClasses(Sources(of_target, np.arange(7, dtype=np.int64), 9), tables)
    features = np.full(reads, 30, dtype=np.int64)
    for cut in (slice(0, 200), slice(200, reads)):
        part = CandidateArrays(*(array[cut] for array in best))
        classes.add(part, classes.rows(part, features[cut]))
    expected = Counter[tuple[tuple[int, int], ...]]()
    for own in lists:
        top = own[0][0]
        least = max(LEAST_HITS, top - 4 * tables.step)
        kept = [(hits, target) for hits, target in own if hits >= least]
        if top >= LEAST_HITS:
            expected[tuple(sorted(kept, key=lambda each: (-each[0], each[1])))] += 1
    _, sources, hits_of = unpacked(classes.sorted())
    found = {
        tuple((int(n), int(s)) for s, n in zip(line, counts, strict=True) if s >= 0): int(count)
        for line, counts, count in zip(sources, hits_of, classes.sorted().counts, strict=True)
    }
    assert found == expected


def test_few_places() -> None:
    """Reads from anywhere are in as many places as expected; those of a gene are not."""
    source = np.random.default_rng(3)
    for reads in (20, 300, 9000):
        found = len(np.unique(source.integers(0, 2500, reads)))
        assert _at_most(found, reads, 2500) > 0.01
        assert _at_most(found - found // 3, reads, 2500) < 0.001


@pytest.mark.parametrize("phase", [0, 31, 1950])
def test_shared_plasmid(tmp_path: Path, world: World, backend: str, phase: int) -> None:
    """Reads of a plasmid that two species share are of the one that is in the sample."""
    source = random.Random(6)
    first, second, plasmid = ("".join(source.choices("ACGT", k=k)) for k in (30_000, 30_000, 5000))
    turned = plasmid[phase:] + plasmid[:phase]
    (tmp_path / "a.fa").write_text(f">{ONE}\n{first}\n>{ONE}p 21\n{plasmid}\n")
    (tmp_path / "b.fa").write_text(f">{OTHER}\n{second}\n>{OTHER}p 31\n{turned}\n")
    (tmp_path / "map.tsv").write_text(f"{ONE}p\t21\n{OTHER}p\t31\n")
    database = build_database(
        [tmp_path / "a.fa", tmp_path / "b.fa"], None, taxonomy=world.taxonomy,
        maps=[world.map, tmp_path / "map.tsv"],
    )  # fmt: skip
    reads = []
    for text, count in ((first, 200), (plasmid, 100)):
        for _ in range(count):
            start = source.randrange(len(text) - 150)
            reads.append(misread(text[start : start + 150], 0.003, source))
    (tmp_path / "r.fa").write_text("".join(f">r{i}\n{own}\n" for i, own in enumerate(reads)))
    got = run(database, single(tmp_path / "r.fa"), tmp_path / "o", CALLS_BY_EVIDENCE, rules=RULES)
    called = Counter(row[1] for row in rows(got["reads.tsv"]))
    of_other = {taxid for taxid in called if taxid in ("31", "32", "30")}
    assert not of_other
    assert called.most_common(1)[0][1] >= 290


@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("lowest", ["genus", "phylum"])
def test_lists_that_are_cut_off(
    tmp_path: Path, world: World, database: Database, backend: str, lowest: str, candidates: int
) -> None:
    """Calls are not below the lowest rank, though the candidates have a species in common."""
    parameters = QueryParameters(lowest=lowest, min_hits=1, candidates=candidates)
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    sample = single(world.fasta("s.fa", world.reads))
    got = run(database, sample, tmp_path / "o", parameters, options, RULES)
    ranks = Counter(row[2] for row in rows(got["reads.tsv"]))
    below = {"strain", "species"} | ({"genus"} if lowest == "phylum" else set())
    assert ranks[lowest]
    assert not below & ranks.keys()
