"""Votes of reads on the bases of contigs, across links."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.pieces import Paths, Pieces
from ngsgpu.assemble.contigs.votes import corrected_paths
from tests.support.assemble import contigs as oracle
from tests.support.minhash.oracle import reverse_complement

K = 31
GENOME = "".join(random.Random(8).choices("ACGT", k=800))
JOINT = 400
"""Two pieces share the K - 1 bases from here on."""


def changed(bases: str, at: int) -> str:
    return f"{bases[:at]}{'ACGT'['ACGT'.index(bases[at]) - 1]}{bases[at + 1 :]}"


def chain(texts: list[str], links: list[tuple[int, int]]) -> Pieces:
    """Pieces as they stand, and links of their directions."""
    both = sorted({*links, *((e ^ 1, d ^ 1) for d, e in links)})
    number = np.bincount([d for d, _ in both], minlength=2 * len(texts))
    bases = np.array(["ACGT".index(base) for base in "".join(texts)], dtype=np.uint8)
    return Pieces(
        K,
        bases,
        np.cumsum([0, *map(len, texts)]),
        np.full(len(texts), 256, dtype=np.int64),
        np.concatenate([[0], np.cumsum(number)]),
        np.array([e for _, e in both], dtype=np.int64),
    )


def reads(at: int, right: int, wrong: int) -> list[str]:
    """Reads over a place, of both strands, of which some are wrong there."""
    found = []
    for number in range(right + wrong):
        begin = at - 70 + 9 * number
        own = GENOME[begin : begin + 120]
        own = own if number < right else changed(own, at - begin)
        found.append(reverse_complement(own) if number % 2 else own)
    return found


def whole_path(turned: bool) -> Paths:
    steps = [3, 1] if turned else [0, 2]
    return Paths(np.array([0, 2]), np.array(steps, dtype=np.int64))


def texts(pieces: Pieces) -> list[str]:
    return oracle.sequences(pieces)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("at", [JOINT - 3, JOINT, JOINT + 17, JOINT + K - 2, JOINT + K - 1])
@pytest.mark.parametrize(
    ("right", "wrong", "changes"), [(2, 1, True), (5, 2, True), (3, 2, False), (1, 1, False)]
)
def test_reads_vote_over_links(
    at: int, turned: bool, right: int, wrong: int, changes: bool
) -> None:
    """What one read says gives way to two, and both pieces of a link get the base."""
    own = changed(GENOME, at)
    pieces = chain([own[: JOINT + K - 1], own[JOINT:]], [(0, 2)])
    held = oracle.held(reads(at, right, wrong))
    found = texts(corrected_paths(pieces, whole_path(turned), held, 1))
    best = GENOME if changes else own
    assert found == [best[: JOINT + K - 1], best[JOINT:]]
    for threads in (2, 4):
        assert texts(corrected_paths(pieces, whole_path(turned), held, threads)) == found


def test_what_another_piece_shares_stays() -> None:
    """A link to a piece that is not next on the path, and a piece that is there twice."""
    at = JOINT + 5
    own = changed(GENOME, at)
    other = own[JOINT : JOINT + K - 1] + "".join(random.Random(9).choices("ACGT", k=60))
    pieces = chain([own[: JOINT + K - 1], own[JOINT:], other], [(0, 2), (0, 4)])
    held = oracle.held(reads(at, 5, 0))
    assert texts(corrected_paths(pieces, whole_path(False), held, 1)) == texts(pieces)
    pieces = chain([own[: JOINT + K - 1], own[JOINT:]], [(0, 2)])
    twice = Paths(np.array([0, 2, 3]), np.array([0, 2, 0], dtype=np.int64))
    assert texts(corrected_paths(pieces, twice, held, 1)) == texts(pieces)


def test_no_paths() -> None:
    none: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    pieces = chain([GENOME], [])
    found = corrected_paths(pieces, Paths(np.zeros(1, dtype=np.int64), none), oracle.held([]), 1)
    assert texts(found) == [GENOME]
