"""Stages for short reads say so, once, when they get long ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.commands import Commands
from tests.support.io.records import Record, fastq, write

COMMANDS = {
    "correct --coverage 20": ("-o 1 -O 2", "correction is for short reads"),
    "correct --method spectrum": ("-o 1 -O 2", "correction is for short reads"),
    "merge": ("-o m --unmerged1 1 --unmerged2 2", "merging is for short reads"),
    "merge --overlap flash --max-overlap 70": ("-o m", "merging is for short reads"),
    "extend --insert-size 2600 --insert-sd 50": ("-o e", "extension is for short reads"),
    "assemble": ("-o c.fa", "assembly is for short reads"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("length", "is_long"), [(1500, True), (990, False)])
def test_long_reads(
    ngsgpu: Commands, tmp_path: Path, backend: str, command: str, length: int, is_long: bool
) -> None:
    rng = random.Random(3)
    sides: list[list[Record]] = [[], []]
    genome = bytes(rng.choices(b"ACGT", k=4000))
    back = genome[::-1].translate(bytes.maketrans(b"ACGT", b"TGCA"))
    for number in range(60):
        at = rng.randrange(1000)
        starts = (genome[at : at + length], back[1000 - at : 1000 - at + length])
        for mate, (side, bases) in enumerate(zip(sides, starts, strict=True), 1):
            side.append(Record(b"r%d/%d" % (number, mate), bases, b"I" * length))
    paths = [write(tmp_path / f"in{mate}.fq", fastq(side)) for mate, side in enumerate(sides, 1)]
    outputs, said = COMMANDS[command]
    named = [word if word[0] == "-" else tmp_path / word for word in outputs.split()]
    done = ngsgpu(
        *command.split(), "-i", paths[0], "-I", paths[1], *named, "-t", 2, "--backend", backend
    )
    assert done.status == 0, done.err
    warning = f"{paths[0]} and 1 more: the reads have 1,500 bases on average, and {said}"
    assert done.err.count("is for short reads") == is_long
    assert (warning in done.err) == is_long
