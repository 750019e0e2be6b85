"""The counters of a depletion, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import BASES, KEPT_BASES, KEPT_UNITS, UNITS
from ngsgpu.device.memory import format_size
from ngsgpu.run.statistics import RunStatistics


@dataclass(slots=True, kw_only=True)
class HostStatistics(RunStatistics):
    """An index of a host that was made; see also ``RunStatistics``.

    Attributes:
        index: the host's k-mers.
    """

    SCHEMA = "ngsgpu.deplete_index"
    index: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """A line for people."""
        own = self.index
        return [
            f"{own['kmers']:,} k-mers of {own['sequences']:,} sequences with {own['bases']:,} "
            f"bases; {format_size(own['bytes'])}"
        ]


@dataclass(slots=True, kw_only=True)
class DepletionStatistics(RunStatistics):
    """Counts and resources of a depletion; see also ``RunStatistics``.

    Attributes:
        index: the host's k-mers.
        bounds: of the bases that they had to cover, as of ``Bounds``.
        paired: whether the reads have mates.
        reads: ``total``, ``host`` and ``other`` ones, ``kept`` in the outputs; each of a pair
            counts.
        bases: the same in bases.
    """

    SCHEMA = "ngsgpu.deplete"
    index: dict[str, Any] = field(default_factory=dict)
    bounds: dict[str, Any] = field(default_factory=dict)
    paired: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)

    def count(self, counts: NDArray[np.int64]) -> None:
        """Fill in the counts."""
        mates = 2 if self.paired else 1
        total, kept, bases, kept_bases = (
            int(counts[counter]) for counter in (UNITS, KEPT_UNITS, BASES, KEPT_BASES)
        )
        keeps_host = bool(self.parameters["keep_host"])
        self.reads = _split(mates * total, mates * kept, keeps_host)
        self.bases = _split(bases, kept_bases, keeps_host)

    @property
    def host_share(self) -> float:
        """Share of the reads that are the host's."""
        return self.reads["host"] / max(1, self.reads["total"])

    def summary(self) -> list[str]:
        """A short text summary."""
        reads = self.reads
        kept = "the host's" if self.parameters["keep_host"] else "the others"
        return [
            f"{reads['total']:,} reads, {reads['host']:,} of the host "
            f"({100 * self.host_share:.2f} %); kept {kept}, {reads['kept']:,} reads with "
            f"{self.bases['kept']:,} bases",
            self.resources(),
        ]


def _split(total: int, kept: int, keeps_host: bool) -> dict[str, int]:
    host = kept if keeps_host else total - kept
    return {"total": total, "host": host, "other": total - host, "kept": kept}
