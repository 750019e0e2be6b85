"""Contiguity beside others, of genomes on which nothing was chosen: our losses first."""

from __future__ import annotations

from typing import Any, Final

from scripts.charts.svg import Bar, Row, log_chart

RESULT: Final = "2026-11-26_assembly_drawn"
_NAMES: Final = {"ngsgpu": "ngsgpu assemble", "megahit": "MEGAHIT", "spades": "SPAdes"}
_LEAST: Final = 5.0
"""Kilobases at the left end of the axis."""


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    sets = [own for own in result["rows"] if own["role"] == "checked" and len(_lengths(own)) > 1]
    rows = [_row(own) for own in sorted(sets, key=_ratio)]
    about = "NGA50 of 1 Mb of genomes on which nothing was chosen, and misassembled contigs"
    return log_chart(rows, "kb", about, low=_LEAST)


def _lengths(own: dict[str, Any]) -> dict[str, float]:
    return {name: own["found"][name]["nga50"] for name in _NAMES if name in own["found"]}


def _ratio(own: dict[str, Any]) -> float:
    """NGA50 of ngsgpu beside the longest of the others."""
    lengths = _lengths(own)
    return lengths.pop("ngsgpu") / max(lengths.values())


def _row(own: dict[str, Any]) -> Row:
    genus, _, rest = own["genome"].partition("_")
    reads = own["reads"]
    bars = []
    for name, length in _lengths(own).items():
        wrong = own["found"][name]["misassemblies"]
        text = f"{length / 1000:.0f} kb" + (f", {wrong:.0f} misassembled" if wrong else "")
        bars.append(Bar(_NAMES[name], length / 1000, text))
    species = rest.partition("__")[0].partition("_")[0]
    title = genus.capitalize() if species == "sp" else f"{genus[0].upper()}. {species}"
    return Row(title, bars, f"2 x {reads['length']}, {reads['coverage']} x")
