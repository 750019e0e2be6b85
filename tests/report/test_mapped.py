"""The section on real reads judged on their reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import Page, write_json


def quality(*entries: tuple[int, int, int, float | None]) -> dict[str, Any]:
    keys = ("quality", "bases", "errors", "observed")
    return {
        "bases": sum(entry[1] for entry in entries),
        "seen": sum(entry[2] for entry in entries),
        "stated": 3.5,
        "phred_error": 8.25,
        "mean_phred_error": 2.0,
        "by_quality": [dict(zip(keys, entry, strict=True)) for entry in entries],
    }


FOUND: dict[str, Any] = {
    "schema": "ngsgpu.evaluate.mapped",
    "schema_version": 1,
    "correction": {
        "totals": {
            "bases": 5000, "mended": 6137, "introduced": 124, "introduced_in_undone": 115,
            "made_perfect": 3464, "made_imperfect": 14, "allele_bases": 5883,
            "alleles_switched": 26,
        },
        "rates": {"mismatches_per_kb_before": 1.679, "mismatches_per_kb_after": 0.512},
        "by_kind": {
            kind: {"reads": 1921, "errors_before": 1771, "errors_after": 1437, "introduced": 122}
            for kind in ("gaps_or_clipped", "many_mismatches", "others")
        },
        "heterozygous": {"sites": 119, "lost": 1},
        "minority": [{"from": 0.05, "to": 0.1, "variants": 25, "lost": 17}],
        "calibration": {"before": quality((20, 1000, 9, 20.5)), "after": quality((41, 9, 0, None))},
    },
    "merging": {
        "pairs": {
            "pairs": 2000, "overlapping": 1139, "right": 1086, "near": 5, "wrong": 2, "missed": 46,
            "apart": 777, "apart_merged": 137, "unknown_fragment": 84,
        },
        "calibration": {
            "agree": quality((30, 500, 2, 24.0)),
            "disagree": quality((5, 50, 12, 6.2)),
            "alone": quality(),
        },
    },
}  # fmt: skip


def test_section(manifest: Path, results: Path) -> None:
    write_json(results / "sim/evaluate/mapped.json", FOUND)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "mapped" in page.ids
    for words in (
        "1.679 → 0.512", "6,137", "in reads whose indel was undone", "1,921", "5,883",
        "minority variants of 5 to 10 %", "1,086", "merged, mates agree", "8.2",
        "below it bases are worse than stated",
    ):  # fmt: skip
        assert words in page.text, words


def test_merged_reads_alone(manifest: Path, results: Path) -> None:
    found = {key: value for key, value in FOUND.items() if key != "correction"}
    write_json(results / "sim/evaluate/mapped.json", found)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "1,086" in page.text
    assert "mismatches per kb" not in page.text


def test_no_section_without(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "mapped" not in page.ids
