"""The section on read quality: what it says of correction, and of reads that are not a sample's."""

from __future__ import annotations

import csv
import io
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.report.exports.tables import csv_tables
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.model import Study
from ngsgpu.report.render import render_report, report_context
from ngsgpu.report.study import read_study
from tests.support.adapters import pairs_of, random_genome, write_mates
from tests.support.commands import Commands
from tests.support.report import Page, fastp, write_json, write_note

NOTE = ("logs/correct_reads/real.log", "real_R1.fq.gz: record 9 is damaged")


def counted(adapters: int = 2, **changes: float) -> dict[str, Any]:
    """fastp's figures, some of them changed."""
    document = fastp(adapters)
    document["summary"]["before_filtering"] |= changes
    return document


@pytest.fixture
def study(manifest: Path, results: Path) -> Study:
    """Of the sample ``real``, no step could read the reads; fastp read few, and poor ones."""
    for variant in ("raw", "corrected"):
        write_json(results / f"sim/qc/{variant}.fastp.json", fastp())
    write_json(results / "real/qc/raw.fastp.json", counted(99, q30_rate=0.31, total_reads=100))
    for path in ("correct/stats.json", "qc/corrected.fastp.json"):
        write_note(results / "real" / path, *NOTE)
    return fill_from_layout(read_study(manifest), results)


def mend_correction(results: Path) -> None:
    """Put statistics where correction failed."""
    stats = results / "real/correct/stats.json"
    stats.with_name("stats.json.failed").unlink()
    stats.write_text((results / "sim/correct/stats.json").read_text())


def test_correction_that_trims_is_not_said_to_keep_lengths(study: Study, results: Path) -> None:
    kept = "before and after correction, which keeps their number and lengths."
    changed = "before and after correction, which also changed their number or lengths."
    page = Page(render_report(study)).text
    assert kept in page and changed not in page
    for change in ({"total_bases": 555}, {"total_reads": 199}):
        write_json(results / "sim/qc/corrected.fastp.json", counted(**change))
        page = Page(render_report(study)).text
        assert kept not in page and changed in page


def test_reads_before_correction_alone(study: Study, results: Path) -> None:
    write_note(results / "sim/qc/corrected.fastp.json", *NOTE)
    assert "fastp looked at the reads. Adapters" in Page(render_report(study)).text


@pytest.mark.parametrize(
    ("command", "is_known"),
    [("ngsgpu trim -i x", True), ("ngsgpu trim -i x --disable-adapter-trimming", False),
     ("fastp -i x --disable_adapter_trimming", False), ("fastp -A -i x", False)],
)  # fmt: skip
def test_adapters_that_were_not_looked_for(
    study: Study, results: Path, command: str, is_known: bool
) -> None:
    document = fastp()
    del document["adapter_cutting"]
    write_json(results / "sim/qc/raw.fastp.json", document | {"command": command})
    table = csv.DictReader(io.StringIO(csv_tables(report_context(study))["quality-reads.csv"]))
    row = next(own for own in table if own["value"] == "reads with adapter (%)")
    assert row["uncorrected"] == ("0" if is_known else "")


@pytest.mark.skipif(shutil.which("fastp") is None, reason="fastp is not installed")
def test_ours_and_fastps_are_shown_alike(
    manifest: Path, results: Path, tmp_path: Path, ngsgpu: Commands
) -> None:
    rng = random.Random(5)
    one, two = write_mates(tmp_path, pairs_of(rng, random_genome(rng, 3000), 200))
    files = ["-i", str(one), "-I", str(two), "--detect_adapter_for_pe"]
    json = results / "sim/qc/raw.fastp.json"
    json.parent.mkdir()
    done = ngsgpu("trim", *files, "-j", json)
    assert done.status == 0, done.err
    study = fill_from_layout(read_study(manifest), results)
    ours = render_report(study)
    rest = ["-j", json, "-w", "1", "-h", "/dev/null"]
    subprocess.run(["fastp", *files, *rest], check=True, capture_output=True)
    assert "ngsgpu trim looked at the reads." in ours
    assert ours.replace("ngsgpu trim looked", "fastp looked") == render_report(study)
    text = Page(ours).text
    assert "Bases by position in the uncorrected reads" in text
    assert "Fragment lengths of pairs whose mates overlap" in text
    assert "most frequent fragment length" in text and "reads with adapter" in text


def test_part_of_a_file_is_not_the_quality_of_a_sample(study: Study) -> None:
    context = report_context(study)
    line = next(row for row in context["verdict"].rows if row[0] == "Read quality")
    assert line[1].startswith("Q30 or more: 94.0\N{NO-BREAK SPACE}% of the bases; duplicates: 5.0")
    assert line[1].endswith("; without one failed or empty sample")
    assert "75\N{NO-BREAK SPACE}% of Q30" not in line[3] and "real" not in line[3]
    page = Page(render_report(study)).text
    assert "Failed sample: these are the reads that fastp could read, not the sample's" in page
    assert page.count("of the reads contain adapter sequence") == 1
    overview = {row[0]: row for row in context["overview"].rows}
    assert "31.0\N{NO-BREAK SPACE}%" not in overview["real"]
    table = list(csv.reader(io.StringIO(csv_tables(context)["quality-reads.csv"])))
    assert ["real", "sample", "failed", ""] in table


@pytest.mark.parametrize(
    ("is_corrected", "words"),
    [(False, "Failed sample: fastp found no reads."), (True, "Empty sample: there are no reads.")],
)
def test_no_reads_have_no_quality(
    study: Study, results: Path, is_corrected: bool, words: str
) -> None:
    none = counted(0, total_reads=0, total_bases=0, q30_rate=0, gc_content=0)
    write_json(results / "real/qc/raw.fastp.json", none)
    if is_corrected:
        mend_correction(results)
    page = Page(render_report(study)).text
    assert "bases of Q30 or more 0.00 %" not in page
    assert words in page and "trimming or sequencing again" not in page


def test_reads_of_a_later_failure_are_the_samples(study: Study, results: Path) -> None:
    mend_correction(results)
    write_note(results / "real/quast/report.tsv", *NOTE)
    page = Page(render_report(study)).text
    assert "Failed sample" not in page
    assert "1 of 2 samples (real) below 75 % of Q30" in page
