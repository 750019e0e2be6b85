"""All stages together against the oracle: the edits of every read, and what became of each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, seed

from ngsgpu.correct import CorrectionParameters, RunOptions, cpu
from ngsgpu.correct.cpu_run import anchors_in_bucket_order, correct_on_cpu
from ngsgpu.correct.forests.forest import Forests
from ngsgpu.correct.workspace import Workspace
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from tests.support.correct.scenarios import Scenario, scenarios
from tests.support.correct.whole import assert_equal
from tests.support.properties import examples


def test_corrections_equal_the_oracle(backend: str) -> None:
    seen: Counter[str] = Counter()
    # The random reads are only worth something if everything happens to them.
    least = {"none": 99, "high": 99, "anchor only": 99, "confirmed": 20}
    least |= {"completed": 4, "rejected": 4}

    def compare(scenario: Scenario) -> None:
        seen.update(assert_equal(scenario, RunOptions(backend=backend)))

    # Which scenarios are drawn depends on the modules that are loaded, too: constants in them.
    for number in range(20):
        seed(number)(examples(50)(given(scenarios())(compare)))()
        if all(seen[name] >= count for name, count in least.items()):
            break
    assert {name: seen[name] for name in least if seen[name] < least[name]} == {}


@given(scenarios(max_reads=30))
@examples(30)
def test_nothing_is_decided_by_threads_or_batches(scenario: Scenario) -> None:
    ways = ((1, 1), (2, 7), (4, 3), (4, 10_000))
    assert_equal(scenario, *(RunOptions(threads=n, units_per_task=own) for n, own in ways))


@given(scenarios(max_reads=30))
@examples(30)
def test_full_buffers_decide_nothing(scenario: Scenario) -> None:
    """Results are handed over whenever a buffer might not hold those of the next anchor."""
    allocate = Workspace.allocate

    def small(max_length: int, hashes: int, margin: int, *forests: Forests) -> Workspace:
        space = allocate(max_length, hashes, margin, *forests)
        return space._replace(
            edits=space.edits[: 8 * max_length],
            edit_reads=space.edit_reads[:2],
            vote_reads=space.vote_reads[: 2 * cpu.MAX_ENTRIES + 5],
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "allocate", small)
        assert_equal(scenario)


@pytest.mark.parametrize("paired", [False, True])
def test_progress_counts_every_read(paired: bool) -> None:
    genome = "ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGCAATCGGATATCCAATTGGTACGTTCGTCCATGAC"
    # Some reads are in no bucket of the first table.
    reads = ReadSet.from_sequences([genome, genome[5:], "ACGT", genome[::-1]] * 9, paired=paired)
    parameters = CorrectionParameters()
    tables = build_tables(reads, parameters.minhash)
    order = anchors_in_bucket_order(reads, tables).tolist()
    assert sorted(order) == list(range(0, 36, 2 if paired else 1))
    advanced: list[int] = []
    correct_on_cpu(
        reads, tables, parameters, 9.0, threads=2, anchors_per_task=5, advance=advanced.append
    )
    assert sum(advanced) == 36
