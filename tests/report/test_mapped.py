"""The section on real reads judged on their reference."""

from __future__ import annotations

from pathlib import Path

from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import Page, write_json
from tests.support.report_results import MAPPED


def test_section(manifest: Path, results: Path) -> None:
    write_json(results / "sim/evaluate/mapped.json", MAPPED)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "mapped" in page.ids
    for words in (
        "1.679 → 0.512", "6,137", "in reads whose indel was undone", "1,921", "5,883",
        "minority variants of 5 to 10 %", "1,086", "merged, mates agree", "8.2",
        "below it bases are worse than stated",
    ):  # fmt: skip
        assert words in page.text, words


def test_merged_reads_alone(manifest: Path, results: Path) -> None:
    found = {key: value for key, value in MAPPED.items() if key != "correction"}
    write_json(results / "sim/evaluate/mapped.json", found)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "1,086" in page.text
    assert "mismatches per kb" not in page.text


def test_no_section_without(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "mapped" not in page.ids
