"""The counters of a correction run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ngsgpu.run.statistics import statistics_json

SCHEMA = "ngsgpu.correct"
SCHEMA_VERSION = 1


@dataclass(slots=True)
class CorrectionStatistics:
    """What a run saw and did; written by ``--stats``.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        device: what it ran on, in words.
        command: the command line, empty for the Python API.
        parameters: name and value of every parameter.
        coverage: ``value`` (reads per position) and whether it was ``estimated``.
        reads: totals of the input.
        anchors: MSAs by quality.
        candidates: found by the tables, aligned, kept by the filter, taken out by refinement.
        corrected: reads and bases changed, reads by class, ambiguous bases decided and left.
        corrected_bases_by_position: for each mate, bases changed at each position of the read.
        spectrum: k-mer length, sampling and histogram that the coverage was estimated from.
        time_s: seconds by stage.
        memory: planned and largest measured bytes.
        gpu_memory: planned bytes of each GPU, and what lay on the host; empty on the CPU.
    """

    backend: str
    device: str
    command: list[str]
    parameters: dict[str, Any]
    coverage: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    corrected_bases_by_position: list[list[int]] = field(default_factory=list)
    spectrum: dict[str, Any] = field(default_factory=dict)
    time_s: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_memory: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The statistics as JSON text."""
        return statistics_json(SCHEMA, SCHEMA_VERSION, self)

    def summary(self) -> list[str]:
        """A few lines that say what was done."""
        reads, changed = self.reads["total"], self.corrected
        share = 100 * changed["reads"] / max(1, reads)
        origin = "estimated" if self.coverage["estimated"] else "given"
        return [
            f"coverage {self.coverage['value']:.1f} ({origin})",
            f"{reads:,} reads, {self.reads['bases']:,} bases",
            f"{changed['bases']:,} bases corrected in {changed['reads']:,} reads ({share:.1f} %)",
            f"{changed['unknown_decided']:,} ambiguous bases decided, "
            f"{changed['unknown_left']:,} left",
            f"{self.time_s['total']:.1f} s, at most "
            f"{self.memory['peak_rss_bytes'] / 2**30:.2f} GiB of memory, {self.device}",
        ]
