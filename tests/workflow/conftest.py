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
from tests.support.workflow import ROOT, SNAKEFILE, Snakemake, write_program

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
        environment = os.environ | {"TESTS_EMPTY_FIGURES": "yes"} | (env or {})
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


MULTIQC = """#!/bin/bash
[[ $1 == --version ]] && echo "multiqc, version 1.30" && exit
while [[ $1 != --outdir ]]; do shift; done
mkdir -p "$2/multiqc_report_data" && touch "$2/multiqc_report.html"
"""
SPADES = """#!/bin/bash
[[ $1 == --version ]] && echo "SPAdes v4.0.0" && exit
while [[ $1 != -o ]]; do shift; done; mkdir -p "$2"
"""
QUAST = """#!/bin/bash
[[ $1 == --version ]] && echo "QUAST v5.2.0" && exit
exit 4
"""


@pytest.fixture
def no_multiqc(tmp_path: Path) -> dict[str, str]:
    """A PATH on which MultiQC, which takes long to start, makes an empty page."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write_program(folder / "multiqc", MULTIQC)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture
def tools(no_multiqc: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """And SPAdes finds no contigs, of which QUAST must not be asked for a table."""
    write_program(tmp_path / "bin/spades.py", SPADES)
    write_program(tmp_path / "bin/quast.py", QUAST)
    return no_multiqc
