"""Documents and names that no page can show: a line that says so, and no page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.report.files import load_json
from tests.support.report import Page, statistics, write_json, write_text


@pytest.mark.parametrize("half", ["\ud800", "x\udfffy"])
@pytest.mark.parametrize("place", ["title", "description", "label"])
def test_half_of_a_character(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], half: str, place: str
) -> None:
    document = {"schema": "ngsgpu.study", "schema_version": 2, "samples": [{"name": "a"}]}
    (document["samples"][0] if place == "label" else document)[place] = half  # type: ignore[index]
    manifest = write_json(tmp_path / "study.json", document)
    page = tmp_path / "page.html"
    assert main(["report", str(manifest), "-o", str(page)]) == 2
    told = capsys.readouterr().err
    assert "half of a character" in told and told.count("\n") == 1
    assert not page.exists()


def test_halves_that_are_a_character(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.json", r'{"title": "\ud83d\udc9a"}')
    assert load_json(path, "") == {"title": "\N{GREEN HEART}"}


def test_reads_whose_file_names_are_not_utf8(tmp_path: Path) -> None:
    command = ["ngsgpu", "correct", "-i", os.fsdecode(b"M\xfcller.fq")]
    write_json(tmp_path / "results/a/correct/stats.json", statistics(command=command))
    page = tmp_path / "page.html"
    assert main(["report", "--results", str(tmp_path / "results"), "-o", str(page)]) == 0
    assert "M\ufffdller.fq" in Page(page.read_text("utf-8")).text


@pytest.mark.parametrize("folder", [b"M\xfcller/correct", b"a/classify/M\xfcller"])
def test_folders_whose_names_are_not_utf8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: bytes
) -> None:
    results = tmp_path / "results"
    write_json(results / "a/correct/stats.json", statistics())
    own = results / os.fsdecode(folder)
    write_json(own / "stats.json", statistics())
    write_text(own / "a.kraken2.report.txt", "0.0\t9\t9\tU\t0\tunclassified\n")
    page = tmp_path / "page.html"
    assert main(["report", "--results", str(results), "-o", str(page)]) == 2
    told = capsys.readouterr().err
    assert "M\\udcfcller" in told and "is not UTF-8" in told and "rename" in told
    assert not page.exists()


@pytest.mark.parametrize("depth", [150, 100_000])
@pytest.mark.parametrize("ends", ["[]", ('{"a":', "}")])
def test_nested_too_deep(tmp_path: Path, depth: int, ends: tuple[str, str]) -> None:
    path = write_text(tmp_path / "a.json", f"{ends[0] * depth}0{ends[1] * depth}")
    with pytest.raises(InputError, match=r"nested (more than 100 deep|too deeply)"):
        load_json(path, "make the file again")


@pytest.mark.parametrize("value", ["9" * 5000, "1e999", "NaN"])
def test_numbers_that_are_none(tmp_path: Path, value: str) -> None:
    text = json.dumps(statistics()).replace("1890", value)
    write_text(tmp_path / "results/a/correct/stats.json", text)
    page = tmp_path / "page.html"
    assert main(["report", "--results", str(tmp_path / "results"), "-o", str(page)]) == 2
    assert not page.exists()


@pytest.mark.timeout(60)
def test_named_pipes_are_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, page = tmp_path / "results", tmp_path / "page.html"
    write_json(results / "a/correct/stats.json", statistics())
    os.mkfifo(results / "a/correct/stats.json.failed")
    assert main(["report", "--results", str(results), "-o", str(page)]) == 0
    os.mkfifo(tmp_path / "study.json")
    assert main(["report", str(tmp_path / "study.json"), "-o", str(tmp_path / "no.html")]) == 2
    assert "study.json: it is a named pipe; give a file" in capsys.readouterr().err


def test_a_pipe_of_the_shell(tmp_path: Path) -> None:
    document = {"schema": "ngsgpu.study", "schema_version": 2, "samples": [{"name": "a"}]}
    reading, writing = os.pipe()
    os.write(writing, json.dumps(document).encode())
    os.close(writing)
    try:
        words = ["report", f"/dev/fd/{reading}", "-o", str(tmp_path / "page.html")]
        assert main(words) == 0
    finally:
        os.close(reading)
