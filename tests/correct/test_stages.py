"""Each stage of the correction against the oracle, on the same random reads."""

from __future__ import annotations

from hypothesis import given

from ngsgpu.align.alignment import Alignments
from tests.support.correct.alignment import Candidate, consensus
from tests.support.correct.bench import Bench, hash_of, kept_reads, placements
from tests.support.correct.scenarios import Scenario, scenarios
from tests.support.properties import examples

Aligned = dict[int, Candidate]


def groups(scenario: Scenario) -> list[list[int]]:
    """Anchors that are corrected together: mates, or each by itself."""
    step = 2 if scenario.paired else 1
    return [list(range(i, i + step)) for i in range(0, len(scenario.letters), step)]


class Sides:
    """An oracle and the kernels, taken through the stages up to the filter."""

    def __init__(self, scenario: Scenario) -> None:
        self.bench = Bench(scenario)
        self.corrector = scenario.oracle()

    def align(self, group: list[int]) -> list[tuple[int, Alignments, int, Aligned, bool]]:
        """Anchor, the kernels' candidates and their number, the oracle's candidates, crowded."""
        sides = []
        results = (self.bench.work.first, self.bench.work.second)
        for anchor, result in zip(group, results, strict=False):
            count, crowded = self.bench.align(anchor, result)
            found, expected_crowded = self.corrector.placements(anchor)
            assert crowded == expected_crowded
            sides.append((anchor, result, count, self.corrector.align(anchor, found), crowded))
        if len(group) == 2:
            self.bench.mark_mates(sides[0][2], sides[1][2])
            self.corrector.mark_mates(sides[0][3], sides[1][3])
        return sides


def assert_equal_alignments(
    sides: Sides, result: Alignments, count: int, expected: Aligned
) -> None:
    """Alignments, and which reads have their mates among them."""
    ratio = sides.corrector.max_mismatch_ratio
    found = placements(result, count)
    assert len(found) == len(expected)
    for i, placement in enumerate(found):
        candidate = expected[placement.read]
        assert placement == candidate.placement
        assert result.mismatches[i] == candidate.mismatches
        assert result.overlap[i] == candidate.overlap
        assert result.score[i] == candidate.score
        assert result.weight[i] == candidate.weight(ratio)
        assert bool(result.with_mate[i]) == candidate.with_mate


def assert_equal_columns(sides: Sides, anchor: int, kept: list[Candidate]) -> None:
    """The kernels' columns, as far as they reach, are those of the oracle."""
    expected = sides.corrector.lay_out(anchor, kept)
    margin = sides.bench.rules.margin
    length = len(sides.corrector.reads[anchor])
    covered = {column for column in expected if -margin <= column < length + margin}
    found = sides.bench.cells(anchor)
    assert found.keys() == covered
    for column, four in found.items():
        cells = [expected[column][base] for base in "ACGT"]
        assert four == [(cell.reads, cell.q20, cell.weight) for cell in cells]
        assert sides.bench.consensus(column) == consensus(expected[column])


def assert_equal_decisions(
    sides: Sides, anchor: int, result: Alignments, count: int, kept: list[Candidate], crowded: bool
) -> None:
    """Classes of bases, corrections of each kind, and votes on other reads."""
    sides.bench.find_alleles(anchor, result, count)
    columns = sides.corrector.lay_out(anchor, kept)
    assert sides.bench.classify(anchor) == sides.corrector.classify(anchor, columns)
    for whole in (True, False):
        for cautious in {crowded, False, True}:
            assert sides.bench.edits(
                anchor, replace=whole, crowded=cautious
            ) == sides.corrector.edits(anchor, columns, kept, whole=whole, crowded=cautious)
    votes = sides.corrector.votes(anchor, columns, kept)
    assert sorted(sides.bench.vote_hashes(anchor, result, count)) == sorted(
        (read, hash_of(sequence)) for read, sequence in votes
    )


@given(scenarios())
@examples(70)
def test_every_stage(scenario: Scenario) -> None:
    """Alignments, mates, the filter, columns, refinement and decisions, one after the other."""
    sides = Sides(scenario)
    for group in groups(scenario):
        for anchor, result, count, aligned, crowded in sides.align(group):
            assert_equal_alignments(sides, result, count, aligned)
            number = sides.bench.keep(result, count)
            kept = sides.corrector.keep(aligned)
            assert number == len(kept)
            assert kept_reads(result, count) == sorted(c.read for c in kept)
            if not kept:
                continue
            sides.bench.build(anchor, result, count)
            assert_equal_columns(sides, anchor, kept)
            removed = sides.bench.refine(anchor, result, count)
            refined = sides.corrector.refine(anchor, kept)
            assert removed == len(kept) - len(refined)
            assert kept_reads(result, count) == sorted(c.read for c in refined)
            assert_equal_columns(sides, anchor, refined)
            if refined:
                assert_equal_decisions(sides, anchor, result, count, refined, crowded)
