"""A small library of pairs, and what commands make of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.commands import Commands

COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a genome and 600 overlapping pairs of it, with errors."""
    folder = tmp_path_factory.mktemp("library")
    chance = random.Random(7)
    genome = "".join(chance.choices("ACGT", k=4000))
    (folder / "genome.fa").write_text(f">genome one\n{genome}\n")
    with (folder / "1.fq").open("w") as first, (folder / "2.fq").open("w") as second:
        for number in range(600):
            start = chance.randrange(3800)
            fragment = genome[start : start + chance.randrange(120, 200)]
            back = fragment[::-1].translate(COMPLEMENT)
            for file, mate in ((first, fragment[:100]), (second, back[:100])):
                bases = list(mate)
                for place in range(len(bases)):
                    if chance.random() < 0.005:
                        bases[place] = chance.choice("ACGTN")
                qualities = "".join(chance.choices("5?I", k=len(bases)))
                file.write(f"@read{number} lane:1\n{''.join(bases)}\n+\n{qualities}\n")
    return folder


@pytest.fixture
def pair(library: Path) -> tuple[Path, Path]:
    """The files of first and second mates."""
    return library / "1.fq", library / "2.fq"


@pytest.fixture
def runs(ngsgpu: Commands, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command on the backend of the test, in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NGSGPU_BACKEND", backend)

    def run(*arguments: object) -> None:
        done = ngsgpu(*arguments)
        assert done.status == 0, done.err

    return run
