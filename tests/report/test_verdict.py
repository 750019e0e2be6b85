"""The summary's table of steps: its numbers are of samples that have them, and no failure is OK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.model import Study
from ngsgpu.report.render import render_report, report_context
from ngsgpu.report.study import read_study
from tests.support.report import Page, fastp, statistics, write_json, write_note


def steps(study: Study) -> dict[str, tuple[str, ...]]:
    """The lines of the table by step."""
    return {row[0]: row[1:] for row in report_context(study)["verdict"].rows}


def document_of(schema: str, done: str, number: int, insert: str, mean: float) -> dict[str, Any]:
    """Statistics of ten pairs, or of none, some of which became one read each."""
    pairs = {"total": 10 if mean != 1.0 else 0, done: number}
    lengths = {"mean": mean, "sd": 1.0, "deviation": 0.0, "estimated": False}
    return {"schema": schema, "schema_version": 1, "pairs": pairs, insert: lengths}


def test_samples_without_a_value_are_not_averaged(manifest: Path, results: Path) -> None:
    for sample, number, mean in (("sim", 9, 158.5), ("real", 0, 0.0)):
        document = document_of("ngsgpu.merge", "merged", number, "insert_size", mean)
        write_json(results / sample / "merge/stats.json", document)
    # An empty sample: the statistics have the insert size that extension starts from.
    for sample, number, mean in (("sim", 9, 320.0), ("real", 0, 1.0)):
        document = document_of("ngsgpu.extend", "connected", number, "insert", mean)
        write_json(results / sample / "extend/stats.json", document)
    empty = statistics(
        reads={"total": 0, "bases": 0},
        corrected={"reads": 0, "bases": 0},
        coverage={"value": 0.0, "estimated": True},
    )
    write_json(results / "real/correct/stats.json", empty)
    study = fill_from_layout(read_study(manifest), results)
    found = steps(study)
    alone = "mean fragment of the merged pairs alone"
    assert found["Merging"][1] == f"{alone}: 158.5 bases"
    assert found["Merging"][0].endswith("(0.0\N{NO-BREAK SPACE}% to 90.0\N{NO-BREAK SPACE}%)")
    assert found["Extension"][1] == "mean insert size, as given: 320.0 bases"
    assert found["Correction"][2] == "OK"
    text = Page(render_report(study)).text
    assert "mean of the insert size of merged pairs 158.5" in text
    assert "mean of the insert size of merged pairs –" in text  # noqa: RUF001
    assert "mean of the insert size, as given –" in text  # noqa: RUF001


def fail(path: Path, sample: str, rule: str) -> None:
    """Leave what a job leaves that failed."""
    write_note(path, f"logs/{rule}/{sample}.log", f"{rule} said no")


def test_a_step_that_failed_for_a_sample_is_not_ok(manifest: Path, results: Path) -> None:
    document = document_of("ngsgpu.extend", "connected", 9, "insert", 320.0)
    write_json(results / "sim/extend/stats.json", document)
    fail(results / "real/extend/stats.json", "real", "extend_pairs")
    for sample in ("sim", "real"):
        fail(results / sample / "unitigs/raw/stats.json", sample, "build_unitigs")
    study = fill_from_layout(read_study(manifest), results)
    found = steps(study)
    assert found["Extension"][2] == "1 of 2 samples (real) failed: the reason is above."
    # All samples failed: no numbers, but the step ran.
    assert found["Unitig graphs"][2].startswith("2 of 2 samples (Simulated $x$ <b> and real)")
    assert list(found) == ["Correction", "Extension", "Unitig graphs", "Assembly"]
    assert "2 of 4 steps need attention" in Page(render_report(study)).text


def test_steps_without_input_did_not_fail(manifest: Path, results: Path) -> None:
    paths = "correct/stats.json", "qc/corrected.fastp.json", "extend/stats.json", "quast/report.tsv"
    for path in paths:
        fail(results / "real" / path, "real", "correct_reads")
    write_json(results / "real/qc/raw.fastp.json", fastp())
    document = document_of("ngsgpu.extend", "connected", 9, "insert", 320.0)
    write_json(results / "sim/extend/stats.json", document)
    study = fill_from_layout(read_study(manifest), results)
    told = {step: line[2] for step, line in steps(study).items() if line[2] != "OK"}
    assert told == {"Correction": "1 of 2 samples (real) failed: the reason is above."}
    lead = "One set of real reads and one set of simulated reads; 1 of them, 2,000 reads with "
    assert lead in Page(render_report(study)).text
