"""Missing results: never made or, in a workflow that continues without them, failed.

A job of the workflow that fails permanently writes a note in place of its results: a first line
that no result begins with, the job's log, and the log's last line. Dependent jobs pass the note on,
so every result that depends on it has the same note.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FAILED: Final = b"#ngsgpu-failed\n"
_SKIPPED: Final = b"#ngsgpu-skipped\n"


@dataclass(frozen=True)
class Note:
    """Why a result is not there.

    Attributes:
        log: log of the job that should have made it.
        message: what the job said last.
        is_failure: whether the job failed; if not, there was nothing to make the result from.
    """

    log: str
    message: str
    is_failure: bool


def explained(notes: Iterable[Note]) -> list[str]:
    """What went wrong, each message once, with the logs that end with it."""
    logs: dict[str, list[str]] = {}
    for note in notes:
        logs.setdefault(note.message, []).append(note.log)
    return [f"{message} ({', '.join(dict.fromkeys(of))})" for message, of in logs.items()]


def read_note(path: Path) -> Note | None:
    """Read the note in place of a result; None for a result, or for nothing."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        first = file.readline(len(_SKIPPED))
        if first not in (_FAILED, _SKIPPED):
            return None
        log, _, message = file.read().decode("utf-8", "replace").partition("\n")
    return Note(log, " ".join(message.split()) or "it said nothing", first == _FAILED)


def is_present(path: Path | None, what: str, missing: list[str]) -> bool:
    """Whether a result exists; otherwise its description and reason go to ``missing``."""
    note = None if path is None else read_note(path)
    if path is not None and note is None and path.is_file():
        return True
    if note is not None:
        missing.append(f"{what} ({'failed' if note.is_failure else 'skipped'}: {note.log})")
    else:
        missing.append(what if path is None else f"{what} ({path.name} is not there)")
    return False
