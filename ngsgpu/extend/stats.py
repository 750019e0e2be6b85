"""The counters of an extension run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ngsgpu.run.statistics import statistics_json

SCHEMA = "ngsgpu.extend"
SCHEMA_VERSION = 1


@dataclass(slots=True)
class ExtensionStatistics:
    """What a run saw and did; written by ``--stats``.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        device: what it ran on, in words.
        command: the command line, empty for the Python API.
        parameters: name and value of every parameter.
        insert: ``mean`` and ``sd`` of fragments, ``min_length`` and ``max_length`` that are
            connected, whether the first two were ``estimated`` and from how many ``pairs``.
        reads: totals of the input.
        pairs: ``total``, ``connected``, ``remaining``, and the connected ones by how: ``both``,
            ``confirmed``, ``one``, ``differ``, ``merged``.
        lengths: ``min``, ``mean``, ``max`` of the extended reads, ``bases`` of all of them.
        length_histogram: [length, extended reads], ascending.
        tasks: iterations of primary and auxiliary tasks, auxiliary tasks begun, candidates.
        time_s: seconds by stage.
        memory: planned and largest measured bytes.
        gpu_memory: the same of a GPU, and what lay on the host; empty on the CPU.
    """

    backend: str
    device: str
    command: list[str]
    parameters: dict[str, Any]
    insert: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    length_histogram: list[list[int]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)
    time_s: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    gpu_memory: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The statistics as JSON text."""
        return statistics_json(SCHEMA, SCHEMA_VERSION, self)

    def summary(self) -> list[str]:
        """A few lines that say what was done."""
        pairs, insert = self.pairs, self.insert
        taken = (
            f"{self.time_s['total']:.1f} s, at most "
            f"{self.memory['peak_rss_bytes'] / 2**30:.2f} GiB of memory, {self.device}"
        )
        if pairs["total"] == 0:
            return ["no pairs", taken]
        share = 100 * pairs["connected"] / max(1, pairs["total"])
        origin = f"estimated from {insert['pairs']:,} pairs" if insert["estimated"] else "given"
        return [
            f"fragments of {insert['mean']:g} ± {insert['sd']:g} bases ({origin}); from "
            f"{insert['min_length']:,} to {insert['max_length']:,} are connected",
            f"{pairs['connected']:,} of {pairs['total']:,} pairs connected ({share:.1f} %): "
            f"{pairs['both']:,} by both sides, {pairs['confirmed']:,} confirmed, "
            f"{pairs['one'] + pairs['differ'] + pairs['merged']:,} otherwise",
            f"extended reads of {self.lengths['mean']:.1f} bases on average",
            taken,
        ]
