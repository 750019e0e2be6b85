"""The benchmark at human size, on a genome a hundred-thousandth as large."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import human
from benchmarks.harness import genome_reads, genome_truth


def test_files_grow_as_if_written_at_once(tmp_path: Path) -> None:
    """One member, the same text, whatever the number of threads and pieces."""
    genome = genome_reads.make_genome(30_000, tmp_path / "genome", 2)
    whole, grown = (
        genome_reads.DrawnReads(genome, 100, (tmp_path / f"{name}1", tmp_path / f"{name}2"), 2)
        for name in ("whole", "grown")
    )
    whole.grow(20_000)
    for pairs in (1, 16_384, 20_000):
        grown.grow(pairs)
    for one, other in zip(whole.paths, grown.paths, strict=True):
        text = gzip.decompress(one.read_bytes())
        assert len(text) == 20_000 * genome_reads.record_bytes(100)
        assert text == gzip.decompress(other.read_bytes())


def test_truth_finds_what_is_wrong(tmp_path: Path) -> None:
    """Reads as they were drawn have all errors left; one more is a false correction."""
    genome = genome_reads.make_genome(30_000, tmp_path / "genome", 2)
    paths = tmp_path / "out1.fq.gz", tmp_path / "out2.fq.gz"
    genome_reads.DrawnReads(genome, 100, paths, 2).grow(1_000)
    given = genome_truth.Given(genome, 100, 1_000, 1_000)
    drawn = genome_truth.check_corrected(given, tmp_path)
    assert drawn["sensitivity"] == 0
    assert drawn["left"] == drawn["errors"] > 100
    text = bytearray(gzip.decompress(paths[0].read_bytes()))
    truth = np.empty((2, 1_000, 100), dtype=np.uint8)
    size = genome_reads.record_bytes(100)
    genome_reads.draw(genome, 0, np.empty((2, 1_000, size), dtype=np.uint8), truth)
    for pair in range(1_000):
        start = pair * size + genome_reads.NAME
        text[start : start + 100] = truth[0, pair].tobytes()
    text[genome_reads.NAME] = ord("A") if text[genome_reads.NAME] != ord("A") else ord("C")
    paths[0].write_bytes(gzip.compress(bytes(text)))
    found = genome_truth.check_corrected(given, tmp_path)
    assert found["false"] == 1
    assert 0.3 < found["sensitivity"] < 0.7


def test_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs are measured and compared with the truth; one that takes too long is recorded."""
    out = tmp_path / "out.json"
    steps = ["histogram 30 0", "correct 10 0 --hashes 4", "merge 10 0", "correct 10 0 --dry-run"]
    options = ["--scale", "1e-5", "-t", "1", "--work", str(tmp_path / "work"), "-o", str(out)]
    assert human.main([*options, "--checked", "1000", "--steps", *steps]) == 0
    found = json.loads(out.read_text())
    runs = {run["name"]: run for run in found["runs"]}
    assert list(runs) == [
        "correct 10 --hashes 4, CPU",
        "merge 10, CPU",
        "correct 10 --dry-run, CPU",
        "histogram 30, CPU",
    ]
    assert runs["correct 10 --hashes 4, CPU"]["found"]["sensitivity"] > 0.7
    assert runs["histogram 30, CPU"]["found"]["missing"] == 0
    assert runs["histogram 30, CPU"]["reads"] == 9148
    assert "| merge 10, CPU |" in human.table(found)
    assert not list((tmp_path / "work").iterdir())

    assert human.main([*options, "--limit", "0.1", "--steps", "trim 10 0"]) == 1
    (run,) = json.loads(out.read_text())["runs"]
    assert "stopped after" in run["error"]
    assert human.main([*options, "--budget", "0", "--steps", "trim 10 0"]) == 1
    (run,) = json.loads(out.read_text())["runs"]
    assert run["error"].startswith("not begun")
    assert "stopped after" in capsys.readouterr().out


def test_steps_are_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    """A job, a coverage, a number of GPUs, and options of ngsgpu."""
    step = human.Step.parse("extend 30 2 --hashes 12")
    assert step.pairs(1) == 304_900_000
    assert step.name == "extend 30 --hashes 12, GPUs 2"
    assert human.Step.parse("correct 30 1").pairs(1) == 457_350_000
    for wrong in ("polish 30 1", "correct 30", "correct x 1"):
        with pytest.raises(SystemExit):
            human.main(["--steps", wrong, "-o", "out.json"])
    assert "not JOB COVERAGE GPUS" in capsys.readouterr().err
