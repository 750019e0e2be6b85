"""The section on merging: there when pairs were merged, with tables and plots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ngsgpu.errors import InputError
from ngsgpu.merge import MergeOutputs, merge_files
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.merge.data import simulated_pairs, write_pairs
from tests.support.report import Page, write_json
from tests.support.report_results import MERGING


@pytest.fixture
def merged(results: Path, tmp_path: Path) -> Path:
    """The results with merged pairs of the simulated sample."""
    folder = results / "sim" / "merge"
    folder.mkdir()
    first, second = write_pairs(tmp_path, simulated_pairs(1, 50))
    outputs = MergeOutputs(tmp_path / "m.fq", stats=folder / "stats.json")
    merge_files([first], [second], outputs)
    write_json(results / "sim/evaluate/merging.json", MERGING)
    return results


def test_section(manifest: Path, merged: Path) -> None:
    study = fill_from_layout(read_study(manifest), merged, merged / "benchmarks")
    page = Page(render_report(study))
    assert "merging" in page.ids
    assert "devices" in page.ids  # the statistics of merging say when and where it ran
    assert page.tags["svg"] == 13
    for words in ("1,234", "0.9724", "Fragment lengths of merged", "on the dotted".capitalize()):
        assert words in page.text, words


def test_no_section_without_merging(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "merging" not in page.ids
    assert "merging" not in page.text.lower()


def test_manifest_names_the_files(manifest: Path, merged: Path, tmp_path: Path) -> None:
    study = fill_from_layout(read_study(manifest), merged)
    study.write(tmp_path / "full.json")
    assert read_study(tmp_path / "full.json").samples[0].files.one("merging") is not None
    (merged / "sim/merge/stats.json").unlink()
    page = Page(render_report(read_study(tmp_path / "full.json")))
    assert "statistics of merging (stats.json is not there)" in page.text


def test_damaged_statistics(manifest: Path, merged: Path) -> None:
    write_json(merged / "sim/merge/stats.json", {"schema": "ngsgpu.correct"})
    with pytest.raises(InputError, match=r"stats\.json: it does not have the schema ngsgpu\.merge"):
        render_report(fill_from_layout(read_study(manifest), merged))


@pytest.mark.parametrize(
    "histogram",
    [
        [[100, 2], [99, 1]],
        [[-1, 2]],
        [[5]],
        [[5, -1]],
        [[5, float("nan")]],
        [[1e12, 1]],
        [["5", 1]],
    ],
)
def test_damaged_histograms(manifest: Path, merged: Path, histogram: list[list[float]]) -> None:
    path = merged / "sim/merge/stats.json"
    statistics = json.loads(path.read_text())
    statistics["histograms"]["insert_sizes"] = histogram
    write_json(path, statistics)
    with pytest.raises(InputError, match=r"histograms\.insert_sizes is not"):
        render_report(fill_from_layout(read_study(manifest), merged))
