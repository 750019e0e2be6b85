"""``ngsgpu evaluate correction``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ngsgpu.cli import main
from tests.support.evaluate import files


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    paths = files.write_pairs(tmp_path, files.make_pairs(30, seed=4))
    options = ("truth", "in1", "in2", "out1", "out2")
    return [word for name in options for word in (f"--{name}", str(paths[name]))]


def test_table_and_json(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "result.json"
    assert main(["evaluate", "correction", *arguments, "--json", str(target)]) == 0
    document = json.loads(target.read_text())
    assert document["schema"] == "ngsgpu.evaluate.correction"
    assert document["schema_version"] == 1
    assert document["reads"]["total"] + document["indel_reads"]["reads"]["total"] == 60
    table = capsys.readouterr().out
    (line,) = [row for row in table.splitlines() if row.startswith("TP")]
    assert f"{document['totals']['tp']:,}" in line.split()
    assert len({len(row) for row in table.splitlines()}) == 1


def test_multiqc_content(arguments: list[str], tmp_path: Path) -> None:
    prefix = str(tmp_path / "ecoli")
    command = ["evaluate", "correction", *arguments, "--mqc-prefix", prefix]
    assert main(command) == 0
    bars = json.loads(Path(f"{prefix}.ngsgpu_correction_mqc.json").read_text())
    assert bars["plot_type"] == "bargraph"
    assert set(bars["data"]["ecoli"]) == {"tp", "fn", "fp"}
    columns = json.loads(Path(f"{prefix}.ngsgpu_correction_generalstats_mqc.json").read_text())
    assert columns["plot_type"] == "generalstats"
    assert set(columns["data"]["ecoli"]) == {"sensitivity", "fp_per_million"}
    assert main([*command, "--sample", "other"]) == 0
    bars = json.loads(Path(f"{prefix}.ngsgpu_correction_mqc.json").read_text())
    assert list(bars["data"]) == ["other"]


def test_bad_input_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments[1] = str(tmp_path / "missing.sam")
    target = tmp_path / "result.json"
    assert main(["evaluate", "correction", *arguments, "--json", str(target)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("ngsgpu: error: ") and message.count("\n") == 1
    assert not target.exists()


def test_sample_needs_a_prefix(arguments: list[str]) -> None:
    assert main(["evaluate", "correction", *arguments, "--sample", "x"]) == 2
