"""A whole correction against the oracle."""

from __future__ import annotations

from collections import Counter

from ngsgpu.correct import RunOptions, correct_reads
from ngsgpu.correct.workspace import (
    ALIGNED,
    ALONE,
    ANCHORS,
    CROWDED,
    FOUND,
    HIGH,
    KEPT,
    LOW,
    REFINED_AWAY,
)
from tests.support.correct.bench import edits_of
from tests.support.correct.oracle import Result
from tests.support.correct.scenarios import Scenario


def assert_equal(scenario: Scenario, *options: RunOptions) -> Counter[str]:
    """Correct on both sides, in each way; return how many reads came out in which way."""
    expected = scenario.oracle().correct()
    for own in options or (None,):
        _assert_equal(scenario, expected, own)
    return Counter(expected.outcomes)


def _assert_equal(scenario: Scenario, expected: Result, options: RunOptions | None) -> None:
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
    assert counters[ANCHORS] == len(reads)
    assert counters[ALONE] == outcomes["none"]
    high = expected.counts.get("high", 0)
    assert counters[HIGH] == high
    assert counters[LOW] == len(reads) - outcomes["none"] - high
    for counter, name in (
        (CROWDED, "crowded"),
        (FOUND, "found"),
        (ALIGNED, "aligned"),
        (KEPT, "kept"),
        (REFINED_AWAY, "refined_away"),
    ):
        assert counters[counter] == expected.counts.get(name, 0), name
