"""What commands write as statistics is what the published JSON Schemas say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.cli import main
from scripts.derive.statistics import CLASSES
from tests.support.all_commands import COMMANDS, PAIRS, build_inputs, check_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_inputs(tmp_path_factory.mktemp("statistics"))


def test_all_commands_are_here() -> None:
    assert {*COMMANDS, "run"} == {*CLASSES}


@pytest.mark.parametrize("name", COMMANDS)
def test_statistics_are_those_of_the_schema(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NGSGPU_BACKEND", "cpu")
    words = COMMANDS[name].format(folder=folder, out=tmp_path).split()
    assert main([*words, "--stats", str(tmp_path / "stats.json")]) == 0
    check_schema(tmp_path / "stats.json")


def test_statistics_of_a_chain(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NGSGPU_BACKEND", "cpu")
    words = f"run --steps trim,merge {PAIRS} -o {{out}}/chain -q".format(
        folder=folder, out=tmp_path
    )
    assert main(words.split()) == 0
    for path in (tmp_path / "chain").glob("*.stats.json"):
        check_schema(path)
