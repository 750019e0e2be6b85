"""Accuracy of classification by the size of the database, beside Kraken 2."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.curves import Curve, Panel, curves

RESULT: Final = "2026-11-26_classification_lengths"
_NAMES: Final = {
    "fraction": "ngsgpu, --fraction",
    "kraken2": "Kraken 2",
    "sketch": "smaller sketches",
    "window": "longer windows",
}
_PANELS: Final = {"sensitivity": "Sensitivity, species", "precision": "Precision, species"}
_FULL: Final = "fraction 1"
_MILLION: Final = 1e6


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    databases = result["sets"]["check"]["databases"]
    panels = []
    for what, title in _PANELS.items():
        lines = []
        for kind, name in _NAMES.items():
            own = [key for key in databases if key.split()[0] == kind]
            if not own:
                continue
            if kind in ("sketch", "window"):
                own.append(_FULL)
            points = sorted(
                (databases[key]["bytes"] / _MILLION, databases[key]["species"][what]) for key in own
            )
            lines.append(Curve(name, points))
        panels.append(Panel(title, lines))
    about = "Sensitivity and precision of species calls by the bytes of the database"
    return curves(panels, "MB", about)
