"""The directory of a new study: a module Snakefile, config, sheets and a profile."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template

from ngsgpu.errors import UsageError
from ngsgpu.io.output.folder import write_tree
from ngsgpu.workflow import workflow_root
from ngsgpu.workflow.reads import Found, Lane, find_reads
from ngsgpu.workflow.sheet import SHEET, new_sheet

_TEMPLATES = Path(__file__).parent / "templates"
_LOCAL = "default"
"""The profile that Snakemake reads without being asked to."""
_PROGRAMS = {
    "assemble": "spades.py",
    "quast": "quast.py",
    "multiqc": "multiqc",
}
"""Program that each step of the study needs besides ngsgpu."""


@dataclass(frozen=True)
class NewStudy:
    """A study that was written.

    Attributes:
        folder: its directory.
        found: its reads.
        off: steps that were switched off, with the program that each lacks.
        command: how to run it, from its directory.
    """

    folder: Path
    found: Found
    off: dict[str, str]
    command: str


def profiles() -> list[str]:
    """Return the names of the profiles; ``local`` is the workflow's default one."""
    folder = workflow_root() / "workflow" / "profiles"
    return sorted("local" if own.name == _LOCAL else own.name for own in folder.iterdir())


def init_study(
    folder: str | Path,
    *,
    reads: Sequence[str | Path] = (),
    single_end: bool = False,
    profile: str = "local",
    force: bool = False,
) -> NewStudy:
    """Write a study that `snakemake` runs: Snakefile, config, sheets and profile.

    Args:
        folder: the study's directory, made if it is not there.
        reads: folders with its FASTQ files, see `find_reads`; without any, its sheet has no rows.
        single_end: no file has mates.
        profile: one of `profiles`.
        force: replace files of these names; otherwise nothing is written if one differs.

    Raises:
        InputError: the reads cannot be told apart by their names, or the workflow cannot take them.
        UsageError: files are there already, or there is no such profile.
        OutputError: the study cannot be written.
    """
    folder = Path(folder)
    found = find_reads(reads, single_end=single_end)
    conda = shutil.which("conda") is not None
    off = {step: own for step, own in _PROGRAMS.items() if not (conda or shutil.which(own))}
    texts = _profile(profile) | _config(folder, found.lanes, off)
    with _alone(folder):
        if not force:
            _check_new(folder, texts)
        write_tree(folder, texts)
    return NewStudy(folder, found, off, _command(profile, conda=conda))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other run writes a study in this place."""
    above = next(place for place in folder.absolute().parents if place.is_dir())
    lock = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _profile(name: str) -> dict[str, str]:
    """The files of a profile, where Snakemake looks for them beside the Snakefile."""
    if name not in profiles():
        raise UsageError(f"there is no profile '{name}'; choose one of {', '.join(profiles())}")
    place = Path("workflow", "profiles", _LOCAL if name == "local" else name)
    source = workflow_root() / place
    return {str(place / own.name): own.read_text() for own in source.iterdir() if own.is_file()}


def _config(folder: Path, lanes: Iterable[Lane], off: Iterable[str]) -> dict[str, str]:
    shipped = workflow_root() / "config"
    values = {
        "title": json.dumps(folder.resolve().name),
    } | {step: str(step not in off).lower() for step in _PROGRAMS}
    templates = {"workflow/Snakefile": "Snakefile", "config/config.yaml": "config.yaml"}
    return {
        name: Template((_TEMPLATES / source).read_text()).substitute(values)
        for name, source in templates.items()
    } | {
        str(SHEET): new_sheet(folder, lanes),
        "config/databases.tsv": (shipped / "databases.tsv").read_text(),
        "config/README.md": (shipped / "README.md").read_text(),
    }


def _check_new(folder: Path, texts: dict[str, str]) -> None:
    """Refuse to replace files with others.

    Raises:
        UsageError: names them.
    """
    there = [
        str(path)
        for path, text in ((folder / name, text) for name, text in texts.items())
        if os.path.lexists(path) and not (path.is_file() and path.read_bytes() == text.encode())
    ]
    if there:
        raise UsageError(
            f"already there: {', '.join(there)}; nothing was written; choose another directory, or "
            "replace them with --force"
        )


def _command(profile: str, *, conda: bool) -> str:
    from ngsgpu.device.gpus import visible_gpus

    words = ["snakemake"]
    if conda:
        words.append("--use-conda")
    if profile != "local":
        words.append(f"--workflow-profile workflow/profiles/{profile}")
    elif gpus := len(visible_gpus()):
        words.append(f"--resources gpu={gpus}")
    return " ".join(words)


def packages_to_install(profile: str) -> list[str]:
    """What pip has to install before Snakemake can run with a profile."""
    has_snakemake = importlib.util.find_spec("snakemake") or shutil.which("snakemake")
    wanted = [] if has_snakemake else ["snakemake>=9.19,<10", "matplotlib", "pygments"]
    if profile != "local" and not importlib.util.find_spec(f"snakemake_executor_plugin_{profile}"):
        wanted.append(f"snakemake-executor-plugin-{profile}")
    return wanted
