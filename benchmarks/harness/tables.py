"""Markdown tables of measurements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

TIMES = ("wall, s", "x ngsgpu", "reads/s", "CPU, s", "host, GB", "GPU, GB")
ACCURACY = ("sensitivity", "FP per million", "errors left per million bases")


def markdown(rows: Sequence[Sequence[str]], *, names: int) -> str:
    """A table whose first row is its header and whose first columns are names."""
    header, *lines = rows
    rule = ["---"] * names + ["---:"] * (len(header) - names)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [header, rule, *lines])


def table(document: dict[str, Any]) -> str:
    """The results of ``benchmarks.peers.suite``: a line a data set and program; parts; the rest."""
    timed = not document["settings"]["accuracy_only"]
    rows = [["data", "program", *(TIMES if timed else ()), *ACCURACY]]
    parts = [["data", "program", "parts, s"]]
    notes = []
    for data in document["datasets"]:
        ours = next((e for e in data["programs"] if e["program"] == "ngsgpu"), None)
        for entry in data["programs"]:
            names = [data["name"], entry["program"]]
            times = []
            if timed:
                times = time_cells(entry["runs"], ours["runs"] if ours else [], data["reads"])
            rows.append(names + times + accuracy_cells(entry["accuracy"]))
            if timed and (middle := median_parts(entry["runs"])):
                told = ", ".join(f"{part} {seconds:.2f}" for part, seconds in middle.items())
                parts.append([*names, told])
        if data["parity"]:
            same = "the same bytes" if data["parity"]["same"] else "DIFFERENT BYTES"
            notes.append(f"{data['name']}: {' and '.join(data['parity']['backends'])} wrote {same}")
    if start := document["start"]:
        warm = statistics.median(run["wall_s"] for run in start["warm"])
        notes.append(
            f"ngsgpu on {start['pairs']} pairs: {start['cold']['wall_s']:.1f} s with no compiled "
            f"kernels, {warm:.1f} s with all"
        )
    blocks = [markdown(rows, names=2)]
    if len(parts) > 1:
        blocks.append(markdown(parts, names=3))
    if notes:
        blocks.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(blocks)


def time_cells(
    runs: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]], reads: int
) -> list[str]:
    """Median and range of the wall time, its ratio to ours, reads a second, CPU time, memory."""
    walls = [run["wall_s"] for run in runs]
    wall = statistics.median(walls)
    ratio = wall / statistics.median(run["wall_s"] for run in ours) if ours else None
    cpu = statistics.median(run["user_s"] + run["system_s"] for run in runs)
    device = [run["peak_device_bytes"] for run in runs if run["peak_device_bytes"] is not None]
    return [
        f"{wall:.2f}" + (f" ({min(walls):.2f}-{max(walls):.2f})" if len(walls) > 1 else ""),
        "-" if ratio is None else f"{ratio:.2f}",
        f"{reads / wall:,.0f}",
        f"{cpu:.1f}",
        f"{max(run['peak_rss_bytes'] for run in runs) / 1e9:.2f}",
        f"{max(device) / 1e9:.2f}" if device else "-",
    ]


def wrong_merges(pairs: dict[str, int]) -> float | None:
    """Merged reads of a wrong length per million merged reads."""
    wrong = pairs["wrong"] + pairs["apart_merged"]
    merged = wrong + pairs["right"] + pairs["near"]
    return 1e6 * wrong / merged if merged else None


def accuracy_cells(accuracy: dict[str, Any] | None) -> list[str]:
    """Sensitivity, false corrections or merges, and errors left; dashes where not known."""
    if accuracy is None:
        return ["-"] * len(ACCURACY)
    rates = accuracy["rates"]
    sensitivity = rates["sensitivity"]
    if "totals" in accuracy:
        totals, false = accuracy["totals"], rates["fp_per_million_corrections"]
    else:
        bases = accuracy["bases"]
        totals = {"bases": bases["after"] or 1, "errors_after": bases["errors_after"]}
        false = wrong_merges(accuracy["pairs"])
    return [
        "-" if sensitivity is None else f"{sensitivity:.4f}",
        "-" if false is None else f"{false:,.1f}",
        f"{1e6 * totals['errors_after'] / totals['bases']:,.1f}",
    ]


def median_parts(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Median seconds of each part that all runs told."""
    told = [run.get("parts", {}) for run in runs]
    return {
        part: statistics.median(parts[part] for parts in told)
        for part in told[0]
        if all(part in parts for parts in told)
    }
