"""Where the time goes at the size of the human genome, as benchmarks/human.py measures it."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

SUFFIX: Final = "_human_genome*"
"""Of the names of results, of which the last one is drawn."""

PARTS: Final = {
    "read": "read",
    "spectrum": "tables",
    "size": "tables",
    "place": "tables",
    "tables": "tables",
    "count": "tables",
    "table": "tables",
    "insert_size": "tables",
    "correct": "correct, extend",
    "extend": "correct, extend",
    "write": "write",
}
"""What steps are shown as."""

ORDER: Final = ("read", "tables", "correct, extend", "write", "other")


def draw(result: dict[str, Any]) -> str:
    """The picture; of kept results those runs that ended well."""
    rows = []
    for run in result["runs"]:
        if "coverage" not in run or "error" in run or "found" not in run:
            continue
        parts = dict.fromkeys(ORDER, 0.0)
        for step, took in run.get("steps_s", {}).items():
            if step in PARTS:
                parts[PARTS[step]] += took
        parts["other"] = max(0.0, run["wall_s"] - sum(parts.values()))
        total = f"{run['wall_s']:.0f} s"
        bars = [Bar(name, took, total) for name, took in parts.items()]
        name, _, gpus = run["name"].rpartition(", ")
        rows.append(Row(name, bars, gpus))
    return chart(rows, "s", "Seconds of each step of whole runs", stacked=True)
