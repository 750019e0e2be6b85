"""Many samples: a table that sorts, folds, and figures of all samples in place of one for each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.report import words
from ngsgpu.report.layout import study_from_layout
from ngsgpu.report.model import Study
from ngsgpu.report.render import render_report, report_context
from ngsgpu.report.spread import MANY_SAMPLES
from tests.support.report import Page, statistics, write_json, write_many

NUMBER = MANY_SAMPLES + 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Study:
    results = write_many(tmp_path_factory.mktemp("many"), NUMBER)
    return study_from_layout(results, results / "benchmarks")


@pytest.fixture(scope="module")
def page(many: Study) -> Page:
    text = render_report(many)
    assert "@import" not in text and "http" not in re.sub(r"xmlns\S*=\S+", "", text)
    return Page(text)


def test_samples_are_folded_and_found_by_links(page: Page) -> None:
    names = {f"sample-{n + 1}" for n in range(NUMBER)}
    assert names <= set(page.ids)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    # The samples' main results, and the five sections with results of theirs.
    assert page.tags["details"] >= 6 * NUMBER
    assert page.tags["article"] == 0 and page.tags["script"] == 1


def test_figures_are_of_all_samples(page: Page) -> None:
    # Each sample keeps its sunburst.
    assert page.tags["svg"] < NUMBER + 12
    for text in (
        "k-mer spectra, a line a sample",
        "a bar a sample",
        "the lowest and the highest",
        "Fragment lengths of pairs whose mates overlap; longer ones are unknown. A line",
    ):
        assert text in page.text


def test_rows_sort_by_values(many: Study) -> None:
    text = render_report(many)
    assert text.count('<table class="sortable">') == 1
    # Sorting is an extra: without JavaScript there is nothing to click.
    assert "<button" not in text
    assert 'data-value="2000000"' in text and 'data-value="0.12"' in text


@pytest.mark.parametrize(
    ("cell", "value"),
    [(words.count(1234), 1234), (words.percent(0.125, 1), 0.125), (words.duration(3661), 3661),
     (words.change(words.rate(0.003), words.rate(0.001)), 0.003), (words.mebibytes(1536.5), 1536.5),
     (words.with_share(words.count(7), words.share(7, 9)), 7), (words.count(None), None),
     (words.change(words.count(None), words.count(None)), None), (words.NOTHING, None), ("", None),
     ("12", None)],
)  # fmt: skip
def test_value_of_a_cell(cell: str, value: float | None) -> None:
    assert words.sort_value(cell) == value


def test_times_of_all_jobs(many: Study, page: Page) -> None:
    assert "39 jobs took" in page.text
    rows = {row[0]: row for row in report_context(many)["rule_costs"].rows}
    assert rows["correct_reads"][1:] == ("13", "9 min 58 s", "46.0 s", "52.0 s", "s13", "456 MiB")


def test_jobs_of_databases_count(many: Study, tmp_path: Path) -> None:
    document = {"time_s": {"total": 90.0}, "memory": {"peak_rss_bytes": 2**30}}
    path = write_json(tmp_path / "0.json", document)
    jobs = {"build_partition": {"bacteria 0": path, "bacteria 1": tmp_path / "never.json"}}
    context = report_context(replace(many, jobs=jobs))
    assert context["times"].startswith("40 jobs") and "for bacteria 0" in context["times"]
    assert context["rule_costs"].rows[-1][:2] == ("build_partition", "1")


def test_verdict_names_what_is_off(many: Study) -> None:
    table = report_context(many)["verdict"]
    advice = {row[0]: row[-1] for row in table.rows}
    assert list(advice) == [
        "Read quality", "Correction", "Merging", "Extension", "Classification with bacteria",
    ]  # fmt: skip
    assert "1 of 13 samples (s06) above 1\N{NO-BREAK SPACE}% of reads" in advice["Read quality"]
    assert "2 of 13 samples (s04 and s11) below 15x" in advice["Correction"]
    assert "1 of 13 samples (s08) below 50" in advice["Merging"]
    assert advice["Extension"] == "OK"
    assert "(s10) below 50" in advice["Classification with bacteria"]


def test_page_of_one_of_them(many: Study, tmp_path: Path) -> None:
    full, target = tmp_path / "full.json", tmp_path / "one.html"
    many.write(full)
    assert main(["report", str(full), "--sample", "s04", "-o", str(target)]) == 0
    page = Page(target.read_text())
    assert page.tags["script"] == 0 and page.tags["svg"] > 8
    assert "Below 15x of coverage" in page.text and "s05" not in page.text
    assert main(["report", str(full), "--sample", "s99", "-o", str(target)]) == 2


def test_verdict_of_simulated_reads_and_assemblies(
    study: Study,
    results: Path,
) -> None:
    rows = {row[0]: row for row in report_context(study)["verdict"].rows}
    assert "error rate" in rows["Correction"][2] and rows["Correction"][3] == "OK"
    assert "more in 2 of 2" in rows["Assembly"][2]
    write_json(results / "sim/correct/stats.json", statistics(coverage={"value": 2.0}))
    rows = {row[0]: row for row in report_context(study)["verdict"].rows}
    assert rows["Correction"][3].startswith("1 of 2 samples (Simulated $x$ <b>) below 15x")
