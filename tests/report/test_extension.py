"""The section on extension: there when pairs were extended, with tables and a plot."""

from __future__ import annotations

from pathlib import Path

from ngsgpu.evaluate.extension.result import ExtensionEvaluation
from ngsgpu.extend import ExtensionOutputs, ExtensionParameters, extend_files
from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.quast import read_quast
from ngsgpu.report.render import render_report
from ngsgpu.report.sections.extension import assembly_table
from ngsgpu.report.study import read_study
from tests.support.extend.data import INSERT, simulated_pairs, write_pairs
from tests.support.report import Page, write_json, write_text
from tests.support.report_results import EXTENDED_QUAST


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
    for words in (
        "4,321",
        "3,210",
        "Lengths of the extended reads",
        "by both directions, identically",
    ):
        assert words in page.text, words


def test_konnector_and_assemblies_beside(manifest: Path, results: Path) -> None:
    for program, connected in (("ngsgpu", 400), ("konnector", 300)):
        evaluation = ExtensionEvaluation(pairs=500)
        evaluation.counts.reads = connected
        write_json(results / f"sim/evaluate/extension_{program}.json", evaluation.document())
    write_text(results / "sim/quast_extended/report.tsv", EXTENDED_QUAST)
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "extension" in page.ids
    for words in (
        "400 (80 %)",
        "300 (60 %)",
        "ngsgpu, as single reads",
        "ngsgpu, as merged pairs",
        "Konnector, as single reads",
        "60,001",
    ):
        assert words in page.text, words


def test_best_assemblies_are_marked(tmp_path: Path) -> None:
    quast = read_quast(write_text(tmp_path / "report.tsv", EXTENDED_QUAST))
    table = assembly_table(quast)
    assert table.headings[1:3] == ("uncorrected", "corrected")
    lines = {row[0]: number for number, row in enumerate(table.rows)}
    marked = {
        name: {column for line, column in table.marks if line == number}
        for name, number in lines.items()
    }
    # Values that differ by less than 0.05 % are equally good; what is missing is no value.
    assert marked == {"# contigs": {3}, "NGA50": {3, 5}, "# misassemblies": {1, 2, 4}}
    assert "# unaligned contigs" in {row[0] for row in assembly_table(quast, everything=True).rows}


def test_manifest_names_files_of_one_program_or_several(tmp_path: Path) -> None:
    for given, found in (
        ("a.json", {"ngsgpu": tmp_path / "a.json"}),
        ({"konnector": "b.json"}, {"konnector": tmp_path / "b.json"}),
    ):
        files = {"extension": given, "quast_extended": "q.tsv"}
        path = write_json(
            tmp_path / "study.json",
            {
                "schema": "ngsgpu.study",
                "schema_version": 1,
                "samples": [{"name": "s", "files": files}],
            },
        )
        study = read_study(path)
        assert study.samples[0].files.group("extension") == found
        assert study.samples[0].files.one("quast_extended") == tmp_path / "q.tsv"
        study.write(tmp_path / "again.json")
        assert read_study(tmp_path / "again.json") == study


def test_no_section_without_extension(manifest: Path, results: Path) -> None:
    page = Page(render_report(fill_from_layout(read_study(manifest), results)))
    assert "extension" not in page.ids
