"""The section on depletion: there when a host's reads were taken out."""

from __future__ import annotations

from pathlib import Path

from ngsgpu.report.exports.methods import Methods
from ngsgpu.report.exports.software import read_runs
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import Page, write_json


def test_section(manifest: Path, results: Path) -> None:
    without = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "depletion" not in without.ids
    assert "host reads" not in without.text
    write_json(
        results / "real/deplete/stats.json",
        {
            "schema": "ngsgpu.deplete",
            "schema_version": 1,
            "version": "0.1.0",
            "parameters": {"min_bases": None},
            "bounds": {"least": 25, "most": 32},
            "index": {"kmer": 24, "sources": ["GRCh38.fa.gz"]},
            "reads": {"total": 1000, "host": 421, "other": 579, "kept": 579},
            "bases": {"total": 100_000, "kept": 57_900},
        },
    )
    study = fill_from_layout(read_study(manifest), results)
    page = Page(render_report(study))
    assert "depletion" in page.ids
    for words in ("host reads", "42.1", "57,900"):
        assert words in page.text, words
    methods = Methods(study, read_runs(study)).text()
    assert "Reads of the host (GRCh38.fa.gz) were removed with `ngsgpu deplete`" in methods
    assert (
        "(k = 24, at least 32 bases, or half of those of shorter reads, covered by its k-mers)"
        in methods
    )
