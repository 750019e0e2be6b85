"""What is classified, with what and how: columns of the sheets, groups, the config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ngsgpu.taxonomy.ranks import RANKS
from tests.support.workflow import ROOT, Snakemake

HEADER = (
    "sample,fastq_1,fastq_2,group,classify_reads,classify_databases,classify_extra,correct_extra"
)
LANES = "data/na12878_lane1_R1.fastq.gz,data/na12878_lane1_R2.fastq.gz"
REPORT = "results/{0}/classify/{1}/{0}.kraken2.report.txt"


@pytest.fixture
def own(study: Path) -> Path:
    """Two databases, a group, and reads that are merged."""
    (study / "databases.csv").write_text(
        "database,references\nhuman,data/chr20_8kb.fasta.gz\nother,data/chr20_8kb.fasta.gz\n"
    )
    (study / "config" / "config.yaml").write_text(
        "samples: samples.csv\ndatabases: databases.csv\nmerge: {reads: raw}\n"
        "groups: {gut: {classify_reads: corrected, classify_extra: --min-hits 4}}\n"
    )
    return study


def dry_run(snakemake: Snakemake, study: Path, *rows: str) -> str:
    (study / "samples.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    result = snakemake("--dry-run", "--printshellcmds")
    return result.stdout


def test_columns_and_groups(snakemake: Snakemake, own: Path) -> None:
    said = dry_run(
        snakemake,
        own,
        f"plain,{LANES}",
        f"merged,{LANES},,merged,other",
        f"grouped,{LANES},gut,,human,,--hashes 16",
        f"both,{LANES},gut,raw,human,none",
        f"nothing,{LANES},,,none",
    )
    for name, databases in {
        "plain": {"human", "other"},
        "merged": {"other"},
        "grouped": {"human"},
        "both": {"human"},
        "nothing": set(),
    }.items():
        found = {base for base in ("human", "other") if REPORT.format(name, base) in said}
        assert found == databases, name
    assert "'grouped\tresults/grouped/correct/R1.fastq.gz\tresults/grouped/correct/R2" in said
    assert "'merged\tresults/merged/merge/merged.fastq.gz\t\t" in said
    assert "'merged\tresults/merged/merge/unmerged_R1.fastq.gz\tresults/merged/merge/un" in said
    assert "'both\tresults/both/trim/R1.fastq.gz\tresults/both/trim/R2.fastq.gz\t" in said
    # Samples with other options are a batch of their own, with these options.
    searching = [text for text in said.split("rule ") if text.startswith("classify_partition:")]
    options = {
        text.partition("output: ")[2].split()[0]: "--min-hits 4" in text for text in searching
    }
    assert options == {
        "results/databases/human/candidates/0001/0000": False,
        "results/databases/human/candidates/0002/0000": True,
        "results/databases/other/candidates/0001/0000": False,
    }
    merging = next(text for text in said.split("rule merge_candidates:") if "grouped.cand" in text)
    assert "--min-hits 4" in merging
    corrections = [line for line in said.splitlines() if "ngsgpu correct -i" in line]
    (own_options,) = [line for line in corrections if "--hashes 16" in line]
    assert len(corrections) == 5 and "results/grouped/correct/" in own_options


@pytest.mark.parametrize(
    ("correct", "options"),
    [
        ("{}", ""),
        ("{keep_variants: auto, classic: false}", ""),
        ("{keep_variants: 5, quality: true}", " --quality --keep-variants 5"),
        ("{classic: true, mask: true}", " --classic --mask"),
        ("{method: spectrum, quality: true}", " --method spectrum --quality"),
    ],
)
def test_how_reads_are_corrected(
    snakemake: Snakemake, own: Path, correct: str, options: str
) -> None:
    config = own / "config" / "config.yaml"
    config.write_text(config.read_text() + f"correct: {correct}\n")
    said = dry_run(snakemake, own, f"a,{LANES},,corrected", f"b,{LANES},,corrected,,,--hashes 16")
    lines = [line for line in said.splitlines() if "ngsgpu correct -i" in line]
    assert len(lines) == 2
    for line in lines:
        assert f"--backend cpu{options} --memory" in line


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (f"x,{LANES},gutt", "column group: the config has no group 'gutt'; did you mean gut?"),
        (f"x,{LANES},,both", "line 2, column classify_reads: 'both' is not right"),
        (f"x,{LANES},,,humam", "classify_databases: no database 'humam'; did you mean human?"),
        (f"x,{LANES},,,,--min-hits '3", "classify_extra: the options cannot be read"),
        ("x,data/na12878_lane1_R1.fastq.gz,,,merged", "'merged', but the reads have no mates"),
        (
            f"x,{LANES},gut\nx,data/na12878_lane2_R1.fastq.gz,data/na12878_lane2_R2.fastq.gz",
            "sample 'x' has another group further up",
        ),
    ],
)
def test_wrong_columns(snakemake: Snakemake, own: Path, row: str, said: str) -> None:
    assert said in dry_run(snakemake, own, row)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("merge: {reads: none}", "classify_reads: 'merged', but merge.reads is 'none'"),
        ("correct: {enabled: false}", "classify_reads: 'corrected', but correct.enabled is false"),
        ("groups: {gut: {clasify_reads: raw}}", "did you mean groups.gut.classify_reads?"),
        ("correct: {keep_variants: 1}", "correct.keep_variants"),
        ("correct: {method: spectrum, classic: true}", "correct.classic"),
        ("correct: {classic: true, keep_variants: 3}", "keep_variants: 'auto' was expected"),
        ("unitigs: {k: 32}", "{'multipleOf': 2} (must be odd: no k-mer"),
        ("classify: {abundance_rank: spezies}", "abundance_rank: 'spezies' does not"),
        ("classify: {abundance_rank: 'species, genus'}", "(a rank, or several separated by commas"),
        ("correct: {keepvariants: 3}", "did you mean correct.keep_variants?"),
        ("datasets: ''", "datasets: '' should be non-empty"),
    ],
)
def test_wrong_config(snakemake: Snakemake, own: Path, change: str, said: str) -> None:
    rows = [HEADER, f"m,{LANES},,merged", f"c,{LANES},,corrected"]
    (own / "samples.csv").write_text("\n".join(rows) + "\n")
    (own / "change.yaml").write_text(change)
    result = snakemake("--dry-run", "--configfile", "config/config.yaml", "change.yaml")
    assert result.returncode == 1 and said in result.stdout


def test_ranks_and_lengths_that_are_right(snakemake: Snakemake, own: Path) -> None:
    more = f"classify: {{abundance_rank: '{','.join(RANKS)}'}}\nunitigs: {{k: 33}}\n"
    (own / "more.yaml").write_text(more)
    (own / "samples.csv").write_text(f"{HEADER}\nm,{LANES}\n")
    result = snakemake("--dry-run", "--configfile", "config/config.yaml", "more.yaml")
    assert result.returncode == 0, result.stdout


def test_every_key_of_the_config_is_explained() -> None:
    """In the tables of config/README.md: stage.key, or .key behind another of its stage."""
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    text = (ROOT / "config/README.md").read_text()
    stages = {
        stage: own["properties"]
        for stage, own in schema["properties"].items()
        if "properties" in own
    }
    absent = [
        f"{stage}.{key}"
        for stage, keys in stages.items()
        for key in keys
        if f"`{stage}.{key}`" not in text
        and not re.search(rf"^\| `{stage}\.[^|]*`\.{key}`", text, re.MULTILINE)
    ]
    assert absent == []
