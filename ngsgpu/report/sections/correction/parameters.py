"""Correction's stages, parameters and commands."""

from __future__ import annotations

from collections.abc import Sequence

from ngsgpu.report import words
from ngsgpu.report.model import SampleResults
from ngsgpu.report.page import Table
from ngsgpu.report.sections.correction.section import statistics


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
