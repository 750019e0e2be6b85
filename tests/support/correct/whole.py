"""A whole correction against the oracle."""

from __future__ import annotations

from collections import Counter

from ngsgpu.correct import RunOptions, correct_reads, cpu
from tests.support.correct.bench import edits_of
from tests.support.correct.scenarios import Scenario


def assert_equal(scenario: Scenario, options: RunOptions | None = None) -> Counter[str]:
    """Correct on both sides; return how many reads came out in each way."""
    expected = scenario.oracle().correct()
    corrections, coverage = correct_reads(scenario.read_set(), scenario.parameters, options)
    assert coverage == scenario.coverage
    reads = range(len(scenario.letters))
    assert [edits_of(corrections, read) for read in reads] == expected.edits
    outcomes = Counter(expected.outcomes)
    assert corrections.high_quality == outcomes["high"]
    assert corrections.confirmed == outcomes["confirmed"]
    assert corrections.completed == outcomes["completed"]
    assert corrections.anchor_only == outcomes["anchor only"]
    assert corrections.rejected == outcomes["rejected"]
    counters = corrections.counters
    assert counters[cpu.ANCHORS] == len(reads)
    assert counters[cpu.ALONE] == outcomes["none"]
    high = expected.counts.get("high", 0)
    assert counters[cpu.HIGH] == high
    assert counters[cpu.LOW] == len(reads) - outcomes["none"] - high
    for counter, name in (
        (cpu.CROWDED, "crowded"),
        (cpu.FOUND, "found"),
        (cpu.ALIGNED, "aligned"),
        (cpu.KEPT, "kept"),
        (cpu.REFINED_AWAY, "refined_away"),
    ):
        assert counters[counter] == expected.counts.get(name, 0), name
    return outcomes
