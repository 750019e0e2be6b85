"""The comparison of k-mer counters: what is run, and what counts as the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.harness.measuring import Measurement
from benchmarks.peers import kmers
from benchmarks.peers.kmers import Job, compare, counts_of, differences, jobs, parse, table


def test_both_backends_and_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmers, "is_here", lambda program: program in ("kmc", "bcalm"))
    settings = parse(["r1.fq", "r2.fq", "--backend", "cuda", "-t", "4", "-k", "21", "-o", "o"])
    known = jobs(settings)
    assert [(job.task, job.program) for job in known] == [
        *((task, f"ngsgpu, {where}") for where in ("cuda", "cuda, 8G", "cpu")
          for task in ("histogram", "database", "unitigs")),
        ("database", "KMC"), ("unitigs", "BCALM"),
    ]  # fmt: skip
    assert all("-t 4" in job.command and "-k 21" in job.command for job in known[:9])
    assert "-k21" in known[9].command
    settings.no_cpu = True
    assert {job.backend for job in jobs(settings)} == {"cuda", None}
    settings.tasks = ["unitigs"]
    assert {job.task for job in jobs(settings)} == {"unitigs"}


def test_compressed_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmers, "is_here", lambda program: program == "kmc")
    files = [tmp_path / name for name in ("a.fq", "b.fq")]
    for path in files:
        path.write_text(f"@{path.name}\nA\n+\nF\n")
    arguments = [*map(str, files), "--compressed", "-t", "1", "--work", str(tmp_path / "work")]
    settings = parse([*arguments, "-o", "o"])
    known = jobs(settings)
    assert all("-i r1.fq.gz -i r2.fq.gz" in job.command for job in known if job.backend)
    run: list[Path] = []
    monkeypatch.setattr(kmers, "measure", lambda command, folder: run.append(folder))
    with kmers.reads_of(settings, {}) as folder:
        assert (folder / "reads.txt").read_text() == "r1.fq.gz\nr2.fq.gz\n"
        texts = [gzip.decompress((folder / f"r{mate}.fq.gz").read_bytes()) for mate in (1, 2)]
        assert texts == [path.read_bytes() for path in files]
        kmers.warm_up(folder, known)
    assert len(run) == len(known) - 1


def test_runs_and_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "ngsgpu: reading: 5 sequences in 0.5 s\nngsgpu: counting: 9 k-mers in 0.2 s\n"

    def measure(command: list[str], folder: Path) -> Measurement:
        name = command[command.index("--histo") + 1]
        (folder / name).write_text("1 200\n2 80\n" if "cuda" in name else "1 200\n2 81\n")
        (folder / "messages.txt").write_text(said)
        return Measurement(2.0, 3.0, 1.0, 10**9, 0.0, 2 * 10**9)

    monkeypatch.setattr(kmers, "measure", measure)
    for mate in ("r1.fq", "r2.fq"):
        (tmp_path / mate).write_text("@r\nA\n+\nF\n")
    arguments = [
        "r1.fq",
        "r2.fq",
        "--backend",
        "cuda",
        "--tasks",
        "histogram",
        "--repeats",
        "2",
        "-o",
        "o",
    ]
    document: dict[str, object] = {}
    compare(tmp_path, parse([*arguments, "--repeats", "2"]), document, lambda: None)
    assert document["differences"] == ["histogram: ngsgpu, cpu and ngsgpu, cuda"]
    lines = table(document).splitlines()
    assert "reading 0.5, counting 0.2" in lines[2]
    assert [len(entry["runs"]) for entry in document["programs"]] == [2, 2, 1]  # type: ignore[attr-defined]


def test_folders_are_compared(tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(text)
    known = [Job("database", name, "", name, "cpu") for name in "abc"]
    assert list(differences(known, tmp_path)) == ["database: c and a"]
    (tmp_path / "h").write_text("1\t5\n2\t0\n20000\t3\n")
    assert counts_of(tmp_path / "h") == {1: 5}
