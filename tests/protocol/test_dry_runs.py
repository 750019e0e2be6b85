"""Every command that plans its memory prints the plan, writes nothing, and takes no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ngsgpu.cli import app
from ngsgpu.cli.adapter import Command, Group
from tests.support.all_commands import COMMANDS, build_inputs, check_schema
from tests.support.commands import Commands, names

PLANNED = [
    "trim",
    "deplete-index",
    "deplete",
    "correct",
    "correct --method spectrum",
    "extend",
    "merge",
    "classify",
    "extract",
    "db build",
    "kmers count",
    "unitigs",
    "assemble",
    "assemble --method euler",
    "index build",
]
"""Commands by the names of their statistics."""

OWN = {"run", "db plan", "db remove"}
"""Commands whose dry runs print more than memory."""

WITHOUT_GPU = {"deplete-index", "extract"}


def commands(group: Group, context: click.Context) -> Iterator[Command]:
    """All commands below a group."""
    for name in group.list_commands(context):
        own = group.get_command(context, name)
        if isinstance(own, Group):
            yield from commands(own, context)
        else:
            assert isinstance(own, Command)
            yield own


def test_all_commands_are_here() -> None:
    found = {
        own.full_name
        for own in commands(app, click.Context(app))
        if any(parameter.name == "dry_run" for parameter in own.parameters)
    }
    assert found == {name.partition(" --")[0] for name in PLANNED} | OWN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_inputs(tmp_path_factory.mktemp("dry"))


@pytest.mark.parametrize("name", PLANNED)
def test_the_plan_is_printed_and_nothing_else_written(
    folder: Path, tmp_path: Path, ngsgpu: Commands, backend: str, name: str
) -> None:
    if backend == "cuda" and name in WITHOUT_GPU:
        pytest.skip("it uses no GPU")
    out, plan, before = tmp_path / "out", tmp_path / "plan.json", names(folder)
    out.mkdir()
    words = COMMANDS[name].format(folder=folder, out=out).split()
    where = [] if name in WITHOUT_GPU else ["--backend", backend]
    done = ngsgpu(*words, *where, "--threads", 2, "--dry-run", "--stats", plan)
    assert done.status == 0, done.err
    assert (names(out), names(folder)) == ([], before)
    document = check_schema(plan)
    assert document["schema"] == "ngsgpu.plan"
    lines = {line.split()[0] for line in done.out.splitlines()}
    assert {"backend", "memory" if backend == "cpu" else "GPU"} <= lines
    assert (document["gpu_memory"] == {}) == (backend == "cpu")
    for memory in (document["memory"], document["gpu_memory"]):
        if memory:
            assert memory["planned_bytes"] <= memory["budget_bytes"]
            assert memory["planned_bytes"] <= sum(own["bytes"] for own in memory["allocations"])
    if backend == "cpu":
        assert document["memory"]["planned_bytes"] >= taken(words, tmp_path / "stats.json")


def taken(words: list[str], stats: Path) -> int:
    """Bytes of memory that a run takes; Linux counts what its parent took, which the shell is."""
    command = [sys.executable, "-m", "ngsgpu", *words, "--threads", "2", "--stats", str(stats)]
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command],
        env=os.environ | {"NGSGPU_BACKEND": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    peak: int = json.loads(stats.read_text())["memory"]["peak_rss_bytes"]
    return peak
