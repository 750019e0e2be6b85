"""The Nextflow modules agree with the command line and with each other."""

import re
from pathlib import Path

import pytest

from ngsgpu.cli import main
from tests.support.workflow import ROOT

MODULES = sorted((ROOT / "nextflow/modules/ngsgpu").iterdir())
FILES = ("main.nf", "meta.yml", "environment.yml", "tests/main.nf.test")


def test_page_names_every_module() -> None:
    page = (ROOT / "nextflow/README.md").read_text()
    (line,) = re.findall(r"^`modules/ngsgpu/` holds .+$", page, re.M)
    assert {module.name for module in MODULES} <= set(re.findall(r"`(\w+)`", line))


def test_pipeline_includes_its_modules() -> None:
    pipeline = (ROOT / "nextflow/main.nf").read_text()
    names = ["classify", "correct", "dbbuild", "extend", "merge"]
    assert all(f"./modules/ngsgpu/{name}/main" in pipeline for name in names)
    included = re.findall(r"\./modules/ngsgpu/(\w+)/main", pipeline)
    assert sorted(included) == names
    assert set(names) < {module.name for module in MODULES}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_module(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert all((module / name).is_file() for name in FILES)
    text = (module / "main.nf").read_text()
    assert ("environment.gpu.yml" in text) == (module / "environment.gpu.yml").is_file()
    script, _, stub = text.partition("script:")[2].partition("stub:")
    command = re.search(r"^    ngsgpu ([a-z -]+?) \\\\$", script, re.M)
    assert command is not None
    assert main([*command[1].split(), "--help"]) == 0
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", capsys.readouterr().out))
    used = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", script))
    assert used <= known
    # What is declared as output is written by the script and by the stub.
    outputs = re.findall(r'path\("\*([.\w]+)', text.partition("output:")[2])
    assert outputs
    for name in outputs:
        assert f"${{prefix}}{name}" in script, name
        assert f"${{prefix}}{name}" in stub, name
    declared = re.findall(r"emit: (\w+)", text)
    meta = (module / "meta.yml").read_text().partition("\noutput:\n")[2]
    assert re.findall(r"^  (\w+):$", meta.partition("\ntopics:")[0], re.M) == declared
