"""Which files the workflow's report shows: those of its study, whatever else lies around."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.report import QUAST, Page, fastp, statistics, write_json, write_text
from tests.support.report_results import trimming
from tests.support.workflow import ROOT, Snakemake

REPORT = "{all}.00\t{all}\t{all}\tU\t0\tunclassified\n{hit}.00\t{hit}\t{hit}\tR\t1\troot\n"


def kraken(classified: int) -> str:
    return REPORT.format(all=100 - classified, hit=classified)


@pytest.fixture
def one_sample(study: Path) -> Path:
    """A study of one sample and two databases."""
    (study / "config/samples.tsv").write_text(
        "sample\tfastq_1\nsingle\tdata/na12878_lane1_R1.fastq.gz\n"
    )
    (study / "config/databases.tsv").write_text(
        "database\treferences\nhuman\tdata/chr20_8kb.fasta.gz\nzoo\tdata/chr20_8kb.fasta.gz\n"
    )
    (study / "config/config.yaml").write_text(
        "samples: config/samples.tsv\ndatasets: null\ndatabases: config/databases.tsv\n"
    )
    return study


def finished(results: Path, databases: dict[str, int]) -> None:
    """Results of the sample, with so many reads in a hundred classified by each database."""
    home = results / "single"
    write_json(home / "trim/fastp.json", trimming())
    write_json(home / "correct/stats.json", statistics())
    for arm in ("raw", "corrected"):
        write_text(home / f"kmers/{arm}.tsv", "multiplicity\tcount\n1\t5\n")
        write_text(home / f"assembly/{arm}/contigs.fasta", ">a\nACGT\n")
        write_json(home / f"qc/{arm}.fastp.json", fastp())
    write_text(home / "quast/report.tsv", QUAST)
    for tool in ("ngsgpu", "spades", "quast", "fastp", "krona", "multiqc"):
        write_text(results / f"versions/{tool}.txt", "1.0\n")
    for database, classified in databases.items():
        calls = home / "classify" / database
        write_text(calls / "single.kraken2.report.txt", kraken(classified))
        write_text(calls / "abundance.tsv", "taxid\trank\tname\treads\n")
        write_text(calls / "coverage.tsv", "target\ttaxid\n")
        write_text(calls / "evidence.tsv", "taxid\tname\n")
        stats = {"queries": {"paired": False}}
        write_json(calls / "stats.json", {"schema": "ngsgpu.classify", "schema_version": 1} | stats)
        facts = {"targets": 4, "without_taxon": 3, "taxa": 9, "digest": "abc"}
        write_json(results / f"databases/{database}/plan.json", facts)


def test_every_database_is_shown_by_name_and_no_other(
    snakemake: Snakemake, one_sample: Path
) -> None:
    results = one_sample / "results"
    # The first by name was in the sheet once; its results still lie there.
    finished(results, {"ancient": 7, "human": 89, "zoo": 31})
    allowed = ["--allowed-rules", "describe_study", "write_report"]
    result = snakemake("--cores", "1", *allowed, "--", "results/report.html")
    assert result.returncode == 0, result.stdout
    page = (results / "report.html").read_text()
    assert "ancient" not in page
    assert "89 of 100 reads were classified with human, 31 of 100 reads" in page
    assert "single, with human" in page and "single, with zoo" in page
    assert (
        "sequences without a taxon partitions digest human 4 \N{EN DASH} 9 3 (75 %)"
        in Page(page).text
    )
    study = json.loads((results / "study.json").read_text())
    assert set(study["databases"]) == {"human", "zoo"}
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    if commit := subprocess.run(git, capture_output=True, text=True, check=False).stdout:
        assert study["versions"]["workflow"].startswith(f"commit {commit[:12]}")
        assert f"commit {commit[:12]}" in page
    files = study["samples"][0]["files"]
    assert files["correct"] == "single/correct/stats.json"
    assert files["benchmarks"]["count_kmers (raw)"] == ["benchmarks/count_kmers/single/raw.tsv"]
    assert files["benchmarks"]["merge_candidates (zoo)"] == [
        "benchmarks/merge_candidates/zoo/single.tsv"
    ]


def test_module_with_results_elsewhere_reports_them(snakemake: Snakemake, one_sample: Path) -> None:
    snakefile = one_sample / "Snakefile"
    snakefile.write_text(
        f"""
configfile: "config/config.yaml"

module reads:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config
    replace_prefix: {{"results/": "out/"}}

use rule * from reads as reads_*
"""
    )
    finished(one_sample / "out", {"human": 89, "zoo": 31})
    # Results of another study: not ours.
    finished(one_sample / "results", {"human": 2, "zoo": 3})
    allowed = ["--allowed-rules", "reads_describe_study", "reads_write_report"]
    result = snakemake("--cores", "1", *allowed, "--", "out/report.html", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    page = (one_sample / "out/report.html").read_text()
    assert "89 of 100 reads were classified with human, 31 of 100 reads" in page
    assert "No results were found" not in page
    shutil.rmtree(one_sample / "results")
    study = json.loads((one_sample / "out/study.json").read_text())
    assert study["samples"][0]["files"]["benchmarks"]["correct_reads"] == [
        "benchmarks/correct_reads/single.tsv"
    ]


def test_jobs_are_those_of_the_samples_and_batches_that_there_are(
    snakemake: Snakemake, one_sample: Path
) -> None:
    results = one_sample / "results"
    with (one_sample / "config/samples.tsv").open("a") as sheet:
        sheet.write("other\tdata/na12878_lane2_R1.fastq.gz\n")
    finished(results, {"human": 89})
    shutil.copytree(results / "single", results / "other")
    for path in (results / "other").rglob("single.*"):
        path.rename(path.with_name(path.name.replace("single", "other")))
    (one_sample / "config/databases.tsv").write_text(
        "database\treferences\nhuman\tdata/chr20_8kb.fasta.gz\n"
    )
    home = results / "databases" / "human"
    searched = {"schema": "ngsgpu.classify", "schema_version": 1, "time_s": {"total": 2.0}}
    # A sample that was removed, a batch of old, and a partition that the database no longer has.
    for job in ("0001/0000/single", "0001/0000/other", "0001/0000/gone", "0000/0000/single"):
        write_json(home / "jobs" / f"{job}.json", searched)
    write_json(home / "jobs/0001/0001/single.json", searched)
    for part in ("0000", "0001"):
        write_json(home / f"partitions/{part}.stats.json", searched | {"schema": "ngsgpu.build"})
    allowed = ["--allowed-rules", "describe_study", "write_report"]
    result = snakemake("--cores", "1", *allowed, "--", "results/report.html")
    assert result.returncode == 0, result.stdout
    listed = json.loads((results / "study.json").read_text())
    assert "searched" not in listed
    assert {rule: list(jobs) for rule, jobs in listed["jobs"].items()} == {
        "build_partition": ["human 0000"],
        "classify_partition": ["human 0001/0000/other", "human 0001/0000/single"],
    }
    # One job, though it took two samples.
    costs = (results / "tables" / "report" / "rule-costs.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in costs if line.startswith("classify_")] == ["1"]
