"""Missing results: never made or, in a workflow that continues without them, failed.

A job of the workflow that fails permanently leaves its results empty and writes a note beside
each, ``NAME.failed``: the job's log, and the log's last error. ``NAME.skipped`` is the same where
there was nothing to make a result from. Dependent jobs pass the note on, so every result that
depends on it has the same note.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KINDS: Final = ("failed", "skipped")


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
    """Read the note beside a result; None for a result, or for nothing."""
    for kind in _KINDS:
        place = path.with_name(f"{path.name}.{kind}")
        try:
            if not place.is_file():
                continue
            text = place.read_text("utf-8", "replace")
        except OSError:
            continue
        log, _, message = text.partition("\n")
        return Note(log, " ".join(message.split()) or "it said nothing", kind == "failed")
    return None


def is_present(path: Path | None, what: str, missing: list[str]) -> bool:
    """Whether a result exists; otherwise its description and reason go to ``missing``.

    Args:
        path: the result; None if the study has none.
        what: its description.
        missing: descriptions of what is missing; extended in place.
    """
    note = None if path is None else read_note(path)
    if path is not None and note is None and path.is_file():
        return True
    if note is not None:
        missing.append(f"{what} ({'failed' if note.is_failure else 'skipped'}: {note.log})")
    else:
        missing.append(what if path is None else f"{what} ({path.name} is not there)")
    return False
