"""Mates that look swapped: what is warned of, and that every command that reads pairs does."""

from __future__ import annotations

import gzip
import logging
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ngsgpu.io.inputs import warn_of_mates
from tests.support import copies

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class ReadFiles:
    inputs: tuple[str, ...]
    interleaved: bool = False


def write(path: Path, *names: str) -> str:
    """2,000 reads with these names in turn, ``{}`` being a number."""
    records = (
        f"@{name.format(i)}\nACGTACGTAC\n+\nIIIIIIIIII\n" for i in range(1000) for name in names
    )
    data = "".join(records).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("r{}/1", "r{}/2", ""),
        ("r{} 1:N:0:ACGT", "r{} 2:N:0:ACGT", ""),
        ("r{}", "r{}", ""),
        ("SRR1.{}.2", "SRR1.{}.2", ""),
        ("r{}/2", "r{}/1", "named as second ones; swapped with"),
        ("r{}/2 x", "r{}/1 x", "named as second ones; swapped with"),
        ("r{} 2:N:0:ACGT", "r{} 1:Y:0:ACGT", "named as second ones; swapped with"),
        ("r{} 2:N:0:ACGT", "r{} 2:N:0:ACGT", "named as second ones; swapped with"),
        ("r{} 1:N:0:ACGT", "r{} 1:N:0:ACGT", "which are named as first ones"),
    ],
)
@pytest.mark.parametrize("end", ["fq", "fq.gz"])
def test_two_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, first: str, second: str, said: str, end: str
) -> None:
    inputs = (write(tmp_path / f"a.{end}", first), write(tmp_path / f"b.{end}", second))
    with caplog.at_level(logging.WARNING, "ngsgpu"):
        warn_of_mates([ReadFiles(inputs), ReadFiles(inputs[:1])])
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(said)
    assert all(said in message and inputs[0] in message for message in messages)


def test_one_file_twice_and_pairs_in_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    same = write(tmp_path / "same.fq", "r{}")
    good = write(tmp_path / "good.fq", "r{}/1", "r{}/2")
    bad = write(tmp_path / "bad.fq", "r{}/2", "r{}/1")
    (tmp_path / "link.fq").symlink_to(same)
    (tmp_path / "empty.fq").touch()
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08\x00rubbish")
    lanes = [
        ReadFiles((same, str(tmp_path / "link.fq"))),
        ReadFiles((good,), True),
        ReadFiles((bad,), True),
    ]
    odd = [
        ReadFiles((str(tmp_path / name), good)) for name in ("empty.fq", "damaged.gz", "none.fq")
    ]
    with caplog.at_level(logging.WARNING, "ngsgpu"):
        warn_of_mates([*lanes, *odd, ReadFiles(("-", good))])
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "is given for first and for second mates" in messages[0]
    assert messages[1].startswith(bad)


@pytest.mark.parametrize(
    "command",
    [
        "correct -o o1.fq -O o2.fq",
        "merge -o o.fq",
        "extend -o o.fq --insert-size 300 --insert-sd 30",
        "classify -o o.tsv --references genome.fa",
    ],
)
def test_every_command_warns(tmp_path: Path, command: str) -> None:
    for mate, suffix in (("R1", "/1"), ("R2", "/2")):
        path = ROOT / ".test" / "data" / f"na12878_lane1_{mate}.fastq.gz"
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()[:400]
        lines[::4] = [line.split()[0].removesuffix(suffix) + suffix for line in lines[::4]]
        (tmp_path / f"{mate}.fq").write_text("\n".join(lines) + "\n")
    genome = gzip.decompress((ROOT / ".test" / "data" / "chr20_8kb.fasta.gz").read_bytes())
    (tmp_path / "genome.fa").write_bytes(genome)
    options = ["-i", "R2.fq", "-I", "R1.fq", "--backend", "cpu", "--threads", "1"]
    result = subprocess.run(
        [copies.ngsgpu(), *command.split(), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if "swapped with R1.fq?" in line]
    assert len(said) == 1, result.stderr
