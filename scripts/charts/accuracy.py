"""Errors that correction leaves in simulated reads, beside Lighter: all sets, our losses first."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.svg import Bar, Row, log_chart

RESULT: Final = "2026-11-26_correct_simulated"
_NAMES: Final = {"pairs": "ngsgpu correct", "lighter": "Lighter"}
_CHOSEN: Final = ("escherichia", "staphylococcus", "shigella")
"""Genera on whose reads rules were chosen; all others are checks."""
_LEAST: Final = 0.1
"""Errors per million bases at the left end of the axis."""


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    ordered = sorted(result["runs"], key=lambda run: -_ratio(run["results"]))
    rows = [_row(run["settings"], run["results"]) for run in ordered]
    about = "Errors per million bases that correction leaves, and how many of them it has made"
    return log_chart(rows, "", about, low=_LEAST)


def _ratio(found: dict[str, Any]) -> float:
    """Errors that ngsgpu leaves for each of Lighter's."""
    ours, theirs = (max(found[name]["left_per_million"], _LEAST / 2) for name in _NAMES)
    return float(ours / theirs)


def _row(settings: dict[str, Any], found: dict[str, Any]) -> Row:
    genus, _, species = settings["genome"].partition(".")[0].partition("__")[0].partition("_")
    title = "human" if genus == "human" else f"{genus[0].upper()}. {species}"
    below = f"{settings['profile'].partition('L1')[0]}, {float(settings['coverage']):g} x"
    if settings["strain"] != "None":
        depth, distance = map(float, settings["strain"].strip("[]").split(","))
        below += f" + {depth:g} x of a strain ({100 * distance:g} %)"
    if settings["unknown"] != "[0, 0]":
        below += ", many N" if settings["unknown"] == "[2, 5]" else ", with N"
    below += ", rules chosen on it" if genus in _CHOSEN else ""
    bars = []
    for name, label in _NAMES.items():
        left = found[name]["left_per_million"]
        new = 1e6 * found[name]["right_bases_changed"] / found[name]["bases"]
        bars.append(Bar(label, left, f"{_short(left)} ({_short(new)} new)"))
    return Row(title, bars, below)


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"
