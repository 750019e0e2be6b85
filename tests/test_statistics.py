"""What commands write as statistics is what the published JSON Schemas say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from ngsgpu.cli import main
from scripts.derive.statistics import CLASSES
from scripts.task_outputs import DATA, FILES, ROOT

PAIRS = "-i {folder}/R1.fastq.gz -I {folder}/R2.fastq.gz"
BUILT = (
    "deplete-index {folder}/genomes/staphylococcus_aureus__DSM_20231.fna.gz -o {folder}/host.idx",
    "db build -d {folder}/db --taxonomy {folder}/taxonomy --map {folder}/taxonomy/seqid2taxid.tsv "
    "{folder}/genomes/escherichia_coli__IAI39.fna.gz",
    "classify -d {folder}/db -i {folder}/mixed.fa.gz -o {folder}/calls.tsv",
    "kmers count -i {folder}/R1.fastq.gz -o {folder}/a.kmers",
    "kmers count -i {folder}/R2.fastq.gz -o {folder}/b.kmers",
    "index build {folder}/genomes/escherichia_coli__IAI39.fna.gz -o {folder}/bwa",
)
COMMANDS = {
    "trim": f"trim {PAIRS} -o {{out}}/1.fq -O {{out}}/2.fq",
    "deplete-index": BUILT[0].replace("{folder}/host", "{out}/host"),
    "deplete": "deplete -d {folder}/host.idx -i {folder}/mixed.fa.gz -o {out}/kept.fa",
    "correct": f"correct {PAIRS} -o {{out}}/1.fq -O {{out}}/2.fq",
    "correct --method spectrum": f"correct {PAIRS} -o {{out}}/1.fq -O {{out}}/2.fq "
    "--method spectrum",
    "extend": f"extend {PAIRS} -o {{out}}/extended.fq --insert-size 250 --insert-sd 50",
    "merge": "merge -i {folder}/V4_R1.fastq.gz -I {folder}/V4_R2.fastq.gz -o {out}/merged.fq",
    "classify": "classify -d {folder}/db -i {folder}/mixed.fa.gz -o {out}/calls.tsv",
    "extract": "extract -c {folder}/calls.tsv -i {folder}/mixed.fa.gz -o {out}/some.fa --taxon 562",
    "db build": BUILT[1].replace("{folder}/db ", "{out}/db "),
    "kmers count": f"kmers count {PAIRS} -o {{out}}/db --histo {{out}}/histo",
    "kmers intersect, subtract and union": "kmers union {folder}/a.kmers {folder}/b.kmers "
    "-o {out}/db",
    "unitigs": f"unitigs {PAIRS} -o {{out}}/unitigs.fa",
    "assemble": f"assemble {PAIRS} -o {{out}}/contigs.fa",
    "assemble --method euler": f"assemble {PAIRS} -o {{out}}/contigs.fa --method euler",
    "index build": BUILT[5].replace("{folder}/bwa", "{out}/bwa"),
    "index query": "index query {folder}/bwa -i {folder}/mixed.fa.gz -o {out}/matches.paf",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads, genomes, and what commands need that was built of these."""
    made = tmp_path_factory.mktemp("statistics")
    for short, own in FILES.items():
        copy = shutil.copytree if (DATA / own).is_dir() else shutil.copy
        copy(DATA / own, made / short)
    for command in BUILT:
        assert main(command.format(folder=made).split()) == 0
    return made


def check(path: Path) -> None:
    """Compare statistics with their schema."""
    found = json.loads(path.read_text())
    schema = json.loads((ROOT / f"docs/schemas/{found['schema']}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    assert found.keys() <= schema["properties"].keys()


def test_all_commands_are_here() -> None:
    assert {*COMMANDS, "run"} == {*CLASSES}


@pytest.mark.parametrize("name", COMMANDS)
def test_statistics_are_those_of_the_schema(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NGSGPU_BACKEND", "cpu")
    words = COMMANDS[name].format(folder=folder, out=tmp_path).split()
    assert main([*words, "--stats", str(tmp_path / "stats.json")]) == 0
    check(tmp_path / "stats.json")


def test_statistics_of_a_chain(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NGSGPU_BACKEND", "cpu")
    words = f"run --steps trim,merge {PAIRS} -o {{out}}/chain -q".format(
        folder=folder, out=tmp_path
    )
    assert main(words.split()) == 0
    for path in (tmp_path / "chain").glob("*.stats.json"):
        check(path)
