"""The rules that train the shipped forests, and the script that makes their reads."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location(
    "training_reads", ROOT / "scripts" / "training_reads.py"
)
assert _spec is not None and _spec.loader is not None
reads = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reads)
CONFIG = ROOT / "config" / "train"


def test_the_whole_training_is_planned(tmp_path: Path) -> None:
    with (CONFIG / "datasets.tsv").open() as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    for row in rows:
        path = tmp_path / "genomes" / row["genome"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b">g\nACGT\n"))
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-n",
        "-s",
        str(ROOT / "workflow/rules/train.smk"),
    ]
    command += ["--configfile", str(CONFIG / "config.yaml"), "--directory", str(tmp_path)]
    command += ["--config", f"datasets={CONFIG / 'datasets.tsv'}", "genomes=genomes"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plan = done.stdout + done.stderr
    for rule, times in (
        ("simulate_training_reads", len(rows)),
        ("extract_samples", len(rows)),
        ("fit_forests_without", 3),
        ("export_model", 1),
    ):
        assert any(line.split() == [rule, str(times)] for line in plan.splitlines()), rule
    organisms = {row["organism"] for row in rows}
    assert {"yeast", "human", "synechocystis"} < organisms
    assert {row["profile"] for row in rows} == {"HS20", "HS25", "HSXt", "MSv3"}


def test_parts_copies_and_bins(tmp_path: Path) -> None:
    path = tmp_path / "g.fa.gz"
    path.write_bytes(gzip.compress(b">a\nACGTNNAC\nGG\n>b\nttt\n"))
    assert reads.genome_part(path, 2, 8) == "GTACGG"
    assert reads.genome_part(path, 9, 10) == "GTTT"
    copy = reads.mutated("A" * 10_000, 0.01, 1)
    assert 60 < sum(base != "A" for base in copy) < 140
    assert copy == reads.mutated("A" * 10_000, 0.01, 1)
    qualities = bytes(33 + score for score in range(42)).translate(reads.BINNED)
    assert {score - 33 for score in qualities} == {2, 12, 23, 37}


@pytest.mark.skipif(not shutil.which("art_illumina"), reason="needs art_illumina")
def test_strains_share_the_reads(tmp_path: Path) -> None:
    path = tmp_path / "g.fa"
    genome = "".join(reads.random.Random(1).choices("ACGT", k=4000))
    path.write_text(f">g\n{genome}\n")
    command = [sys.executable, str(ROOT / "scripts" / "training_reads.py"), "--genome", str(path)]
    command += ["--out", str(tmp_path / "r"), "--coverage", "20", "--second-share", "0.25"]
    subprocess.run([*command, "--snv-rate", "0.01", "--bins"], check=True)
    first, second = ((tmp_path / f"r_{mate}.fq").read_text().split("\n") for mate in (1, 2))
    truth = (tmp_path / "r.sam").read_text().splitlines()
    assert len(first) == len(second) and len(truth) == 2 * (len(first) // 4)
    names = [line.split("/")[0][1:] for line in first[:-1:4]]
    assert names == [line.split("\t")[0] for line in truth[::2]]
    assert 0.2 < sum(name.startswith("second") for name in names) / len(names) < 0.3
    assert {ord(letter) - 33 for letter in "".join(first[3::4])} <= {2, 12, 23, 37}
