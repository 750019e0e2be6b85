"""Outputs that are inputs, or each other, under any spelling: refused, nothing harmed."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

from tests.attack.arena import Arena, Case, Verdict
from tests.attack.world import COMMANDS, Command

_SPELLINGS: Final = ("same", "dots", "slashes", "symlink", "hard link", "linked folder", "relative")


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Let an output of a command be one of its inputs, or two outputs be one file."""
    command = source.choice([command for command in COMMANDS if _may_clash(command)])
    with arena.case(command, name) as case:
        arguments = command.placed(case.folder)
        targets = [i for i, word in enumerate(command.arguments) if word.startswith("OUT/")]
        target = source.choice(targets)
        spelling = source.choice(_SPELLINGS)
        others = [i for i in targets if i != target]
        if others and source.random() < 0.25:
            other = Path(arguments[source.choice(others)])
            if "{" in other.name or "{" in arguments[target]:
                other = Path(arguments[target])
                arguments = [str(other) if i in others else w for i, w in enumerate(arguments)]
            clash = other
        else:
            clash = _chosen_input(case, source, is_database=arguments[target].endswith("/db"))
        arguments[target] = spelled(clash, spelling, case.folder / "tmp")
        case.note_files()
        what = f"{command.name}: {command.arguments[target]} as {clash.name} ({spelling})"
        ending = case.run(arguments)
        for path in (case.folder / "tmp").glob("link*"):
            if path.is_symlink() or path.is_file():
                path.unlink()
        problem = case.refused(ending)
        return Verdict(what, "refused", problem and f"{problem}: {ending.stderr[-300:]}")


def _may_clash(command: Command) -> bool:
    """Whether it reads and writes; BWA's index files are named after the reference."""
    return bool(command.inputs and command.outputs) and command.name != "index bwa"


def _chosen_input(case: Case, source: random.Random, *, is_database: bool) -> Path:
    inside = case.folder / "in"
    named = [word[3:] for word in case.command.arguments if word.startswith("IN/")]
    named += [case.command.stdin] if case.command.stdin else []
    chosen = inside / source.choice([name for name in named if not (is_database and name == "tax")])
    if is_database:
        return source.choice((chosen, inside))
    if chosen.is_dir():
        return source.choice([path for path in sorted(chosen.rglob("*")) if path.is_file()])
    return chosen


def spelled(path: Path, spelling: str, scratch: Path) -> str:
    """Another name of a file or folder.

    Args:
        path: the file.
        spelling: in which way.
        scratch: folder for links.
    """
    link = scratch / f"link{path.suffix}"
    if spelling == "dots":
        return str(path.parent / ".." / path.parent.name / path.name)
    if spelling == "slashes":
        return str(path).replace("/", "//")
    if spelling == "symlink":
        link.symlink_to(path)
        return str(link)
    if spelling == "hard link" and path.is_file():
        os.link(path, link)
        return str(link)
    if spelling == "linked folder":
        link = scratch / "link"
        link.symlink_to(path.parent)
        return str(link / path.name)
    if spelling == "relative":
        return os.path.relpath(path, scratch.with_name("in"))
    return str(path)
