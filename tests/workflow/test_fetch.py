"""Runs of the Sequence Read Archive that a sheet names, with a stand-in for sra-tools."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workflow import ROOT, Snakemake, jobs, write_program

SCRIPT = ROOT / "scripts" / "fetch_run.py"
STAND_IN = """#!/bin/sh
# Pairs if the accession begins with SRR, single-end reads if with ERR, and no network otherwise.
while [ $# -gt 0 ]; do
    case $1 in
        --outdir) folder=$2; shift ;;
        --temp | --threads) shift ;;
        --*) ;;
        *) run=$1 ;;
    esac
    shift
done
case $run in
    SRR*) for mate in 1 2; do
              printf '@%s.1\\nACGT\\n+\\nFFFF\\n' $run > $folder/${run}_$mate.fastq
          done
          printf '@%s.2\\nAC\\n+\\nFF\\n' $run > $folder/$run.fastq ;;
    ERR*) printf '@%s.1\\nACGT\\n+\\nFFFF\\n' $run > $folder/$run.fastq ;;
    *) echo "fasterq-dump err: connection failed while opening file" >&2; exit 3 ;;
esac
"""


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A PATH with a stand-in for fasterq-dump."""
    folder = tmp_path / "tools"
    folder.mkdir()
    write_program(folder / "fasterq-dump", STAND_IN)
    return f"{folder}:{os.environ['PATH']}"


def fetch(path: str, accession: str, *outputs: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, accession, *map(str, outputs), "--threads", "2"],
        env=os.environ | {"PATH": path}, capture_output=True, text=True,
    )  # fmt: skip


def test_pairs_and_single_reads(tmp_path: Path, tools: str) -> None:
    folder = tmp_path / "out"
    outputs = [folder / "a_1.fastq.gz", folder / "a_2.fastq.gz"]
    assert fetch(tools, "SRR1", *outputs).returncode == 0
    for output in outputs:
        assert gzip.decompress(output.read_bytes()) == b"@SRR1.1\nACGT\n+\nFFFF\n"
    assert fetch(tools, "ERR1", folder / "b.fastq.gz").returncode == 0
    assert gzip.decompress((folder / "b.fastq.gz").read_bytes()) == b"@ERR1.1\nACGT\n+\nFFFF\n"
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize(
    "accession, outputs, said",
    [
        ("SRR1", ["a"], "is a run of pairs: give sra:SRR1 as fastq_2, too"),
        ("ERR1", ["a", "b"], "is a run of single-end reads: leave fastq_2 empty"),
        ("DRR1", ["a"], "could not fetch DRR1: see its messages above; is there a network"),
    ],
)
def test_failures_leave_nothing(
    tmp_path: Path, tools: str, accession: str, outputs: list[str], said: str
) -> None:
    folder = tmp_path / "out"
    run = fetch(tools, accession, *(folder / name for name in outputs))
    assert run.returncode == 1
    assert said in run.stderr.splitlines()[-1]
    assert list(folder.iterdir()) == []


def test_program_that_is_not_there(tmp_path: Path) -> None:
    run = fetch(str(tmp_path), "SRR1", tmp_path / "a")
    assert (run.returncode, "install sra-tools" in run.stderr) == (1, True)


@pytest.mark.slow
def test_study_fetches_its_runs(study: Path, snakemake: Snakemake, tools: str) -> None:
    (study / "config" / "samples.tsv").write_text(
        "sample\tfastq_1\tfastq_2\none\tsra:SRR1\tsra:SRR1\ntwo\tsra:ERR1\t\n"
    )
    plan = snakemake("--dry-run", "--printshellcmds")
    assert plan.returncode == 0, plan.stdout
    counted = jobs(plan.stdout)
    assert counted["fetch_pairs"] == counted["fetch_single"] == 1
    assert "-i results/sra/SRR1_1.fastq.gz -I results/sra/SRR1_2.fastq.gz" in plan.stdout
    target = "results/sra/SRR1_1.fastq.gz"
    run = snakemake("--cores", "1", "--notemp", target, env={"PATH": tools})
    assert run.returncode == 0, run.stdout
    assert gzip.decompress((study / target).read_bytes()).startswith(b"@SRR1.1\n")
