"""A sample that fails costs the others nothing, is named in the report, and fails the workflow."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.workflow import ROOT, SNAKEFILE, Snakemake, jobs, write_program

RULES = f"""
include: "{ROOT}/workflow/rules/common/failures.smk"

MADE = ["permanent.txt", "memory.txt", "refused.txt", "dependent.txt", "binary.gz"]

rule all:
    input: "complete"

rule unchecked:
    input: MADE

rule check_study:
    input: checked(lambda wildcards: MADE)
    output: "complete"
    shell: "touch {{output}}"

rule permanent:
    output: "permanent.txt", "reads.fastq.gz", "stats.json", directory("folder")
    log: "logs/permanent.log"
    retries: RETRIES
    params: guard=guard
    shell: "{{params.guard}} {{log:q}}; echo x >> tried_permanent;"
        " (echo 'ngsgpu: error: no <memory>'; echo bye; exit 2) > {{log}} 2>&1"

rule memory:
    output: "memory.txt"
    log: "logs/memory.log"
    retries: RETRIES
    resources: mem_mb=doubling(100), runtime=doubling(7)
    params: guard=guard
    shell: "{{params.guard}} {{log:q}}; echo {{resources.mem_mb}} {{resources.runtime}} >> tried;"
        " echo 'Cannot allocate memory' > {{log}}; exit 1"

rule refused:
    output: "refused.txt"
    log: "logs/refused.log"
    retries: RETRIES
    resources: mem_mb=doubling(100)
    params: guard=guard
    shell: "{{params.guard}} {{log:q}}; echo too big for {{resources.mem_mb}} > {{log}};"
        " [ {{resources.mem_mb}} -ge 200 ] && touch {{output}} || exit 3"

rule dependent:
    input: "folder"
    output: "dependent.txt"
    log: "logs/dependent.log"
    params: guard=guard
    shell: "{{params.guard}} {{log:q}}; touch ran {{output}}"

rule without:
    input: first="nothing.gz"
    output: "without.txt"
    log: "logs/without.log"
    params: guard=lambda wildcards, input, output: guarded(input, output, reads=[input.first])
    shell: "{{params.guard}} {{log:q}}; touch ran {{output}}"

rule binary:
    output: "binary.gz"
    log: "logs/binary.log"
    params: guard=guard
    shell: "{{params.guard}} {{log:q}}; printf '\\\\x1f\\\\x8b\\\\x00' > {{output}}"
"""


def test_only_memory_and_time_are_tried_again(snakemake: Snakemake, study: Path) -> None:
    snakefile = study / "Snakefile"
    snakefile.write_text(RULES)
    result = snakemake("--cores", "1", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    note = "logs/permanent.log\nngsgpu: error: no <memory>\n"
    outputs = ("permanent.txt", "reads.fastq.gz", "stats.json", "folder/ngsgpu", "dependent.txt")
    assert [(study / f"{name}.failed").read_text() for name in outputs] == [note] * 5
    assert not (study / "ran").exists()
    # Whoever takes them all the same finds nothing in them, in the format that the name says.
    assert (study / "permanent.txt").read_text() == (study / "dependent.txt").read_text() == ""
    assert gzip.decompress((study / "reads.fastq.gz").read_bytes()) == b""
    assert json.loads((study / "stats.json").read_text()) == {}
    assert (study / "tried_permanent").read_text() == "x\n"
    assert (study / "tried").read_text() == "100 7\n200 14\n400 28\n"
    assert "Cannot allocate memory" in (study / "memory.txt.failed").read_text()
    assert (study / "refused.txt").read_text() == ""
    assert (study / "binary.gz").read_bytes() == b"\x1f\x8b\0"
    assert sorted(path.name for path in (study / "logs").iterdir() if "tries" in path.name) == []


@pytest.mark.parametrize(
    ("content", "is_skipped"),
    [
        (b"", True),
        (gzip.compress(b"") * 2, True),
        (gzip.compress(b"@a\n"), False),
        (gzip.compress(b"\0" * (1 << 20)), False),
        (b"@a\n", False),
        (gzip.compress(b"")[:-3], False),
    ],
    ids=["empty", "members", "line", "zeros", "plain", "cut"],
)
def test_programs_that_need_reads_are_skipped_without(
    snakemake: Snakemake, study: Path, content: bytes, is_skipped: bool
) -> None:
    (study / "Snakefile").write_text(RULES)
    (study / "nothing.gz").write_bytes(content)
    result = snakemake("--cores", "1", "--", "without.txt", snakefile=study / "Snakefile")
    assert result.returncode == 0, result.stdout
    assert (study / "ran").exists() != is_skipped
    note = study / "without.txt.skipped"
    assert (note.read_text() if is_skipped else note.exists()) == (
        "logs/without.log\nno reads\n" if is_skipped else False
    )


def test_a_file_that_is_asked_for_is_made_or_missing(snakemake: Snakemake, study: Path) -> None:
    """No report tells of the failure, so Snakemake has to."""
    snakefile = study / "Snakefile"
    snakefile.write_text(RULES)
    chosen_by = {
        "stats.json": ["--", "stats.json"],
        "dependent.txt": ["--until", "dependent"],
        "permanent.txt": ["--keep-going", "--", "unchecked"],
        "folder": ["--keep-going", "--omit-from", "check_study"],
    }
    for target, chosen in chosen_by.items():
        result = snakemake("--cores", "1", *chosen, snakefile=snakefile)
        assert result.returncode == 1 and "no <memory>" in result.stdout, result.stdout
        assert list(study.glob("*.failed")) == [] and not (study / target).exists()


def test_what_failed_is_cleared_by_the_next_run(snakemake: Snakemake, study: Path) -> None:
    snakefile = study / "Snakefile"
    snakefile.write_text(RULES)
    assert snakemake("--cores", "1", snakefile=snakefile).returncode == 0
    snakefile.write_text(
        RULES.replace("exit 2)", "touch {output[0]} {output[1]} {output[2]}; exit 0)")
    )
    result = snakemake("--cores", "1", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    assert (study / "ran").exists() and (study / "stats.json").read_text() == ""
    left = sorted(str(path.relative_to(study)) for path in study.rglob("*.failed"))
    assert left == ["memory.txt.failed"]


def test_cluster_job_leaves_trying_again_to_who_submitted_it(
    snakemake: Snakemake, study: Path
) -> None:
    """It would do so in the memory that was too little; only a new job gets more."""
    snakefile = study / "Snakefile"
    snakefile.write_text(RULES)
    options = ["--cores", "1", "--mode", "remote"]
    for attempt in (1, 2):
        again = ["--attempt", str(attempt), "--", "memory.txt"]
        result = snakemake(*options, *again, snakefile=snakefile)
        assert result.returncode == 1, result.stdout
    assert (study / "tried").read_text() == "100 7\n200 14\n"
    # The third is the last one, wherever it runs.
    result = snakemake(*options, "--attempt", "3", "--", "memory.txt", snakefile=snakefile)
    assert result.returncode == 0, result.stdout
    assert "Cannot allocate memory" in (study / "memory.txt.failed").read_text()


@pytest.mark.timeout(600)
def test_blank_without_reads_does_not_fail_the_study(
    snakemake: Snakemake, study: Path, tools: dict[str, str], tmp_path: Path
) -> None:
    """SPAdes refuses empty files; of a damaged one nobody knows what is in it."""
    spades = (tmp_path / "bin/spades.py").read_text()
    refuse = 'case "$*" in *blank*) echo "== Error ==  file is empty"; exit 21;; esac\n'
    write_program(tmp_path / "bin/spades.py", spades.replace("while", refuse + "while", 1))
    (study / "config/samples.tsv").write_text(
        "sample\tfastq_1\tfastq_2\ngood\tdata/na12878_lane1_R1.fastq.gz\t\n"
        "blank\tblank_1.fq.gz\tblank_2.fq.gz\n"
    )
    (study / "config/config.yaml").write_text("samples: config/samples.tsv\ndatasets: null\n")
    for mate in (1, 2):
        (study / f"blank_{mate}.fq.gz").write_bytes(gzip.compress(b""))
    arguments = ("--cores", "2", "--workflow-profile", str(SNAKEFILE.parent / "profiles/default"))
    result = snakemake(*arguments, env=tools)
    assert result.returncode == 0, result.stdout
    status = (study / "results/status.tsv").read_text()
    assert not re.search(r"\tfailed\t", status), status
    assert re.search(r"^blank\tcontigs/raw\tskipped\tno reads\t", status, re.MULTILINE), status
    assert "Skipped: no reads" in (study / "results/report.html").read_text()


@pytest.mark.timeout(600)
def test_broken_sample_beside_a_good_one(
    snakemake: Snakemake, study: Path, tools: dict[str, str]
) -> None:
    (study / "config/samples.tsv").write_text(
        "sample\tfastq_1\ngood\tdata/na12878_lane1_R1.fastq.gz\nbroken\tbroken.fastq\n"
    )
    (study / "config/databases.tsv").write_text(
        "database\treferences\nhuman\tdata/chr20_8kb.fasta.gz\n"
    )
    (study / "config/config.yaml").write_text(
        "samples: config/samples.tsv\ndatasets: null\ndatabases: config/databases.tsv\n"
    )
    reads = gzip.decompress((ROOT / ".test/data/na12878_lane2_R1.fastq.gz").read_bytes())
    lines = reads.splitlines(keepends=True)
    (study / "broken.fastq").write_bytes(b"".join(lines[:203]))
    arguments = ("--cores", "2", "--workflow-profile", str(SNAKEFILE.parent / "profiles/default"))
    result = snakemake(*arguments, env=tools)
    assert result.returncode == 1, result.stdout
    assert "broken failed: ngsgpu: error: broken.fastq, record 51" in result.stdout
    assert "1 of 2 samples failed" in result.stdout
    page = (study / "results/report.html").read_text()
    assert "these samples lack results" in page and "record 51" in page
    assert "Assembly of the uncorrected and corrected reads gave no contigs" in page
    assert "Skipped: no contig of at least 500 bases" in page
    assert "reads were classified with human" in page
    status = (study / "results/status.tsv").read_text()
    failure = r"^broken\tcorrect\tfailed\t.*record 51.*\tlogs/find_adapters/broken.log$"
    assert re.search(failure, status, re.MULTILINE)
    assert "good\tcorrect\tdone\t\t\n" in status and "good\tquast/all\tskipped\t" in status
    # What failed is not there, nor are the notes that the report was written from.
    assert [path for path in (study / "results/broken").rglob("*") if path.is_file()] == []
    assert sorted((study / "results").rglob("*.failed")) == []
    # Tried again the next time.
    again = jobs(snakemake("--dry-run", "--quiet", "rules", env=tools).stdout)
    assert again["correct_single"] == again["check_study"] == again["write_report"] == 1


SPADES = """#!/bin/bash
[[ $1 == --version ]] && echo "SPAdes v4.0.0" && exit
[[ -e no_assembly && $* == */assemble/* ]] && echo "== Error == no assembly" && exit 1
while [[ $# -gt 0 && $1 != -o ]]; do shift; done; mkdir -p "$2"
"""

# Of each sample, which has the name of the stage in which it fails: results that fail with it, and
# results that do not.
IN_STAGES = {
    "reads": (["trim", "correct", "kmers/raw", "merge", "classification/human/stats"], []),
    "correct": (["correct", "merge", "contigs/corrected"], ["trim", "contigs/raw"]),
    "merge": (["merge"], ["correct", "extend", "contigs/corrected"]),
    "extend": (["extend"], ["correct", "merge", "contigs/corrected"]),
    "assemble": (["contigs/raw", "contigs/corrected"], ["correct", "merge", "extend"]),
    "classify": (["classification/human/stats"], ["correct", "merge", "extend"]),
    "none": ([], ["correct", "merge", "extend", "contigs/raw", "classification/human/stats"]),
}


@pytest.fixture
def samples(study: Path, tools: dict[str, str]) -> Callable[[bool], None]:
    """Write a study of a sample per stage, which fails in that stage or is repaired."""
    write_program(Path(tools["PATH"].split(":")[0]) / "spades.py", SPADES)
    reads = {}
    for mate in "12":
        packed = (ROOT / f".test/data/na12878_lane1_R{mate}.fastq.gz").read_bytes()
        reads[mate] = b"".join(gzip.decompress(packed).splitlines(keepends=True)[:480])
        for name in IN_STAGES:
            (study / f"{name}_R{mate}.fastq").write_bytes(reads[mate])
    (study / "config/databases.tsv").write_text(
        "database\treferences\nhuman\tdata/chr20_8kb.fasta.gz\n"
    )
    (study / "config/config.yaml").write_text(
        "samples: config/samples.tsv\ndatasets: null\ndatabases: config/databases.tsv\n"
        "merge: {reads: corrected}\nextend: {reads: corrected}\nquast: {enabled: false}\n"
        "multiqc: false\nqc: false\n"
    )

    def write(is_broken: bool) -> None:
        columns = ["correct_extra", "merge_extra", "extend_extra", "classify_extra"]
        rows = ["\t".join(["sample", "fastq_1", "fastq_2", *columns])]
        for name in IN_STAGES:
            extras = [
                "--nonsense" * (is_broken and column == f"{name}_extra") for column in columns
            ]
            rows.append("\t".join([name, f"{name}_R1.fastq", f"{name}_R2.fastq", *extras]))
        (study / "config/samples.tsv").write_text("\n".join(rows) + "\n")
        (study / "reads_R2.fastq").write_bytes(reads["2"][: -200 if is_broken else None])
        (study / "no_assembly").touch()
        if not is_broken:
            (study / "no_assembly").unlink()

    return write


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_samples_that_fail_in_each_stage(
    snakemake: Snakemake, study: Path, samples: Callable[[bool], None], tools: dict[str, str]
) -> None:
    results = study / "results"
    samples(True)
    first = snakemake("--cores", "2", "--keep-going", env=tools)
    assert first.returncode == 1, first.stdout
    assert "6 of 7 samples failed" in first.stdout
    assert "these samples lack results" in (results / "report.html").read_text()
    assert not (results / "complete").exists()
    assert sorted(results.rglob("*.failed")) == []
    status = _status(results / "status.tsv")
    for name, (failed, done) in IN_STAGES.items():
        assert (f"{name} failed: " in first.stdout) == bool(failed)
        assert {status[name, result] for result in failed} <= {"failed"}
        assert {status[name, result] for result in done} <= {"done"}
    before = _times(results)
    # What a sample had is kept once it is repaired, and only what it lacks is made.
    samples(False)
    second = snakemake("--cores", "2", "--keep-going", env=tools)
    assert second.returncode == 0, second.stdout
    assert "none" not in re.findall(r"wildcards: .*sample=(\w+)", second.stdout)
    after = _times(results)
    kept = [path for path in before if path.startswith(tuple(f"{name}/" for name in IN_STAGES))]
    assert len(kept) > 50 and [path for path in kept if after[path] != before[path]] == []
    assert (results / "complete").exists()
    assert "these samples lack results" not in (results / "report.html").read_text()
    assert sorted(results.rglob("*.failed")) == []
    assert "failed" not in _status(results / "status.tsv").values()
    assert "Nothing to be done" in snakemake("--dry-run", env=tools).stdout


def test_outputs_of_failed_jobs_are_removed(tmp_path: Path) -> None:
    """Files, folders, and nothing else; skipped results stay."""
    for name in ("a/x.json", "a/x.json.failed", "b/y.tsv", "b/y.tsv.skipped", "c/z/1", "d/w"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "c/z/ngsgpu.failed").touch()
    rows = ["sample\tresult\tstatus\treason\tlog", "a\tcorrect\tfailed\tno memory\tlogs/a.log"]
    rows += ["a\tmerge\tfailed\tno memory\tlogs/a.log", "b\tquast\tskipped\tshort\tlogs/b.log"]
    rows += ["b\tcorrect\tdone\t\t", "\tdatabases/x\tfailed\tno memory\tlogs/x.log"]
    (tmp_path / "status.tsv").write_text("\n".join(rows) + "\n")
    script = [sys.executable, ROOT / "scripts/check_study.py", tmp_path / "status.tsv"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 1
    *failed, last = done.stderr.splitlines()
    assert failed == [
        "a failed: no memory (logs/a.log)",
        "databases/x failed: no memory (logs/x.log)",
    ]
    assert last.startswith("1 of 2 samples failed; ")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"b/y.tsv", "b/y.tsv.skipped", "d/w", "status.tsv"}
    assert not (tmp_path / "c/z").exists()
    (tmp_path / "status.tsv").write_text("\n".join([rows[0], rows[3], rows[4]]) + "\n")
    assert subprocess.run(script, capture_output=True).returncode == 0


def _status(path: Path) -> dict[tuple[str, str], str]:
    """The status of each result, by sample and result."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert rows[0] == ["sample", "result", "status", "reason", "log"]
    return {(sample, result): status for sample, result, status, _, _ in rows[1:]}


def _times(results: Path) -> dict[str, int]:
    """When each file was written, in nanoseconds."""
    return {
        str(path.relative_to(results)): path.stat().st_mtime_ns
        for path in results.rglob("*")
        if path.is_file()
    }


def test_stages_can_be_switched_off(snakemake: Snakemake, study: Path) -> None:
    change = study / "change.yaml"

    def counted(text: str) -> dict[str, int]:
        change.write_text(text)
        result = snakemake(
            "--dry-run", "--quiet", "rules", "--configfile", "config/config.yaml", "change.yaml"
        )
        assert result.returncode == 0, result.stdout
        return jobs(result.stdout)

    every = counted("{}")
    without = counted("assemble: {enabled: false}")
    assert not any("assembl" in rule for rule in without)
    assert without["correct_pairs"] == 2 and without["record_version"] < every["record_version"]
    without = counted("quast: {enabled: false}")
    assert "evaluate_assemblies" not in without and without["assemble_reads"] == 6
    raw = "correct: {enabled: false}\nmerge: {reads: raw}\nextend: {reads: raw}\n"
    without = counted(raw)
    assert not any("correct" in rule for rule in without)
    assert without["assemble_reads"] == 3 and without["write_report"] == 1
    change.write_text("correct: {enabled: false}\n")
    result = snakemake("--dry-run", "--configfile", "config/config.yaml", "change.yaml")
    assert result.returncode == 1
    assert "merge.reads is 'corrected', but correct.enabled is false" in result.stdout
