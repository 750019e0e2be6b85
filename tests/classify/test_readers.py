"""Other programs read the outputs of classification, and find in them what is there.

They are in environments of their own, made by ``scripts/setup.sh readers``. Bracken and KrakenTools
are not among Python's packages; what they read is the report that these take.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ngsgpu.classify.database.database import Database
from tests.support.classify.world import World
from tests.support.commands import Commands, read_json


def program(name: str) -> pytest.MarkDecorator:
    missing = shutil.which(name) is None
    return pytest.mark.skipif(missing, reason=f"{name} is missing: run scripts/setup.sh readers")


@pytest.fixture
def outputs(ngsgpu: Commands, world: World, database: Database, tmp_path: Path) -> Path:
    """The outputs of two samples."""
    half = len(world.reads) // 2
    for name, reads in (("one", world.reads[:half]), ("two", world.reads[half:])):
        path = world.fastq(f"{name}.fq", reads)
        done = ngsgpu(
            "classify", "-d", database.path, "-i", path, "--sample", name, "-q",
            "-o", tmp_path / f"{name}.tsv", "--report", tmp_path / f"{name}.kraken2.report.txt",
            "--kraken-reads", tmp_path / f"{name}.kraken2.classifiedreads.txt",
            "--biom", tmp_path / f"{name}.biom",
        )  # fmt: skip
        assert done.status == 0, done.err
    return tmp_path


def run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(report: Path) -> dict[int, int]:
    """Reads of each taxon itself, by its taxid."""
    rows = [line.split("\t") for line in report.read_text().splitlines()]
    return {int(row[4]): int(row[2]) for row in rows}


@program("taxpasta")
@pytest.mark.slow
def test_taxpasta(ngsgpu: Commands, outputs: Path) -> None:
    """Merged profiles have all reads, and are our own table, byte for byte."""
    reports = [outputs / f"{name}.kraken2.report.txt" for name in ("one", "two")]
    merged, own = outputs / "merged.tsv", outputs / "own.tsv"
    sheet = outputs / "sheet.tsv"
    sheet.write_text(f"sample\tprofile\none\t{reports[0]}\ntwo\t{reports[1]}\n")
    run("taxpasta", "merge", "-p", "kraken2", "--wide", "-o", merged, "-s", sheet)
    header, *rows = [line.split("\t") for line in merged.read_text().splitlines()]
    assert header == ["taxonomy_id", "one", "two"]
    for column, report in enumerate(reports, start=1):
        found = {int(row[0]): int(row[column]) for row in rows if row[column] != "0"}
        assert found == {taxid: own for taxid, own in counts(report).items() if own}
    assert ngsgpu("classify-table", *reports, "--taxpasta", own).status == 0
    assert own.read_bytes() == merged.read_bytes()


@program("multiqc")
@pytest.mark.slow
def test_multiqc(outputs: Path) -> None:
    """Its reads by taxon are those of the reports, and samples have their names."""
    run("multiqc", "--module", "kraken", "--outdir", outputs / "multiqc", outputs)
    data = read_json(outputs / "multiqc/multiqc_data/multiqc_data.json")
    shown = data["report_general_stats_data"]["kraken"]
    for name in ("one", "two"):
        lines = (outputs / f"{name}.kraken2.report.txt").read_text().splitlines()
        clades: dict[str, dict[str, int]] = {}
        for _, clade, _, rank, _, taxon in (line.split("\t") for line in lines):
            if rank in "URDPCOFGS":
                clades.setdefault(rank, {})[taxon.strip()] = int(clade)
        assert data["report_saved_raw_data"]["multiqc_kraken"][name] == clades
        total = clades["U"]["unclassified"] + clades["R"]["root"]
        share = 100 * clades["U"]["unclassified"] / total
        assert shown[name]["pct_unclassified"] == pytest.approx(share)


@program("biom")
@pytest.mark.slow
def test_biom(outputs: Path) -> None:
    """The table is valid, and its sums are the classified reads."""
    table = outputs / "one.biom"
    assert "valid BIOM" in run("biom", "validate-table", "-i", table)
    report = counts(outputs / "one.kraken2.report.txt")
    said = run("biom", "summarize-table", "-i", table)
    assert f"Total count: {sum(report.values()) - report.get(0, 0):,}" in said


def test_reports_are_what_krakentools_and_bracken_take(outputs: Path) -> None:
    """Six columns with tabs between, names indented by two spaces a level; unclassified first."""
    report = outputs / "one.kraken2.report.txt"
    lines = report.read_text().splitlines()
    assert lines[0].split("\t")[3:] == ["U", "0", "unclassified"]
    depth = -1
    for line in lines[1:]:
        share, clade, own, rank, taxid, name = line.split("\t")
        assert float(share) >= 0
        assert int(clade) >= int(own)
        assert int(taxid) > 0
        assert rank[0] in "RDKPCOFGS"
        level, rest = divmod(len(name) - len(name.lstrip()), 2)
        assert (rest, level <= depth + 1) == (0, True)
        depth = level
    reads = (outputs / "one.kraken2.classifiedreads.txt").read_text().splitlines()
    columns = [line.split("\t") for line in reads]
    assert all(len(row) == 5 and (row[0] == "C") == (row[2] != "0") for row in columns)
    assert sum(row[0] == "U" for row in columns) == counts(report).get(0, 0)
