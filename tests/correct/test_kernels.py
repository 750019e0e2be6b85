"""Single kernels at their limits: alignments, weights, ties, thresholds, votes, edits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.align import msa
from ngsgpu.align.alignment import alignment_weight, mismatches_at, quality_weights
from ngsgpu.correct import CorrectionParameters, corrections, cpu
from ngsgpu.correct.rules import decide
from ngsgpu.correct.rules.votes import hash_sequence
from ngsgpu.io.output.edits import (
    AS_THEY_ARE,
    EditCounts,
    Edits,
    EditStyle,
    load_kernels,
    write_edits,
)
from ngsgpu.jit import interpreted
from ngsgpu.readset import ReadSet
from tests.support.correct import oracle
from tests.support.correct.alignment import (
    ONE,
    Cell,
    Columns,
    consensus,
    exact,
    make_reads,
    quality_weight,
    units,
)
from tests.support.io.records import Record, fastq
from tests.support.properties import examples

NO_READS = ReadSet.from_sequences([])


@given(st.integers(1, 200), st.integers(1, 200), st.integers(-220, 220), st.integers(0, 1 << 30))
@examples(200)
def test_mismatches(anchor_length: int, length: int, shift: int, seed: int) -> None:
    random = Random(seed)
    anchor = "".join(random.choices("ACGT", k=anchor_length))
    read = "".join(random.choices("ACGT", k=length))
    pairs = [
        (anchor[column], read[column - shift])
        for column in range(anchor_length)
        if 0 <= column - shift < length
    ]
    if not pairs:
        return
    # Other reads lie before and behind in memory.
    around = "".join(random.choices("ACGT", k=70))
    planes = ReadSet.from_sequences([around, read, around]).arrays
    found = mismatches_at(
        ReadSet.from_sequences([anchor]).arrays.planes,
        anchor_length,
        planes.planes,
        int(planes.plane_start[1]) if len(planes.plane_start) else 4,
        length,
        shift,
        np.full(4, ~np.uint64(0)),
    )
    assert found == (sum(one != other for one, other in pairs), len(pairs))


def test_weight_of_an_alignment_is_exact() -> None:
    for overlap in [*range(1, 130), 1000, 32_767]:
        below = overlap * 200 // 1000
        for mismatches in {*range(min(below, 60)), max(0, below - 1)}:
            ratio = Fraction(mismatches * 5, overlap)
            weight = int(alignment_weight(mismatches, overlap, 200))
            # The smallest integer that is not below 2^14 (1 - sqrt(ratio)).
            assert 0 < weight <= ONE
            assert (ONE - weight) ** 2 <= ratio * ONE**2 < (ONE - weight + 1) ** 2


def test_weights_of_qualities() -> None:
    assert quality_weights(8).tolist() == [quality_weight(q) for q in range(256)]
    assert quality_weights(2).tolist() == [quality_weight(q) for q in (3, 7, 16, 24)]
    assert quality_weights(1).tolist() == [quality_weight(q) for q in (7, 20)]
    assert quality_weights(0).tolist() == [ONE]
    assert [int(w) for w in quality_weights(8)[[0, 10, 20, 93]]] == [16, 14746, 16220, 16384]


def make_columns(cells: list[list[tuple[int, int, int]]]) -> msa.Columns:
    """Columns of an anchor with given (reads, sure, weight) of A, C, G and T; margin 0."""
    columns = msa.Columns.allocate(len(cells), 0)
    sums = [n << 46 | q20 << 30 | weight for four in cells for n, q20, weight in four]
    columns.sums[:] = sums
    msa.find_consensus(columns, len(cells))
    return columns


def as_oracle(cells: list[list[tuple[int, int, int]]]) -> Columns:
    return {
        column: {base: Cell(*cell) for base, cell in zip("ACGT", four, strict=True)}
        for column, four in enumerate(cells)
    }


def test_consensus_of_all_ties() -> None:
    cells = [[(1, 0, weight) for weight in four] for four in product([0, 1, 2], repeat=4)]
    columns = make_columns(cells)
    for column, four in enumerate(product([0, 1, 2], repeat=4)):
        base = "ACGT"[columns.consensus[column]]
        assert base == "ACGT"[four.index(max(four))]
        assert base == consensus(as_oracle(cells)[column])


def near(value: float) -> st.SearchStrategy[int]:
    """A support in 2^-20 around a threshold."""
    threshold = units(exact(value))
    return st.integers(-2, 2).map(lambda offset: threshold + offset)


support_in_units = st.one_of(near(0.97), near(0.94), near(0.91), near(0.82), st.just(1 << 20))


@given(
    st.lists(support_in_units, min_size=1, max_size=12),
    st.sampled_from([0.3, 5.0, 10.0, 20.0, 29.9, 30.0, 30.1]),
    st.integers(1, 4),
)
@examples(400)
def test_classes_at_the_thresholds(supports: list[int], coverage: float, depth: int) -> None:
    # A column's weight is 2^20, so that its base's weight is its support.
    cells = [[(depth, 0, s), (0, 0, (1 << 20) - s), (0, 0, 0), (0, 0, 0)] for s in supports]
    parameters = CorrectionParameters()
    rules = parameters.rules(coverage, paired=True)._replace(margin=0)
    replace, high = decide.classify(rules, make_columns(cells), len(cells))
    anchor = make_reads(["A" * len(cells)], None, 0)
    corrector = oracle.Corrector(anchor, parameters, coverage, paired=True)
    quality = "high" if high else "good" if replace else "low"
    assert quality == corrector.classify(0, as_oracle(cells))


@pytest.mark.parametrize(
    ("mean", "smallest", "depth", "quality"),
    [
        (0.97, 0.91, 3, "high"),
        (0.9699, 0.91, 3, "good"),
        (0.97, 0.9099, 3, "good"),
        (0.94, 0.82, 3, "good"),
        (0.9399, 0.82, 3, "low"),
        (0.94, 0.8199, 3, "low"),
        (1.0, 1.0, 2, "low"),
    ],
)
def test_classes_of_the_description(mean: float, smallest: float, depth: int, quality: str) -> None:
    """At a coverage of 30, as in the table of docs/correct.md."""
    others = (10 * mean - smallest) / 9
    cells = [
        [(depth, 0, round(s * (1 << 20))), (0, 0, (1 << 20) - round(s * (1 << 20)))]
        + [(0, 0, 0)] * 2
        for s in [smallest] + [others] * 9
    ]
    rules = CorrectionParameters().rules(30, paired=False)._replace(margin=0)
    replace, high = decide.classify(rules, make_columns(cells), 10)
    assert quality == ("high" if high else "good" if replace else "low")


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0, 1, 5])),
            min_size=4,
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1.0, 10.0, 13.0]),
)
@examples(200)
def test_column_of_a_repeat(cells: list[list[tuple[int, int, int]]], coverage: float) -> None:
    rules = CorrectionParameters().rules(coverage, paired=False)._replace(margin=0)
    columns = make_columns(cells)
    found = msa.repeat_column(rules, columns, len(cells))
    enough = max(2, math.floor(0.3 * math.floor(coverage)))
    expected = (-1, 0)
    for column, four in enumerate(cells):
        weights = [weight for _, _, weight in four]
        others = [
            base
            for base in range(4)
            if base != weights.index(max(weights)) and four[base][1] >= enough
        ]
        if others:
            expected = (column, others[-1])
            break
    assert found == expected


def test_sums_of_the_most_candidates_fit() -> None:
    """No sum runs over into the next one, whatever the reads of a column are."""
    entries = cpu.MAX_ENTRIES + 1
    share = msa.ONE_READ + msa.ONE_Q20 + (1 << 14)
    total = entries * share
    assert total < 1 << 63
    assert total >> msa.COUNT_SHIFT == entries
    assert (total >> msa.Q20_SHIFT) & msa.Q20_MASK == entries
    assert total & msa.WEIGHT_MASK == entries << 14


@pytest.mark.parametrize("length", [1, 2, 3, 4, 20, 64, 65, 150])
def test_hashes_of_sequences_differ(length: int) -> None:
    """Those of a read and of all its neighbours by one base."""
    bases = "".join(Random(length).choices("ACGT", k=length))
    sequences = {bases[:i] + base + bases[i + 1 :] for i in range(length) for base in "ACGT"}
    hashes = {
        int(hash_sequence(ReadSet.from_sequences([item]).arrays.planes, 0, length))
        for item in sequences
    }
    assert len(hashes) == len(sequences) == 3 * length + 1
    assert 0 not in hashes


@pytest.mark.parametrize("votes", [[], [7], [7, 7], [7, 9], [7, 7, 9], [9, 9, 7, 8]])
def test_votes_in_any_order(votes: list[int]) -> None:
    for order in permutations(votes):
        hashes, states = np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=np.uint8)
        for vote in order:
            corrections.count_votes(
                np.array([1], dtype=np.uint32), np.array([vote], np.uint64), 1, hashes, states
            )
        assert states[1] & corrections.VOTE_COUNT == len(votes)
        assert bool(states[1] & corrections.VOTE_CONFLICT) == (len(set(votes)) > 1)
        if votes:
            assert hashes[1] in votes
        assert not states[[0, 2]].any()


def test_very_many_votes() -> None:
    hashes, states = np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint8)
    many = np.full(1000, 5, dtype=np.uint64)
    corrections.count_votes(np.zeros(1000, np.uint32), many, 1000, hashes, states)
    assert states[0] == corrections.VOTE_COUNT
    corrections.count_votes(np.zeros(1, np.uint32), np.array([6], np.uint64), 1, hashes, states)
    assert states[0] == corrections.VOTE_COUNT | corrections.VOTE_CONFLICT


def written(
    text: bytes,
    starts: list[int],
    edits: dict[int, list[tuple[int, str]]],
    step: int = 1,
    style: EditStyle = AS_THEY_ARE,
) -> tuple[bytes, tuple[int, int], list[int], list[int]]:
    """Apply edits to a batch, in two ways; returns bytes, counts, and changes by position."""
    load_kernels(1 << 20, 2, style)  # otherwise so few are written by plain Python alone
    reads = 1 + max([*edits, step * len(starts)])
    edit_start, edit_count = np.zeros(reads, np.int64), np.zeros(reads, np.uint16)
    flat: list[int] = []
    for read, changes in edits.items():
        edit_start[read], edit_count[read] = len(flat), len(changes)
        flat += [position << 2 | "ACGT".index(base) for position, base in changes]
    all_edits = Edits(edit_start, edit_count, np.array(flat, np.uint32))
    results: list[tuple[bytes, tuple[int, int], list[int], list[int]]] = []
    for in_python in (True, False):
        data = np.frombuffer(text, dtype=np.uint8).copy()
        counts = EditCounts(0, 0, np.zeros((2, 20), np.int64))
        where = data, 0, np.array(starts, np.int64), 0, step
        with interpreted(in_python):
            write_edits(*where, all_edits, counts, style, is_fastq=text[:1] == b"@")
        even, odd = (np.flatnonzero(side).tolist() for side in counts.by_position)
        results.append((data.tobytes(), (counts.reads, counts.ambiguous), even, odd))
    assert results[0] == results[1]
    return results[0]


def test_edits_are_written_where_they_belong() -> None:
    text = b"@a\nACGTACGT\n+\nIIIIIIII\n@b\nacgn\n+\nIIII\n@c\nAC\n+\nII\n"
    edits = {0: [(0, "T"), (7, "A")], 1: [(1, "T"), (3, "G")]}
    expected = b"@a\nTCGTACGA\n+\nIIIIIIII\n@b\natgg\n+\nIIII\n@c\nAC\n+\nII\n"
    assert written(text, [3, 26, 41], edits) == (expected, (2, 1), [0, 7], [1, 3])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"\r\n\r\n"])
def test_edits_of_wrapped_sequences(end: bytes) -> None:
    text = b">a" + end + end.join([b"ACG", b"TAC", b"GT"]) + end
    edits = {0: [(0, "C"), (2, "T"), (3, "G"), (7, "A")]}
    expected = b">a" + end + end.join([b"CCT", b"GAC", b"GA"]) + end
    assert written(text, [2 + len(end)], edits)[:2] == (expected, (1, 0))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"A", b"T"),
        (b"a", b"t"),
        (b"N", b"T"),
        (b"n", b"t"),
        (b".", b"T"),
        (b"U", b"T"),
        (b"r", b"t"),
    ],
)
def test_case_of_an_edited_letter(old: bytes, new: bytes) -> None:
    done, counts, *_ = written(b">a\nC" + old + b"C\n", [3], {0: [(1, "T")]})
    assert done == b">a\nC" + new + b"C\n"
    assert counts == (1, old.upper() != b"A")


def test_edits_of_one_mate_of_every_pair() -> None:
    text = b">a\nAAAA\n>b\nAAAA\n"
    edits = {0: [(0, "C")], 1: [(1, "C")], 2: [(2, "C")], 3: [(3, "C")]}
    assert written(text, [3, 11], edits, step=2)[0] == b">a\nCAAA\n>b\nAACA\n"


def slowly_written(record: Record, edits: dict[int, str], style: EditStyle) -> Record:
    """What ``EditStyle`` says about one record of FASTQ."""
    assert record.qualities is not None
    bases, qualities = list(record.bases.decode()), list(record.qualities)
    kept = [i for i in range(len(bases)) if i not in edits]
    for position, base in edits.items():
        old = bases[position]
        if style.mask and old.upper() not in "ACGT":
            continue
        base = "N" if style.mask else base
        bases[position] = base.lower() if old.islower() else base
        before, after = (
            [i for i in kept if i < position][-1:],
            [i for i in kept if i > position][:1],
        )
        if style.highest_quality and kept:
            beside = [record.qualities[i] for i in before + after]
            qualities[position] = min(style.highest_quality, *beside)
    return Record(record.header, "".join(bases).encode(), bytes(qualities))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("highest", [0, 35, 53, 84])
@pytest.mark.parametrize("mask", [False, True])
def test_masks_and_qualities_against_the_oracle(mask: bool, highest: int, end: bytes) -> None:
    rng = Random(f"{mask} {highest}")
    style = EditStyle(mask, highest)
    for _ in range(50):
        records, edits, starts, text = [], {}, [], b""
        expected = b""
        changed = decided = 0
        for read in range(rng.randrange(1, 8)):
            length = rng.randrange(1, 9)
            bases = "".join(rng.choices("ACGTacgtNn.R", k=length)).encode()
            record = Record(b"r%d" % read, bases, bytes(rng.choices(range(33, 90), k=length)))
            records.append(record)
            places = sorted(rng.sample(range(length), rng.choice([0, 1, length, length // 2])))
            edits[read] = [(i, rng.choice("ACGT")) for i in places]
            starts.append(len(text) + len(record.header) + 1 + len(end))
            text += fastq([record], end)
            expected += fastq([slowly_written(record, dict(edits[read]), style)], end)
            unknown = sum(chr(bases[i]).upper() not in "ACGT" for i in places)
            changed += len(places) > (unknown if mask else 0)
            decided += 0 if mask else unknown
        done, counts, *_ = written(text, starts, edits, style=style)
        assert done == expected
        assert counts == (changed, decided)


def test_masks_in_wrapped_fasta_have_no_qualities() -> None:
    text = b">a\nACG\ntNc\nGT\n"
    edits = {0: [(0, "C"), (3, "G"), (4, "A"), (7, "A")]}
    done, counts, *_ = written(text, [3], edits, style=EditStyle(True, 53))
    assert (done, counts) == (b">a\nNCG\nnNc\nGN\n", (1, 0))
