"""Seconds of commands by the form of their files; figures as benchmarks/forms writes them."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

RESULT: Final = "2026-11-25_forms_L_written_h100"
_FORMS: Final = {"plain": "plain", "gz": ".gz in and out"}


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    found: dict[str, list[Bar]] = {}
    for own in result["jobs"]:
        if own["form"] in _FORMS:
            seconds = median(run["wall_s"] for run in own["runs"])
            bar = Bar(_FORMS[own["form"]], seconds, f"{seconds:.1f} s")
            found.setdefault(own["job"], []).append(bar)
    rows = [Row(job, bars) for job, bars in found.items()]
    return chart(rows, "s", "Seconds of commands with plain and with compressed files")
