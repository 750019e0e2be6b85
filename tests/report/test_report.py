"""The page: self-contained, the same every time, complete, and honest about what is missing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.report.model import Study
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import Page, statistics, write_json, write_text


def test_page_loads_nothing_and_its_references_resolve(study: Study) -> None:
    text = render_report(study)
    page = Page(text)
    assert page.references
    assert all(reference.startswith("#") for reference in page.references)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    repeated = [name for name, number in Counter(page.ids).items() if number > 1]
    assert repeated == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert page.tags["svg"] == 9


@pytest.mark.usefixtures("drawn_anew")
def test_same_bytes_every_time(study: Study) -> None:
    first = render_report(study)
    assert render_report(study) == first
    assert "<dc:date>" not in first and "metadata" not in first


def test_figures_and_words_of_the_results(study: Study) -> None:
    page = Page(render_report(study))
    for words in (
        "One set of real reads and one set of simulated reads, 4,000 reads",
        "1 of 2 errors were corrected",
        "A study <of> reads & errors",
        "Simulated $x$ <b>",
        "From a <machine>.",
        "NGA50 of the contigs: 16,522 before correction, 18,000 after",
        "that occur only once, nearly all of them errors, decreased from 36,000 to 120",
        "snakemake --cores 2",
        "4.0.0",
        "minhash.kmer",
        "coverage: 30; art.profile: HS20",
        "assemble_reads (raw)",
    ):
        assert words in page.text, words
    assert "<b>" not in page.tags


def test_better_values_are_marked(study: Study) -> None:
    text = render_report(study)
    better = re.findall(r'<td class="better">.*?</span> (.*?)</td>', text)
    assert "18,000" in better and "20,110" in better and "6.77" in better and "29" in better
    assert "40,639" not in better and "40,640" not in better


def test_absent_results_are_named(study: Study, results: Path) -> None:
    page = Page(render_report(study))
    assert "unknown for real reads" in page.text
    (results / "sim/evaluate/correction.json").unlink()
    (results / "sim/assembly/raw/contigs.fasta").unlink()
    (results / "sim/quast/report.tsv").unlink()
    page = Page(render_report(study))
    for words in (
        "comparison with the truth (correction.json is not there)",
        "contigs of the uncorrected reads (contigs.fasta is not there)",
        "QUAST's table",
    ):
        assert words in page.text


def test_study_without_any_results(manifest: Path) -> None:
    page = Page(render_report(read_study(manifest)))
    assert "no statistics of their correction were found" in page.text
    assert "No results were found for this sample." in page.text
    assert page.tags["svg"] == 0


def test_statistics_with_little_in_them(study: Study, results: Path) -> None:
    head = {"schema": "ngsgpu.correct", "schema_version": 1}
    write_json(results / "sim/correct/stats.json", head)
    write_json(
        results / "real/correct/stats.json",
        statistics(parameters={"coverage": 7}, corrected_bases_by_position=[[]], command=None),
    )
    assert "minhash" not in Page(render_report(study)).text


def test_parameters_that_differ_have_a_table(study: Study, results: Path) -> None:
    write_json(results / "real/correct/stats.json", statistics(parameters={"coverage": 7}))
    text = render_report(study)
    assert "where samples differ" in text


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("correct/stats.json", "{", "line 1: it is not valid JSON"),
        ("correct/stats.json", "{}", "not have the schema ngsgpu.correct"),
        ("correct/stats.json", json.dumps(statistics(reads={"total": "x"})), "not a number"),
        (
            "correct/stats.json",
            json.dumps(statistics(corrected_bases_by_position=[["a"]])),
            "not a list of numbers",
        ),
        ("correct/stats.json", json.dumps(statistics(corrected_bases_by_position=3)), "not a list"),
        ("evaluate/correction.json", "[]", "not have the schema"),
        (
            "evaluate/correction.json",
            json.dumps(
                {"schema": "ngsgpu.evaluate.correction", "schema_version": 1,
                 "by_position": [{"bases": [1, 2], "errors_before": [1], "errors_after": [1]}]}
            ),
            "differ in length",
        ),
        ("kmers/raw.tsv", "rubbish\n", "not a multiplicity"),
        ("assembly/raw/contigs.fasta", "rubbish\n", "not FASTA"),
        ("quast/report.tsv", "rubbish\n", "not a QUAST report.tsv"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(
    study: Study, results: Path, file: str, content: str, message: str
) -> None:
    path = write_text(results / "sim" / file, content)
    with pytest.raises(InputError, match=message) as caught:
        render_report(study)
    assert str(caught.value).startswith(str(path))


class TestCommand:
    def test_manifest_and_results(self, manifest: Path, results: Path, tmp_path: Path) -> None:
        page, full = tmp_path / "report.html", tmp_path / "full.json"
        command = ["report", str(manifest), "--results", str(results), "-o", str(page)]
        command += ["--benchmarks", str(results / "benchmarks"), "--write-study", str(full)]
        assert main(command) == 0
        again = tmp_path / "again.html"
        assert main(["report", "--study", str(full), "-o", str(again)]) == 0
        assert again.read_bytes() == page.read_bytes()

    def test_results_alone(self, results: Path, tmp_path: Path) -> None:
        page = tmp_path / "report.html"
        assert main(["report", "--results", str(results), "-o", str(page)]) == 0
        assert "Read correction study" in page.read_text()

    def test_damaged_file_leaves_no_page(
        self, manifest: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_text(results / "sim/correct/stats.json", "{")
        page = tmp_path / "report.html"
        command = ["report", str(manifest), "--results", str(results), "-o", str(page)]
        assert main(command) == 2
        message = capsys.readouterr().err
        assert message.startswith("ngsgpu: error: ") and message.count("\n") == 1
        assert not page.exists()

    @pytest.mark.parametrize(
        "options", [[], ["a.json", "--study", "b.json"], ["a.json", "--benchmarks", "b"]]
    )
    def test_wrong_use(self, options: list[str]) -> None:
        assert main(["report", *options]) == 2


def test_low_coverage_is_said_and_misleads_nobody(study: Study, results: Path) -> None:
    few = "On simulated reads it corrected 88 % of them at 15x and 99.6 % at 30x."
    assert few not in Page(render_report(study)).text
    low = statistics(coverage={"value": 2.0, "estimated": True})
    for sample in ("sim", "real"):
        write_json(results / sample / "correct/stats.json", low)
    text = Page(render_report(study)).text
    assert text.count(few) == 2 and "The coverage is low (2.0x, estimated)" in text
    assert "nearly all of them errors" not in text
    assert "as many error-free ones do at this low coverage" in text
    useless = statistics(coverage={"value": 2.0, "estimated": False, "suffices": False})
    write_json(results / "real/correct/stats.json", useless)
    text = Page(render_report(study)).text
    assert "The coverage of 2.0x (given) is too low for correction" in text
    assert text.count(few) == 1
    masked = statistics(parameters={"mask": True})
    write_json(results / "real/correct/stats.json", masked)
    assert "were masked (N), in" in Page(render_report(study)).text
