"""Merging as obvious as can be: one pair at a time, one base at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ngsgpu.merge import MergeParameters
from ngsgpu.merge.params import MIN_TRIMMED
from tests.support.io.records import Record

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}


@dataclass(frozen=True)
class Read:
    """Bases and scores in the direction of the fragment."""

    bases: str
    scores: list[int]

    def part(self, start: int, end: int) -> Read:
        return Read(self.bases[start:end], self.scores[start:end])

    def joined(self, *others: Read) -> Read:
        bases, scores = self.bases, list(self.scores)
        for other in others:
            bases += other.bases
            scores += other.scores
        return Read(bases, scores)

    def reversed(self) -> Read:
        return Read("".join(COMPLEMENT[base] for base in reversed(self.bases)), self.scores[::-1])


class Overlap(NamedTuple):
    """Smaller is better; the place decides last, and outward overlaps lose against inward ones."""

    density: np.float32
    penalty: np.float32
    outward: bool
    place: int


def read_of(record: Record, offset: int) -> Read:
    assert record.qualities is not None
    letters = record.bases.decode().upper()
    bases = "".join(letter if letter in "ACGT" else "N" for letter in letters)
    return Read(bases, [max(0, byte - offset) for byte in record.qualities])


def overlaps(first: Read, second: Read, shortest: int, scored: int) -> list[Overlap]:
    found = []
    for place in range(max(0, len(first.bases) - len(second.bases)), len(first.bases)):
        if min(len(first.bases) - place, len(second.bases)) < shortest:
            continue
        columns = list(
            zip(
                first.bases[place:], first.scores[place:], second.bases, second.scores, strict=False
            )
        )
        known = [column for column in columns if "N" not in (column[0], column[2])]
        if len(known) < shortest:
            continue
        lower = [min(a, b) for base1, a, base2, b in known if base1 != base2]
        length = np.float32(min(len(known), scored))
        found.append(
            Overlap(np.float32(len(lower)) / length, np.float32(sum(lower)) / length, False, place)
        )
    return found


def best_overlap(
    first: Read, second: Read, parameters: MergeParameters, scored: int
) -> Overlap | None:
    found = overlaps(first, second, parameters.min_overlap, scored)
    if parameters.allow_outies or parameters.trim_adapters:
        shortest = parameters.min_overlap
        if parameters.trim_adapters:
            shortest = max(shortest, MIN_TRIMMED)
        found += [one._replace(outward=True) for one in overlaps(second, first, shortest, scored)]
    best = min(found, default=None)
    if best is None or best.density > np.float32(parameters.max_mismatch_density):
        return None
    return best


def probability(score: int) -> float:
    return min(0.75, 10 ** (-score / 10))


def posterior(base1: str, score1: int, base2: str, score2: int) -> int:
    better, worse = probability(max(score1, score2)), probability(min(score1, score2))
    denominator = better + worse - 4 * better * worse / 3
    if base1 == base2:
        wrong = better * worse / 3 / (1 - denominator)
    else:
        wrong = better * (1 - worse / 3) / denominator
    return round(-10 * math.log10(wrong))


def consensus(
    first: Read, second: Read, parameters: MergeParameters, outward: bool, highest: int
) -> Read:
    bases, scores = "", []
    for base1, score1, base2, score2 in zip(
        first.bases, first.scores, second.bases, second.scores, strict=True
    ):
        if parameters.quality == "flash":
            if base1 == base2:
                base, score = base1, max(score1, score2)
            else:
                score = max(abs(score1 - score2), 2)
                if parameters.cap_mismatch_quals:
                    score = min(score1, score2, 2)
                base = base1 if score1 > score2 or (score1 == score2 and base2 == "N") else base2
        elif base1 == base2 == "N":
            base, score = "N", min(score1, score2)
        elif base1 == "N":
            base, score = base2, score2
        elif base2 == "N":
            base, score = base1, score1
        else:
            score = min(posterior(base1, score1, base2, score2), parameters.max_quality)
            # The mate that is read first is the second here where the pair points outwards.
            takes_first = score1 > score2 or (score1 == score2 and not outward)
            base = base1 if takes_first else base2
        bases += base
        scores.append(min(score, highest))
    return Read(bases, scores)


def merged_name(header: str) -> str:
    name, slash, rest = header.rpartition("/")
    if not slash:
        return header
    return name + rest[1:] if rest[1:2] == "#" else name


def record(header: str, read: Read, offset: int) -> Record:
    qualities = bytes(score + offset for score in read.scores)
    return Record(header.encode(), read.bases.encode(), qualities)


class Result(NamedTuple):
    """What becomes of some pairs."""

    merged: list[Record]
    first: list[Record]
    second: list[Record]
    inserts: list[int]


def merge(
    pairs: list[tuple[Record, Record]],
    parameters: MergeParameters,
    *,
    offset: int = 33,
    scored: int | None = None,
) -> Result:
    """Merge pairs, or correct them only."""
    scored = parameters.max_overlap if scored is None else scored
    assert scored is not None
    result = Result([], [], [], [])
    for record1, record2 in pairs:
        header1, header2 = (one.header.decode().rstrip() for one in (record1, record2))
        read1, read2 = read_of(record1, offset), read_of(record2, offset).reversed()
        best = best_overlap(read1, read2, parameters, scored)
        if best is None:
            for header, read, one, to in (
                (header1, read1, record1, result.first),
                (header2, read2.reversed(), record2, result.second),
            ):
                to.append(Record(header.encode(), read.bases.encode(), one.qualities))
            continue
        left, right = (read2, read1) if best.outward else (read1, read2)
        end = len(left.bases)
        size = end - best.place
        middle = consensus(
            left.part(best.place, end), right.part(0, size), parameters, best.outward, 126 - offset
        )
        before, after = left.part(0, best.place), right.part(size, len(right.bases))
        if best.outward and parameters.trim_adapters:
            before = after = Read("", [])
        whole = before.joined(middle, after)
        result.inserts.append(size if best.outward else len(whole.bases))
        if not parameters.correct_only:
            result.merged.append(record(merged_name(header1), whole, offset))
            continue
        left, right = before.joined(middle), middle.joined(after)
        read1, read2 = (right, left) if best.outward else (left, right)
        result.first.append(record(header1, read1, offset))
        result.second.append(record(header2, read2.reversed(), offset))
    return result
