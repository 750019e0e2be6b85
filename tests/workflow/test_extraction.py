"""Reads of taxa that the config names, by the calls of each sample."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.workflow import Snakemake, jobs

pytestmark = pytest.mark.slow
PLAN = ("--dry-run", "--quiet", "rules")
MORE = ("--configfile", "config/config.yaml", "more.yaml")


def records(path: Path) -> list[bytes]:
    with gzip.open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    return [b"".join(lines[at : at + 4]) for at in range(0, len(lines), 4)]


@pytest.mark.timeout(900)
def test_reads_of_taxa(study: Path, snakemake: Snakemake) -> None:
    """Each read of a sample is in one of two files, which calls decide; mates stay together."""
    counted = jobs(snakemake(*PLAN).stdout)
    assert (counted["extract_pairs"], counted["extract_single"]) == (4, 2)

    def folder(sample: str, taxa: str) -> str:
        return f"results/{sample}/extract/human/{taxa}"

    mates = [f"{folder('na12878_8kb', taxa)}/R1.fastq.gz" for taxa in ("human", "other")]
    single = [f"{folder('na12878_single', taxa)}/reads.fastq.gz" for taxa in ("human", "other")]
    done = snakemake("--cores", "2", "--config", "trim={enabled: false}", "--", *mates, *single)
    assert done.returncode == 0, done.stdout

    table = study / "results/na12878_single/classify/human/na12878_single.reads.tsv.gz"
    with gzip.open(table, "rt") as lines:
        rows = [line.split("\t") for line in lines][1:]
    is_human = [row[1] in ("9605", "9606") for row in rows]
    reads = records(study / "data/na12878_lane1_R1.fastq.gz")
    for path, wanted in zip(single, (True, False), strict=True):
        kept = [own for own, has in zip(reads, is_human, strict=True) if has == wanted]
        assert records(study / path) == kept
    for mate in (1, 2):
        given = [
            own
            for lane in (1, 2)
            for own in records(study / f"data/na12878_lane{lane}_R{mate}.fastq.gz")
        ]
        found = [records(study / path.replace("R1", f"R{mate}")) for path in mates]
        assert sorted(found[0] + found[1]) == sorted(given)
        kept = json.loads((study / mates[0]).with_name("stats.json").read_text())["reads"]["kept"]
        assert len(found[0]) == kept // 2 > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{human: {taxon: [1], database: other}}", "there is no database 'other'"),
        ("{mine: {}}", "'taxon' is a required property"),
        ("{'a/b': {taxon: [1]}}", "a/b"),
        ("{human: {taxon: [-1]}}", "-1"),
        ("{human: {taxon: [9606]}}\nclassify: {reads: merged}", "set classify_reads to raw"),
        ("{human: {taxon: [9606]}}\ndatabases: null", "names no databases"),
    ],
)
def test_what_cannot_be_extracted(study: Path, snakemake: Snakemake, text: str, said: str) -> None:
    subsets, _, rest = text.partition("\n")
    (study / "more.yaml").write_text(f"extract: {{subsets: {subsets}}}\n{rest}\n")
    plan = snakemake(*PLAN, *MORE)
    assert plan.returncode != 0
    assert said in plan.stdout


def test_taxa_without_a_taxonomy(study: Path, snakemake: Snakemake) -> None:
    """Those below others are not known then; taxa themselves and unclassified reads are."""
    sheet = study / "config/databases.tsv"
    sheet.write_text("database\treferences\nplain\tdata/chr20_8kb.fasta.gz\n")
    more = study / "more.yaml"
    more.write_text("extract: {subsets: {other: {taxon: [0]}}}\n")
    plan = snakemake(*PLAN, *MORE)
    assert "'human': the database 'plain' has no taxonomy" in plan.stdout
    assert "'other'" not in plan.stdout
    more.write_text("extract: {subsets: {human: {with_children: false}, other: {taxon: [0]}}}\n")
    counted = jobs(snakemake(*PLAN, *MORE).stdout)
    assert (counted["extract_pairs"], counted["extract_single"]) == (4, 2)
