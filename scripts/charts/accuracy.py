"""Errors that correction leaves, beside Lighter; figures of benchmarks of correctors."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

RESULT: Final = "2026-11-21_correctors_accuracy"
_NAMES: Final = {"ngsgpu": "ngsgpu correct", "lighter": "Lighter"}


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    rows = []
    for data in result["datasets"]:
        genus, species = data["name"].split("__")[0].split("_")[:2]
        bars, before = [], 0.0
        for own in data["programs"]:
            totals = own["accuracy"]["totals"]
            left, before, new = (
                1e6 * totals[name] / totals["bases"]
                for name in ("errors_after", "errors_before", "fp")
            )
            text = f"{left:.0f} ({new:.2g} new)"
            bars.append(Bar(_NAMES[own["program"]], left, text))
        title = f"{genus[0].upper()}. {species}"
        rows.append(Row(title, bars, f"{before:,.0f} before"))
    about = "Errors per million bases that correction leaves, and how many of them it has made"
    return chart(rows, "", about)
