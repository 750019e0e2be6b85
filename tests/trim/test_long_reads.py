"""Long reads pass: their cycles are counted up to a bound, and their memory is planned."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ngsgpu.trim.counts import MOST_CYCLES
from tests.support.commands import Commands, read_json
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement


def random_record(rng: random.Random, bases: str, name: bytes = b"long") -> Record:
    return Record(name, bases.encode(), bytes(rng.choices(b"#5?I", k=len(bases))))


def test_cycles_beyond_the_bound(ngsgpu: Commands, tmp_path: Path) -> None:
    """Sums are right, and the last point of each curve is of all the bases that follow."""
    rng = random.Random(1)
    lengths = [100, MOST_CYCLES - 1, MOST_CYCLES, MOST_CYCLES + 1, 3 * MOST_CYCLES]
    made = [random_record(rng, "".join(rng.choices("ACGTN", k=size))) for size in lengths]
    path = write(tmp_path / "r.fq", fastq(made))
    report, stats = tmp_path / "j.json", tmp_path / "s.json"
    done = ngsgpu("trim", "-i", path, "-j", report, "--stats", stats, "-A", "-G", "-Q")
    assert done.status == 0, done.err
    found = read_json(report)
    assert read_json(stats)["bases"] == {"total": sum(lengths), "kept": sum(lengths)}
    for when in ("before", "after"):
        own = found[f"read1_{when}_filtering"]
        assert (own["total_bases"], own["total_cycles"]) == (sum(lengths), MOST_CYCLES)
        assert found["summary"][f"{when}_filtering"]["gc_content"] == pytest.approx(
            sum(record.bases.count(letter) for record in made for letter in b"GC") / sum(lengths),
            rel=1e-5,
        )
        last = [
            (base, score - 33)
            for record in made
            for base, score in zip(
                record.bases[MOST_CYCLES - 1 :], record.qualities[MOST_CYCLES - 1 :], strict=True
            )
        ]
        content, curves = own["content_curves"], own["quality_curves"]
        assert len(content["A"]) == len(curves["mean"]) == MOST_CYCLES
        assert content["N"][-1] == pytest.approx(
            sum(base == ord("N") for base, _ in last) / len(last), rel=1e-5
        )
        assert curves["mean"][-1] == pytest.approx(
            sum(score for _, score in last) / len(last), rel=1e-5
        )


def test_overlaps_of_long_mates(ngsgpu: Commands, tmp_path: Path) -> None:
    """Also where these begin far from the beginnings of the mates."""
    rng = random.Random(2)
    for size, length in ((60_000, 45_000), (45_000, 45_010), (80_000, 45_000), (30_000, 45_000)):
        fragment = "".join(rng.choices("ACGT", k=size))
        ends = [(own + "".join(rng.choices("ACGT", k=length)))[:length]
                for own in (fragment, reverse_complement(fragment))]  # fmt: skip
        files = [
            write(tmp_path / f"{mate}.fq", fastq([random_record(rng, own)]))
            for mate, own in enumerate(ends)
        ]
        outs = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
        done = ngsgpu(
            "trim", "-i", files[0], "-I", files[1], "-o", outs[0], "-O", outs[1], "-G", "-Q"
        )
        assert done.status == 0, done.err
        for out, own in zip(outs, ends, strict=True):
            assert out.read_text().split("\n")[1] == own[: min(size, length)]


def test_memory_is_planned(tmp_path: Path) -> None:
    """That of a read of 4 Mb, and of two such mates."""
    rng = random.Random(3)
    bases = "".join(rng.choices("ACGT", k=4_000_000))
    path = write(tmp_path / "r.fq", fastq([Record(b"long", bases.encode(), b"I" * len(bases))]))
    other = write(tmp_path / "r2.fq", path.read_bytes())
    for mates in ([], ["-I", other]):
        command = [sys.executable, "-m", "ngsgpu", "trim", "-i", path, *mates, "-w", "2", "-j",
                   tmp_path / "j.json", "--backend", "cpu", "--stats"]  # fmt: skip
        stats = tmp_path / "s.json", tmp_path / "plan.json"
        for words in ([stats[0]], [stats[1], "--dry-run"]):
            # By a process between: Linux counts what a parent had towards a program's peak.
            run = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"
            between = [sys.executable, "-c", run, *command, *words]
            subprocess.run(between, check=True, capture_output=True)
        taken = read_json(stats[0])["memory"]["peak_rss_bytes"]
        assert taken <= read_json(stats[1])["memory"]["planned_bytes"]
