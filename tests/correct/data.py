"""Small files of simulated reads, and the command line called from Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.cli import main
from tests.io.helpers import Record
from tests.readset.simulation import random_genome, simulate


@cache
def simulated_pairs(seed: int = 1, size: int = 3_000, coverage: int = 25) -> tuple[Record, ...]:
    """Mates in turn, of a small genome with a repeat: 1 % errors, some N, names with comments."""
    generator = np.random.default_rng(seed)
    genome = random_genome(generator, size, repeats=1, repeat_length=400)
    reads = simulate(generator, genome, coverage, paired=True)
    records = []
    for number, (bases, qualities) in enumerate(
        zip(reads.sequences(), reads.qualities(), strict=True)
    ):
        letters = bytearray(bases)
        if generator.random() < 0.1:
            letters[int(generator.integers(0, len(letters)))] = ord("N")
        if number % 10 == 3:
            letters = letters.lower()
        name = b"run:1:%d/%d some comment=%d" % (number // 2, number % 2 + 1, number)
        records.append(Record(name, bytes(letters), qualities))
    return tuple(records)


def mates(records: tuple[Record, ...]) -> tuple[list[Record], list[Record]]:
    return list(records[::2]), list(records[1::2])


@dataclass(frozen=True)
class Done:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what is wrong."""
        lines = [line for line in self.err.splitlines() if "error: " in line]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0].removeprefix("ngsgpu: error: ")


class Commands:
    """Runs ``ngsgpu`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Done(status, captured.out, captured.err)

    def correct(self, *arguments: object) -> Done:
        return self("correct", "--threads", 2, *arguments)

    def corrects(self, *arguments: object) -> Done:
        """As ``correct``, and it has to succeed."""
        done = self.correct(*arguments)
        assert done.status == 0, done.err
        return done


def read_json(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
