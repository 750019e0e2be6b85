"""What a report gives besides its page: CSV tables, methods, versions; fastp's figures."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.exports.tables import csv_tables, raw
from ngsgpu.report.page import SampleSection, Table
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from ngsgpu.report.words import NOTHING
from tests.support.report import Page, fastp, statistics, write_json, write_note, write_text
from tests.support.report_results import by_ngsgpu


def written_study(folder: Path, **changes: Any) -> Path:
    """Two samples: the first was checked and corrected, of the second correction failed."""
    write_json(folder / "a/qc/raw.json", fastp(adapters=9))
    write_json(folder / "a/qc/corrected.json", fastp())
    write_json(folder / "a/correct.json", statistics())
    write_note(folder / "b/correct.json", "logs/x", "no <memory>")
    for job in ("check_reads/a", "correct_reads/a", "assemble_reads/a"):
        write_text(folder / f"benchmarks/{job}.tsv", "s\n1\n")
    benchmarks = {
        "check_reads (raw)": ["benchmarks/check_reads/a.tsv"],
        "correct_reads": ["benchmarks/correct_reads/a.tsv"],
        "assemble_reads (raw)": ["benchmarks/assemble_reads/a.tsv"],
        "merge_pairs": ["benchmarks/merge_pairs/never.tsv"],
    }
    quality = {"raw": "a/qc/raw.json", "corrected": "a/qc/corrected.json"}
    document = {
        "schema": "ngsgpu.study",
        "schema_version": 2,
        "config": {
            "assemble": {"kmers": "21,33", "extra": "--isolate"},
            "correct": {"extra": "--hashes 32"},
        },
        "versions": {"fastp": "0.23.2", "ngsgpu": "9.9.9", "spades": "4.0.0", "multiqc": "1.35"},
        "samples": [
            {
                "name": "a",
                "files": {"qc": quality, "correct": "a/correct.json", "benchmarks": benchmarks},
            },
            {"name": "b", "files": {"correct": "b/correct.json"}},
        ],
    }
    return write_json(folder / "study.json", document | changes)


HOSTILE = [
    '=HYPERLINK("http://evil.example","x")', "@SUM(1+1)*cmd|", "+cmd|' /C calc'!A0", "-1+1",
    "<script>alert(1)</script>", "`<img src=x onerror=alert(1)>`", "[x](javascript:alert(1))",
    "a: b # c", "\x1b]0;x", "\u2028\x85\U0001f9ec", "no", "&lt;b&gt;", '"\\',
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_neither_formulas_nor_markup(tmp_path: Path, name: str) -> None:
    """A spreadsheet would compute such cells; Markdown passes HTML on."""
    samples = [{"name": "a", "label": name, "files": {"correct": "a/correct.json"}}]
    extras = {"assemble": {"kmers": name, "extra": name}, "correct": {"extra": name}}
    tables, methods, versions = exported(
        tmp_path, versions={"ngsgpu": "9.9.9", "spades": name, name: name}, config=extras,
        samples=samples,
    )  # fmt: skip
    cells = [
        cell
        for table in tables.iterdir()
        for row in csv.reader(io.StringIO(table.read_text()))
        for cell in row
    ]
    assert any(name.strip()[:20] in cell for cell in cells)
    assert not [
        cell for cell in cells if cell.startswith(tuple("=+-@\t\r")) and not is_number(cell)
    ]
    assert "<script" not in methods and "<img" not in methods and "](j" not in methods
    assert versions["Workflow"][name] == name
    assert versions["assemble_extended"] == {"spades": name}


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def exported(folder: Path, **changes: Any) -> tuple[Path, str, dict[str, dict[str, str]]]:
    """The folder of tables, the paragraph, and the versions of a study."""
    names = {name: str(folder / name) for name in ("tables", "methods.md", "software.yml")}
    arguments = ["report", str(written_study(folder, **changes)), "-o", str(folder / "r.html")]
    for option, path in zip(("--tables", "--methods", "--software"), names.values(), strict=True):
        arguments += [option, path]
    assert main(arguments) == 0
    versions = yaml.safe_load((folder / "software.yml").read_text())
    return folder / "tables", (folder / "methods.md").read_text(), versions


def test_versions_are_of_what_ran(tmp_path: Path) -> None:
    _, _, versions = exported(tmp_path)
    # That of ngsgpu is the one which its run noted, not the one installed when the report is made.
    assert versions == {
        "assemble_reads": {"spades": "4.0.0"},
        "check_reads": {"fastp": "0.23.2"},
        "correct_reads": {"ngsgpu": "0.1.0"},
        "run_multiqc": {"multiqc": "1.35"},
    }


def test_methods_say_what_ran_and_how(tmp_path: Path) -> None:
    _, text, _ = exported(tmp_path)
    paragraph, references = text.strip().split("\n\n")
    assert paragraph.startswith("Two samples went through ngsgpu 0.1.0.")
    assert "assessed with fastp 0.23.2 [1]." in paragraph
    assert (
        "several reads agree (k = 20, 48 hash functions; further options: `--hashes 32`)"
        in paragraph
    )
    assert "SPAdes 4.0.0 [3]" in paragraph
    assert "(`--only-assembler -k 21,33`; further options: `--isolate`)" in paragraph
    assert paragraph.endswith("summarized with MultiQC 1.35 [4].")
    for other in ("merge", "extend", "classify", "ART", "QUAST", "Krona"):
        assert other not in paragraph
    lines = references.splitlines()
    assert [line[:2] for line in lines] == ["1.", "2.", "3.", "4."]
    assert "fastp: an ultra-fast" in lines[0] and "MultiQC" in lines[3]
    page = Page((tmp_path / "r.html").read_text())
    assert paragraph.replace("`", "")[:300] in page.text


def test_ours_is_named_where_it_ran(tmp_path: Path) -> None:
    """fastp is cited all the same, without a version."""
    study = written_study(tmp_path, versions={"ngsgpu": "9.9.9"})
    for variant in ("raw", "corrected"):
        write_json(tmp_path / f"a/qc/{variant}.json", by_ngsgpu(fastp()))
    methods, software = tmp_path / "m.md", tmp_path / "s.yml"
    arguments = [study, "-o", tmp_path / "r.html", "--methods", methods, "--software", software]
    assert main(["report", *map(str, arguments)]) == 0
    text = methods.read_text()
    assert "assessed with `ngsgpu trim`, which does what fastp does [1]." in text
    assert "1. Chen S. et al. fastp" in text
    assert yaml.safe_load(software.read_text())["check_reads"] == {"ngsgpu": "0.1.0"}


def test_a_chain_ran_what_it_made(tmp_path: Path) -> None:
    """Its job is listed, and stands for those of its stages."""
    study = written_study(tmp_path)
    document = json.loads(study.read_text())
    files = document["samples"][0]["files"]
    write_json(tmp_path / "a/trim.json", by_ngsgpu(fastp()))
    write_text(tmp_path / "benchmarks/chain_reads/a.tsv", "s\n1\n")
    files["trim"] = "a/trim.json"
    files["benchmarks"] = {"chain_reads": ["benchmarks/chain_reads/a.tsv"]}
    write_json(study, document)
    methods, software = tmp_path / "m.md", tmp_path / "s.yml"
    arguments = [study, "-o", tmp_path / "r.html", "--methods", methods, "--software", software]
    assert main(["report", *map(str, arguments)]) == 0
    assert "Adapters were trimmed with `ngsgpu trim`" in methods.read_text()
    ran = {
        rule for rule, tools in yaml.safe_load(software.read_text()).items() if "ngsgpu" in tools
    }
    assert ran == {"chain_reads", "trim_reads", "correct_reads"}


def test_tables_are_those_of_the_page(tmp_path: Path) -> None:
    folder, _, _ = exported(tmp_path)
    with (folder / "quality-reads.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["sample", "value", "uncorrected", "corrected"]
    assert ["a", "reads", "200", "200"] in rows
    assert ["a", "reads with adapter (%)", "4.5", "1"] in rows
    with (folder / "sample.csv").open(newline="") as file:
        samples = list(csv.DictReader(file))
    assert [(own["sample"], own["bases"]) for own in samples] == [("a", "200000"), ("b", "")]


def test_cells_are_for_programs() -> None:
    shares = words.change(words.percent(0.01, 0), words.percent(0.02, 0))
    rows = [("x", words.percent(0.015, 1), shares), ("y", NOTHING, "")]
    table = Table(("taxon", "share", "change"), rows)
    other = Table(("taxon", "reads"), [("z", words.count(1234567)), ("z, too", "12,34")])
    sections = [
        SampleSection("s", "S one", "real", tables=[("Taxa", table)]),
        SampleSection("t", "T", "real", details=[("Taxa", other)]),
    ]
    part = {"name": "calls", "table": None, "sections": sections}
    assert csv_tables({"parts": [part], "cost_table": other, "lead": "text"}) == {
        "cost.csv": 'taxon,reads\nz,1234567\n"z, too","12,34"\n',
        "calls-taxa.csv": "sample,taxon,share (%),change before (%),change after (%),reads\n"
        "S one,x,1.5,1,2,\nS one,y,,,,\n"
        'T,z,,,,1234567\nT,"z, too",,,,"12,34"\n',
    }


def test_quality_is_shown_before_and_after(tmp_path: Path) -> None:
    text = render_report(read_study(written_study(tmp_path)))
    page = Page(text)
    assert "quality" in page.ids
    assert "bases of Q30 or more 94.00 % 94.00 %" in page.text
    assert "4.5 % of the reads contain adapter sequence" in page.text
    assert "Mean base quality by position" in page.text


def test_few_adapters_are_not_worth_a_word(tmp_path: Path) -> None:
    study = written_study(tmp_path)
    write_json(tmp_path / "a/qc/raw.json", fastp(adapters=1))
    assert "contain adapter sequence" not in render_report(read_study(study))


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({"summary": {}})])
def test_damaged_figures_are_named(tmp_path: Path, text: str) -> None:
    study = written_study(tmp_path)
    write_text(tmp_path / "a/qc/raw.json", text)
    with pytest.raises(InputError, match=r"a/qc/raw\.json"):
        render_report(read_study(study))


def test_tables_over_inputs_are_refused(tmp_path: Path) -> None:
    study = written_study(tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "overview.csv").symlink_to(study)
    before = study.read_bytes()
    arguments = ["report", str(study), "-o", str(tmp_path / "r.html")]
    assert main([*arguments, "--tables", str(tmp_path / "tables")]) == 2
    assert study.read_bytes() == before
    assert not (tmp_path / "r.html").exists()


def test_cells_hold_one_is_number_each() -> None:
    def pair(before: float | None, after: float | None, note: str = "") -> str:
        return words.change(words.count(before), words.count(after), note)

    overview = Table(
        ("sample", "error rate", "N50", "correction time", "memory", "coverage", "length", "words"),
        [
            ("a", words.change(words.rate(0.0096123), words.rate(0.00000367)), pair(1500, 2500),
             words.duration(3661), words.mebibytes(261.25),
             words.with_note(words.decimal(29.94, 1), "estimated"),
             words.span(words.count(35), words.count(1510)), "1 → 2 or so"),
            ("b", words.change(words.rate(None), words.rate(None)), pair(1200, None),
             words.duration(200.04), words.bytes_as_mebibytes(1536 << 20), words.decimal(30.0, 1),
             words.span(words.count(100), words.count(100)), "3,661 s"),
        ],
    )  # fmt: skip
    assert overview.rows[0][1:7] == (
        "0.961 % → 0.000367 %", "1,500 → 2,500", "1 h 01 min", "261 MiB", "29.9 (estimated)",
        "35 to 1,510",
    )  # fmt: skip
    assert overview.rows[1][1:7] == (
        NOTHING, f"1,200 → {NOTHING}", "3 min 20 s", "1.50 GiB", "30.0", "100",
    )  # fmt: skip
    truth = Table(
        ("", "ngsgpu"),
        [
            ("pairs", words.count(15_000)),
            ("connected", words.with_share(words.count(14_990), words.share(14_990, 15_000))),
            ("missed", words.with_share(words.count(0), words.share(0, 0))),
            ("error rate", words.rate(0.00000201)),
        ],
    )
    stages = Table(
        ("stage", "a", "b"),
        [
            ("read", words.duration(0.04), words.duration(7505.5)),
            ("peak memory", words.mebibytes(261), words.mebibytes(None)),
            ("k", words.count(21), words.count(31)),
        ],
    )
    section = SampleSection("s", "10 %", "real", tables=[("Truth", truth)])
    parts = [{"name": "e", "table": None, "sections": [section]}]
    assert csv_tables({"overview": overview, "stages": stages, "parts": parts}) == {
        "overview.csv": "sample,error rate before (%),error rate after (%),N50 before,N50 after,"
        'correction time (s),memory (MiB),coverage,"coverage, note",length from,length to,words\n'
        "a,0.96123,0.000367,1500,2500,3661,261.25,29.94,estimated,35,1510,1 → 2 or so\n"
        'b,,,1200,,200.04,1536,30,,100,100,"3,661 s"\n',
        "stages.csv": "stage,a,b\nread (s),0.04,7505.5\npeak memory (MiB),261,\nk,21,31\n",
        "e-truth.csv": 'sample,value,ngsgpu,"ngsgpu, share (%)"\n10 %,pairs,15000,\n'
        "10 %,connected,14990,99.93333333333333\n10 %,missed,0,\n10 %,error rate,,0.000201\n",
    }


@pytest.mark.parametrize(
    ("number", "text"),
    [(words.rate(1e-99), "1e-97"), (words.rate(0.1), "10"), (words.count(10**17), "1e+17"),
     (words.rate(0.0), "0"), (words.duration(0.1 + 0.2), "0.30000000000000004")],
)  # fmt: skip
def test_raw_value(number: words.Number, text: str) -> None:
    assert raw(number) == text
    assert raw(words.count(None)) == "" and raw("words") == "words"
