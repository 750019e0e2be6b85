"""Depletion of real samples before everything else, where the config names a host."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.support.workflow import Snakemake, jobs

pytestmark = pytest.mark.slow
CONFIG = "config/config.yaml"
SAMPLE = "results/na12878_single"


@pytest.fixture
def host(study: Path) -> Path:
    """A config with a host that is a part of the reads' genome and some more."""
    with gzip.open(study / "data/chr20_8kb.fasta.gz", "rt") as file:
        bases = "".join(line.strip() for line in file if line[0] != ">")
    other = "".join(random.Random(1).choices("ACGT", k=500))
    (study / "host.fa").write_text(f">part\n{bases[: len(bases) // 8]}\n>other\n{other}\n")
    (study / "more.yaml").write_text("deplete: {host: host.fa}\n")
    return study


def test_real_samples_are_depleted(host: Path, snakemake: Snakemake) -> None:
    """And nothing sees the host's reads; simulated samples stay as they are."""
    with_host = ("--configfile", CONFIG, "more.yaml")
    plan = snakemake("--dry-run", "--printshellcmds", *with_host)
    assert plan.returncode == 0, plan.stdout
    counted = jobs(plan.stdout)
    assert counted["deplete_pairs"] == counted["deplete_single"] == counted["index_host"] == 1
    commands = [line for line in plan.stdout.splitlines() if "ngsgpu correct" in line]
    assert len(commands) == 3
    assert not any("data/na12878" in line for line in commands)

    done = snakemake(
        f"{SAMPLE}/deplete/reads.fastq.gz", "--cores", "2", "--allowed-rules",
        "find_adapters", "trim_single", "index_host", "deplete_single", *with_host,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    reads = json.loads((host / f"{SAMPLE}/deplete/stats.json").read_text())["reads"]
    with gzip.open(host / f"{SAMPLE}/deplete/reads.fastq.gz", "rb") as file:
        assert len(file.read().splitlines()) == 4 * reads["kept"]
    assert 0 < reads["host"] < 0.7 * reads["total"]


def test_an_index_is_taken_as_it_is(host: Path, snakemake: Snakemake) -> None:
    (host / "my.idx").touch()
    (host / "more.yaml").write_text("deplete: {host: my.idx}\n")
    plan = snakemake("--dry-run", "--quiet", "rules", "--configfile", CONFIG, "more.yaml")
    assert plan.returncode == 0, plan.stdout
    counted = jobs(plan.stdout)
    assert "index_host" not in counted
    assert counted["deplete_pairs"] == counted["deplete_single"] == 1
