"""The text of extended reads against a description of it base by base."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.records import KIND_WORDS, Format, format_pairs
from ngsgpu.io.text.pairs import Mates

ALPHABETS = ("ACGT", "ACGT", "ACGTN", "acgtnACGTNRYKMBDHV.-")
TURNED = str.maketrans("ACGTRYKMBDHVacgtrykmbdhv", "TGCAYRMKVHDBtgcayrmkvhdb")


class Record(NamedTuple):
    """A read of a file; no qualities: FASTA."""

    name: str
    letters: str
    qualities: str | None

    def turned(self) -> Record:
        """Its reverse complement."""
        qualities = None if self.qualities is None else self.qualities[::-1]
        return Record(self.name, self.letters.translate(TURNED)[::-1], qualities)


class Result(NamedTuple):
    """What became of a pair; bases and scores are those left, between and right of the reads."""

    kind: int
    total: int
    left: int
    right: int
    letters: str
    scores: list[int]


def random_record(rng: random.Random, name: str, fasta: bool) -> Record:
    letters = "".join(rng.choices(rng.choice(ALPHABETS), k=rng.randint(1, 150)))
    qualities = "".join(chr(rng.randint(35, 74)) for _ in letters)
    return Record(name, letters, None if fasta else qualities)


def random_result(rng: random.Random, first: Record, second: Record, outward: bool) -> Result:
    total = rng.randint(1, 400)
    left, right = (rng.randint(0, 40) if outward else 0 for _ in range(2))
    size = left + right + max(0, total - len(first.letters) - len(second.letters))
    letters = "".join(rng.choices("ACGT", k=size))
    return Result(
        rng.randrange(6), total, left, right, letters, rng.choices([0, 1, 2, 20, 41], k=size)
    )


def mates(records: list[Record], line_end: str) -> Mates:
    """The records as a file has them."""
    text = ""
    rows = []
    for name, letters, qualities in records:
        header = len(text) + 1
        text += (">" if qualities is None else "@") + name
        header_end = len(text)
        text += line_end
        start = len(text)
        if qualities is None:
            text += "".join(letters[at : at + 60] + line_end for at in range(0, len(letters), 60))
            quality_start = 0
        else:
            text += letters + line_end + "+" + line_end
            quality_start = len(text)
            text += qualities + line_end
        rows.append((header, header_end, start, len(letters), quality_start, len(text)))
    header_start, header_ends, starts, lengths, quality_starts, ends = np.array(rows).T
    return Mates(
        np.frombuffer(bytearray(text.encode()), np.uint8),
        header_start.copy(),
        header_ends.copy(),
        starts.copy(),
        lengths.astype(np.int32),
        quality_starts[: 0 if records[0].qualities is None else None].copy(),
        ends.copy(),
    )


def extensions(results: list[Result]) -> Extensions:
    """The results as kernels give them."""
    sizes = [len(result.letters) for result in results]
    letters = "".join(result.letters for result in results)
    return Extensions(
        kind=np.array([result.kind for result in results], np.uint8),
        total=np.array([result.total for result in results], np.int32),
        left=np.array([result.left for result in results], np.int32),
        right=np.array([result.right for result in results], np.int32),
        start=np.cumsum([0, *sizes[:-1]]),
        codes=np.array(["ACGT".index(letter) for letter in letters], np.uint8),
        qualities=np.array([score for result in results for score in result.scores], np.uint8),
    )


def fragment(how: Format, first: Record, second: Record, result: Result) -> tuple[str, str]:
    """Bases and quality characters of an extended read."""
    ends = [first, second.turned()]
    if how.reverse_complemented_input:
        ends = [first.turned(), second]
    (letters1, letters2), lengths = [end.letters for end in ends], [len(end[1]) for end in ends]
    qualities = [end.qualities or "I" * len(end.letters) for end in ends]
    begin = result.total - lengths[1]
    outside = iter(zip(result.letters, result.scores, strict=True))
    bases = ""
    quality = ""
    for place in range(-result.left, result.total + result.right):
        inside = 0 <= place < result.total
        mine = (letters1[place], qualities[0][place]) if inside and place < lengths[0] else None
        other = None
        if inside and place >= begin:
            other = letters2[place - begin], qualities[1][place - begin]
        if mine and other:
            worse = mine[1] < other[1] and other[0] in "ACGTacgt"
            chosen = other if worse or mine[0] not in "ACGTacgt" else mine
        elif mine or other:
            chosen = mine or other or ("", "")
        else:
            letter, score = next(outside)
            score = how.gap_quality if how.gap_quality >= 0 else score
            chosen = letter, chr(how.phred_offset + score)
        bases += chosen[0]
        quality += chosen[1]
    return bases, quality


def expected(how: Format, first: Record, second: Record, result: Result) -> str:
    """The record of an extended read."""
    bases, qualities = fragment(how, first, second, result)
    lengths = len(first.letters), len(second.letters)
    left, total = result.left, result.total
    name = first.name.split(" ")[0].removesuffix("/1")
    header = (
        f"{name} length={len(bases)} read1={left}-{left + min(lengths[0], total)} "
        f"read2={left + max(0, total - lengths[1])}-{left + total} by={KIND_WORDS[result.kind]}"
    )
    return f">{header}\n{bases}\n" if how.fasta else f"@{header}\n{bases}\n+\n{qualities}\n"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("seed", range(12))
def test_extended_reads(seed: int, line_end: str) -> None:
    rng = random.Random(seed)
    fasta, outward = rng.random() < 0.3, rng.random() < 0.5
    how = Format(
        fasta=int(fasta or rng.random() < 0.3),
        phred_offset=33,
        gap_quality=rng.choice([-1, -1, 7]),
        include_remaining=0,
        interleave_remaining=0,
        reverse_complemented_input=rng.randint(0, 1),
    )
    pairs = []
    for number in range(60):
        first = random_record(rng, f"r{number}" + rng.choice(["", "/1", " a b", "/1 c"]), fasta)
        second = random_record(rng, f"r{number}", fasta)
        pairs.append((first, second, random_result(rng, first, second, outward)))
    begin = rng.randint(0, 5)
    firsts, seconds, results = (list(column) for column in zip(*pairs, strict=True))
    texts = format_pairs(
        mates(firsts, line_end), mates(seconds, line_end), begin, how, extensions(results[begin:])
    )
    connected = [pair for pair in pairs[begin:] if pair[2].kind]
    assert texts[0].tobytes().decode() == "".join(expected(how, *pair) for pair in connected)
    assert texts[3].tolist() == [
        result.left + result.total + result.right for _, _, result in connected
    ]
