"""The workflow inside another one: each way of using it as a module really runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ngsgpu.workflow.study import init_study
from tests.support.workflow import jobs, tagged_copy

ROOT = Path(__file__).resolve().parents[2]
SNAKEFILE = f'"{ROOT}/workflow/Snakefile"'
Snakemake = Callable[..., subprocess.CompletedProcess[str]]

READS = {
    "samples": "small.tsv",
    "datasets": None,
    "databases": "config/databases.tsv",
    "correct": {"threads": 1, "mem_mb": 1000},
    "assemble": {"threads": 1, "mem_mb": 1024},
}


@pytest.fixture
def host(study: Path, snakemake: Snakemake) -> Callable[..., str]:
    """Run a workflow that has this one as the module ``reads``, up to ``target``."""

    def run(
        target: str,
        module: str,
        *,
        snakefile: str = SNAKEFILE,
        sheet: str = "",
        env: dict[str, str] | None = None,
        **config: Any,
    ) -> str:
        (study / "small.tsv").write_text(
            sheet or "sample\tfastq_1\nsmall\tdata/na12878_lane1_R1.fastq.gz\n"
        )
        (study / "own.yaml").write_text(yaml.safe_dump({"reads": READS | config}))
        statement, _, rest = module.partition("---")
        (study / "Snakefile").write_text(
            'configfile: "own.yaml"\n'
            f'module reads:\n    snakefile: {snakefile}\n    config: config["reads"]\n'
            f"{statement}\n{rest or 'use rule * from reads as reads_*'}\n"
        )
        result = snakemake(
            "--cores", "2", "--quiet", "progress", "--", target,
            snakefile=study / "Snakefile", env=env,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout
        return result.stdout

    return run


def test_reads_and_references_that_the_host_makes(host: Callable[..., str], study: Path) -> None:
    (study / "databases.tsv").write_text("database\treferences\nown\tfetched/genomes\n")
    host(
        "results/small/classify/own/small.kraken2.report.txt",
        """
---
use rule * from reads as reads_*

rule trim:
    input: "data/na12878_lane1_{mate}.fastq.gz"
    output: "results/trimmed/{mate}.fastq.gz"
    shell: "cp {input} {output}"

rule fetch:
    output: directory("fetched/genomes")
    shell: "mkdir -p {output} && cp data/chr20_8kb.fasta.gz {output}"
""",
        sheet="sample\tfastq_1\tfastq_2\n"
        "small\tresults/trimmed/R1.fastq.gz\tresults/trimmed/R2.fastq.gz\n",
        databases="databases.tsv",
    )
    report = study / "results" / "small" / "classify" / "own" / "small.kraken2.report.txt"
    assert report.stat().st_size > 0


def test_chains_keep_their_stages_below_a_prefix(host: Callable[..., str], study: Path) -> None:
    target, prefix = "elsewhere/results/small/merge/merged.fastq.gz", '    prefix: "elsewhere"'
    settings: dict[str, Any] = {"chain": ["trim", "correct", "merge"]}
    settings["merge"] = {"reads": "corrected"}
    lanes = [f"data/na12878_lane1_R{mate}.fastq.gz" for mate in (1, 2)]
    sheet = "sample\tfastq_1\tfastq_2\n" + "\t".join(["small", *lanes]) + "\n"

    def run() -> set[str]:
        said = host(target, prefix, sheet=sheet, **settings)
        return set(re.findall(r"^localrule (\w+):", said, re.MULTILINE))

    assert run() == {"reads_find_adapters", "reads_chain_pairs"}
    assert (study / "elsewhere/results/small/correct/R1.fastq.gz").exists()
    assert run() == set()
    settings["merge"] = {"reads": "corrected", "extra": "--min-overlap 30"}
    assert run() == {"reads_merge_pairs"}
    assert run() == set()


def test_module_of_git_is_up_to_date_once_it_has_run(
    host: Callable[..., str], study: Path, tmp_path: Path
) -> None:
    """Snakemake copies the scripts of a tag anew for each run; that is no reason to run them."""
    repository = tagged_copy(tmp_path)
    snakefile = f'"git+file://{repository}/workflow/Snakefile@v1"'
    target = "results/small/correct/small.ngsgpu_correct_mqc.json"
    assert "write_multiqc_content" in host(target, "", snakefile=snakefile)
    assert "Nothing to be done" in host(target, "", snakefile=snakefile)


def test_module_at_a_tag_of_a_git_repository(
    host: Callable[..., str], study: Path, tmp_path: Path
) -> None:
    """With a prefix, and a rule of it changed; the database's path stays as it is given."""
    repository = tagged_copy(tmp_path)
    # What the tag has is used, not what the files are by now.
    (repository / "workflow" / "rules" / "correct.smk").write_text("no rules\n")
    snakefile = f'"git+file://{repository}/workflow/Snakefile@v1"'
    host(
        "inner/results/small/kmers/corrected.tsv",
        """
    prefix: "inner"
---
use rule * from reads as reads_*

use rule correct_single from reads as reads_correct_single with:
    threads: 2
    resources:
        gpu=0,
        mem_mb=1234,
""",
        snakefile=snakefile,
        correct={"threads": 1, "extra": "--hashes 16"},
    )
    folder = study / "inner" / "results" / "small"
    assert (folder / "kmers" / "corrected.tsv").stat().st_size > 0
    command = " ".join(json.loads((folder / "correct" / "stats.json").read_text())["command"])
    assert "--threads 2 --backend cpu --memory 1234M" in command
    assert "--hashes 16" in command


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("module", "results", "is_real"),
    [
        ('    prefix: "inner"', "inner/results", True),
        ('    replace_prefix: {"results": "inner", "logs": "inner/logs"}', "inner", False),
    ],
    ids=["prefix", "replace_prefix"],
)
def test_results_elsewhere_up_to_the_report(
    host: Callable[..., str], study: Path, tools: dict[str, str],
    module: str, results: str, is_real: bool,
) -> None:  # fmt: skip
    """Once with all programs and figures."""
    host("reads_all", module, env={"TESTS_EMPTY_FIGURES": ""} if is_real else tools)
    assert not (study / "results").exists() and not (study / "logs").exists()
    inner = study / results
    listed = (inner / "databases" / "human" / "batches" / "0001.tsv").read_text().splitlines()
    assert [line.split("\t")[:3] for line in listed] == [
        ["sample", "fastq_1", "fastq_2"],
        ["small", f"{results}/small/trim/reads.fastq.gz", ""],
    ]
    page = (inner / "report.html").read_text()
    assert "small" in page
    # What the report knows only from the results themselves.
    corrected = json.loads((inner / "small" / "correct" / "stats.json").read_text())
    assert f"{corrected['reads']['total']:,}" in page


def test_prefix_leaves_every_path_of_the_config(study: Path, snakemake: Snakemake) -> None:
    """The test study names all that a study may: reads, truth, references, taxonomy."""
    (study / "Snakefile").write_text(
        'configfile: "config/config.yaml"\n'
        f"module reads:\n    snakefile: {SNAKEFILE}\n    config: config\n    prefix: 'ng'\n"
        "use rule * from reads as reads_*\n"
    )
    result = snakemake("--dry-run", "--quiet", "rules", snakefile=study / "Snakefile")
    assert result.returncode == 0, result.stdout
    assert jobs(result.stdout)["reads_evaluate_classification"] >= 1


@pytest.mark.parametrize("target", ["", "reads_all"])
def test_first_rule_of_the_host_is_what_it_makes(
    study: Path, snakemake: Snakemake, target: str
) -> None:
    (study / "Snakefile").write_text(
        "rule all:\n    output: 'own.txt'\n    shell: 'touch {output}'\n"
        'configfile: "config/config.yaml"\n'
        f"module reads:\n    snakefile: {SNAKEFILE}\n    config: config\n"
        "use rule * from reads as reads_*\n"
    )
    chosen = ("--", target) if target else ()
    result = snakemake("--dry-run", "--quiet", "rules", *chosen, snakefile=study / "Snakefile")
    assert result.returncode == 0, result.stdout
    assert sorted({"all", "reads_all"} & set(jobs(result.stdout))) == [target or "all"]


def test_corrected_reads_elsewhere_are_classified(
    host: Callable[..., str], study: Path, snakemake: Snakemake
) -> None:
    """What a batch is, and how large, is asked when the host's own paths are in force again."""
    rows = [f"{name}\tdata/na12878_lane1_R{mate}.fastq.gz\n" for mate, name in ((1, "a"), (2, "b"))]
    header = "sample\tfastq_1\n"
    called = [
        f"inner/results/{name}/classify/human/{name}.kraken2.report.txt" for name in ("a", "b")
    ]
    module = '    prefix: "inner"'
    classify = {"reads": "corrected"}
    host(called[0], module, sheet=header + "".join(rows), classify=classify)
    sheet = study / "inner" / "results" / "databases" / "human" / "batches" / "0001.tsv"
    assert "\tinner/results/b/correct/reads.fastq.gz\t" in sheet.read_text()
    # A sample less: nothing to do for its fellow.
    said = host(called[0], module, sheet=header + rows[0], classify=classify)
    assert "Nothing to be done" in said


def test_one_rule_for_samples_of_the_host(host: Callable[..., str], study: Path) -> None:
    """Inputs and resources replaced, no sheet at all: plain paths, not lists of them."""
    host(
        "results/other.name/correct/stats.json",
        """
---
use rule correct_pairs from reads as fix with:
    input:
        first="data/na12878_lane1_R1.fastq.gz",
        second="data/na12878_lane1_R2.fastq.gz",
    resources:
        gpu=0,
        mem_mb=1500,
""",
        samples=None,
        databases=None,
    )
    stats = json.loads((study / "results" / "other.name" / "correct" / "stats.json").read_text())
    assert stats["reads"]["total"] == 2050


def test_two_modules_with_rules_that_take_each_others_results(
    study: Path, snakemake: Snakemake
) -> None:
    """One rule of each, named anew: the first corrects what a rule of the host makes."""
    (study / "Snakefile").write_text(f"""
module gentle:
    snakefile: {SNAKEFILE}
    config: {{"correct": {{"mem_mb": 1000, "extra": "--hashes 8"}}}}
    prefix: "gentle"

module again:
    snakefile: {SNAKEFILE}
    config: {{"correct": {{"mem_mb": 900, "extra": "--hashes 12"}}}}
    prefix: "again"

rule trim:
    input: "data/{{sample}}_lane1_{{mate}}.fastq.gz"
    output: "trimmed/{{sample}}_{{mate}}.fastq.gz"
    shell: "cp {{input}} {{output}}"

use rule correct_pairs from gentle as correct with:
    input:
        first="trimmed/{{sample}}_R1.fastq.gz",
        second="trimmed/{{sample}}_R2.fastq.gz",
    output:
        first="corrected/{{sample}}_1.fastq.gz",
        second="corrected/{{sample}}_2.fastq.gz",
        stats="corrected/{{sample}}.json",

use rule correct_single from again as correct_again with:
    input:
        first="corrected/{{sample}}_1.fastq.gz",
""")
    target = "again/results/na12878/correct/stats.json"
    result = snakemake("--cores", "2", "--", target, snakefile=study / "Snakefile")
    assert result.returncode == 0, result.stdout
    for path, options in (
        ("corrected/na12878.json", ("--memory 1000M", "--hashes 8")),
        (target, ("--memory 900M", "--hashes 12", "-i corrected/na12878_1.fastq.gz")),
    ):
        command = " ".join(json.loads((study / path).read_text())["command"])
        assert all(option in command for option in options), command


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_study_that_init_writes(study: Path, snakemake: Snakemake) -> None:
    """The layout of ``snakedeploy deploy-workflow``: from a folder of reads to the report."""
    shutil.rmtree(study / "config")
    init_study(study, reads=[study / "data"])
    config = study / "config" / "config.yaml"
    # What it says of the machine it was written on.
    settings = re.sub(": (true|false)\n", ": false\n", config.read_text())
    config.write_text(settings.replace("mem_mb: 4000", "mem_mb: 1000"))
    snakefile = study / "workflow" / "Snakefile"
    result = snakemake("--cores", "2", "--quiet", "progress", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    assert (study / "results" / "complete").is_file()
    page = (study / "results" / "report.html").read_text()
    # Both lanes, by the names of their files.
    assert "na12878" in page
    stats = json.loads((study / "results" / "na12878" / "correct" / "stats.json").read_text())
    assert f"{stats['reads']['total']:,}" in page
    assert " ".join(stats["command"]).count("_lane") == 4


def test_config_of_ones_own_stands_alone_in_a_new_study(study: Path, snakemake: Snakemake) -> None:
    shutil.rmtree(study / "config")
    init_study(study, reads=[study / "data"])
    (study / "mine.yaml").write_text("samples: config/samples.tsv\nassemble: {enabled: false}\n")
    snakefile = study / "workflow" / "Snakefile"
    said = snakemake("--dry-run", "-p", "--configfile", "mine.yaml", snakefile=snakefile).stdout
    assert "correct_pairs" in said and "merge_pairs" not in said, said
    # Single keys change the study's own config, whose title is the folder's name.
    said = snakemake("--dry-run", "-p", "--config", "quast={}", snakefile=snakefile).stdout
    assert "merge_pairs" in said, said


def test_paths_in_rules_are_where_snakemake_can_change_them() -> None:
    """Inputs and outputs get a prefix from Snakemake; what stands in shell or params does not."""
    for path in sorted((ROOT / "workflow" / "rules").rglob("*.smk")):
        kind = ""
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if line.startswith("    ") and line[4:5].isalpha() and line.endswith(":"):
                kind = line.strip(" :")
            if kind in ("params", "shell", "resources"):
                # A field stands for a path that Snakemake has changed, and what follows lies in it.
                written = re.sub(r"\{[^{}]*\}[\w./]*", "", line)
                assert "results" not in written, f"{path.name}:{number}"


def test_functions_have_names_of_their_own() -> None:
    """All files that a Snakefile includes share one namespace."""
    files = sorted((ROOT / "workflow").rglob("*.smk"))
    names = [
        name
        for path in files
        for name in re.findall(r"^(?:def|class) (\w+)", path.read_text(), re.MULTILINE)
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []
