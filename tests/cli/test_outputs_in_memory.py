"""Outputs in memory, which several threads fill, are those that are written to a disk."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.io.output.atomic import AtomicFile
from tests.support.backends import BACKENDS

READS = Path(__file__).parent.parent / "data" / "reads"

PAIR = ("-o", "o1.fq", "-O", "o2.fq")
COMMANDS = {
    "correct": ("correct", *PAIR),
    "correct by k-mers": ("correct", "--method", "spectrum", *PAIR),
    "merge": ("merge", "-o", "o1.fq", "--unmerged1", "o2.fq", "--unmerged2", "o3.fq"),
    "extend": ("extend", "-o", "o1.fq", "--remaining1", "o2.fq", "--remaining2", "o3.fq"),
    "deplete": ("deplete", "--keep-host", "-d", "host.idx", *PAIR),
    "classify": ("classify", "--references", "reference.fa", "-o", "o1.tsv"),
}


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plain pairs, and a reference that has some of them with its index, in this folder."""
    monkeypatch.chdir(tmp_path)
    for mate in (1, 2):
        text = gzip.decompress((READS / f"ecoli_mg1655_1kb_R{mate}.fastq.gz").read_bytes())
        Path(f"r{mate}.fq").write_bytes(text)
    records = Path("r1.fq").read_text().splitlines()[:400]
    Path("reference.fa").write_text(
        "".join(f">s{at}\n{bases}\n" for at, bases in enumerate(records[1::4]))
    )
    assert main(["deplete-index", "reference.fa", "-o", "host.idx", "-q"]) == 0
    return ["-i", "r1.fq", "-I", "r2.fq"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_same_files(
    inputs: list[str], monkeypatch: pytest.MonkeyPatch, command: str, backend: str
) -> None:
    found = []
    for in_memory, threads in ((False, "1"), (True, "8")):
        monkeypatch.setattr(AtomicFile, "is_in_memory", in_memory)
        assert main([*COMMANDS[command], *inputs, "-q", "-t", threads, "--backend", backend]) == 0
        found.append({path.name: path.read_bytes() for path in sorted(Path().glob("o*"))})
    assert found[0] == found[1]
    assert found[0]["o1.tsv" if command == "classify" else "o1.fq"]
