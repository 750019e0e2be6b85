"""Errors that correction leaves in simulated reads, beside Lighter."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

RESULT: Final = "2026-11-26_correct_simulated"
_NAMES: Final = {"pairs": "ngsgpu correct", "lighter": "Lighter"}
_FEW: Final = 10
"""Errors per million bases that no program leaves in reads that are not drawn."""


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    rows = []
    for run in result["runs"]:
        settings, found = run["settings"], run["results"]
        if settings["strain"] != "None" or settings["unknown"] == "[2, 5]":
            continue
        if max(found[name]["left_per_million"] for name in _NAMES) < _FEW:
            continue
        file = settings["genome"].partition(".")[0]
        genus, _, species = file.partition("__")[0].partition("_")
        title = f"{genus[0].upper()}. {species}" if species else "human"
        below = f"{settings['profile']}, {float(settings['coverage']):g} x"
        below += ", with N" if settings["unknown"] != "[0, 0]" else ""
        bars = []
        for name, label in _NAMES.items():
            own = found[name]
            new = 1e6 * own["right_bases_changed"] / own["bases"]
            shown = f"{new:.2g}" if new < 100 else f"{new:,.0f}"
            text = f"{own['left_per_million']:,.0f} ({shown} new)"
            bars.append(Bar(label, own["left_per_million"], text))
        rows.append(Row(title, bars, below))
    about = "Errors per million bases that correction leaves, and how many of them it has made"
    return chart(rows, "", about)
