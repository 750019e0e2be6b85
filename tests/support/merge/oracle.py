"""Merging as obvious as can be: one pair at a time, one base at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ngsgpu.merge import MergeParameters
from ngsgpu.merge.params import MIN_TRIMMED
from tests.support.io.records import Record
from tests.support.merge.likelihood import Learnt, alone, calibrated, decide
from tests.support.merge.reads import Read, read_of


class Overlap(NamedTuple):
    """Smaller is better; the place decides last, and outward overlaps lose against inward ones."""

    density: np.float32
    penalty: np.float32
    outward: bool
    place: int


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
    if best is None or best.density > np.float32(parameters.density):
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
        elif "N" in (base1, base2):
            base = base2 if base1 == "N" else base1
            score = score2 if base1 == "N" else score1
            if base == "N":
                score = min(score1, score2)
            score = min(round(-10 * math.log10(probability(score))), parameters.max_quality)
        else:
            score = min(posterior(base1, score1, base2, score2), parameters.max_quality)
            # The mate that is read first is the second here where the pair points outwards.
            takes_first = score1 > score2 or (score1 == score2 and not outward)
            base = base1 if takes_first else base2
            if parameters.mask_ties and base1 != base2 and score1 == score2:
                base, score = "N", 2
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
    learnt: Learnt | None = None,
) -> Result:
    """Merge pairs, or correct them only; overlaps by likelihood are those of what was learnt."""
    scored = parameters.max_overlap if scored is None else scored
    result = Result([], [], [], [])
    for record1, record2 in pairs:
        header1, header2 = (one.header.decode().rstrip() for one in (record1, record2))
        read1, read2 = read_of(record1, offset), read_of(record2, offset).reversed()
        before_calibration = read1, read2
        if learnt is not None:
            read1, read2 = (
                calibrated(read, mate, learnt.tables) for mate, read in enumerate((read1, read2))
            )
            shift = decide(read1, read2, learnt)
        else:
            assert scored is not None
            best = best_overlap(read1, read2, parameters, scored)
            shift = None if best is None else -best.place if best.outward else best.place
        if shift is None:
            read1, read2 = before_calibration
            for header, read, one, to in (
                (header1, read1, record1, result.first),
                (header2, read2.reversed(), record2, result.second),
            ):
                to.append(Record(header.encode(), read.bases.encode(), one.qualities))
            continue
        begin, end = max(0, shift), min(len(read1.bases), shift + len(read2.bases))
        outward = shift < 0
        trims = (learnt is not None and not parameters.allow_outies) or parameters.trim_adapters
        one, two = read1.part(begin, end), read2.part(begin - shift, end - shift)
        left, right = (two, one) if outward else (one, two)
        highest = 126 - offset
        middle = consensus(left, right, parameters, outward, highest)
        if learnt is not None:
            read1, read2 = (alone(read, learnt.tables) for read in (read1, read2))
        read1 = Read("", []).concatenate(
            read1.part(0, begin), middle, read1.part(end, len(read1.bases))
        )
        read2 = Read("", []).concatenate(
            read2.part(0, begin - shift), middle, read2.part(end - shift, len(read2.bases))
        )
        fragment = shift + len(read2.bases)
        result.inserts.append(fragment)
        if trims:
            read1, read2 = read1.part(0, fragment), read2.part(max(0, -shift), len(read2.bases))
            shift = max(0, shift)
        whole = read1.concatenate(read2.part(len(read1.bases) - shift, len(read2.bases)))
        if shift < 0:
            whole = read2.concatenate(read1.part(fragment, len(read1.bases)))
        if not parameters.correct_only:
            result.merged.append(record(merged_name(header1), whole, offset))
            continue
        result.first.append(record(header1, read1, offset))
        result.second.append(record(header2, read2.reversed(), offset))
    return result
