"""Correction's stages, parameters and commands, and values published for it."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.report import words
from ngsgpu.report.model import SampleResults
from ngsgpu.report.page import Table
from ngsgpu.report.sections.correction.section import Correction, statistics
from ngsgpu.report.words import Number


def stage_table(samples: Sequence[SampleResults]) -> Table | None:
    """Seconds of correction by stage, and its memory, one column a sample."""
    having = [(label, stats) for label, stats in statistics(samples) if stats.get("time_s")]
    if not having:
        return None
    rows = [
        (stage, *(words.duration(stats.number(f"time_s.{stage}")) for _, stats in having))
        for stage in dict.fromkeys(stage for _, stats in having for stage in stats.get("time_s"))
    ]
    for key, what in (("peak_rss_bytes", "peak memory"), ("planned_bytes", "memory planned")):
        values = (stats.number(f"memory.{key}") for _, stats in having)
        rows.append((what, *(words.bytes_as_mebibytes(value) for value in values)))
    return Table(("stage", *(label for label, _ in having)), rows)


def parameters(samples: Sequence[SampleResults]) -> tuple[dict[str, str], Table | None]:
    """Parameters that all corrections share, and a table of those that differ between samples."""
    having = [(label, stats) for label, stats in statistics(samples) if stats.get("parameters")]
    flats = [words.flat(stats.get("parameters")) for _, stats in having]
    shared: dict[str, str] = {}
    rows = []
    for name in dict.fromkeys(name for flat in flats for name in flat):
        values = [flat.get(name, words.NOTHING) for flat in flats]
        if len(set(values)) == 1:
            shared[name] = values[0]
        else:
            rows.append((name, *values))
    labels = tuple(label for label, _ in having)
    return shared, Table(("parameter", *labels), rows) if rows else None


def commands(samples: Sequence[SampleResults]) -> list[tuple[str, str]]:
    """The correction's command line of each sample, where its statistics have it."""
    found = []
    for label, stats in statistics(samples):
        command = stats.get("command")
        if isinstance(command, list) and command:
            found.append((label, " ".join(str(word) for word in command)))
    return found


_RUN = "reference run, other data"
_PUBLISHED = "published [1], other data"
_REFERENCE = (
    ("CARE 2.3, classic", "human chr20 + yeast, 30x HiSeq", _RUN, 0.953, 79),
    ("BFC r181", "human chr20 + yeast, 30x HiSeq", _RUN, 0.985, 4370),
    ("Lighter 1.1.3", "human chr20 + yeast, 30x HiSeq", _RUN, 0.966, 8546),
    ("CARE, classic", "C. elegans, 30x HiSeq", _PUBLISHED, 0.95, 253),
    ("CARE, classic", "D. melanogaster, 30x HiSeq", _PUBLISHED, 0.95, 110),
    ("CARE, classic", "human chr14, 30x HiSeq", _PUBLISHED, 0.92, 452),
    ("BFC", "D. melanogaster, 30x HiSeq", _PUBLISHED, 0.99, 1498),
    ("Lighter", "D. melanogaster, 30x HiSeq", _PUBLISHED, 0.97, 3651),
)
"""Program, data, origin, sensitivity, FP per million corrections; [1] is the dissertation."""


def reference_table(samples: Sequence[SampleResults]) -> Table:
    """Values measured here, then values published for other data."""
    rows: list[tuple[str, ...]] = []
    marks = set()
    for results in samples:
        truth = results.of(Correction).truth
        if truth is None:
            continue
        version = str(truth.get("version") or "")
        marks.add((len(rows), 0))
        rows.append(
            (
                f"ngsgpu {version}".strip(),
                results.sample.label,
                "measured here",
                words.decimal(truth.number("rates.sensitivity"), 3),
                words.decimal(truth.number("rates.fp_per_million_corrections"), 1),
            )
        )
    rows += [
        (*names, Number(f"{sensitivity}", sensitivity), words.count(false))
        for *names, sensitivity, false in _REFERENCE
    ]
    return Table(
        ("program", "data", "origin", "sensitivity", "FP per million corrections"),
        rows,
        frozenset(marks),
        frozenset({1, 2}),
    )
