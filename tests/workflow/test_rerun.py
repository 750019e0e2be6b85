"""What the workflow does again, after a change in a folder or a deletion, and what it does not."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.io.compress.formats import FASTA_ENDINGS, PACKED_ENDINGS
from tests.support.workflow import write_program

ROOT = Path(__file__).resolve().parents[2]
Snakemake = Callable[..., subprocess.CompletedProcess[str]]

TEMPORARY = re.compile(r"/spades$|/reads$|/work$|/candidates/[0-9/]+$|/simulate/(chunks$|[0-9]+_)")
# What only serves other jobs.
INTERNAL = re.compile(r"/(batches/[0-9]+\.tsv|details|quast_extended/multiqc/.*)$")


@pytest.fixture
def small(study: Path) -> Path:
    """One single-end sample, a database from a folder of two genomes; spaces in all paths."""
    with gzip.open(ROOT / ".test" / "data" / "chr20_8kb.fasta.gz", "rt") as file:
        bases = "".join(file.read().splitlines()[1:])
    genomes = study / "my genomes" / "deeper"
    genomes.mkdir(parents=True)
    (genomes / "a.fna").write_text(f">a\n{bases[:4000]}\n")
    (genomes.parent / "b.FASTA").write_text(f">b\n{bases[4000:]}\n")
    (study / "my genomes" / "readme.txt").write_text("not a genome")
    (study / "my reads").mkdir()
    reads = ROOT / ".test" / "data" / "na12878_lane1_R1.fastq.gz"
    (study / "my reads" / "lane 1.fastq.gz").symlink_to(reads)
    (study / "my samples.csv").write_text(
        "sample,fastq_1,reference,tissue\n"
        'small,my reads/lane 1.fastq.gz,my genomes/deeper/a.fna,"liver, left"\n'
    )
    (study / "databases.csv").write_text("database,references\nown,my genomes\n")
    (study / "config" / "config.yaml").write_text(
        "samples: my samples.csv\ndatasets: null\ndatabases: databases.csv\n"
        "correct: {threads: 1, mem_mb: 1000}\nassemble: {threads: 1, mem_mb: 1024}\n"
    )
    return study


def run(snakemake: Snakemake, *arguments: str, env: dict[str, str] | None = None) -> str:
    result = snakemake("--cores", "2", *arguments, env=env)
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_genomes_of_a_folder_are_watched_one_by_one(snakemake: Snakemake, small: Path) -> None:
    target = "results/databases/own/partitions/0000.json"
    genomes = small / "my genomes"
    run(snakemake, "--", target)
    before = (small / target).read_bytes()
    assert "Nothing to be done" in run(snakemake, "--dry-run", "--", target)

    (genomes / "readme.txt").write_text("still none")
    (genomes / "a.fna.fai").write_text("made by others")
    assert "Nothing to be done" in run(snakemake, "--dry-run", "--", target)

    # Other bases, but the name, the size and the folder's time stay.
    genome = genomes / "deeper" / "a.fna"
    name, bases = genome.read_text().splitlines()
    genome.write_text(f"{name}\n{bases[::-1]}\n")
    run(snakemake, "--", target)
    assert (small / target).read_bytes() != before

    (genomes / "b.FASTA").unlink()
    run(snakemake, "--", target)
    assert "Nothing to be done" in run(snakemake, "--dry-run", "--", target)
    (genomes / "c.fa.gz").write_bytes(gzip.compress(b">c\n" + bases.encode() + b"\n"))
    assert "plan_database" in run(snakemake, "--dry-run", "--", target)


def test_taxonomy_of_a_folder_is_watched_too(snakemake: Snakemake) -> None:
    result = run(snakemake, "--dry-run", "--", "results/databases/human/plan.json")
    for file in ("chr20_8kb.fasta.gz", "taxonomy/nodes.dmp", "taxonomy/names.dmp"):
        assert f"data/{file}" in result.partition("output:")[0]


def test_endings_are_those_of_the_package() -> None:
    names: dict[str, tuple[str, ...]] = {}
    text = (ROOT / "workflow" / "rules" / "common" / "classification.smk").read_text()
    for line in re.findall(r"^(?:REFERENCE|PACKED)_ENDINGS = .*$", text, re.MULTILINE):
        exec(line, names)
    assert names["REFERENCE_ENDINGS"] == FASTA_ENDINGS
    assert names["PACKED_ENDINGS"] == PACKED_ENDINGS


@pytest.mark.parametrize("chain", ["", "trim, deplete, correct, extend"])
def test_everything_that_is_kept_is_a_target(snakemake: Snakemake, study: Path, chain: str) -> None:
    (study / "host.fa").touch()
    (study / "more.yaml").write_text(
        "extend: {konnector: true, assemble: [single, merged]}\ndeplete: {host: host.fa}\n"
        f"chain: [{chain}]\n"
    )
    configs = ("--configfile", "config/config.yaml", "more.yaml", "--config", "multiqc=True")
    said = run(snakemake, "--dry-run", *configs)
    *jobs, last = re.split(r"^(?:local)?rule ", said, flags=re.MULTILINE)[1:]
    assert last.startswith("all:")
    wanted = set(re.findall(r"^ +input: (.*)$", last, re.MULTILINE)[0].split(", "))
    made = {
        path
        for job in jobs
        for outputs in re.findall(r"^ +output: (.*)$", job, re.MULTILINE)
        for path in outputs.replace(" (update)", "").split(", ")
    }
    assert len(made) > 100
    left = {path for path in made - wanted if not TEMPORARY.search(path)}
    assert {path for path in left if not INTERNAL.search(path)} == set()


SPADES = """#!/bin/bash
[[ $1 == --version ]] && echo "SPAdes v4.0.0" && exit
while [[ $1 != -o ]]; do shift; done; mkdir -p "$2"
for kind in contigs scaffolds; do cp "my genomes/deeper/a.fna" "$2/$kind.fasta"; done
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_deleted_products_are_made_again(
    snakemake: Snakemake, small: Path, no_multiqc: dict[str, str], tmp_path: Path
) -> None:
    write_program(tmp_path / "bin/spades.py", SPADES)
    run(snakemake, env=no_multiqc)
    assert "Nothing to be done" in run(snakemake, "--dry-run", env=no_multiqc)
    corrected = small / "results" / "small" / "correct" / "reads.fastq.gz"
    before = corrected.read_bytes()
    for deleted in (
        corrected,
        small / "results" / "small" / "classify" / "own" / "small.reads.tsv.gz",
        small / "results" / "databases" / "own" / "partitions" / "0000.json",
        small / "results" / "small" / "assembly" / "raw" / "scaffolds.fasta",
    ):
        deleted.unlink()
    run(snakemake, env=no_multiqc)
    assert corrected.read_bytes() == before
    assert "Nothing to be done" in run(snakemake, "--dry-run", env=no_multiqc)
