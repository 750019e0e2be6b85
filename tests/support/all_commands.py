"""Every command that writes statistics, on small real data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ngsgpu.cli import main
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
"""By the names of their statistics; ``{folder}`` has the inputs, ``{out}`` gets the outputs."""


def check_schema(path: Path) -> dict[str, Any]:
    """Compare statistics with their published schema; gives them back."""
    import jsonschema  # missing on machines that only check GPUs

    found: dict[str, Any] = json.loads(path.read_text())
    schema = json.loads((ROOT / f"docs/schemas/{found['schema']}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    assert found.keys() <= schema["properties"].keys()
    return found


def build_inputs(folder: Path) -> Path:
    """Reads, genomes, and what commands need that was built of these."""
    for short, own in FILES.items():
        copy = shutil.copytree if (DATA / own).is_dir() else shutil.copy
        copy(DATA / own, folder / short)
    for command in BUILT:
        assert main(command.format(folder=folder).split()) == 0
    return folder
