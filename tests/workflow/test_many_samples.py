"""Many samples: Snakemake stays quick, and keeps GPUs busy."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workflow import ROOT, SNAKEFILE, jobs

SAMPLES = 80
# Of CPU time, which other programs lengthen less than the clock's: twice what is asked of an idle
# machine, where it is the same, for 200 samples, by the sample.
DRY_RUN_SECONDS = 60 * SAMPLES / 200


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_dry_run_of_many_samples(study: Path) -> None:
    rows = ["sample\tfastq_1\tfastq_2\treference"]
    (study / "reads").mkdir()
    for number in range(SAMPLES):
        mates = [f"reads/s{number}_R{mate}.fastq.gz" for mate in (1, 2)]
        for path in mates:
            (study / path).touch()
        rows.append("\t".join([f"s{number}", *mates, "data/chr20_8kb.fasta.gz"]))
    (study / "config/samples.tsv").write_text("\n".join(rows) + "\n")
    sheet = study / "config/databases.tsv"
    sheet.write_text(sheet.read_text().replace("\t1\n", "\t4\n"))
    # A process of its own from the start, whose time counts among this one's children.
    options = ["--dry-run", "--quiet", "rules", "--resources", "gpu=8"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-s", str(SNAKEFILE), *options],
        cwd=study, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert jobs(done.stdout)["correct_pairs"] == SAMPLES + 1
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert taken < DRY_RUN_SECONDS


@pytest.mark.timeout(600)
def test_gpus_are_kept_busy() -> None:
    """As Snakemake schedules: the jobs that most has to follow start first.

    The bound has the chains of jobs, and so that calls wait for all samples of their batch.
    """
    script = ROOT / "scripts" / "simulate_schedule.py"
    options = ["--samples", "6", "--gpus", "2", "--cores", "64", "--scheduler", "greedy"]
    said = subprocess.run(
        [sys.executable, str(script), *options], check=True, stdout=subprocess.PIPE, text=True
    )
    seen = json.loads(said.stdout)
    assert seen["most_gpus_at_a_time"] == 2
    assert seen["makespan_over_bound"] < 1.25, seen
