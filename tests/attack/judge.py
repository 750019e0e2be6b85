"""What a command may end with, and whether a case ended so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.attack.forks import Ending

Files = Mapping[str, bytes]
_NOISE: Final = re.compile(r"^ngsgpu: (?!error: )")


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, and links and empty folders by a mark."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = b"link to " + str(path.readlink()).encode()
        elif path.is_dir():
            if not any(path.iterdir()):
                found[name + "/"] = b""
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = b"special"
    return found


def difference(before: Files, after: Files) -> str:
    """The first names that are new, gone or changed; empty if there are none."""
    changed = [f"new {name}" for name in sorted(set(after) - set(before))]
    changed += [f"gone {name}" for name in sorted(set(before) - set(after))]
    changed += [f"changed {n}" for n in sorted(set(before) & set(after)) if before[n] != after[n]]
    return ", ".join(changed[:4])


def refusal(ending: Ending, allowed: tuple[int, ...] = (2,)) -> str:
    """What is wrong with how a command refused or failed; empty if nothing is."""
    if ending.status is None:
        return "hung"
    if ending.status < 0:
        return f"ended by signal {-ending.status}"
    if "Traceback" in ending.stderr:
        return "traceback"
    if ending.status not in allowed:
        return f"exit status {ending.status}"
    lines = [line for line in ending.stderr.splitlines() if not _NOISE.match(line)]
    if lines and lines[0].startswith("Usage:"):
        return "" if lines[-1].startswith("Error: ") else "usage without an error"
    if len(lines) != 1 or not lines[0].startswith("ngsgpu: error: "):
        return f"not one line of error but {len(lines)}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", lines[0]):
        return "control characters in the message"
    return ""


def unharmed(folder: Path, inputs: Files, outputs: Files) -> str:
    """What a failed command left or changed in its case; empty if nothing."""
    for name, before in (("in", inputs), ("out", outputs), ("tmp", {})):
        if found := difference(before, files_below(folder / name)):
            return f"left in {name}/: {found}"
    return ""


def success(folder: Path, inputs: Files, expected: Files, volatile: frozenset[str]) -> str:
    """What a command that says it succeeded did wrong; empty if nothing.

    Args:
        folder: of the case.
        inputs: what lay in ``in``.
        expected: what has to lie in ``out``.
        volatile: names of outputs that differ from run to run, of which only the name counts.
    """
    if found := difference(inputs, files_below(folder / "in")):
        return f"changed in in/: {found}"
    after = files_below(folder / "out")
    for name in volatile & set(after) & set(expected):
        after[name] = expected[name]
    if found := difference(expected, after):
        return f"wrong output: {found}"
    if found := difference({}, files_below(folder / "tmp")):
        return f"left in tmp/: {found}"
    return ""
