"""How the tests run the workflow: as a command, in a working directory of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.copies import programs
from tests.support.workflow import ROOT, SNAKEFILE, Snakemake

# It chooses a job at once; the default starts a solver of integer programs for every choice.
SCHEDULER = ("--scheduler", "greedy")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A working directory with the test study: its config, sheets and reads."""
    directory = tmp_path / "study"
    shutil.copytree(ROOT / ".test" / "config", directory / "config")
    (directory / "data").symlink_to(ROOT / ".test" / "data")
    return directory


@pytest.fixture
def snakemake(study: Path) -> Snakemake:
    """Run Snakemake in the study; standard output and error come back as one text."""

    def run(
        *arguments: str,
        snakefile: Path = SNAKEFILE,
        env: dict[str, str] | None = None,
        program: Sequence[str] = ("snakemake",),
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | (env or {})
        # The interpreter of the tests is the one that has Snakemake; its tools come along.
        environment["PATH"] = f"{programs()}:{Path(sys.executable).parent}:{environment['PATH']}"
        return subprocess.run(
            [*program, "--snakefile", str(snakefile), *SCHEDULER, *arguments],
            cwd=study,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run
