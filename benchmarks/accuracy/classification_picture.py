"""Draws what ``benchmarks.accuracy.classification_curves`` measured.

python -m benchmarks.accuracy.classification_picture curves.json -o curves.png
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.accuracy.classification_curves import RANKS
from ngsgpu.report.palette import AMBER, BLUE, GREEN, INK, MUTED, PURPLE

SKETCH = 21
CURVES = (
    (
        "one pass: --species-confidence 0.22 to 0.4",
        "--species-identity 0 --species-confidence {}", (0.22, 0.3, 0.4), PURPLE,
    ),
    ("--min-hits 2 to 6", "--min-hits {}", (2, 4, 5, 6), BLUE),
    ("--species-confidence 0.22 to 0.4", "--species-confidence {}", (0.22, 0.3, 0.4), GREEN),
    ("--confidence 0.1 to 0.3", "--confidence {}", (0.1, 0.2, 0.3), AMBER),
)  # fmt: skip
"""Label, names of settings, values, colour."""
PEERS = (
    ("Kraken 2, --confidence 0 to 0.5", "Kraken ", "s", INK),
    ("MetaCache, -hitmin 2 to 8", "MetaCache ", "^", MUTED),
)
"""Label, what names begin with, marker, colour."""


def main() -> int:
    import matplotlib as mpl

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("curves", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    wanted = parser.parse_args()
    mpl.use("agg")
    import matplotlib.pyplot as plt

    document = json.loads(wanted.curves.read_text())
    figure, panels = plt.subplots(1, 2, figsize=(10, 5.4), layout="constrained")
    for axes, rank in zip(panels, RANKS, strict=True):
        draw(axes, document, rank)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(wanted.out, dpi=100, metadata={"Software": None})
    return 0


def draw(axes: Any, document: dict[str, Any], rank: str) -> None:
    """One rank: curves of ours, of others, and the defaults."""
    own = {row["name"]: row[rank] for row in document["settings"] if row["sketch"] == SKETCH}
    for label, name, values, colour in CURVES:
        line(axes, [own[name.format(value)] for value in values], label, "o", colour)
    for label, start, marker, colour in PEERS:
        found = [row[rank] for row in document["peers"] if row["name"].startswith(start)]
        line(axes, found, label, marker, colour)
    best = own["defaults"]
    axes.plot(
        [100 * best["sensitivity"]], [100 * best["precision"]], "*", markersize=15, color=GREEN,
        markeredgecolor=INK, label="ngsgpu, defaults", zorder=5,
    )  # fmt: skip
    axes.set_title(rank, loc="left", weight="bold")
    axes.set_xlabel("sensitivity (%)")
    axes.set_ylabel("precision (%)")
    axes.grid(color="#dde2e7", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)


def line(axes: Any, found: list[dict[str, float]], label: str, marker: str, colour: str) -> None:
    """A curve through settings."""
    axes.plot(
        [100 * row["sensitivity"] for row in found],
        [100 * row["precision"] for row in found],
        marker=marker, markersize=5, linewidth=1.4, color=colour, label=label,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
