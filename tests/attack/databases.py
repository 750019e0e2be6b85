"""Damaged databases, indexes and other files of our own: noticed, or of no consequence."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Final

from tests.attack import damage
from tests.attack.arena import Arena, Case, Verdict
from tests.attack.world import BY_NAME

_COMMANDS: Final = (
    "classify", "classify", "classify partition", "classify-merge", "db add", "db remove",
    "db stats", "db stats", "db info", "db verify", "evaluate classification", "deplete", "deplete",
    "kmers union", "kmers dump", "kmers query", "kmers histo", "kmers info", "unitigs of counts",
    "deplete-index union", "deplete-index diff", "deplete-index intersect", "deplete-index info",
    "index query", "index query", "index query bwa", "index query bwa", "index query of bwa's own",
    "index query of bwa's own", "train fit", "train export", "correct by forests",
)  # fmt: skip
FOLDERS: Final = ("db", "counts1", "counts2", "index")
_INDEXES: Final = ("ref.", "bare.")
_MANIFESTS: Final = ("manifest.json", ".sums", ".idx")
_GIVEN: Final = (".cand", ".npz", ".forests")
_OFTEN: Final = 0.3
_OF_NO_CONSEQUENCE: Final = "cannot be told"


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Damage a file or two, before a command reads them or meanwhile, and run it."""
    command = BY_NAME[source.choice(_COMMANDS)]
    with arena.case(command, name) as case:
        where = case.folder / ("out" if command.before else "in")
        files = [
            path
            for path in sorted(where.rglob("*"))
            if path.is_file() and is_of_database(path.relative_to(where))
        ]
        manifests = [path for path in files if path.name.endswith(_MANIFESTS)]
        path = source.choice(manifests if manifests and source.random() < _OFTEN else files)
        kind = _chosen(path, source)
        what = f"{command.name}: {kind} for {path.relative_to(case.folder)}"
        if kind == "cut meanwhile":
            return Verdict(what, *_cut_meanwhile(case, path, source))
        damaged = [path]
        if kind == "swapped":
            damaged.append(source.choice(files))
            damage.swap(*damaged)
        elif kind == "forged":
            damage.forge(path, source)
        elif kind == "nested":
            damage.NESTED(path, source)
        else:
            (damage.BYTES | damage.PLACES)[kind](path, source)
        case.note_files()
        ending = case.run()
        if ending.status != 0:
            return Verdict(what, "noticed", _refused(case, ending))
        if kind == "forged":
            return Verdict(what, "forged", "")  # and sealed: a lie, but no damage
        problem = _only_this(case, damaged) if command.before else case.succeeded()
        if problem.startswith("wrong output") and path.name.startswith("bare."):
            return Verdict(what, _OF_NO_CONSEQUENCE, "")  # no checksums, and nothing contradicts it
        indexes = kind == "swapped" and {own.suffix for own in damaged} == {".idx"}
        if indexes and problem.startswith("wrong output"):
            return Verdict(what, _OF_NO_CONSEQUENCE, "")  # whole ones, as if named in another order
        return Verdict(what, "harmless", problem)


def _chosen(path: Path, source: random.Random) -> str:
    """A kind of damage that a file can have."""
    kinds = [*damage.BYTES, *damage.BYTES, *damage.PLACES, "swapped", "cut meanwhile"]
    if path.suffix in _GIVEN:
        kinds.remove("a pipe")  # from which they may well be read
    if path.name.endswith(_MANIFESTS):
        kinds += ["nested"] * 4 + ["forged"] * 8
    return source.choice(kinds)


def _refused(case: Case, ending: object) -> str:
    problem = case.refused(ending)  # type: ignore[arg-type]
    return problem and f"{problem}: {ending.stderr[-300:]}"  # type: ignore[attr-defined]


def _cut_meanwhile(case: Case, path: Path, source: random.Random) -> tuple[str, str]:
    """Cut a file at some moment while a command may have mapped it."""
    size = source.choice((0, source.randrange(max(1, path.stat().st_size))))
    where = "out" if case.command.before else "in"
    known = dict(case.outputs if case.command.before else case.inputs)

    def cut() -> None:
        if path.exists():  # a change of a database may have removed it
            os.truncate(path, size)
            known[str(path.relative_to(case.folder / where))] = path.read_bytes()

    ending = case.run(meanwhile=(source.uniform(0, 1.1) * case.alone.seconds, cut))
    if case.command.before:
        case.outputs = known
    else:
        case.inputs = known
    if ending.status != 0:
        return "noticed", _refused(case, ending)
    if case.command.before:
        return "harmless", ""  # what was cut after the change is damage of the new database
    return "harmless", case.succeeded()


def is_of_database(path: Path) -> bool:
    """Whether a path below ``in`` or ``out`` is a file that ngsgpu writes for itself."""
    own = (".cand", ".idx", ".npz", ".forests")
    return (
        path.parts[0] in FOLDERS or path.suffix in own or path.parts[0].startswith(_INDEXES)
    )  # fmt: skip


def _only_this(case: Case, damaged: list[Path]) -> str:
    """Whether what was changed stands beside a damaged part, which was not read and is seen."""
    differs = False
    for path in damaged:
        name = str(path.relative_to(case.folder / "out"))
        before, expected = case.outputs.get(name), case.alone.files.get(name)
        if expected is None:
            continue  # of the old database, and removed with it
        if path.is_file() and not path.is_symlink() and path.read_bytes() != before:
            return "the damaged part was changed"
        differs = differs or before != expected
    if differs and (status := case.run_verify()) != 2:
        return f"db verify: {status}"
    for path in damaged:
        name = str(path.relative_to(case.folder / "out"))
        if name in case.alone.files:
            _put_back(path, case.alone.files[name])
    return case.succeeded()


def _put_back(path: Path, content: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    path.write_bytes(content)
