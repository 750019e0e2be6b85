"""An index or database without k-mers would find nothing, and nobody would know: it is refused."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.commands import Commands
from tests.support.io.records import write

SHORT = b">a\nACGTACGT\n>b\nNNNNNNNN\n"
ENOUGH = SHORT + b">c\n" + b"ACGTTGCAAGGTCTCATTAGCCATGACTAGCAT" * 8 + b"\n"
COMMANDS = {
    "deplete": ("deplete-index", "{fasta}", "--one-in", "1", "-o", "{out}"),
    "kmers": ("kmers", "count", "-i", "{fasta}", "-k", "21", "-o", "{out}"),
    "db": ("db", "build", "{fasta}", "-d", "{out}"),
}


def run(ngsgpu: Commands, command: str, tmp_path: Path, text: bytes) -> tuple[int, str]:
    fasta = write(tmp_path / "s.fa", text)
    words = [word.format(fasta=fasta, out=tmp_path / "out") for word in COMMANDS[command]]
    done = ngsgpu(*words)
    return done.status, done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_without_kmers(ngsgpu: Commands, tmp_path: Path, command: str) -> None:
    status, said = run(ngsgpu, command, tmp_path, SHORT)
    assert status == 2
    assert f"{tmp_path / 's.fa'}: no " in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["deplete", "db"])
def test_short_sequences_are_counted(
    ngsgpu: Commands, tmp_path: Path, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    with caplog.at_level(logging.INFO, logger="ngsgpu"):
        status, said = run(ngsgpu, command, tmp_path, ENOUGH)
    assert status == 0, said
    assert "2 of 3 sequences are shorter than" in caplog.text


def test_index_whose_kmers_are_all_excluded(ngsgpu: Commands, tmp_path: Path) -> None:
    one = write(tmp_path / "one.fa", ENOUGH)
    two = write(tmp_path / "two.fa", ENOUGH)
    build = ("deplete-index", "--one-in", 1, "-o", tmp_path / "out")
    done = ngsgpu(*build, one, "--exclude", two)
    assert done.status == 2
    assert "no k-mer of 24 bases is left" in done.err
