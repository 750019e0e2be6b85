"""A read as a string and a list."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.io.records import Record

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}


@dataclass(frozen=True)
class Read:
    """Bases and scores in the direction of the fragment."""

    bases: str
    scores: list[int]

    def part(self, start: int, end: int) -> Read:
        return Read(self.bases[start:end], self.scores[start:end])

    def concatenate(self, *others: Read) -> Read:
        bases, scores = self.bases, list(self.scores)
        for other in others:
            bases += other.bases
            scores += other.scores
        return Read(bases, scores)

    def reversed(self) -> Read:
        return Read("".join(COMPLEMENT[base] for base in reversed(self.bases)), self.scores[::-1])


def read_of(record: Record, offset: int) -> Read:
    assert record.qualities is not None
    letters = record.bases.decode().upper()
    bases = "".join(letter if letter in "ACGT" else "N" for letter in letters)
    return Read(bases, [max(0, byte - offset) for byte in record.qualities])
