"""The study manifest and the workflow's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.errors import InputError, OutputError
from ngsgpu.report.layout import fill_from_layout, study_from_layout
from ngsgpu.report.render import render_report
from ngsgpu.report.study import read_study
from tests.support.report import write_json, write_note, write_text


def test_files_come_from_the_layout(manifest: Path, results: Path) -> None:
    study = fill_from_layout(read_study(manifest), results, results / "benchmarks")
    sim, real = study.samples
    assert sim.files.one("correct") == results / "sim/correct/stats.json"
    assert sim.files.one("evaluation") == results / "sim/evaluate/correction.json"
    assert real.files.one("evaluation") is None
    assert set(sim.files.group("kmers")) == set(sim.files.group("contigs")) == {"raw", "corrected"}
    assert sim.files.group("quast") == {"all": results / "sim/quast/report.tsv"}
    assert set(sim.files.benchmarks) == {
        "assemble_reads (raw)", "assemble_reads (corrected)", "correct_reads",
    }  # fmt: skip


def test_written_and_read_again(manifest: Path, results: Path, tmp_path: Path) -> None:
    study = fill_from_layout(read_study(manifest), results, results / "benchmarks")
    target = tmp_path / "elsewhere" / "full.json"
    target.parent.mkdir()
    study.write(target)
    again = read_study(target)
    assert json.loads(target.read_text())["samples"][0]["files"]["correct"].startswith("../results")
    assert again.title == study.title and again.versions == study.versions
    for a, b in zip(again.samples, study.samples, strict=True):
        assert a.files.one("correct") is not None and b.files.one("correct") is not None
        assert a.files.one("correct").resolve() == b.files.one("correct").resolve()
        assert set(a.files.benchmarks) == set(b.files.benchmarks)
        assert a.parameters == b.parameters


def test_what_the_manifest_names_stays(manifest: Path, results: Path) -> None:
    document = json.loads(manifest.read_text())
    document["samples"][0]["files"] = {"correct": "mine.json", "quast": "q.tsv"}
    study = read_study(write_json(manifest, document))
    filled = fill_from_layout(study, results).samples[0].files
    assert filled.one("correct") == manifest.parent / "mine.json"
    assert filled.group("quast") == {"all": manifest.parent / "q.tsv"}
    assert filled.one("evaluation") is not None and not filled.benchmarks


def test_samples_from_the_layout_alone(results: Path) -> None:
    study = study_from_layout(results, results / "benchmarks", title="T")
    assert [(s.name, s.kind) for s in study.samples] == [("real", "real"), ("sim", "simulated")]
    with pytest.raises(InputError, match="contains no"):
        study_from_layout(results / "sim")


def test_benchmarks_belong_to_the_longest_name(results: Path, manifest: Path) -> None:
    document = json.loads(manifest.read_text())
    names = ("ecoli", "ecoli.2", "ecoli_x")
    document["samples"] = [{"name": name} for name in names]
    folder = results / "benchmarks/rule"
    for word in ("ecoli", "ecoli.2", "ecoli_x.raw", "ecoli_1", "ecoli/0", "ecoli/1", "other"):
        write_text(folder / f"{word}.tsv", "")
    study = fill_from_layout(
        read_study(write_json(manifest, document)), results, results / "benchmarks"
    )
    found = {s.name: {r: len(p) for r, p in s.files.benchmarks.items()} for s in study.samples}
    assert found == {"ecoli": {"rule": 4}, "ecoli.2": {"rule": 1}, "ecoli_x": {"rule (raw)": 1}}


def test_other_names_of_files(tmp_path: Path, manifest: Path) -> None:
    folder = tmp_path / "other"
    write_text(folder / "sim/assembly/raw/contigs.fa", ">a\nA\n")
    for variant in ("raw", "corrected"):
        write_text(folder / f"sim/quast/{variant}/report.tsv", "")
    files = fill_from_layout(read_study(manifest), folder).samples[0].files
    assert set(files.group("contigs")) == {"raw"}
    assert set(files.group("quast")) == {"raw", "corrected"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": []}, "samples must be a list of at least one sample"),
        ({"samples": [{"label": "x"}]}, r"samples\[0\].name must be text"),
        ({"samples": [{"name": "x", "kind": "odd"}]}, "must be 'real' or 'simulated'"),
        ({"samples": [{"name": "x"}, {"name": "x"}]}, "the same name"),
        ({"samples": [{"name": "x", "file": {}}]}, "unknown entries: file"),
        ({"samples": [{"name": "x", "files": {"kmers": {"mid": "a"}}}]}, "unknown entries: mid"),
        ({"samples": [{"name": "x", "files": {"correct": 3}}]}, "files.correct must be text"),
        ({"samples": ["x"]}, r"samples\[0\] must be an object"),
        ({"colour": "red"}, "unknown entries: colour"),
        ({"title": 3}, "title must be text"),
        ({"config": []}, "config must be an object"),
        ({"schema": "other"}, "not have the schema ngsgpu.study"),
        ({"schema_version": 3}, "schema_version 3 is not supported"),
    ],
)
def test_wrong_manifests_are_refused(manifest: Path, change: dict[str, Any], message: str) -> None:
    write_json(manifest, json.loads(manifest.read_text()) | change)
    with pytest.raises(InputError, match=message) as caught:
        read_study(manifest)
    assert str(caught.value).startswith(str(manifest))


def test_unreadable_manifests(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_study(tmp_path / "missing.json")
    with pytest.raises(InputError, match=r"line 2: it is not valid JSON"):
        read_study(write_text(tmp_path / "a.json", "{\n}}"))
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_study(tmp_path / "b.json")


def test_manifest_that_cannot_be_written(manifest: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        read_study(manifest).write(tmp_path / "no" / "study.json")


def test_notes_beside_results_are_told(results: Path) -> None:
    note = ("logs/correct_reads/sim.log", "ngsgpu: error: <bad>")
    write_note(results / "sim/correct/stats.json", *note)
    write_note(results / "sim/kmers/corrected.tsv", *note)
    write_note(results / "real/quast/report.tsv", "logs/q.log", "no contig", "skipped")
    page = render_report(study_from_layout(results))
    assert page.count("ngsgpu: error: &lt;bad&gt; (logs/correct_reads/sim.log)") == 2
    assert "statistics of the correction (failed: logs/correct_reads/sim.log)" in page
    assert "Skipped: no contig (logs/q.log)." in page


def test_reads_without_kmers_and_contigs(results: Path) -> None:
    for variant in ("raw", "corrected"):
        write_text(results / f"real/kmers/{variant}.tsv", "# k=21\nmultiplicity\tcount\n")
        write_text(results / f"real/assembly/{variant}/contigs.fasta", "")
    page = render_report(study_from_layout(results))
    assert "Assembly of the uncorrected and corrected reads gave no contigs." in page
