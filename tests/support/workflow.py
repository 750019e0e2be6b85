"""The workflow's files, and what Snakemake prints."""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


SNAKEFILE = ROOT / "workflow" / "Snakefile"


Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def jobs(output: str) -> dict[str, int]:
    """The job table of a dry run."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
