"""Commands of other packages, which register as entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ngsgpu import cli
from ngsgpu.cli.adapter import commands_below

ROOT = Path(__file__).parents[2]
MODULE = '''
"""A package with commands: the longest read of files, and some that cannot be used."""
import ngsgpu
from ngsgpu.declared.options import argument, option
from ngsgpu.declared.roles import Reads, Written
from ngsgpu.io.output.atomic import write_text_atomically

def longest(
    *,
    in1: list[Reads] = option(..., "FILE", "Reads.", "-i", "--in1"),
    out: Written = option(..., "FILE", "Name of the longest read.", "-o", "--out"),
    least: int = option(0, "N", "Shortest length.", least=0),
    elsewhere: bool = option(False, "", "Write to a file that no option names.", "--elsewhere"),
) -> None:
    """Find the longest read."""
    reads = [read for path in in1 for read in ngsgpu.open(path) if len(read) >= least]
    target = "hidden.txt" if elsewhere else out
    write_text_atomically(target, max(reads, key=len).name + "\\n")

def undeclared(path: str) -> None:
    """Takes a file without saying so."""
'''
POINTS = """
[ngsgpu.commands]
broken = no_such_module:command
correct = fake_commands:longest
longest = fake_commands:longest
undeclared = fake_commands:undeclared
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    known = folder / "fake_commands-1.0.dist-info"
    known.mkdir(parents=True)
    (folder / "fake_commands.py").write_text(MODULE)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-commands\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(POINTS)
    (tmp_path / "reads.fq").write_text("@a\nAC\n+\nII\n@b\nACG\n+\nIII\n")
    return folder


def run(folder: Path, *command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that finds the package in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "ngsgpu", *command],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"},
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def test_they_run_and_are_checked_as_ours(package: Path, tmp_path: Path) -> None:
    run(package, "longest", "-i", "reads.fq", "-o", "longest.txt")
    assert (tmp_path / "longest.txt").read_text() == "b\n"
    given = ("longest", "-i", "reads.fq", "-o")
    said = run(package, *given, "reads.fq", status=2).stderr
    assert "is named as input and output" in said
    said = run(package, *given, "o.txt", "--least", "-1", status=2).stderr
    assert "--least must be 0 or more, not -1" in said
    said = run(package, *given, "o.txt", "--elsewhere", status=1).stderr
    assert "hidden.txt" in said
    assert not any((tmp_path / name).exists() for name in ("o.txt", "hidden.txt"))


def test_help_lists_those_that_can_be_used(package: Path) -> None:
    done = run(package, "--help")
    listed = done.stdout.partition("Of other packages:")[2]
    assert "longest" in listed and "Find the longest read." in listed
    assert "undeclared" not in listed and "broken" not in listed
    for said in (
        "command broken of no_such_module:command cannot be used: No module named",
        "command correct of fake_commands:longest cannot be used: there is one of this name",
        "command undeclared of fake_commands:undeclared cannot be used: path is no option",
    ):
        assert said in done.stderr
    assert "ngsgpu correct" in run(package, "correct", "--help").stdout


def test_what_is_derived_from_commands_has_ours_alone() -> None:
    names = [name for name, _ in commands_below(cli.app)]
    assert {*cli.COMMANDS} <= {*names} and "longest" not in names
