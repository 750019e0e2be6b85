"""The report's section on classification."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ngsgpu.errors import InputError
from ngsgpu.report.layout import study_from_layout
from ngsgpu.report.page import Table
from ngsgpu.report.render import render_report
from ngsgpu.report.sections.classification.files import (
    read_composition,
    read_coverage,
    read_evidence,
    read_shares,
)
from ngsgpu.report.sections.classification.plots import (
    RINGS,
    abundance_bars,
    arcs_of,
    genome_coverage,
    rings_of,
    sunburst,
)
from ngsgpu.report.sections.classification.section import (
    deviation_table,
    most_covered,
    rank_table,
    species_table,
    taxon_table,
)
from ngsgpu.report.study import read_study
from ngsgpu.report.words import NOTHING
from tests.support.report import Page, statistics, write_json, write_text
from tests.support.report_results import ABUNDANCE, CLASSIFICATION, COVERAGE, EVIDENCE, KRAKEN


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_text(folder / "gut/classify/gut.kraken2.report.txt", KRAKEN)
    write_text(folder / "gut/classify/abundance.tsv", ABUNDANCE)
    write_text(folder / "gut/classify/coverage.tsv", COVERAGE)
    write_text(folder / "gut/classify/evidence.tsv", EVIDENCE)
    write_json(folder / "gut/evaluate/classification.json", CLASSIFICATION)
    return folder


def test_composition(results: Path) -> None:
    found = read_composition(results / "gut/classify/gut.kraken2.report.txt")
    assert (found.unclassified, found.total, found.root.clade) == (20, 100, 80)
    assert [taxon.code for taxon in found.root.walk()] == [
        "R", "R1", "D", "P", "G", "S", "S1", "P",
    ]  # fmt: skip
    assert [taxon.name for taxon in found.root.children[0].children[0].children] == [
        "Pseudomonadota", "Bacillota",
    ]  # fmt: skip
    rows = taxon_table(found).rows
    assert rows[0] == ("Escherichia", "genus", "55", "55 %")
    assert rows[-1] == ("unclassified", "", "20", "20 %")


def test_report_with_minimisers_and_nothing_classified(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "r.txt",
        " 50.00\t5\t5\t0\t0\tU\t0\tunclassified\n 50.00\t5\t5\t9\t8\tR\t1\troot\n",
    )
    assert read_composition(path).total == 10
    path = write_text(tmp_path / "u.txt", "100.00\t5\t5\tU\t0\tunclassified\n")
    found = read_composition(path)
    assert (found.total, found.root.clade, arcs_of(found)) == (5, 0, [])


def test_arcs_lie_in_their_parents(results: Path) -> None:
    found = read_composition(results / "gut/classify/gut.kraken2.report.txt")
    arcs = {arc.taxon.name: arc for arc in arcs_of(found)}
    assert set(arcs) == {
        "Bacteria", "Pseudomonadota", "Escherichia", "Escherichia coli", "Bacillota",
    }  # fmt: skip
    for name, arc in arcs.items():
        assert arc.end - arc.begin == pytest.approx(arc.taxon.clade / 100), name
        assert RINGS[arc.ring] == arc.taxon.code
        for below in arc.taxon.walk():
            if below is not arc.taxon and below.name in arcs:
                inner = arcs[below.name]
                assert arc.begin - 1e-9 <= inner.begin < inner.end <= arc.end + 1e-9
    # No class and no family has reads.
    assert [RINGS[ring] for ring in rings_of(arcs_of(found))] == ["D", "P", "G", "S"]
    assert arcs["Bacillota"].begin == pytest.approx(arcs["Pseudomonadota"].end)


def test_plots_are_svg_and_repeatable(results: Path) -> None:
    composition = read_composition(results / "gut/classify/gut.kraken2.report.txt")
    shares = read_shares(results / "gut/classify/abundance.tsv")
    assert [share.name for share in shares] == ["Escherichia coli", "Bacillota"]
    # The first of several ranks.
    lines = [f"{line}\t\t\tspecies" for line in ABUNDANCE.splitlines()]
    lines += ["561\tgenus\tEscherichia\t58\t58.0000\t72.5000\t\t\tgenus"]
    assert read_shares(write_text(results / "both.tsv", "\n".join(lines) + "\n")) == shares
    coverage = read_coverage(results / "gut/classify/coverage.tsv")
    assert [target.target for target in most_covered(coverage)] == ["a.1", "b.1"]
    for make in (
        lambda: sunburst("s", composition),
        lambda: abundance_bars("a", [("gut", shares, 100), ("skin", shares[:1], 90)]),
        lambda: genome_coverage("c", coverage),
    ):
        svg = make()
        assert svg == make()
        ElementTree.fromstring(svg)
    assert "Escherichia coli" in sunburst("s", composition)


def test_tables() -> None:
    assert rank_table(CLASSIFICATION, "species").rows == [
        ("ngsgpu", "0.900", "0.800", "0.847"),
        ("Kraken 2", "0.800", "0.900", "0.847"),
    ]
    assert rank_table(CLASSIFICATION, "genus").rows == [("ngsgpu", "0.990", NOTHING, NOTHING)]
    deviation = deviation_table(CLASSIFICATION)
    assert deviation is not None
    assert deviation.headings == ("taxon", "expected", "ngsgpu")
    assert deviation.rows == [
        ("E. coli", "60.00 %", "58.00 %"),
        ("Other", "0.00 %", "2.00 %"),
        ("sum of false positives", "", "2.00 %"),
        ("sum of all deviations", "", "10.00 %"),
    ]
    assert deviation_table({"runs": CLASSIFICATION["runs"][1:]}) is None


def test_species(results: Path) -> None:
    """Those of a long table are folded away."""
    evidence = read_evidence(results / "gut/classify/evidence.tsv")
    assert species_table(evidence).rows == [
        ("Escherichia coli", "species", "1,050", "99.8 %", "99.1 to 100.0", "0.98", "< 1e-99"),
        ("Shigella flexneri", "genus, ambiguous", "12", "93.7 %", "90.8 to 95.7", "0.05", "0.013"),
    ]  # fmt: skip
    assert len(species_table(evidence * 50).rows) == 60
    title = "Species that reads look like"
    for more in (0, 30):
        write_text(
            results / "gut/classify/evidence.tsv", EVIDENCE + more * EVIDENCE.splitlines(True)[-1]
        )
        page = render_report(study_from_layout(results))
        assert page.count(f"<summary>{title}") == (more > 0)


def test_page(results: Path, tmp_path: Path) -> None:
    study = study_from_layout(results)
    assert set(study.samples[0].files.by_database("classification")[""]) == {
        "report", "abundance", "coverage", "evidence", "evaluation",
    }  # fmt: skip
    page = render_report(study)
    assert page == render_report(study)
    assert page.count('<section id="classification">') == 1
    # Nothing is said about what the study is not about.
    for part in ("correction", "assembly", "reference", "cost"):
        assert f'id="{part}"' not in page
    assert "<h1>Read classification study</h1>" in page
    assert "statistics of the correction" not in page and "bases replaced" not in page
    assert "No results" not in page
    assert "One set of real reads; 80 of 100 reads were classified." in page
    assert "80 of 100 reads (80 %) were classified" in page
    assert "most of them as Escherichia coli (50 %)" in page
    assert page.count("<svg") == 4
    # Once for those who see it, and once as the name of what scrolls.
    assert Page(page).text.count("Species that reads look like") == 1
    for text in ("99.1 to 100.0", "genus, ambiguous"):
        assert page.count(text) == 1
    for text in ("Calls at species against the truth", "Escherichia coli", "Kraken 2", "0.847"):
        assert text in page
    study.write(tmp_path / "study.json")
    assert read_study(tmp_path / "study.json").samples[0].files == study.samples[0].files


def test_page_without_classification(tmp_path: Path) -> None:
    write_json(tmp_path / "a/correct/stats.json", statistics())
    page = render_report(study_from_layout(tmp_path))
    assert 'id="classification"' not in page


def test_columns_without_values_are_left_out() -> None:
    table = Table(
        ("sample", "a", "b", "c"), [("x", "", "1", NOTHING), ("y", NOTHING, NOTHING, NOTHING)],
        frozenset({(0, 2), (1, 3)}), frozenset({1, 2}),
    )  # fmt: skip
    assert table.without_empty_columns() == Table(
        ("sample", "b"), [("x", "1"), ("y", NOTHING)], frozenset({(0, 1)}), frozenset({1})
    )


def test_files_that_are_not_there_are_said(results: Path, tmp_path: Path) -> None:
    (results / "gut/classify/coverage.tsv").unlink()
    study = study_from_layout(results)
    study.write(tmp_path / "study.json")
    document = json.loads((tmp_path / "study.json").read_text())
    files = document["samples"][0]["files"]["classification"][""]
    files["coverage"] = "results/gut/classify/coverage.tsv"
    write_json(tmp_path / "study.json", document)
    page = render_report(read_study(tmp_path / "study.json"))
    assert "coverage of the classification (coverage.tsv is not there)" in page


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "gut.kraken2.report.txt",
            KRAKEN + "x\n",
            "line 10: this is not a line of a Kraken report",
        ),
        ("gut.kraken2.report.txt", " 1.0\t1\t1\tR\t1\t    deep\n", "line 1: the name is indented"),
        ("abundance.tsv", "x\n", "line 1: column taxid is missing"),
        ("abundance.tsv", ABUNDANCE + "562\tspecies\n", "line 5: this is not a taxon"),
        ("evidence.tsv", EVIDENCE + "562\tE. coli\n", "line 4: this is not a species that reads"),
        (
            "coverage.tsv",
            COVERAGE + "a\tb\n",
            "line 5: this is not the coverage of a reference sequence",
        ),
        (
            "coverage.tsv",
            COVERAGE + f"a.3\t562\tE. coli\t10\t1\t1\t1.0\t224\t{'9' * 30}\n",
            "line 5: this is not the coverage of a reference sequence",
        ),
    ],
)
def test_damaged_files_are_refused(results: Path, name: str, text: str, message: str) -> None:
    write_text(results / "gut/classify" / name, text)
    with pytest.raises(InputError, match=message):
        render_report(study_from_layout(results))


def test_unclassified_reads_are_part_of_the_circle(results: Path) -> None:
    few = " 99.90\t999\t999\tU\t0\tunclassified\n 0.10\t1\t0\tR\t1\troot\n 0.10\t1\t1\tD\t2\t  B\n"
    path = write_text(results / "gut/classify/gut.kraken2.report.txt", few)
    assert arcs_of(read_composition(path)) == []
    page = render_report(study_from_layout(results))
    assert "1 of 1,000 reads (0.1 %) were classified" in page and "Grey: not" not in page


def test_pairs_are_called_pairs(results: Path) -> None:
    stats = {"schema": "ngsgpu.classify", "schema_version": 1, "queries": {"paired": True}}
    write_json(results / "gut/classify/stats.json", stats)
    page = render_report(study_from_layout(results))
    assert "80 of 100 pairs (80 %) were classified" in page
    # The tables of samples count reads, those of the classification pairs.
    assert page.count(">reads</th>") == 2 and page.count(">pairs</th>") == 2
    assert "fraction of all pairs (%)" in page
