"""The comparison kernel against the plain-Python oracle, on reads in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.evaluate import CorrectionEvaluation, evaluate_arrays
from tests.support.evaluate import oracle

FEW = settings(max_examples=60, deadline=None)

letters = st.sampled_from(list(b"AACCGGTTacgtNnR"))


@st.composite
def triples(draw: st.DrawFn) -> tuple[bytes, bytes, bytes, bytes]:
    """A read before and after correction, its truth and its qualities."""
    length = draw(st.integers(1, 14))
    truth = bytes(draw(st.lists(letters, min_size=length, max_size=length)))
    reads = []
    for _ in range(2):
        read = bytearray(truth)
        for position in draw(st.sets(st.integers(0, length - 1), max_size=4)):
            read[position] = draw(letters)
        reads.append(bytes(read))
    qualities = bytes(draw(st.lists(st.integers(33, 74), min_size=length, max_size=length)))
    return reads[0], reads[1], truth, qualities


def as_dictionaries(result: CorrectionEvaluation) -> dict[str, dict[object, int]]:
    """The result in the oracle's form, without zeros."""
    bases: dict[object, int] = {}
    reads: dict[object, int] = {}
    positions: dict[object, int] = {}
    pairs = (
        (False, result.counts, result.read_counts),
        (True, result.indel_counts, result.indel_read_counts),
    )
    for indel, counts, of_reads in pairs:
        for name in ("tp", "fp", "fn", "tn", "wrong_to_wrong"):
            bases[indel, name] = getattr(counts, name)
        for name, value in of_reads.document().items():
            reads[indel, name] = value
    for mate, position, column in zip(*np.nonzero(result.positions), strict=True):
        name = ("tp", "fp", "fn", "tn")[column]
        positions[int(mate), int(position), name] = int(result.positions[mate, position, column])
    aligned: dict[object, int] = dict(result.indel_aligned.document())
    return {"bases": bases, "reads": reads, "positions": positions, "aligned": aligned}


def without_zeros(counters: dict[str, dict[object, int]]) -> dict[str, dict[object, int]]:
    return {name: {k: v for k, v in c.items() if v} for name, c in counters.items()}


@FEW
@given(st.lists(triples(), max_size=8), st.data())
def test_counts_equal_the_oracle(
    reads: list[tuple[bytes, bytes, bytes, bytes]], data: st.DataObject
) -> None:
    before, after, truth, qualities = (
        (list(column) for column in zip(*reads, strict=True)) if (reads) else ([], [], [], [])
    )
    size = {"min_size": len(reads), "max_size": len(reads)}
    mates = data.draw(st.lists(st.integers(0, 1), **size))
    indels = data.draw(st.lists(st.booleans(), **size))
    result = evaluate_arrays(
        before,
        after,
        truth,
        qualities=qualities,
        mates=np.array(mates, dtype=np.uint8),
        with_indel=np.array(indels, dtype=bool),
    )
    expected = oracle.evaluate(before, after, truth, mates, indels)
    assert without_zeros(as_dictionaries(result)) == without_zeros(expected)

    by_quality: dict[tuple[int, str], int] = {}
    for i, o, t, q, indel in zip(before, after, truth, qualities, indels, strict=True):
        for a, b, c, letter in zip(i, o, t, q, strict=True):
            names = [oracle.letter(x) for x in (a, c, b)]
            if not indel and names[1] != "N":
                key = (letter - 33, oracle.outcome(*names))
                by_quality[key] = by_quality.get(key, 0) + 1
    assert by_quality == {
        (row["quality"], name): row[name]
        for row in result.document()["by_quality"]
        for name in ("tp", "fp", "fn", "tn")
        if row[name]
    }


@FEW
@given(st.lists(triples(), min_size=1, max_size=6))
def test_parts_of_the_document_agree(reads: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
    before, after, truth, _ = (list(column) for column in zip(*reads, strict=True))
    result = evaluate_arrays(before, after, truth)
    document = json.loads(json.dumps(result.document()))
    totals = document["totals"]
    (positions,) = document["by_position"]
    for name in ("bases", "tp", "fp", "fn", "errors_before", "errors_after"):
        assert sum(positions[name]) == totals[name]
    matrices = document["substitutions"]
    assert np.sum(matrices["before"]) == totals["bases"]
    wrong = np.array(matrices["after"]).sum() - np.trace(np.array(matrices["after"])[:, :4])
    assert wrong == totals["errors_after"]
    reads_of = document["reads"]
    kinds = ("kept_perfect", "made_perfect", "improved", "unchanged", "made_worse")
    assert sum(reads_of[kind] for kind in kinds) == reads_of["total"]
    everything = document["all_reads"]["totals"]["bases"]
    assert everything == totals["bases"] + document["indel_reads"]["totals"]["bases"]


def test_definitions_on_one_read() -> None:
    #         TP FP FN FN(changed) TN, an N decided rightly, an N left, an unknown truth
    truth = b"AAAAAAAN"
    before = b"CACCANNC"
    after = b"ACCGAANT"
    result = evaluate_arrays([before], [after], [truth], with_indel=np.array([False]))
    counts = result.counts
    assert (counts.tp, counts.fp, counts.fn, counts.tn) == (2, 1, 3, 1)
    assert counts.wrong_to_wrong == 1
    assert result.unknown_truth_bases == 1
    assert counts.sensitivity == pytest.approx(2 / 5)
    assert counts.specificity == pytest.approx(1 / 2)
    assert counts.precision == pytest.approx(2 / 3)
    assert counts.fp_per_million == pytest.approx(1e6 / 3)
    assert (counts.errors_before, counts.errors_after) == (5, 4)


def test_rates_without_divisor_are_none() -> None:
    result = evaluate_arrays([], [], [])
    assert result.counts.rates() == dict.fromkeys(result.counts.rates())
    assert result.read_counts.total == 0


def test_matrices_of_letters() -> None:
    matrix = np.frombuffer(b"ACGTACGA", dtype=np.uint8).reshape(2, 4)
    truth = np.frombuffer(b"ACGTACGT", dtype=np.uint8).reshape(2, 4)
    result = evaluate_arrays(matrix, truth, truth)
    assert (result.counts.tp, result.counts.tn) == (1, 7)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="equal numbers and lengths"):
        evaluate_arrays([b"ACGT"], [b"ACG"], [b"ACGT"])
    with pytest.raises(ValueError, match="qualities"):
        evaluate_arrays([b"ACGT"], [b"ACGT"], [b"ACGT"], qualities=[b"I"])
