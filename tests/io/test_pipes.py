"""Named pipes that one program writes: opened together, and read in whatever order it writes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

import ngsgpu as package
from ngsgpu.io import pipes
from ngsgpu.io.pipes import Pipe, open_input, opened_together
from tests.support.commands import Commands
from tests.support.io.records import fastq, reads

PAIRS = 6000
"""Text of several times what a pipe holds."""


@pytest.fixture
def fifos(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"q{number}" for number in range(4)]
    for path in paths:
        os.mkfifo(path)
    return paths


def text(number: int, count: int = PAIRS) -> bytes:
    return fastq(reads(count, mate=b"/%d" % (number % 2 + 1)))


def in_turn(files: list[BinaryIO]) -> Iterator[None]:
    for number, file in enumerate(files):
        yield file.write(text(number))
        file.close()


def backwards(files: list[BinaryIO]) -> Iterator[None]:
    for number, file in reversed(list(enumerate(files))):
        yield file.write(text(number))
        file.close()


def alternating(files: list[BinaryIO]) -> Iterator[None]:
    texts = [text(number) for number in range(len(files))]
    for at in range(0, len(texts[0]), 5000):
        for file, own in zip(files, texts, strict=True):
            yield file.write(own[at : at + 5000])


class Writer(threading.Thread):
    """One program that opens all pipes before it writes to any."""

    def __init__(self, paths: list[Path], order: object) -> None:
        super().__init__(daemon=True)
        self._paths, self._order = paths, order
        self.start()

    def run(self) -> None:
        files = [path.open("wb") for path in self._paths]
        for _ in self._order(files):
            pass
        for file in files:
            file.close()


COMMANDS = [("trim", in_turn), ("trim", backwards), ("trim", alternating)] + [
    (command, in_turn) for command in ("kmers", "adapters", "merge")
]
ORDERS = pytest.mark.parametrize("order", [in_turn, backwards, alternating])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("command, order", COMMANDS)
def test_commands(
    fifos: list[Path], tmp_path: Path, ngsgpu: Commands, command: str, order: object
) -> None:
    writer = Writer(fifos[:2], order)
    given = ["-i", fifos[0], "-I", fifos[1]]
    done = ngsgpu(*{
        "trim": ["trim", "-w", 2, "-A", "-Q", "-L", "-o", tmp_path / "1", "-O", tmp_path / "2"],
        "kmers": ["kmers", "count", "-k", 11, "-o", tmp_path / "k"],
        "adapters": ["adapters"],
        "merge": ["merge", "-o", tmp_path / "m"],
    }[command], *given)  # fmt: skip
    writer.join(20)
    assert not writer.is_alive()
    assert done.status == 0, done.err
    if command == "trim":
        assert [(tmp_path / mate).read_bytes() for mate in "12"] == [text(0), text(1)]


@pytest.mark.timeout(120)
@ORDERS
def test_lanes(fifos: list[Path], tmp_path: Path, ngsgpu: Commands, order: object) -> None:
    """What a later lane gives while the first is awaited is kept."""
    writer = Writer(fifos, order)
    lanes = ["-i", fifos[0], "-I", fifos[1], "-i", fifos[2], "-I", fifos[3]]
    done = ngsgpu(
        "trim", "-w", 2, "-A", "-Q", "-L", *lanes, "-o", tmp_path / "1", "-O", tmp_path / "2"
    )
    writer.join(20)
    assert not writer.is_alive()
    assert done.status == 0, done.err
    assert [(tmp_path / mate).read_bytes() for mate in "12"] == [2 * text(0), 2 * text(1)]


@pytest.mark.timeout(60)
def test_from_python(fifos: list[Path]) -> None:
    writer = Writer(fifos[:2], in_turn)
    with package.open(fifos[0], fifos[1]) as pairs:
        assert sum(1 for _ in pairs) == PAIRS
    writer.join(20)


@pytest.mark.timeout(60)
def test_what_is_kept_comes_in_order(fifos: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_PIECE_BYTES", 777)
    with opened_together(map(str, fifos[:2])):
        writer = Writer(fifos[:2], alternating)
        first, second = (open_input(str(path)) for path in fifos[:2])
        assert isinstance(first, Pipe)
        assert first.read() == text(0)
        assert second.read() == text(1)
        first.close()
        second.close()
    writer.join(20)
    assert not pipes._live


@pytest.mark.timeout(60)
def test_a_pipe_by_two_names_is_opened_once(fifos: list[Path], tmp_path: Path) -> None:
    """Else what is kept for the one would be missing where the other is read."""
    (tmp_path / "link").symlink_to(fifos[0])
    names = [str(fifos[0]), str(tmp_path / "link"), f"{tmp_path}/./q0"]
    with opened_together(names[:2]), opened_together(names):
        assert len(pipes._live) == 1
        writer = Writer(fifos[:1], in_turn)
        with open_input(names[2]) as pipe:
            assert pipe.read() == text(0)
    writer.join(20)


@pytest.mark.timeout(60)
def test_pipes_that_nobody_reads_are_closed(fifos: list[Path]) -> None:
    with opened_together(map(str, fifos)):
        assert len(pipes._waiting) == len(fifos)
    assert not pipes._waiting
    assert not pipes._live
