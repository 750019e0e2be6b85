"""The workflow as Snakemake sees it: jobs, backends, modules, environments, lint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

import ngsgpu
from tests.support.workflow import jobs, tagged_copy, write_program

ROOT = Path(__file__).resolve().parents[2]
# What a --configfile says on top of the test study.
UNTRIMMED = ("--config", "trim={enabled: false}")
CONFIG = "config/config.yaml"
Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def test_dry_run_has_every_step_of_every_sample(snakemake: Snakemake) -> None:
    result = snakemake("--dry-run", "--quiet", "rules")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["simulate_reads"] == 2
    assert counted["join_truth"] == 2
    assert counted["correct_pairs"] == 2
    assert counted["correct_single"] == 1
    assert counted["merge_pairs"] == 2
    assert counted["evaluate_merging"] == 1
    assert counted["extend_pairs"] == 2
    assert counted["evaluate_extension"] == 1
    assert counted["assemble_extended"] == 2
    assert counted["evaluate_extended_assemblies"] == 2
    assert counted["assemble_reads"] == counted["count_kmers"] == 6
    assert counted["evaluate_assemblies"] == 3
    assert counted["evaluate_correction"] == 1
    assert counted["write_report"] == 1
    assert counted["plan_database"] == counted["build_partition"] == 1
    assert counted["classify_partition"] == counted["list_samples"] == 1
    assert counted["merge_candidates"] == 3
    assert counted["evaluate_classification"] == 1
    assert "fetch_demo_reads" not in counted
    assert counted["check_reads"] == 6
    assert counted["merge_reports"] == 1
    # Correction of three samples, merging and extension of two.
    assert counted["write_multiqc_content"] == 7
    assert counted["run_multiqc"] == 1


def test_konnector_goes_beside_where_the_config_says_so(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text("extend: {konnector: true, assemble: [single, merged]}\n")
    result = snakemake("--dry-run", "--printshellcmds", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["connect_pairs"] == 2
    assert counted["evaluate_extension"] == 2
    assert counted["assemble_extended"] == 8
    assert counted["evaluate_extended_assemblies"] == 2
    labels = "raw,corrected,ngsgpu_single,ngsgpu_merged,konnector_single,konnector_merged"
    assert f"--labels {labels}" in result.stdout
    report = result.stdout.partition("rule write_report:")[2].partition("output:")[0]
    for path in ("evaluate/extension_konnector.json", "quast_extended/report.tsv"):
        assert f"results/repeats_20kb/{path}" in report, path


def test_assemblers_go_beside_each_other(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text(
        "assemble: {engine: [spades, skesa, megahit, ngsgpu]}\ntrim: {enabled: false}\n"
    )
    result = snakemake("--dry-run", "--printshellcmds", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    engines = ("assemble_reads", "assemble_skesa", "assemble_megahit", "assemble_ngsgpu")
    assert [counted[rule] for rule in engines] == [6, 6, 6, 6]
    assert counted["evaluate_assemblies"] == counted["evaluate_engines"] == 3
    labels = "--labels spades_raw,spades_corrected,skesa_raw,skesa_corrected,megahit_raw"
    assert labels in result.stdout
    lanes = ["data/na12878_lane1_R1.fastq.gz", "data/na12878_lane2_R1.fastq.gz"]
    mates = [lane.replace("_R1", "_R2") for lane in lanes]
    pairs = [f"--reads {first},{second}" for first, second in zip(lanes, mates, strict=True)]
    assert f"skesa {' '.join(pairs)} --cores 2" in result.stdout
    assert f"megahit -1 {','.join(lanes)} -2 {','.join(mates)} --num" in result.stdout
    assert "megahit -r results/na12878_single/correct/reads.fastq.gz" in result.stdout
    report = result.stdout.partition("rule write_report:")[2].partition("output:")[0]
    for path in ("assembly/raw/contigs.fasta", "quast_engines/report.tsv"):
        assert f"results/repeats_20kb/{path}" in report, path


def test_one_other_assembler(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text("assemble: {engine: skesa}\nextend: {assemble: []}\n")
    result = snakemake("--dry-run", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["assemble_skesa"] == 6 and counted["evaluate_assemblies"] == 3
    assert not {"assemble_reads", "evaluate_engines"} & counted.keys()
    assert "results/repeats_20kb/assembly/skesa/raw/contigs.fasta" in result.stdout
    (study / "more.yaml").write_text("assemble: {engine: [skesa]}\n")
    result = snakemake("--dry-run", "--configfile", CONFIG, "more.yaml")
    assert result.returncode != 0
    assert "add 'spades' to assemble.engine or set extend.assemble to []" in result.stdout


def test_graphs_where_the_config_says_so(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text("unitigs: {enabled: true, k: 25, min_abundance: auto}\n")
    result = snakemake("--dry-run", "--printshellcmds", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    assert jobs(result.stdout)["build_unitigs"] == 6
    graph = "results/na12878_single/unitigs/raw/graph.gfa"
    assert f"-k 25 --min-abundance auto --gfa {graph} --stats" in result.stdout
    report = result.stdout.partition("rule write_report:")[2].partition("output:")[0]
    assert "results/repeats_20kb/unitigs/corrected/stats.json" in report


def test_lanes_and_arms_reach_the_commands(snakemake: Snakemake) -> None:
    result = snakemake("--dry-run", "--printshellcmds", *UNTRIMMED)
    assert result.returncode == 0, result.stdout
    lanes = "-i data/na12878_lane1_R1.fastq.gz -i data/na12878_lane2_R1.fastq.gz"
    assert f"ngsgpu correct {lanes} -I data/na12878_lane1_R2.fastq.gz" in result.stdout
    assert (
        "--pe1-1 data/na12878_lane1_R1.fastq.gz --pe1-1 data/na12878_lane2_R1.fastq.gz"
        in result.stdout
    )
    assert "-s results/na12878_single/correct/reads.fastq.gz" in result.stdout


def test_each_partition_has_jobs_of_its_own(snakemake: Snakemake, study: Path) -> None:
    sheet = study / "config" / "databases.tsv"
    sheet.write_text(sheet.read_text().replace("\t1\n", "\t3\n"))
    result = snakemake("--dry-run", "--printshellcmds")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["build_partition"] == counted["classify_partition"] == 3
    assert counted["merge_candidates"] == 3
    assert '--only-partition 2 --samples "$1" --candidates' in result.stdout
    assert "< <(tail -n +2 results/databases/human/batches/0001.tsv)" in result.stdout
    candidates = "results/databases/human/candidates/0001/0002/{sample}.cand"
    assert f"--candidates '{candidates}'" in result.stdout


def test_bad_rows_of_databases_are_named(snakemake: Snakemake, study: Path) -> None:
    sheet = study / "config" / "databases.tsv"
    sheet.write_text("database\treferences\tpartitions\nx\tnothing.fa\t0\nx\tdata\t2\n")
    result = snakemake("--dry-run")
    assert result.returncode != 0
    assert "line 2, column partitions: '0' is not right" in result.stdout


def test_missing_reads_are_named(snakemake: Snakemake, study: Path) -> None:
    """Whether a file is there, or another rule makes it, is up to Snakemake."""
    sheet = study / "config" / "samples.tsv"
    sheet.write_text("sample\tfastq_1\nx\tdata/none.fq\n")
    result = snakemake("--dry-run")
    assert result.returncode != 0
    assert "Missing input files" in result.stdout and "data/none.fq" in result.stdout


def test_study_without_reads_refused(snakemake: Snakemake, study: Path) -> None:
    for name in ("samples", "datasets"):
        sheet = study / "config" / f"{name}.tsv"
        header = next(line for line in sheet.read_text().splitlines() if line[:1] != "#")
        sheet.write_text(header + "\n")
    result = snakemake("--dry-run")
    assert result.returncode != 0
    assert "there is nothing to do" in result.stdout


CPU = "--backend cpu"
CUDA = '--backend "${NGSGPU_BACKEND:-cuda}" --gpus'


@pytest.mark.parametrize(
    ("wanted", "arguments", "options"),
    [
        (None, [], CPU),
        (None, ["--resources", "gpu=0"], CPU),
        (None, ["--resources", "mem_mb=9000"], CPU),
        (None, ["--resources", "gpu=8"], f"{CUDA} 1"),
        (None, ["--default-resources", "gpu=1"], CPU),
        (None, ["--set-resources", "correct_single:gpu=2"], f"{CUDA} 2"),
        (None, ["--workflow-profile", "none", "--cores", "2"], CPU),
        ("0", ["--resources", "gpu=8"], CPU),
        ("2", [], CPU),
        ("2", ["--resources", "gpu=8"], f"{CUDA} 2"),
        ("4", ["--resources", "gpu=2"], f"{CUDA} 2"),
        ("2, method: spectrum", ["--resources", "gpu=8"], f"{CUDA} 2 --method spectrum"),
        ("auto", ["--resources", "gpu=8"], f"{CUDA} <TBD>"),
        ("auto", [], CPU),
        ("2, method: spectrum", [], f"{CPU} --method spectrum"),
    ],
)
def test_gpus_granted_choose_the_backend(
    snakemake: Snakemake, study: Path, wanted: str | None, arguments: list[str], options: str
) -> None:
    target = "results/na12878_single/correct/stats.json"
    (study / "more.yaml").write_text(f"correct: {{gpu: {wanted}}}\n" if wanted else "correct: {}\n")
    result = snakemake("-n", "-p", *arguments, "--configfile", CONFIG, "more.yaml", "--", target)
    assert result.returncode == 0, result.stdout
    assert f"{options} --memory" in result.stdout


@pytest.mark.parametrize(("granted", "given"), [(8, 3), (2, 2), (1, 1)])
def test_auto_asks_for_more_gpus_for_large_samples(
    snakemake: Snakemake, study: Path, granted: int, given: int
) -> None:
    """Those of a file that takes no room on the disk, but says to have 70 GB."""
    sheet = study / "config" / "samples.tsv"
    sheet.write_text("sample\tfastq_1\nlarge\tlarge.fq\nsmall\tsmall.fq\n")
    for name, size in (("large", 70 * 10**9), ("small", 10**6)):
        with (study / f"{name}.fq").open("wb") as file:
            file.truncate(size)
    settings = "correct: {gpu: auto}\ntrim: {enabled: false}\n"
    (study / "more.yaml").write_text(settings)
    for name, number in (("large", given), ("small", 1)):
        target = f"results/{name}/correct/stats.json"
        more = ["--resources", f"gpu={granted}", "--configfile", CONFIG, "more.yaml"]
        result = snakemake("-n", "-p", *more, "--", target)
        assert result.returncode == 0, result.stdout
        (call,) = re.findall(r"ngsgpu correct .*", result.stdout)
        assert f"{CUDA} {number}" in call


def test_each_step_that_can_use_a_gpu_asks_for_one(snakemake: Snakemake) -> None:
    result = snakemake("--dry-run", "-p", "--resources", "gpu=8")
    assert result.returncode == 0, result.stdout
    for command in ("correct", "merge", "extend", "classify"):
        calls = re.findall(rf"ngsgpu {command} .*", result.stdout)
        assert calls, command
        for call in calls:
            assert f"{CUDA} 1" in call
    # What the plan of a database decides is not known before it is there.
    rules = (ROOT / "workflow" / "rules" / "database.smk").read_text()
    assert 'gpu=gpus("database")' in rules.partition("rule build_partition")[2]


def test_without_a_gpu_it_is_said_once_before_anything_runs(
    snakemake: Snakemake, study: Path
) -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    result = snakemake("--cores", "2", "--resources", "gpu=8", env=hidden)
    assert result.returncode == 1, result.stdout
    assert result.stdout.count("no NVIDIA GPU can be used here") == 1
    assert "Either leave out --resources gpu=N" in result.stdout
    assert len(result.stdout.splitlines()) < 40
    assert not (study / "results").exists()
    # What takes no GPU is made all the same, and so is what is only listed.
    target = "results/versions/ngsgpu.txt"
    result = snakemake("--cores", "2", "--resources", "gpu=8", "--", target, env=hidden)
    assert result.returncode == 0, result.stdout
    assert snakemake("--dry-run", "--resources", "gpu=8", env=hidden).returncode == 0


def test_job_without_a_gpu_that_it_can_use_fails_and_says_why(
    snakemake: Snakemake, study: Path
) -> None:
    target = "results/na12878_single/correct/stats.json"
    # Insisted on, as jobs do where there is a driver, but no CuPy that fits it.
    insists = {"CUDA_VISIBLE_DEVICES": "", "NGSGPU_BACKEND": "cuda"}
    result = snakemake("--resources", "gpu=8", "--retries", "0", "--", target, env=insists)
    assert result.returncode == 1, result.stdout
    assert "--backend cuda is not possible here: " in result.stdout
    assert "without --resources gpu=N" in result.stdout
    assert not (study / target).exists()


def test_environment_may_choose_the_cpu_for_jobs_with_gpus(
    snakemake: Snakemake, study: Path
) -> None:
    target = "results/na12878_single/correct/stats.json"
    env = {"NGSGPU_BACKEND": "cpu"}
    result = snakemake("--resources", "gpu=8", "--", target, env=env)
    assert result.returncode == 0, result.stdout
    # The GPU that a job was granted decides nothing about the result: the CPU's stays.
    result = snakemake("--dry-run", "--", target)
    assert "Nothing to be done" in result.stdout


def test_config_of_ones_own_stands_alone(snakemake: Snakemake, study: Path) -> None:
    """Nothing of config/config.yaml is in it: neither its sheets nor its settings."""
    (study / "mine.yaml").write_text("samples: config/samples.tsv\n")
    result = snakemake("--dry-run", "-p", "--configfile", "mine.yaml")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["correct_pairs"] == 1
    demo = {"make_genome", "simulate_reads", "merge_pairs", "extend_pairs", "plan_database"}
    assert not demo & set(counted)
    assert '"title": "Illumina reads, corrected with ngsgpu"' in result.stdout
    assert "repeats_20kb" not in result.stdout
    # Several are put together, the last one first; so one can still build on the shipped one.
    result = snakemake("--dry-run", "--quiet", "rules", "--configfile", CONFIG, "mine.yaml")
    assert jobs(result.stdout)["simulate_reads"] == 2, result.stdout
    # Without one, single keys change the shipped one.
    result = snakemake("--dry-run", "--quiet", "rules", "--config", "title=x")
    assert jobs(result.stdout)["simulate_reads"] == 2, result.stdout


@pytest.mark.parametrize(
    ("reads", "first"),
    [
        ("raw", "-i data/na12878_lane1_R1.fastq.gz -i data/na12878_lane2_R1.fastq.gz"),
        ("corrected", "-i results/na12878_8kb/correct/R1.fastq.gz"),
    ],
)
def test_merging_takes_the_reads_it_is_told(
    snakemake: Snakemake, study: Path, reads: str, first: str
) -> None:
    (study / "more.yaml").write_text(
        f"merge: {{reads: {reads}, gpu: 1}}\ntrim: {{enabled: false}}\n"
    )
    target = "results/na12878_8kb/merge/stats.json"
    arguments = ["--resources", "gpu=1", "--configfile", CONFIG, "more.yaml"]
    result = snakemake("--dry-run", "-p", *arguments, "--", target)
    assert result.returncode == 0, result.stdout
    assert f"ngsgpu merge {first} -I " in result.stdout
    assert f"{CUDA} 1 --ihist" in result.stdout


def test_no_merging_unless_wanted(snakemake: Snakemake) -> None:
    result = snakemake("--dry-run", "--quiet", "rules", "--config", "merge={reads: none}")
    assert result.returncode == 0, result.stdout
    assert "merge_pairs" not in jobs(result.stdout)


def test_what_can_be_switched_off(snakemake: Snakemake) -> None:
    switches = {"multiqc": "run_multiqc", "qc": "check_reads", "krona": "draw_krona"}
    on = [f"{name}=True" for name in switches]
    result = snakemake("--dry-run", "--quiet", "rules", "--config", *on)
    assert {*switches.values()} <= jobs(result.stdout).keys(), result.stdout
    for name, rule in switches.items():
        result = snakemake("--dry-run", "--quiet", "rules", "--config", *on, f"{name}=False")
        assert jobs(result.stdout)["write_report"] == 1, result.stdout
        assert {*switches.values()} - jobs(result.stdout).keys() == {rule}


def test_krona_is_drawn_where_it_can_be_had(snakemake: Snakemake, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "env", "git"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    without = snakemake("--dry-run", "--quiet", "rules", env={"PATH": str(programs)})
    assert without.returncode == 0, without.stdout
    assert "draw_krona" not in jobs(without.stdout)
    write_program(programs / "ktImportText", "#!/bin/sh\n")
    found = snakemake("--dry-run", "--quiet", "rules", env={"PATH": str(programs)})
    assert jobs(found.stdout)["draw_krona"] == 1, found.stdout


def test_fastp_gets_the_lanes_as_one_file(snakemake: Snakemake) -> None:
    engine = ("--dry-run", "-p", "--config", "trim={engine: fastp}", "--")
    result = snakemake(*engine, "results/na12878_8kb/trim/R1.fastq.gz")
    assert result.returncode == 0, result.stdout
    lanes = "plain data/na12878_lane1_R1.fastq.gz; plain data/na12878_lane2_R1.fastq.gz"
    assert f"{{ {lanes}; }} > results/na12878_8kb/trim/lanes/R1.fastq" in result.stdout
    assert "fastp --in1 results/na12878_8kb/trim/lanes/R1.fastq --in2 " in result.stdout
    # One packed file is only linked.
    result = snakemake(*engine, "results/na12878_single/trim/reads.fastq.gz")
    assert "fastp --in1 results/na12878_single/trim/lanes/R1.fastq.gz --out1" in result.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("corect={}", "corect: no such key; did you mean correct?"),
        ("correct={thread: 2}", "correct.thread: no such key; did you mean correct.threads?"),
        ("merge={reads: both}", "merge.reads: 'both' is not one of"),
        ("samples=config/none.tsv", "cannot read the sheet 'config/none.tsv'"),
        ("assemble={kmers: '21;33'}", "21;33"),
    ],
)
def test_wrong_config_refused(snakemake: Snakemake, change: str, said: str) -> None:
    result = snakemake("--dry-run", "--config", change)
    assert result.returncode == 1
    assert said in result.stdout
    assert len(result.stdout.splitlines()) < 12


def test_command_line_has_texts_for_types(snakemake: Snakemake) -> None:
    """Snakemake reads what stands in braces as texts, numbers and all."""
    options = ("trim={enabled: false}", "correct={threads: 1, quality: true}")
    target = "results/na12878_single/correct/reads.fastq.gz"
    result = snakemake("--dry-run", "-p", "--config", *options, "--", target)
    assert result.returncode == 0, result.stdout
    assert "-i data/na12878_lane1_R1.fastq.gz" in result.stdout
    assert "--threads 1 " in result.stdout and "--quality" in result.stdout
    for wrong in ("trim={enabled: 0}", "correct={threads: some}", "correct={threads: 1.5}"):
        result = snakemake("--dry-run", "--config", wrong, "--", target)
        assert result.returncode == 1 and "is not of type" in result.stdout


def test_name_in_both_sheets_refused(snakemake: Snakemake, study: Path) -> None:
    sheet = study / "config" / "datasets.tsv"
    sheet.write_text(sheet.read_text().replace("repeats_20kb\tsynth", "na12878_8kb\tsynth"))
    result = snakemake("--dry-run")
    assert result.returncode == 1
    assert "both name na12878_8kb" in result.stdout


def test_lint_finds_nothing(snakemake: Snakemake) -> None:
    result = snakemake("--lint")
    assert result.returncode == 0, result.stdout


def test_shipped_study_is_the_demo(snakemake: Snakemake) -> None:
    result = snakemake("--directory", str(ROOT), "--dry-run", "--quiet", "rules", "--forceall")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["fetch_demo_reads"] == counted["make_genome"] == 1
    assert counted["correct_pairs"] == 2


def test_workflow_as_a_module(snakemake: Snakemake, study: Path) -> None:
    """A study of one's own that takes the workflow's rules under a prefix and changes one."""
    snakefile = study / "Snakefile"
    snakefile.write_text(
        f"""
configfile: "own.yaml"

module reads:
    snakefile: "{ROOT}/workflow/Snakefile"
    config: config["reads"]

use rule * from reads as reads_*

use rule correct_pairs from reads as reads_correct_pairs with:
    resources: gpu=2, mem_mb=5000

rule everything:
    default_target: True
    input: "results/report.html"
"""
    )
    own = {"reads": yaml.safe_load((study / "config" / "config.yaml").read_text())}
    (study / "own.yaml").write_text(yaml.safe_dump(own))
    result = snakemake("--dry-run", "-p", "--cores", "1", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    assert jobs(result.stdout)["reads_assemble_reads"] == 6
    assert f"{CUDA} 2 --memory 5000M" in result.stdout


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """A stand-in for conda: environments are folders whose python only notes how it is called.

    It shows that environments, post-deploy script and activation fit together; what is in an
    environment it cannot show.
    """
    root = tmp_path / "conda"
    (root / "bin").mkdir(parents=True)
    write_program(
        root / "bin" / "conda",
        f"""#!/usr/bin/env bash
case "$*" in
    "info --json") echo '{{"conda_prefix": "{root}", "platform": "linux-64"}}' ;;
    --version) echo "conda 26.1.0" ;;
    "config --get channel_priority --json") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
    "env create "*)
        while [[ $1 != --prefix ]]; do shift; done
        mkdir -p "$2/bin"
        printf '#!/bin/sh\\necho "$@" >> "%s/pip.txt"\\n' "$2" > "$2/bin/python"
        printf '#!/bin/sh\\necho "ngsgpu 9.9.9"\\n' > "$2/bin/ngsgpu"
        chmod +x "$2"/bin/* ;;
    "clean "*) ;;
    *) echo "the stand-in does not know: conda $*" >&2; exit 1 ;;
esac
""",
    )
    write_program(root / "bin" / "activate", 'export CONDA_PREFIX=$1\nexport PATH="$1/bin:$PATH"\n')
    return root


CHECKOUT = f"--editable {ROOT}"


@pytest.mark.parametrize(
    ("env", "installed"),
    [
        ({}, f"{CHECKOUT}[report,index,cuda12]"),
        ({"NGSGPU_CUDA": "13"}, f"{CHECKOUT}[report,index,cuda13]"),
        ({"NGSGPU_CUDA": "none"}, f"{CHECKOUT}[report,index]"),
        ({"NGSGPU_SOURCE": "git+file:///x@v1"}, "git+file:///x@v1 ngsgpu[report,index,cuda12]"),
    ],
)
def test_conda_environment_gets_the_package(
    snakemake: Snakemake, study: Path, conda: Path, env: dict[str, str], installed: str
) -> None:
    env |= {"PATH": f"{conda}/bin:{os.environ['PATH']}"}
    result = snakemake("--use-conda", "--", "results/versions/ngsgpu.txt", env=env)
    assert result.returncode == 0, result.stdout
    # The job ran in the environment, whose ngsgpu is the stand-in's.
    assert (study / "results" / "versions" / "ngsgpu.txt").read_text() == "9.9.9\n"
    (calls,) = (study / ".snakemake" / "conda").glob("*/pip.txt")
    assert calls.read_text() == f"-m pip install --no-input {installed}\n"


def test_conda_environment_of_a_git_module_gets_the_same_commit(
    snakemake: Snakemake, study: Path, conda: Path, tmp_path: Path
) -> None:
    """The package index may not have it, or another version."""
    repository = tagged_copy(tmp_path / "my files")
    snakefile = study / "Snakefile"
    snakefile.write_text(
        f"module reads:\n    snakefile: 'git+file://{repository}/workflow/Snakefile@v1'\n"
        "    config: {'samples': 'config/samples.tsv'}\nuse rule * from reads as reads_*\n"
    )
    arguments = ("--cores", "1", "--use-conda", "--", "results/versions/ngsgpu.txt")
    env = {"PATH": f"{conda}/bin:{os.environ['PATH']}"}
    result = snakemake(*arguments, snakefile=snakefile, env=env)
    assert result.returncode == 0, result.stdout
    (calls,) = (study / ".snakemake" / "conda").glob("*/pip.txt")
    source = f"git+file://{quote(str(repository))}@v1"
    extras = "ngsgpu[report,index,cuda12]"
    assert calls.read_text() == f"-m pip install --no-input {source} {extras}\n"


def test_conda_environments_need_a_path_without_spaces(
    snakemake: Snakemake, tmp_path: Path, study: Path, conda: Path
) -> None:
    spaced = study.rename(tmp_path / "my study")
    spaced.with_name("study").mkdir()  # where the command is typed
    arguments = ["--directory", str(spaced), "--use-conda", "--", "results/versions/ngsgpu.txt"]
    env = {"PATH": f"{conda}/bin:{os.environ['PATH']}"}
    result = snakemake(*arguments, env=env)
    assert result.returncode == 1, result.stdout
    assert "whose path has a space; name a folder for them by --conda-prefix" in result.stdout
    result = snakemake("--conda-prefix", str(tmp_path / "envs"), *arguments, env=env)
    assert result.returncode == 0, result.stdout
    assert (spaced / "results" / "versions" / "ngsgpu.txt").read_text() == "9.9.9\n"


def test_unknown_cuda_refused(snakemake: Snakemake, conda: Path) -> None:
    env = {"PATH": f"{conda}/bin:{os.environ['PATH']}", "NGSGPU_CUDA": "11"}
    result = snakemake("--use-conda", "--", "results/versions/ngsgpu.txt", env=env)
    assert result.returncode == 1, result.stdout
    assert "NGSGPU_CUDA is '11'; it must be 12, 13 or none" in result.stdout


def test_environment_of_the_package_follows_its_version() -> None:
    """A new version must change both files, or old environments would go on being used."""
    assert f"ngsgpu {ngsgpu.__version__} " in (ROOT / "envs" / "ngsgpu.yaml").read_text()
    script = (ROOT / "envs" / "ngsgpu.post-deploy.sh").read_text()
    assert f"VERSION={ngsgpu.__version__}\n" in script


def test_every_rule_states_what_it_needs() -> None:
    """Log, benchmark, environment, threads and resources stand on every rule that does work."""
    for path in sorted((ROOT / "workflow" / "rules").rglob("*.smk")):
        for rule in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            name = rule.split(":")[0]
            if not re.search(r"^    (shell|script|run|wrapper):", rule, flags=re.MULTILINE):
                continue  # a target only
            for directive in ("log:", "benchmark:", "conda:", "threads:", "mem_mb=", "runtime="):
                assert directive in rule, f"{name} has no {directive}"
            assert "gpu=" in rule, f"{name} does not say how many GPUs it needs"
