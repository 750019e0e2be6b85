"""Contigs that are not in their reference as they stand, and what is wrong with them.

    python -m benchmarks.accuracy.wrong_contigs ref.fa contigs.fa [contigs.fa ...]

A contig is right if it is in the reference, on either strand, to the last base. Of the others,
words of 31 bases that occur once in the reference say where the contig lies; between two of them
that follow each other there may be wrong bases, bases too many or too few, or a join of places that
are not neighbours. What lies before the first word and behind the last is compared base for base:
from the first difference on, an end is foreign. A sequence of the reference may be a circle.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

WORD = 31
FAR = 1000
"""Bases that are missing or too many, from which on it is a wrong join."""

BACK = 200
"""Bases of another copy of a repeat, at most, that are taken for wrong bases in this one."""

SHORT = 200
"""Shorter contigs do not count."""

_OTHER = str.maketrans("ACGTacgt", "TGCAtgca")


class Wrong(NamedTuple):
    """What is wrong with one contig.

    Attributes:
        ends: bases of each foreign end.
        lengths: bases too many, or, negative, too few, at each place.
        bases: wrong bases.
        joins: joins of places that are no neighbours.
        unknown: 1, if no word says where the contig lies.
    """

    ends: list[int]
    lengths: list[int]
    bases: int
    joins: int
    unknown: int = 0


def read_fasta(path: Path) -> dict[str, str]:
    """The sequences of a FASTA file by name, in upper case."""
    found: dict[str, str] = {}
    for record in path.read_text().split(">")[1:]:
        head, _, lines = record.partition("\n")
        found[head.split()[0]] = "".join(lines.split()).upper()
    return found


def turned(text: str) -> str:
    """The other strand."""
    return text.translate(_OTHER)[::-1]


class Reference:
    """Both strands of a reference, and where their words are.

    Args:
        sequences: of the reference.
        circular: whether each of them goes on at its begin.
    """

    def __init__(self, sequences: list[str], *, circular: bool = True) -> None:
        self.circular = circular
        self._strands = [each for own in sequences for each in (own, turned(own))]
        self._begins = [0]
        for strand in self._strands:
            self._begins.append(self._begins[-1] + len(strand) + 1)
        self.text = "#".join(self._strands) + "#"
        self._places: dict[str, int] = {}
        for begin, strand in zip(self._begins, self._strands, strict=False):
            for at in range(len(strand) - WORD + 1):
                word = strand[at : at + WORD]
                self._places[word] = -1 if word in self._places else begin + at

    def has(self, contig: str) -> bool:
        """Whether a contig is there as it stands."""
        if contig in self.text:
            return True
        return self.circular and any(
            contig in strand + strand[: len(contig)] for strand in self._strands
        )

    def anchors(self, contig: str) -> list[tuple[int, int]]:
        """Places in a contig and in ``text`` of words that occur once."""
        found = []
        for at in range(len(contig) - WORD + 1):
            place = self._places.get(contig[at : at + WORD], -1)
            if place >= 0:
                found.append((at, place))
        return found

    def strand(self, place: int) -> tuple[int, int, int]:
        """The number of the strand at a place, and where it begins and ends."""
        number = bisect_right(self._begins, place) - 1
        return number, self._begins[number], self._begins[number + 1] - 1


def wrong_in(contig: str, reference: Reference) -> Wrong | None:
    """What is wrong with a contig; None if nothing is."""
    if reference.has(contig):
        return None
    anchors = _trimmed(reference.anchors(contig))
    if not anchors:
        return Wrong([], [], 0, 0, 1)
    lengths: list[int] = []
    bases = joins = row = 0
    while row + 1 < len(anchors):
        at, place = anchors[row]
        row = _next(anchors, row)
        next_at, next_place = anchors[row]
        own, begin, end = reference.strand(place)
        other = reference.strand(next_place)[0]
        more = (next_at - at) - (next_place - place)
        if reference.circular and own == other and abs(more) == end - begin:
            continue  # over the begin of a circle
        if own != other or abs(more) >= FAR or next_place <= place:
            joins += 1
        elif more:
            lengths.append(more)
        else:
            bases += _differences(contig[at:next_at], reference.text[place:next_place])
    ends = [
        _foreign(turned(contig[: anchors[0][0] + WORD]), reference, anchors[0][1], back=True),
        _foreign(contig[anchors[-1][0] :], reference, anchors[-1][1], back=False),
    ]
    found = Wrong([end for end in ends if end], lengths, bases, joins)
    return found if any(found) else None


def _next(anchors: list[tuple[int, int]], row: int) -> int:
    """The word behind a word: past what is of another place, if the contig soon comes back."""
    at, place = anchors[row]
    for later in range(row + 1, len(anchors)):
        next_at, next_place = anchors[later]
        if next_at - at == next_place - place:
            return later
        if next_at - at > BACK:
            break
    return row + 1


def _trimmed(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Words without those by which an end, as if by one wrong base, looks like another place."""
    for _ in range(2):
        anchors = anchors[::-1]
        apart = [at - place for at, place in anchors]
        other = next((i for i, own in enumerate(apart) if own != apart[0]), 0)
        if other and abs(anchors[other - 1][0] - anchors[0][0]) < WORD:
            anchors = anchors[other:]
    return anchors


def _differences(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _foreign(part: str, reference: Reference, place: int, *, back: bool) -> int:
    """Bases of a contig's end from the first difference on; ``part`` begins with the last word."""
    _, begin, end = reference.strand(place)
    if back:
        there = turned(reference.text[max(begin, place + WORD - len(part)) : place + WORD])
    else:
        there = reference.text[place : min(end, place + len(part))]
    same = 0
    while same < len(there) and part[same] == there[same]:
        same += 1
    return len(part) - same


def summary(contigs: dict[str, str], reference: Reference) -> dict[str, int | list[int]]:
    """How many contigs are wrong, and in which way."""
    found = [wrong_in(text, reference) for text in contigs.values() if len(text) >= SHORT]
    wrong = [each for each in found if each is not None]
    return {
        "contigs": len(found),
        "wrong": len(wrong),
        "foreign_ends": sorted(end for each in wrong for end in each.ends),
        "wrong_lengths": sorted(size for each in wrong for size in each.lengths),
        "wrong_bases": sum(each.bases for each in wrong),
        "wrong_joins": sum(each.joins for each in wrong),
        "not_placed": sum(each.unknown for each in wrong),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path)
    parser.add_argument("contigs", type=Path, nargs="+")
    arguments = parser.parse_args()
    reference = Reference(list(read_fasta(arguments.reference).values()))
    for path in arguments.contigs:
        print(path, summary(read_fasta(path), reference))
        for name, text in read_fasta(path).items():
            wrong = wrong_in(text, reference) if len(text) >= SHORT else None
            if wrong is not None:
                print(f"  {name} {len(text)}", wrong)


if __name__ == "__main__":
    main()
