"""The report counts what was trimmed, and does not advise to trim what was."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.errors import InputError
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.render import render_report, report_context
from ngsgpu.report.study import read_study
from tests.support.report import Page, fastp, write_json, write_note, write_text
from tests.support.report_results import by_ngsgpu, trimming

ADVICE = "trim it"


@pytest.fixture
def untrimmed(results: Path) -> Path:
    """Both samples have many adapters in what fastp says of their uncorrected reads."""
    for sample in ("sim", "real"):
        for variant in ("raw", "corrected"):
            write_json(results / f"{sample}/qc/{variant}.fastp.json", fastp(adapters=9))
    return results


def test_untrimmed_reads_should_be_trimmed(manifest: Path, untrimmed: Path) -> None:
    context = report_context(fill_from_layout(read_study(manifest), untrimmed))
    assert "Trimming" not in [row[0] for row in context["verdict"].rows]
    assert str(context["verdict"].rows).count(ADVICE) == 1


def test_trimmed_reads(manifest: Path, untrimmed: Path) -> None:
    for sample in ("sim", "real"):
        write_json(untrimmed / sample / "trim/fastp.json", trimming())
    study = fill_from_layout(read_study(manifest), untrimmed)
    context = report_context(study)
    steps = {row[0]: row[1:] for row in context["verdict"].rows}
    assert steps["Trimming"][0] == "reads with adapter, trimmed: 20.0\N{NO-BREAK SPACE}%"
    assert steps["Trimming"][2] == "OK"
    assert steps["Trimming"][1] == "180 bases of adapters (15\N{NO-BREAK SPACE}%) taken off"
    assert "reads with adapter" not in steps["Read quality"][0]
    text = Page(render_report(study)).text
    assert ADVICE not in text
    for line in (
        "reads as sequenced 200",
        "with adapter, trimmed 40 20 %",
        "left out, since too short 2 1 %",
        "reads after trimming 198 99 %",
        "bases of adapters 90 15 %",
        "bases after trimming 500 83.3 %",
    ):
        assert line in text
    headings = context["overview"].headings
    shares = [row[headings.index("reads trimmed")] for row in context["overview"].rows]
    assert shares == ["20.0 %"] * 2


def test_one_trimmed_sample_of_two(manifest: Path, untrimmed: Path) -> None:
    write_json(untrimmed / "sim/trim/fastp.json", trimming())
    study = fill_from_layout(read_study(manifest), untrimmed)
    text = Page(render_report(study)).text
    assert text.count("of the reads contain adapter sequence") == 1


def test_programs_are_named(manifest: Path, untrimmed: Path) -> None:
    write_json(untrimmed / "sim/trim/fastp.json", by_ngsgpu(trimming()))
    study = fill_from_layout(read_study(manifest), untrimmed)
    text = Page(render_report(study)).text
    assert "Before all other steps, ngsgpu trim trimmed adapters from 40 of 200" in text
    assert "fastp trimmed" not in text
    write_json(untrimmed / "real/trim/fastp.json", trimming())
    study = fill_from_layout(study, untrimmed)
    assert "fastp and ngsgpu trim trimmed adapters, and tails" in Page(render_report(study)).text


def test_filters_that_were_switched_on(manifest: Path, untrimmed: Path) -> None:
    document = trimming()
    document["filtering_result"] |= {"too_long_reads": 20, "low_quality_reads": 0}
    write_json(untrimmed / "sim/trim/fastp.json", document)
    text = Page(render_report(fill_from_layout(read_study(manifest), untrimmed))).text
    assert "left out, since too short 2 1 % left out, since too long 20 10 % reads" in text
    assert "of low quality" not in text


def test_a_sample_that_could_not_be_trimmed(manifest: Path, untrimmed: Path) -> None:
    where = untrimmed / "real/trim/fastp.json"
    write_note(where, "logs/trim_reads/real.log", "fastp took 0 of 9 reads")
    study = fill_from_layout(read_study(manifest), untrimmed)
    steps = {row[0]: row[1:] for row in report_context(study)["verdict"].rows}
    assert "1 of 2 samples (real) failed" in steps["Trimming"][2]


@pytest.mark.parametrize("text", ["[]", "{", '{"summary": 3}', '{"summary": {}}'])
def test_damaged_figures(manifest: Path, results: Path, text: str) -> None:
    write_text(results / "sim/trim/fastp.json", text)
    with pytest.raises(InputError, match=r"trim/fastp\.json"):
        render_report(fill_from_layout(read_study(manifest), results))
