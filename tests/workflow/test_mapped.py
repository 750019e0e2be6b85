"""Real samples judged on their reference: which jobs, which commands, which figures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.workflow import ROOT, Snakemake, jobs

CONFIG = "config/config.yaml"


def test_only_where_the_config_says_so(snakemake: Snakemake) -> None:
    result = snakemake("--dry-run", "--quiet", "rules")
    assert "evaluate_mapped" not in jobs(result.stdout)


def test_samples_with_a_reference_alone(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text(
        "mapped: {enabled: true, aligner: minimap2, extra: -t 3}\ntrim: {enabled: false}\n"
    )
    result = snakemake("--dry-run", "--printshellcmds", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    # Of the two real samples one has a reference; the simulated one has its truth.
    assert counted["align_raw_reads"] == counted["evaluate_mapped"] == 1
    assert "index_reference" not in counted
    assert "minimap2 -a -x sr -t 4 data/chr20_8kb.fasta.gz <(gzip -cdf data/na12878_lane1" in (
        result.stdout
    )
    lanes = " ".join(f"--in1 data/na12878_lane{lane}_R1.fastq.gz" for lane in (1, 2))
    assert f"--reference data/chr20_8kb.fasta.gz {lanes} --in2" in result.stdout
    assert "--merged results/na12878_8kb/merge/merged.fastq.gz" in result.stdout
    assert "-t 3 --json results/na12878_8kb/evaluate/mapped.json" in result.stdout
    assert "results/versions/minimap2.txt" in result.stdout
    assert "results/versions/bwa.txt" not in result.stdout


def test_known_variants_of_the_sheet(snakemake: Snakemake, study: Path) -> None:
    sheet = study / "config" / "samples.tsv"
    head, *lines = [line for line in sheet.read_text().splitlines() if not line.startswith("#")]
    assert head.endswith("truth")
    lines = [f"{line}\tknown.vcf.gz" if "8kb" in line else line for line in lines]
    sheet.write_text("\n".join([f"{head}\tvariants", *lines, ""]))
    (study / "known.vcf.gz").touch()
    (study / "more.yaml").write_text("mapped: {enabled: true}\n")
    result = snakemake("--dry-run", "--printshellcmds", "--configfile", CONFIG, "more.yaml")
    assert result.returncode == 0, result.stdout
    assert "--known known.vcf.gz" in result.stdout
    prefix = "results/na12878_8kb/evaluate/reference"
    assert f"bwa mem -K 10000000 -t 4 {prefix} <(" in result.stdout
    assert f"ngsgpu index build data/chr20_8kb.fasta.gz -o {prefix} " in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwa") is None, reason="bwa is not installed")
def test_figures_of_a_sample(snakemake: Snakemake, study: Path) -> None:
    (study / "more.yaml").write_text("mapped: {enabled: true}\ncorrect: {gpu: 0}\n")
    target = "results/na12878_8kb/evaluate/mapped.json"
    result = snakemake("--cores", "2", "--configfile", CONFIG, "more.yaml", "--", target)
    assert result.returncode == 0, result.stdout
    document = json.loads((study / target).read_text())
    totals = document["correction"]["totals"]
    assert totals["reads"] == 4100
    assert totals["mended"] > 5 * totals["introduced"]
    assert not (study / "results/na12878_8kb/evaluate/alignments.sam.gz").exists()


def test_page_of_programs_shows_the_figures(tmp_path: Path) -> None:
    quality = {"seen": 9, "stated": 2.5}
    pairs: dict[str, Any] = dict.fromkeys(("near", "missed", "apart", "apart_merged"), 0)
    merging = {
        "pairs": pairs | {"right": 77, "wrong": 3},
        "calibration": {"agree": quality, "disagree": quality},
    }
    judged = tmp_path / "mapped.json"
    judged.write_text(json.dumps({"schema": "ngsgpu.evaluate.mapped", "merging": merging}))
    published = tmp_path / "published.tsv"
    published.write_text("table\tpage\tdataset\tprogram\tmetric\tvalue\n")
    described = {
        "title": "T", "source": "S", "scale": "small", "stage": "merge", "threads": 2,
        "beside": {}, "counterparts": {},
        "programs": [{"name": "vsearch", "title": "vsearch", "is_installed": True}],
        "sets": [{"name": "one", "kind": "real", "parameters": {}}],
    }  # fmt: skip
    out = [tmp_path / f"page.{kind}" for kind in ("html", "json", "markdown")]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/reproduction_page.py", "--published", published,
         *(part for path in out for part in (f"--{path.suffix[1:]}", path))],
        input=f"{json.dumps(described)}\none\tvsearch\tjudged\t{judged}\n",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = out[0].read_text()
    assert "right on the reference" in page and "77" in page
    assert "errors stated where mates agree" in page
