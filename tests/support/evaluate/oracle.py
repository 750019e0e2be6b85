"""The evaluation in plain Python, written from the definitions and not from the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

COMPLEMENT = bytes.maketrans(b"ACGTNacgtn", b"TGCANtgcan")


def reverse_complement(sequence: bytes) -> bytes:
    return sequence.translate(COMPLEMENT)[::-1]


def letter(base: int) -> str:
    """A, C, G, T; everything else is N."""
    upper = chr(base).upper()
    return upper if upper in "ACGT" else "N"


def outcome(before: str, truth: str, after: str) -> str:
    """TP, FP, FN or TN by the definitions in chapter 5 of the dissertation."""
    if before != truth:
        return "tp" if after == truth else "fn"
    return "tn" if after == truth else "fp"


def differences(read: str, truth: str) -> int:
    return sum(a != b and b != "N" for a, b in zip(read, truth, strict=True))


def gapped(
    read: str, truth: str, *, gap_open: int = 3, band: int = 8, free_start: bool = False
) -> int:
    """Least cost of an alignment; the end of the longer is free.

    Both start together, or with ``free_start`` one up to ``band`` bases before the other.
    """
    length = len(read)
    infinite = 10**9

    @cache
    def cost(i: int, j: int, state: str) -> int:
        if i < 0 or j < 0 or abs(i - j) > band:
            return infinite
        if state == "match":
            if (i == 0 and j == 0) or (free_start and 0 in (i, j)):
                return 0
            if i == 0 or j == 0:
                return infinite
            same = read[i - 1] == truth[j - 1] or truth[j - 1] == "N"
            return (not same) + min(cost(i - 1, j - 1, s) for s in ("match", "extra", "missing"))
        a, b = (i - 1, j) if state == "extra" else (i, j - 1)
        others = {"match", "extra", "missing"} - {state}
        return min(min(cost(a, b, s) for s in others) + gap_open, cost(a, b, state) + 1)

    ends = [(length, j) for j in range(length + 1)] + [(i, length) for i in range(length + 1)]
    return min(cost(i, j, "match") for i, j in ends)


def has_indel(read: str, truth: str) -> bool:
    unshifted = differences(read, truth)
    return min(gapped(read, truth), gapped(read[::-1], truth[::-1])) < unshifted


def aligned(before: str, after: str, truth: str) -> tuple[int, int, str]:
    """Costs of a read's alignments before and after, both ends free, and what became of it."""
    first = gapped(before, truth, free_start=True)
    second = gapped(after, truth, free_start=True)
    kind = "as_near" if first == second else "nearer" if second < first else "farther"
    return first, second, kind


def evaluate(
    before: Sequence[bytes],
    after: Sequence[bytes],
    truth: Sequence[bytes],
    mates: Sequence[int],
    with_indel: Sequence[bool],
) -> dict[str, Counter[object]]:
    """Counters of bases, reads and positions; keys begin with whether the read has an indel."""
    bases: Counter[object] = Counter()
    reads: Counter[object] = Counter()
    positions: Counter[object] = Counter()
    together: Counter[object] = Counter()
    rows = zip(before, after, truth, mates, with_indel, strict=True)
    for source, target, true, mate, indel in rows:
        wrong_before = wrong_after = 0
        reads[indel, "total"] += 1
        changed = unknown = False
        for p, (i, o, t) in enumerate(zip(source, target, true, strict=True)):
            i, o, t = letter(i), letter(o), letter(t)
            changed |= i != o
            if t == "N":
                unknown = True
                continue
            what = outcome(i, t, o)
            bases[indel, what] += 1
            bases[indel, "wrong_to_wrong"] += what == "fn" and i != o
            if not indel:
                positions[mate, p, what] += 1
            wrong_before += i != t
            wrong_after += o != t
        if indel:
            texts = ("".join(map(letter, read)) for read in (source, target, true))
            first, second, kind = aligned(*texts)
            together["cost_before"] += first
            together["cost_after"] += second
            together[kind] += 1
        reads[indel, "changed"] += changed
        reads[indel, "with_unknown_truth"] += unknown
        if wrong_after > wrong_before:
            reads[indel, "made_worse"] += 1
        elif wrong_after == 0:
            reads[indel, "made_perfect" if wrong_before else "kept_perfect"] += 1
        else:
            reads[indel, "improved" if wrong_after < wrong_before else "unchanged"] += 1
    return {"bases": bases, "reads": reads, "positions": positions, "aligned": together}
