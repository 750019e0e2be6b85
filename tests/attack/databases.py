"""Changed bytes of databases and other files of our own: noticed, or of no consequence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from tests.attack.arena import Arena, Case, Verdict
from tests.attack.world import BY_NAME

_COMMANDS: Final = ("classify", "classify", "classify", "classify partition", "classify-merge",
                    "db add", "evaluate classification", "deplete", "kmers union", "kmers dump",
                    "kmers query", "unitigs of counts", "index query", "train fit", "train export",
                    "correct by forests")  # fmt: skip
FOLDERS: Final = ("db", "counts1", "counts2", "index")


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Change one byte, cut or lengthen one file, and run a command that reads it."""
    command = BY_NAME[source.choice(_COMMANDS)]
    with arena.case(command, name) as case:
        where = "out" if command.before else "in"
        files = [
            path
            for path in sorted((case.folder / where).rglob("*"))
            if path.is_file() and is_of_database(path.relative_to(case.folder / where))
        ]
        path = source.choice(files)
        data = bytearray(path.read_bytes())
        kind = source.choices(("byte", "cut", "longer"), weights=(10, 1, 1))[0]
        at = source.randrange(max(1, len(data)))
        if kind == "byte" and data:
            data[at] ^= source.randrange(1, 256)
        elif kind == "cut":
            del data[at:]
        else:
            data += bytes(source.choices(range(256), k=source.choice((1, 8, 64))))
        path.write_bytes(data)
        case.note_files()
        what = f"{command.name}: {kind} {at} of {path.relative_to(case.folder)}"
        ending = case.run()
        if ending.status == 0:
            problem = _only_this(case, path) if command.before else case.succeeded()
            return Verdict(what, "harmless", problem)
        return Verdict(what, "noticed", case.refused(ending) and f"{case.refused(ending)}: "
                       f"{ending.stderr[-300:]}")  # fmt: skip


def is_of_database(path: Path) -> bool:
    """Whether a path below ``in`` or ``out`` is a file that ngsgpu writes for itself."""
    return path.parts[0] in FOLDERS or path.suffix in (".cand", ".idx", ".npz", ".forests")


def _only_this(case: Case, damaged: Path) -> str:
    """Whether what was added stands beside a damaged part, which was not read and is still seen."""
    name = str(damaged.relative_to(case.folder / "out"))
    before, expected = case.outputs[name], case.alone.files[name]
    if not damaged.exists() or damaged.read_bytes() != before:
        return "the damaged part was changed"
    if before != expected and (status := case.run_verify()) != 2:
        return f"db verify: {status}"
    damaged.write_bytes(expected)
    return case.succeeded()
