"""The steps in which a sample failed, and whether anything could read all of its reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ngsgpu.report.absent import Note, read_note
from ngsgpu.report.model import Sample
from ngsgpu.report.sections import STAGES

_READERS: Final = ("trim", "deplete", "correct", "merge", "extend", "classification")
"""Files of steps that fail unless they can read all reads."""


Notes = Mapping[tuple[str, ...], Note]
"""Notes in place of a sample's results, by the keys of its files."""


def notes_of(sample: Sample) -> Notes:
    """Read the notes of a sample, those in place of single files first."""
    paths = sample.files.paths
    return {key: note for key in sorted(paths, key=len) if (note := read_note(paths[key]))}


def failed_steps(notes: Notes) -> list[str]:
    """The steps in which a sample failed; not those that only lack what an earlier one makes.

    Dependent jobs pass a note on, so a step that has the note of an earlier one did not run.
    """
    seen: set[Note] = set()
    found: list[str] = []
    for step, note in _failures(notes):
        if note not in seen:
            seen.add(note)
            found.append(step)
    return list(dict.fromkeys(found))


def is_read(sample: Sample, notes: Notes) -> bool:
    """Whether a step read all reads of a sample."""
    return any(
        key not in notes and path.is_file()
        for key, path in sample.files.paths.items()
        if key[0] in _READERS
    )


def place(step: str) -> int:
    """The place of a step on the page."""
    return next(n for n, stage in enumerate(STAGES) if step.startswith(stage.title))


def _failures(notes: Notes) -> Iterator[tuple[str, Note]]:
    """Steps and their notes of failures, in the order in which the steps run."""
    # The page has the corrected reads' quality before correction, which makes them.
    late = []
    for stage in STAGES:
        names = {spec.name for spec in stage.files}
        for key, note in notes.items():
            if key[0] not in names or not note.is_failure:
                continue
            if key == ("qc", "corrected"):
                late.append((stage.title, note))
                continue
            database = key[1] if key[0] == "classification" else ""
            yield f"{stage.title}{f' with {database}' if database else ''}", note
    yield from late
