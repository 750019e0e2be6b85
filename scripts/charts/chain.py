"""Where the time goes in a chain and in its commands, as benchmarks/chains.py measures it."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

RESULT: Final = "2026-11-26_chain_L_h200"


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    single = {
        name: median(own["wall_s"] for own in runs) for name, runs in result["commands"].items()
    }
    runs = result["chain"]
    chain = {
        name: median(own["steps"][at]["time_s"] for own in runs) for at, name in enumerate(single)
    }
    steps = (own["wall_s"] - sum(step["time_s"] for step in own["steps"]) for own in runs)
    chain["start and end"] = median(steps)
    rows = []
    for title, parts in (("commands", single), ("chain", chain)):
        total = f"{sum(parts.values()):.1f} s"
        rows.append(Row(title, [Bar(name, value, total) for name, value in parts.items()]))
    about = "Seconds of each command, and of each step of the chain"
    return chart(rows, "s", about, stacked=True)
