"""How a read's own correction and those that others have for it become one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.correct import Corrections
from ngsgpu.correct import corrections as module
from ngsgpu.correct.corrections import CorrectionCollector, settle_doubtful
from ngsgpu.correct.workspace import COUNTERS, DOUBTFUL, HIGH_QUALITY, LOW_QUALITY, OF_RARE_STRAIN
from tests.support.correct.bench import edits_of

OWN, COMPLETE, OTHER = 11, 22, 33
OWN_EDITS, COMPLETE_EDITS = [1 << 2 | 3], [1 << 2 | 3, 4 << 2, 6 << 2 | 1]
NO_COUNTS = np.zeros(COUNTERS, dtype=np.int64)


def batch(read: int, quality: int, own: int = OWN, complete: int = COMPLETE) -> tuple:
    """What a kernel returns for one anchor."""
    edits = OWN_EDITS + (COMPLETE_EDITS if quality == LOW_QUALITY else [])
    # A buffer is longer than what it holds.
    return (
        np.array([read], np.uint32),
        np.array([quality], np.uint8),
        np.array([[len(OWN_EDITS), len(edits)]], np.int64),
        np.array([[own, complete]], np.uint64),
        np.array([*edits, 99, 99], np.uint32),
    )


def combine(quality: int | None, votes: list[int]) -> Corrections:
    collector = CorrectionCollector(4, paired=False)
    # Other reads are corrected before and after.
    collector.add_records(*batch(0, LOW_QUALITY))
    if quality is not None:
        collector.add_records(*batch(1, quality))
    collector.add_records(*batch(2, HIGH_QUALITY))
    for vote in votes:
        collector.add_votes(np.array([1], np.uint32), np.array([vote], np.uint64))
    return collector.finish(NO_COUNTS)


own, complete = {1: "T"}, {1: "T", 4: "A", 6: "C"}


@pytest.mark.parametrize(
    ("quality", "votes", "outcome", "edits"),
    [
        (HIGH_QUALITY, [], "high_quality", own),
        (HIGH_QUALITY, [OTHER, OTHER], "high_quality", own),
        (LOW_QUALITY, [], "anchor_only", own),
        (LOW_QUALITY, [OWN], "anchor_only", own),
        (LOW_QUALITY, [OTHER], "anchor_only", own),
        (LOW_QUALITY, [OWN, OWN], "confirmed", own),
        (LOW_QUALITY, [OWN] * 200, "confirmed", own),
        (LOW_QUALITY, [COMPLETE, COMPLETE], "completed", complete),
        (LOW_QUALITY, [COMPLETE] * 3, "completed", complete),
        (LOW_QUALITY, [OWN, COMPLETE], "rejected", {}),
        (LOW_QUALITY, [OTHER, OTHER], "rejected", {}),
        (LOW_QUALITY, [OWN, OWN, OTHER], "rejected", {}),
        (LOW_QUALITY, [COMPLETE, COMPLETE, OWN], "rejected", {}),
        (None, [], None, {}),
        (None, [OTHER, OTHER], None, {}),
    ],
)
def test_table_of_the_description(
    quality: int | None, votes: list[int], outcome: str | None, edits: dict[int, str]
) -> None:
    for order in set(permutations(votes)) if len(votes) < 5 else [votes]:
        corrections = combine(quality, list(order))
        counts = {
            name: getattr(corrections, name)
            for name in ("high_quality", "confirmed", "completed", "anchor_only", "rejected")
        }
        # Those of reads 0 and 2.
        counts["anchor_only"] -= 1
        counts["high_quality"] -= 1
        assert counts == {name: int(name == outcome) for name in counts}
        assert edits_of(corrections, 1) == edits
        assert edits_of(corrections, 0) == edits_of(corrections, 2) == own
        assert edits_of(corrections, 3) == {}


def test_own_correction_that_is_the_whole_consensus_is_confirmed() -> None:
    collector = CorrectionCollector(1, paired=False)
    collector.add_records(*batch(0, LOW_QUALITY, own=OWN, complete=OWN))
    collector.add_votes(np.zeros(2, np.uint32), np.full(2, OWN, np.uint64))
    corrections = collector.finish(NO_COUNTS)
    assert (corrections.confirmed, corrections.completed) == (1, 0)


def test_several_reads_in_one_batch() -> None:
    collector = CorrectionCollector(6, paired=False)
    collector.add_records(
        np.array([4, 1, 3], np.uint32),
        np.array([LOW_QUALITY, HIGH_QUALITY, LOW_QUALITY], np.uint8),
        np.array([[1, 3], [3, 3], [5, 6]], np.int64),
        np.array([[OWN, COMPLETE], [0, 0], [OWN, COMPLETE]], np.uint64),
        np.array([0, 4, 8, 12, 16, 20, 99], np.uint32),
    )
    collector.add_votes(np.array([4, 4], np.uint32), np.array([COMPLETE, COMPLETE], np.uint64))
    corrections = collector.finish(NO_COUNTS)
    assert [edits_of(corrections, read) for read in range(6)] == [
        {},
        {},
        {},
        {3: "A", 4: "A"},
        {1: "A", 2: "A"},
        {},
    ]


def test_nothing_to_combine() -> None:
    collector = CorrectionCollector(2, paired=False)
    collector.add_records(*(array[:0] for array in batch(0, LOW_QUALITY)))
    corrections = collector.finish(NO_COUNTS)
    assert corrections.edit_count.tolist() == [0, 0]
    assert len(corrections.edits) == 0
    assert corrections.anchor_only == 0


@given(st.data(), st.booleans(), st.integers(1, 5))
def test_doubtful_edits_of_rare_strains(data: st.DataObject, paired: bool, at_once: int) -> None:
    """They are left out of reads with a rare allele, and of their mates."""
    pairs = data.draw(st.integers(0, 6))
    reads = range(2 * pairs)
    own = [
        data.draw(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=4))
        for _ in reads
    ]
    rare = [data.draw(st.booleans()) for _ in reads]
    order = data.draw(st.permutations(reads))
    start, count = np.zeros(2 * pairs, np.int64), np.zeros(2 * pairs, np.uint16)
    edits: list[int] = []
    for read in order:
        start[read], count[read] = len(edits), len(own[read])
        edits += [edit | is_doubtful * int(DOUBTFUL) for edit, is_doubtful in own[read]]
    classes = np.array([LOW_QUALITY + OF_RARE_STRAIN * is_rare for is_rare in rare], np.uint8)
    made = np.array(edits, np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "READS_AT_ONCE", at_once)
        settle_doubtful(start, count, made, classes, paired)
    for read in reads:
        concerned = rare[read] or (paired and rare[read ^ 1])
        expected = [edit for edit, is_doubtful in own[read] if not (concerned and is_doubtful)]
        assert made[start[read] :][: count[read]].tolist() == expected
