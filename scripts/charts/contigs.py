"""Contiguity by coverage, beside others, as benchmarks/accuracy/assembly.py measures it."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from scripts.charts.svg import Bar, Row, chart

RESULT: Final = "2026-11-26_assembly_coverage"
_NAMES: Final = {"ngsgpu": "ngsgpu assemble", "megahit": "MEGAHIT", "spades": "SPAdes"}


def draw(result: dict[str, Any]) -> str:
    """The picture."""
    coverages = sorted({own["reads"]["coverage"] for own in result["rows"]})
    rows = []
    for coverage in coverages:
        sets = [own["found"] for own in result["rows"] if own["reads"]["coverage"] == coverage]
        bars = []
        for program, name in _NAMES.items():
            found = [own[program] for own in sets if program in own]
            if not found:
                continue
            length = median(own["nga50"] for own in found) / 1000
            wrong = sum(own["misassemblies"] for own in found)
            bars.append(Bar(name, length, f"{length:.0f} kb, {wrong:.0f} misassembled"))
        rows.append(Row(f"{coverage} x", bars))
    about = "NGA50 by coverage, of 1 Mb of six genomes, and how many contigs are misassembled"
    return chart(rows, "kb", about)
