"""Stages of a sample as one job: the same files, and what is made again after a change."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.workflow import ROOT, Snakemake, jobs

STAGES = ["trim", "deplete", "correct", "merge"]
OWN = {f"{stage}_{kind}" for stage in STAGES for kind in ("pairs", "single")}
CHAINS = ("chain_pairs", "chain_single", "chain_simulated")


def configured(study: Path, **more: Any) -> tuple[str, str, str]:
    """Options for the study's config with some more in it."""
    (study / "more.yaml").write_text(yaml.safe_dump(more))
    return "--configfile", "config/config.yaml", "more.yaml"


def planned(snakemake: Snakemake, *arguments: str) -> dict[str, int]:
    """The jobs of a dry run."""
    plan = snakemake("--dry-run", "--quiet", "rules", *arguments)
    assert plan.returncode == 0, plan.stdout
    return jobs(plan.stdout)


@pytest.mark.parametrize(
    ("chain", "more", "made", "left"),
    [
        (STAGES, {"deplete": {"host": "host.idx"}}, (1, 1, 1), set()),
        (["trim", "correct", "extend"], {}, (1, 1, 1), {"merge_pairs"}),
        (["correct", "merge"], {}, (1, 0, 1), {"trim_pairs", "trim_single", "correct_single"}),
        (["deplete", "correct"], {"deplete": {"host": "host.idx"}, "trim": {"engine": "fastp"}},
         (1, 1, 0), {"merge_pairs", "correct_pairs"}),
        (["trim", "merge"], {"merge": {"reads": "raw"}},
         (1, 0, 0), {"trim_single", "merge_pairs", "correct_pairs", "correct_single"}),
    ],
)  # fmt: skip
def test_one_job_in_place_of_several(
    snakemake: Snakemake,
    study: Path,
    chain: list[str],
    more: dict[str, Any],
    made: tuple[int, int, int],
    left: set[str],
) -> None:
    """Of the samples that go through two of the stages or more."""
    (study / "host.idx").touch()
    counted = planned(snakemake, *configured(study, chain=chain, **more))
    assert tuple(counted.get(rule, 0) for rule in CHAINS) == made
    assert OWN & counted.keys() == left
    alone = planned(snakemake, *configured(study, **more))
    assert not {*CHAINS} & alone.keys()
    same = {rule: own for rule, own in alone.items() if rule not in OWN | {"extend_pairs", "total"}}
    assert same.items() <= counted.items()


@pytest.mark.parametrize(
    ("chain", "more", "said"),
    [
        (["trim", "corect"], {}, "'corect' is not one of ['trim', 'deplete', 'correct', "),
        (["trim", "trim"], {}, "has non-unique elements"),
        (["correct"], {}, "correct alone is no chain; name two stages or more, or none"),
        (["trim", "deplete"], {}, "deplete: it is switched off (deplete.host)"),
        (["trim", "correct"], {"trim": {"enabled": False}}, "it is switched off (trim.enabled)"),
        (["correct", "merge"], {"merge": {"reads": "none"}}, "it is switched off (merge.reads)"),
        (["trim", "correct"], {"trim": {"engine": "fastp"}}, "trim.engine is fastp, which runs"),
        (["correct", "trim"], {}, "trim cannot follow correct: the reads that it takes"),
        (["trim", "merge"], {}, "the reads that it takes are those of correct"),
        (["correct", "extend", "merge"], {}, "merge cannot follow extend: the reads that it takes"),
        (["correct", "merge"], {"merge": {"reads": "raw"}}, "it takes are those of trim"),
        (["trim", "correct"], {"reproduce": {"stage": "correct"}}, "published comparisons"),
    ],
)  # fmt: skip
def test_what_is_no_chain(
    snakemake: Snakemake, study: Path, chain: list[str], more: dict[str, Any], said: str
) -> None:
    result = snakemake("--dry-run", *configured(study, chain=chain, **more))
    assert result.returncode == 1
    assert said in result.stdout


def test_lint_finds_nothing(snakemake: Snakemake, study: Path) -> None:
    result = snakemake("--lint", *configured(study, chain=["trim", "correct", "merge"]))
    assert result.returncode == 0, result.stdout


def test_resources_are_those_of_the_stages(snakemake: Snakemake, study: Path) -> None:
    """The most threads, memory and GPUs of any, and the time of all; each step has its GPUs."""
    own = {"threads": 1, "runtime": 10}
    options = configured(
        study, chain=["trim", "correct", "merge"],
        trim=own | {"mem_mb": 7000}, correct=own | {"threads": 3, "gpu": 2}, merge=own,
    )  # fmt: skip
    plan = snakemake(
        "--dry-run", "-p", "--cores", "8", "--resources", "gpu=4", *options,
        "--", "results/na12878_8kb/merge/stats.json",
    )  # fmt: skip
    assert plan.returncode == 0, plan.stdout
    job = plan.stdout.partition("rule chain_pairs:")[2].partition("\nrule ")[0]
    assert "threads: 3" in job and "gpu=2" in job and "runtime=30" in job
    (memory,) = {int(word[7:].rstrip(",")) for word in job.split() if word.startswith("mem_mb=")}
    assert 7000 <= memory < 7100
    assert '--backend "${NGSGPU_BACKEND:-cuda}" --gpus 2' in job
    steps = dict(re.findall(r"'(\w+)\.arguments=(.*?)'", job))
    given = {stage: re.findall(r"--gpus \d", words) for stage, words in steps.items()}
    assert given == {"trim": ["--gpus 1"], "correct": ["--gpus 2"], "merge": ["--gpus 1"]}


@pytest.mark.parametrize(
    ("letters", "file", "rule"),
    [
        ("", "merge/stats.json", "chain_pairs"),
        ("aaa", "merge/stats.json", "merge_pairs"),
        ("aLa", "trim/R1.fastq.gz", "chain_pairs_trim_correct"),
        ("aLa", "merge/stats.json", "merge_pairs"),
    ],
)
def test_a_job_elsewhere_is_told_the_chains(
    snakemake: Snakemake, study: Path, letters: str, file: str, rule: str
) -> None:
    """Whatever files it finds: a letter a sample, the main process's (common/chain.smk)."""
    told = {"NGSGPU_CHAINS": json.dumps({"results": letters}), "NGSGPU_LIMIT": "none"}
    name = "results/na12878_8kb"
    if letters:
        (study / name / "correct").mkdir(parents=True)
        (study / name / "correct/R1.fastq.gz").touch()
    plan = snakemake(
        "--dry-run", "--mode", "remote", "--cores", "1", "--force",
        *configured(study, chain=["trim", "correct", "merge"]), "--", f"{name}/{file}",
        env=told | {"NGSGPU_FAILED_SAMPLES": "stop"},
    )  # fmt: skip
    assert plan.returncode == 0, plan.stdout
    assert jobs(plan.stdout)[rule] == 1


@pytest.fixture
def small(study: Path) -> Path:
    """A sample of pairs in two lanes and one of single reads, with a host, and not much else."""
    with gzip.open(study / "data/chr20_8kb.fasta.gz", "rt") as file:
        bases = "".join(line.strip() for line in file if line[0] != ">")
    (study / "host.fa").write_text(f">part\n{bases[:1000]}\n")
    (study / "config/config.yaml").write_text(
        "samples: config/samples.tsv\ndeplete: {host: host.fa}\n"
        "trim: {extra: --length_required 50 --cut_tail -z 6}\n"
        "correct: {threads: 2, quality: true, extra: --hashes 16}\n"
        "merge: {reads: corrected, overlap: flash, extra: -m 20}\n"
        "assemble: {enabled: false}\nmultiqc: false\nqc: false\n"
    )
    return study


def outputs(study: Path) -> dict[str, Any]:
    """All files of the samples, without what differs in every run; reads as they are compressed."""
    found: dict[str, Any] = {}
    for path in (study / "results").glob("na12878_*/**/*"):
        if path.is_dir() or path.parent.name == "chain":
            continue
        data: Any = path.read_bytes()
        if path.suffix == ".json":
            data = json.loads(data)
            for key in ("command", "job", "time_s", "memory"):
                data.pop(key, None)
        found[str(path.relative_to(study))] = data
    return found


def run(snakemake: Snakemake, study: Path, *arguments: str, **more: Any) -> str:
    done = snakemake("--cores", "2", *configured(study, **more), *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_files_and_what_is_made_again(snakemake: Snakemake, small: Path) -> None:
    own = {**yaml.safe_load((small / "config/config.yaml").read_text()), "chain": STAGES}
    assert {*CHAINS[:2]} <= jobs(run(snakemake, small, **own)).keys()
    made = outputs(small)
    report = (small / "results/report.html").read_text()
    assert "chain_reads" in report and "trim_reads" not in report
    methods = (small / "results/methods.md").read_text()
    for command in ("trim", "deplete", "correct", "merge"):
        assert f"`ngsgpu {command}`" in methods, command
    versions = yaml.safe_load((small / "results/software_versions.yml").read_text())
    assert {"chain_reads", "trim_reads", "deplete_reads", "merge_pairs"} <= versions.keys()

    def remade(**changes: Any) -> set[str]:
        """Rules of samples that run after a change of the config."""
        more = own | {
            key: {**own.get(key, {}), **new} if isinstance(new, dict) else new
            for key, new in changes.items()
        }
        found = planned(snakemake, *configured(small, **more))
        return {
            rule for rule in found if rule in OWN or rule.startswith(("chain", "count", "trim"))
        }

    assert remade() == set()
    # A change of a later stage is no reason to do earlier ones again, nor what takes their reads.
    assert remade(merge={"extra": ""}) == {"merge_pairs"}
    later = {"correct_pairs", "correct_single", "merge_pairs", "count_kmers"}
    assert remade(correct={"quality": False}) == later
    later |= {"deplete_pairs", "deplete_single"}
    assert remade(deplete={"extra": "--min-bases 40"}) == later
    assert remade(trim={"extra": ""}) == {*CHAINS[:2], "count_kmers"}
    fastp = {"trim_pairs_by_fastp", "trim_single_by_fastp"}
    assert remade(trim={"engine": "fastp"}, chain=STAGES[1:]) == {
        *fastp, *CHAINS[:2], "count_kmers",
    }  # fmt: skip
    # Nor is another chain.
    assert remade(chain=STAGES[:3]) == remade(chain=[]) == set()

    more = own | {"merge": own["merge"] | {"extra": ""}}
    assert jobs(run(snakemake, small, **more)).get("merge_pairs") == 1
    assert planned(snakemake, *configured(small, **more)) == {}
    (small / "results/na12878_8kb/correct/R1.fastq.gz").unlink()
    again = jobs(run(snakemake, small, **more))
    assert {rule for rule in again if rule in OWN or "chain" in rule} == {
        "correct_pairs", "merge_pairs",
    }  # fmt: skip
    # Of other reads, all stages are.
    (small / "lane.fastq.gz").write_bytes((small / "data/na12878_lane1_R1.fastq.gz").read_bytes())
    sheet = small / "config/samples.tsv"
    before = sheet.read_text()
    sheet.write_text(before.replace("data/na12878_lane1_R1", "lane"))
    assert remade() == {*CHAINS[:2], "count_kmers"}
    sheet.write_text(before)

    for path in sorted((small / "results").glob("na12878_*")):
        path.rename(small / path.name)
    assert OWN - {"merge_single"} <= jobs(run(snakemake, small, **own | {"chain": []})).keys()
    assert outputs(small) == made
    # Nor is a chain a reason to make again what separate jobs have made.
    assert remade() == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stage_that_fails_leaves_those_before(snakemake: Snakemake, small: Path) -> None:
    """And only it is made when it is mended; a damaged file fails all."""
    own = {
        "chain": STAGES,
        "merge": {"reads": "corrected", "extra": "--phred-offset 64"},
        "samples": "own.tsv",
    }
    reads = gzip.decompress((ROOT / ".test/data/na12878_lane2_R1.fastq.gz").read_bytes())
    (small / "cut.fastq").write_bytes(reads[:-300])
    rows = ["sample\tfastq_1\tfastq_2", "cut\tcut.fastq\tdata/na12878_lane2_R2.fastq.gz"]
    rows.append("good\tdata/na12878_lane1_R1.fastq.gz\tdata/na12878_lane1_R2.fastq.gz")
    (small / "own.tsv").write_text("\n".join((*rows, "")))
    done = snakemake("--cores", "2", "--keep-going", *configured(small, **own))
    assert done.returncode == 1, done.stdout
    rows = [line.split("\t") for line in (small / "results/status.tsv").read_text().splitlines()]
    said = {(row[0], row[1]): row[2:] for row in rows}
    done_by = {stage: said["good", stage][0] for stage in STAGES}
    assert done_by == {"trim": "done", "deplete": "done", "correct": "done", "merge": "failed"}
    assert "of step correct, record 1, line 4: the quality" in said["good", "merge"][1]
    assert said["good", "merge"][2] == "logs/chain_reads/good.log"
    assert {said["cut", stage][0] for stage in STAGES} == {"failed"}
    assert not [path for path in (small / "results/cut").rglob("*") if path.is_file()]
    own["merge"] = {"reads": "corrected", "extra": ""}
    (small / "cut.fastq").write_bytes(reads)
    counted = jobs(run(snakemake, small, **own))
    expected = {"merge_pairs": 1, "chain_pairs": 1}
    assert {rule: n for rule, n in counted.items() if rule in OWN or "chain" in rule} == expected
    assert planned(snakemake, *configured(small, **own)) == {}
