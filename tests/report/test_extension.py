"""The section on extension: there when pairs were extended, with tables and a plot."""

from __future__ import annotations

from pathlib import Path

from ngsgpu.evaluate.extension_result import ExtensionEvaluation
from ngsgpu.extend import ExtensionOutputs, ExtensionParameters, extend_files
from ngsgpu.report.render import render_report
from ngsgpu.report.study import fill_from_layout, read_study
from tests.extend.data import INSERT, simulated_pairs, write_pairs
from tests.report.conftest import write_json
from tests.report.test_report import Page


def test_section(manifest: Path, results: Path, tmp_path: Path) -> None:
    folder = results / "sim" / "extend"
    folder.mkdir()
    first, second = write_pairs(tmp_path, simulated_pairs())
    outputs = ExtensionOutputs(str(tmp_path / "e.fq"), stats=str(folder / "stats.json"))
    parameters = ExtensionParameters(insert_mean=float(INSERT), insert_sd=8.0)
    extend_files([first], [second], outputs=outputs, parameters=parameters)
    evaluation = ExtensionEvaluation(pairs=4321)
    evaluation.counts.reads = evaluation.counts.error_free = 3210
    write_json(results / "sim/evaluate/extension_ngsgpu.json", evaluation.document())
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "extension" in page.ids
    for words in ("4,321", "3,210", "Lengths of the extended reads", "by both sides alike"):
        assert words in page.text, words


def test_no_section_without_extension(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "extension" not in page.ids
