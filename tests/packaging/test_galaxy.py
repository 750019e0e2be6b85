"""The Galaxy tools: their tests run, the command as Galaxy's template language makes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.copies import programs
from tests.support.workflow import ROOT

FOLDER = ROOT / "packaging" / "galaxy"
TOOLS = sorted(FOLDER.glob("ngsgpu_*.xml"))


class Data(str):
    """A data set, as Galaxy names it in a command."""

    element_identifier: str


class Section(SimpleNamespace):
    """The values of a section of the form."""


def data(name: str, folder: Path) -> Data:
    """A file of the test, under a name without its format, as Galaxy has it."""
    path = folder / f"dataset_{re.sub('[^a-z0-9]', '_', name)}.dat"
    shutil.copy(FOLDER / "test-data" / name, path)
    made = Data(path)
    made.element_identifier = name
    return made


def default(parameter: ElementTree.Element) -> str | None:
    kind, optional = parameter.get("type"), parameter.get("optional") == "true"
    if kind == "boolean":
        on = parameter.get("checked") == "true"
        return parameter.get("truevalue" if on else "falsevalue")
    if kind == "select":
        chosen = [str(own.get("value")) for own in parameter if own.get("selected") == "true"]
        return ",".join(chosen) or None
    return parameter.get("value", None if optional and kind != "text" else "")


def name_of(parameter: ElementTree.Element) -> str:
    return parameter.get("name") or str(parameter.get("argument")).lstrip("-").replace("-", "_")


def values(tool: ElementTree.Element, folder: Path) -> dict[str, Any]:
    """What the form of the tool's first test holds."""
    given = {own.get("name"): own.get("value", "") for own in tool.findall("tests/test/param")}
    found: dict[str, Any] = {"options": Section()}
    for parameter in tool.findall("inputs/param"):
        name = name_of(parameter)
        if parameter.get("type") != "data":
            found[name] = given.pop(name, default(parameter))
            continue
        files = [data(given.pop(name), folder)] if name in given else []
        assert files or parameter.get("optional") == "true", name
        found[name] = files if parameter.get("multiple") == "true" else files[0]
    for parameter in tool.findall("inputs/section/param"):
        setattr(found["options"], name_of(parameter), default(parameter))
    assert not given
    return found


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_tool(path: Path, tmp_path: Path) -> None:
    cheetah = pytest.importorskip("Cheetah.Template", reason="Galaxy's template language, ct3")
    tool = ElementTree.parse(path).getroot()
    form = values(tool, tmp_path)
    command = cheetah.Template(tool.findtext("command"), searchList=[form])
    line = " ".join(str(command).split("\n"))
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        ["bash", "-ec", line],
        cwd=work,
        env=os.environ | {"PATH": f"{programs()}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    expected = {own.get("name") for own in tool.findall("tests/test/output")}
    for output in tool.findall("outputs/data"):
        written = work / str(output.get("from_work_dir"))
        if output.get("name") in expected:
            assert written.stat().st_size > 0, written
        else:
            assert not written.exists(), written
