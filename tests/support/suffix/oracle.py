"""Slow and obvious suffix arrays and matches."""

from __future__ import annotations

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def turned(text: str) -> str:
    """The reverse complement."""
    return text.translate(_COMPLEMENT)[::-1]


def suffix_array(text: bytes) -> list[int]:
    """Places of the suffixes in their order."""
    return sorted(range(len(text)), key=lambda place: text[place:])


def maximal_matches(read: str, text: str, shortest: int) -> list[tuple[int, int]]:
    """Begin and end of the pieces that the text has, and no longer one around them."""
    pieces = [
        (begin, end)
        for begin in range(len(read))
        for end in range(begin + 1, len(read) + 1)
        if read[begin:end] in text
    ]
    return [
        (begin, end)
        for begin, end in pieces
        if end - begin >= shortest
        and not any(
            low <= begin and end <= high and (low, high) != (begin, end) for low, high in pieces
        )
    ]


def places_of(piece: str, sequences: dict[str, str]) -> list[tuple[str, str, int]]:
    """Sequence, strand and offset of all its occurrences, sorted."""
    found = []
    for name, sequence in sequences.items():
        for strand, wanted in (("+", piece), ("-", turned(piece))):
            at = sequence.find(wanted)
            while at >= 0:
                found.append((name, strand, at))
                at = sequence.find(wanted, at + 1)
    return sorted(found)
