"""The workflow's files, and what Snakemake prints."""

from __future__ import annotations

import re
import shutil
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


def tagged_copy(folder: Path) -> Path:
    """The workflow in a git repository of its own, with the tag v1."""
    repository = folder / "repository"
    for part in ("workflow", "envs", "scripts"):
        shutil.copytree(ROOT / part, repository / part)
    shutil.copy(ROOT / "pyproject.toml", repository)
    person = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run(["git", *person, *command], cwd=repository, check=True)
    return repository
