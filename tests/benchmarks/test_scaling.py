"""The benchmark of whole runs on several GPUs, without running any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scaling
from benchmarks.harness.measuring import Measurement


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two files; programs copy the first one, and take a second more for each GPU."""

    def measure(command: list[str], folder: Path) -> Measurement:
        assert command[1:3] == ["-m", "ngsgpu"]
        gpus = int(command[command.index("--gpus") + 1])
        text = Path(command[command.index("-i") + 1]).read_text()
        changed = gpus == 3 and "spectrum" in command
        output = folder / command[command.index("-o") + 1]
        output.write_text("other" if changed else text)
        (folder / "stats.json").write_text(json.dumps({"time_s": {"read": 0.25}}))
        return Measurement(float(gpus), 1.0, 0.5, 0, 0.0, 7)

    monkeypatch.setattr(scaling, "measure", measure)
    monkeypatch.setattr(scaling, "visible_gpus", lambda: range(3))
    monkeypatch.setattr(scaling, "head", lambda schema, version: {"schema": schema})
    paths = [tmp_path / name for name in ("r1.fq", "r2.fq")]
    for path in paths:
        path.write_text(path.name)
    return list(map(str, paths))


def test_runs(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert scaling.main([*files, "--gpus", "1", "2", "--repeats", "2", "-o", str(out)]) == 0
    runs: list[dict[str, Any]] = json.loads(out.read_text())["runs"]
    assert len(runs) == 2 * (1 + 4 * 2)
    assert {(own["name"], own["gpus"]) for own in runs} == {
        ("plain copy", 0),
        *((name, gpus) for name in scaling.commands([Path(), Path()]) for gpus in (1, 2)),
    }
    assert "| extend | 2 | 2.0 to 2.0 | read 0.25 |" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "r1.fq", "r2.fq"]


def test_other_bytes_are_refused(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    chosen = ["--only", "correct by k-mers", "--gpus", "1", "3"]
    assert scaling.main([*files, *chosen, "-o", str(out)]) == 1
    assert "correct by k-mers with 3 GPUs wrote other bytes" in capsys.readouterr().err
    assert not out.exists()


def test_too_many_gpus(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scaling.main([*files, "--gpus", "4", "-o", str(tmp_path / "out.json")]) == 2
    assert "only 3 GPUs" in capsys.readouterr().err
