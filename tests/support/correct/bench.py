"""The kernels' stages one by one, with results as plain Python objects."""

from __future__ import annotations

import numpy as np

from ngsgpu.align import msa
from ngsgpu.align.alignment import Alignments, filter_candidates, mark_mates, quality_weights
from ngsgpu.align.alleles import find_alleles
from ngsgpu.align.gap import find_gap
from ngsgpu.correct import Corrections, cpu
from ngsgpu.correct.forests.forest import NO_FOREST
from ngsgpu.correct.rules import decide, votes
from ngsgpu.correct.workspace import EDIT_BITS, Workspace
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from ngsgpu.readset.cpu import read_length
from tests.support.correct.scenarios import Scenario
from tests.support.minhash.oracle import Placement


class Bench:
    """One scenario on the kernels' workbench; anchors are to be taken one after the other."""

    def __init__(self, scenario: Scenario) -> None:
        self.reads = scenario.read_set()
        parameters = scenario.parameters
        self.rules = parameters.rules(scenario.coverage, paired=scenario.paired)
        self.weights = quality_weights(self.reads.arrays.quality_bits)
        self.tables = build_tables(self.reads, parameters.minhash)
        self.work = Workspace.allocate(
            self.reads.max_length, parameters.minhash.tables, parameters.margin
        )

    def align(self, anchor: int, result: Alignments) -> tuple[int, bool]:
        """Number of aligned candidates, and whether the anchor is crowded."""
        count, crowded = cpu.find_aligned(
            self.reads.arrays,
            self.tables.arrays,
            self.weights,
            self.rules,
            anchor,
            self.work,
            result,
        )
        assert np.all(self.work.found.cells == -1), "the workspace is ready for the next anchor"
        return int(count), bool(crowded)

    def mark_mates(self, first_count: int, second_count: int) -> None:
        work = self.work
        mark_mates(work.found, work.first, first_count, work.second, second_count)
        assert np.all(work.found.cells == -1)

    def keep(self, candidates: Alignments, count: int) -> int:
        return int(filter_candidates(self.rules, candidates, count))

    def build(self, anchor: int, candidates: Alignments, count: int) -> None:
        margin = self.rules.margin
        msa.build(
            self.reads.arrays, self.weights, anchor, candidates, count, margin, self.work.columns
        )
        length = read_length(self.reads.arrays, anchor)
        msa.find_consensus(self.work.columns, length + 2 * margin)

    def refine(self, anchor: int, candidates: Alignments, count: int) -> int:
        length = read_length(self.reads.arrays, anchor)
        return int(
            msa.refine(
                self.reads.arrays,
                self.weights,
                self.rules,
                candidates,
                count,
                length,
                self.work.columns,
            )
        )

    def cells(self, anchor: int) -> dict[int, list[tuple[int, int, int]]]:
        """Reads, sure reads and weight of A, C, G and T in each column that any read covers."""
        margin = self.rules.margin
        sums = self.work.columns.sums
        result = {}
        for column in range(-margin, read_length(self.reads.arrays, anchor) + margin):
            four = sums[4 * (column + margin) : 4 * (column + margin) + 4].tolist()
            if any(four):
                result[column] = [(s >> 46, (s >> 30) & 0xFFFF, s & (1 << 30) - 1) for s in four]
        return result

    def consensus(self, column: int) -> str:
        return "ACGT"[self.work.columns.consensus[column + self.rules.margin]]

    def classify(self, anchor: int) -> str:
        replace, high = decide.classify(
            self.rules, self.work.columns, read_length(self.reads.arrays, anchor)
        )
        return "high" if high else "good" if replace else "low"

    def find_alleles(self, anchor: int, candidates: Alignments, count: int) -> None:
        length = read_length(self.reads.arrays, anchor)
        find_alleles(
            self.reads.arrays,
            self.weights,
            self.rules,
            anchor,
            candidates,
            count,
            length + 2 * self.rules.margin,
            self.work.columns,
        )

    def edits(self, anchor: int, *, replace: bool, crowded: bool) -> dict[int, str]:
        ambiguous = self.work.ambiguous
        cpu.mark_ambiguous(self.reads.ambiguous, anchor, 1, ambiguous)
        end = decide.decide(
            self.reads.arrays,
            self.weights,
            self.rules,
            anchor,
            replace,
            crowded,
            find_gap(self.rules, self.work.columns, read_length(self.reads.arrays, anchor)),
            self.work,
            5,
            self.work.first,
            0,
            False,
            NO_FOREST,
            False,
            False,
        )
        cpu.mark_ambiguous(self.reads.ambiguous, anchor, 0, ambiguous)
        assert not ambiguous.any()
        return as_edits(self.work.edits[5:end])

    def vote_hashes(self, anchor: int, candidates: Alignments, count: int) -> list[tuple[int, int]]:
        length = read_length(self.reads.arrays, anchor)
        end = votes.vote_for_candidates(
            self.work,
            self.reads.arrays,
            self.weights,
            self.rules,
            length,
            candidates,
            count,
            3,
        )
        reads, hashes = self.work.vote_reads[3:end], self.work.vote_hashes[3:end]
        return list(zip(reads.tolist(), hashes.tolist(), strict=True))


def placements(candidates: Alignments, count: int) -> list[Placement]:
    return [
        Placement(
            int(candidates.read[i]),
            bool(candidates.reverse_complemented[i]),
            int(candidates.shift[i]),
        )
        for i in range(count)
    ]


def kept_reads(candidates: Alignments, count: int) -> list[int]:
    return sorted(int(candidates.read[i]) for i in range(count) if candidates.kept[i])


def as_edits(edits: np.ndarray) -> dict[int, str]:
    plain = edits & EDIT_BITS
    return {int(edit) >> 2: "ACGT"[int(edit) & 3] for edit in plain}


def edits_of(corrections: Corrections, read: int) -> dict[int, str]:
    start, count = int(corrections.edit_start[read]), int(corrections.edit_count[read])
    return as_edits(corrections.edits[start : start + count])


def hash_of(bases: str) -> int:
    """The kernels' hash of a sequence, for comparing votes with sequences."""
    return int(votes.hash_sequence(ReadSet.from_sequences([bases]).arrays.planes, 0, len(bases)))
