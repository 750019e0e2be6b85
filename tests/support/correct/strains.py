"""What becomes of bases of rare strains, in plain Python, from docs/correct.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.correct.alignment import Read, quality_weight
from tests.support.correct.witnesses import is_contradicted, is_witnessed

Q20 = quality_weight(20)


@dataclass
class Decision:
    """What an anchor's own MSA says: its class, and edits (position to base).

    ``own`` are the edits of its correction, ``complete`` those that would make it the consensus;
    ``votes`` are corrected sequences for other reads. With a ``rare`` allele in the read or its
    mate, bases at the ``doubtful`` positions stay; all reads may be asked about those ``asked``.
    ``surely`` is an allele of Q20 or above, ``others`` the consensus of Q20 beside a rare allele.
    """

    quality: str
    own: dict[int, str]
    complete: dict[int, str]
    rare: bool
    surely: bool
    others: bool
    doubtful: set[int]
    asked: set[int]
    votes: list[tuple[int, str]] = field(default_factory=list)


def ask(
    reads: list[Read],
    paired: bool,
    decisions: list[Decision | None],
    edits: list[dict[int, str]],
) -> None:
    """Let all reads witness bases that would be changed, if one in 100 has a rare allele."""
    rare = {number for number, own in enumerate(decisions) if own and own.rare}
    if 100 * len(rare) < len(reads):
        return
    asked = [
        (number, at)
        for number, own in enumerate(decisions)
        for at in edits[number]
        if own and at in own.asked
    ]
    good = {(number, at) for number, at in asked if reads[number].weights[at] >= Q20}
    fragments = {number >> paired for number in rare | {number for number, _ in good}}
    witnessed = set()
    for number, at in asked:
        own = decisions[number]
        near = own and number >> paired in fragments
        if own and near and is_witnessed(reads, paired, number, at):
            witnessed.add((number, at))
            own.doubtful.add(at)
            if (number, at) in good:
                own.rare = own.surely = True
    ask_of_one_strain(reads, paired, decisions, edits, asked, good, witnessed)


def ask_of_one_strain(
    reads: list[Read],
    paired: bool,
    decisions: list[Decision | None],
    edits: list[dict[int, str]],
    asked: list[tuple[int, int]],
    good: set[tuple[int, int]],
    witnessed: set[tuple[int, int]],
) -> None:
    """Decide on what nobody witnesses, if there is one strain that does not contradict itself.

    A fragment is of the strain, or of others, if one of its reads is.
    """
    own = {number: decision for number, decision in enumerate(decisions) if decision}
    carriers = {number for number in own if own[number].rare}
    rare = fragments_of(carriers, paired)
    others = fragments_of((number for number in own if own[number].others), paired)
    sure = fragments_of((number for number in own if own[number].surely), paired) - others

    def is_wrong(number: int, at: int) -> bool:
        base = edits[number][at]
        return is_contradicted(reads, paired, number, at, base, sure)

    variants = witnessed & good
    if 6 * sum(is_wrong(*edit) for edit in variants) > len(variants):
        return
    most_known = 2 * len(rare | others) >= len(reads)
    for number, at in set(asked) - witnessed:
        decision = own[number]
        if number in rare:
            may_be = number not in carriers or reads[number].score(at) >= 30
            considered = at in decision.doubtful or ((number, at) in good and may_be)
        else:
            best = reads[number].score(at) >= 37
            considered = most_known and number not in others and best
        if not considered:
            continue
        decision.doubtful.discard(at)
        if not is_wrong(number, at):
            decision.doubtful.add(at)
            decision.rare = True


def fragments_of(numbers: Iterable[int], paired: bool) -> set[int]:
    """The reads, and their mates."""
    return {own for number in numbers for own in (number, number ^ paired)}
