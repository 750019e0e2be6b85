"""Overlaps by likelihood as obvious as can be: every shift, base by base, from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ngsgpu.io.inputs import pair_inputs
from ngsgpu.io.text.pairs import Mates
from ngsgpu.merge import MergeParameters
from ngsgpu.merge.qualities import Tables
from ngsgpu.merge.rules import Rules
from ngsgpu.merge.sample import Learned, learn, take_sample
from ngsgpu.run.record import Batch
from tests.support.merge.reads import Read

SCORES = 128
PART = 32


class Placement(NamedTuple):
    """Evidence of a placement.

    Attributes:
        total: with that of the length.
        shift: where the second read begins in the first.
        chance: of the bases against chance.
        differences: of different bases and the length against copies of a repeat.
        copies: whether it is of copies of a repeat.
    """

    total: int
    shift: int
    chance: int
    differences: int
    copies: bool


class Learnt(NamedTuple):
    """What decides."""

    rules: Rules
    tables: Tables
    learned: Learned


def learn_from(
    first: Sequence[Path], second: Sequence[Path], parameters: MergeParameters, offset: int = 33
) -> Learnt:
    """Learn from files, as a run does."""

    def batches():  # type: ignore[no-untyped-def]
        for lane in pair_inputs(first, second, interleaved=not second, option=""):
            for batch in lane.batches(threads=1, phred_offset=offset, chunk_bytes=1 << 20):
                yield Batch(Mates.of_pairs(batch), lane)

    sample, _ = take_sample(batches())
    return Learnt(*learn(sample, parameters, parameters.rules(sample.longest, offset)))


def calibrated(read: Read, mate: int, tables: Tables) -> Read:
    """A read with the scores that the tables have for it; the second is reversed."""
    scores = []
    for i, score in enumerate(read.scores):
        cycle = i if mate == 0 else len(read.scores) - 1 - i
        part = min(cycle // PART, 9)
        scores.append(int(tables.scores[(10 * mate + part) * SCORES + score]))
    return Read(read.bases, scores)


def alone(read: Read, tables: Tables) -> Read:
    """A read with the scores that it has outside of its overlap."""
    return Read(read.bases, [int(tables.alone[score]) for score in read.scores])


def decide(first: Read, second: Read, learnt: Learnt) -> int | None:
    """Where the second read begins in the first one (negative: before it), if they overlap."""
    rules, tables, _ = learnt
    found = []
    for shift in range(1 - len(second.bases), len(first.bases)):
        begin, end = max(0, shift), min(len(first.bases), shift + len(second.bases))
        one, two = first.part(begin, end), second.part(begin - shift, end - shift)
        within = (shift > 0 and end < len(first.bases)) or (
            shift < 0 and end == len(first.bases) and shift + len(second.bases) > end
        )
        same_start = shift == 0 and end < len(first.bases)
        if (within or same_start) and not rules.contained:
            continue
        columns = [
            (a, b, SCORES * p + q)
            for a, p, b, q in zip(one.bases, one.scores, two.bases, two.scores, strict=True)
            if "N" not in (a, b)
        ]
        differ = sum(a != b for a, b, _ in columns)
        if len(columns) < rules.min_overlap or 1024 * differ > rules.density * len(columns):
            continue
        length = min(shift + len(second.bases), len(tables.prior) - 1)
        prior, usual = int(tables.prior[length]), int(tables.usual[length])
        chance = alike = unlike = 0
        for a, b, cell in columns:
            if a == b:
                chance += int(tables.match[cell]) + int(tables.base["ACGT".index(a)])
                alike += int(tables.alike[cell])
            else:
                chance += int(tables.mismatch[cell])
                unlike += int(tables.unlike[cell])
        copies = alike + unlike + usual < rules.related
        total = prior + chance
        found.append(Placement(total, shift, chance, unlike + prior, copies))
    shift = chosen(found, rules)
    if shift is None:
        return None
    total = next(own.total for own in found if own.shift == shift)
    explained = composed(first, second, shift, tables)
    if shift >= 0 and shift + len(second.bases) > len(first.bases):
        explained = max(explained, predicted(first, second, shift, tables))
    return shift if total - explained >= rules.accept else None


def logarithm(number: int) -> int:
    """256 times the binary logarithm, rounded down: the bits of a power."""
    return (number**256).bit_length() - 1


def composed(first: Read, second: Read, shift: int, tables: Tables) -> int:
    """Evidence that the bases frequent in this pair explain."""
    bases = "".join([*first.bases, *second.bases])
    every = logarithm(sum(1 + bases.count(base) for base in "ACGT"))
    sum_ = 0
    for at, base in enumerate(second.bases):
        if 0 <= at + shift < len(first.bases) and base == first.bases[at + shift] != "N":
            frequency = logarithm(1 + bases.count(base)) - every
            sum_ += max(0, int(tables.base["ACGT".index(base)]) + frequency)
    return sum_


def predicted(first: Read, second: Read, shift: int, tables: Tables) -> int:
    """Evidence that a tandem repeat explains, at the end of the first and begin of the second."""
    overlap = len(first.bases) - shift
    most = 0
    for period in range(1, max(len(first.bases), len(second.bases))):
        ahead = [said(second, k, k + period, tables) for k in range(overlap)]
        behind = [said(first, shift + k, shift + k - period, tables) for k in range(overlap)]
        equal = [recurs(second, k, k + period) for k in range(overlap)]
        before = [recurs(first, shift + k, shift + k - period) for k in reversed(range(overlap))]
        seen = [*equal, False].index(False) + [*before, False].index(False)
        if 2 * seen >= overlap:
            splits = range(min(overlap, max(0, len(second.bases) - period)) + 1)
            most = max(most, *(sum(ahead[:at]) + sum(behind[at:]) for at in splits))
    return most


def recurs(read: Read, one: int, two: int) -> bool:
    """Whether two bases of a read are known and equal."""
    inside = 0 <= two < len(read.bases)
    return inside and read.bases[one] == read.bases[two] != "N"


def said(read: Read, one: int, two: int, tables: Tables) -> int:
    """What two bases of a read say for being copies; nothing outside of it."""
    if not 0 <= two < len(read.bases) or "N" in (read.bases[one], read.bases[two]):
        return 0
    cell = SCORES * read.scores[one] + read.scores[two]
    if read.bases[one] != read.bases[two]:
        return int(tables.mismatch[cell])
    return int(tables.match[cell]) + int(tables.base["ACGT".index(read.bases[one])])


def chosen(found: list[Placement], rules: Rules) -> int | None:
    """The shift of the placement that is better than all others, if one is."""

    def most(values: Iterable[int]) -> int:
        return max(values, default=-(10**9))

    strong = [own for own in found if own.chance >= rules.strong]
    weak = [own for own in found if own.chance < rules.strong]
    sure = [own for own in strong if not own.copies]
    if sure:
        best = max(sure, key=lambda own: own.differences)
        others = weak
    else:
        best = max((own for own in weak if not own.copies), default=None)
        others = [own for own in found if own is not best]
    if best is None or best.total - most(own.total for own in others) < rules.lead:
        return None
    if best.total < rules.accept:
        return None
    if sure:
        clear = rules.clear
        if best.total < most(own.total for own in strong):
            if best.total < rules.certain:
                return None
            clear = rules.clearer
        rivals = (own.differences for own in strong if own is not best)
        if best.differences - most(rivals) < clear:
            return None
    return best.shift
