"""The counters of an extension run, as JSON and as lines for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend import cpu
from ngsgpu.extend.records import KIND_WORDS
from ngsgpu.extend.tasks.joining import NOT_CONNECTED
from ngsgpu.run.statistics import RunStatistics, totals_of

if TYPE_CHECKING:
    from ngsgpu.extend.cpu_run import Run
    from ngsgpu.extend.insert import InsertSize
    from ngsgpu.extend.rules import Rules


@dataclass(slots=True, kw_only=True)
class ExtensionStatistics(RunStatistics):
    """Counts and resources of an extension; see also ``RunStatistics``.

    Attributes:
        insert: ``mean`` and ``sd`` of the insert size, ``min_length`` and ``max_length`` to
            connect,
            whether the first two were ``estimated`` and from how many ``pairs``.
        reads: totals of the input.
        pairs: ``total``, ``connected``, ``remaining``, and the connected ones by kind: ``both``,
            ``confirmed``, ``one``, ``differ``, ``merged``.
        lengths: ``min``, ``mean``, ``max`` of the extended reads, ``bases`` of all of them.
        length_histogram: [length, extended reads], ascending.
        tasks: iterations of primary and auxiliary tasks, auxiliary tasks started, candidates.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``.
        gpu_memory: GPU memory planned and used, and data kept on the host; empty on the CPU.
    """

    SCHEMA = "ngsgpu.extend"
    insert: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    length_histogram: list[list[int]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)
    adapters: dict[str, Any] = field(default_factory=dict)
    gpu_memory: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, rules: Rules, insert: InsertSize, lengths: NDArray[np.int64]) -> Self:
        """The statistics of a run that has written its outputs.

        Args:
            run: the run.
            rules: by which pairs were extended.
            insert: length of fragments.
            lengths: extended reads of each length.
        """
        reads, counters = run.reads, run.counters.tolist()
        kinds = counters[: len(KIND_WORDS)]
        found = np.flatnonzero(lengths)
        bases = int((lengths * np.arange(len(lengths))).sum())
        connected = sum(kinds[1:])
        return cls.after(
            run,
            insert=asdict(insert)
            | {"min_length": rules.min_length, "max_length": rules.max_length},
            reads=totals_of(reads),
            pairs={
                "total": reads.reads // 2,
                "connected": connected,
                "remaining": kinds[NOT_CONNECTED],
            }
            | dict(zip(KIND_WORDS[1:], kinds[1:], strict=True)),
            lengths={
                "min": int(found[0]) if len(found) else 0,
                "mean": round(bases / max(1, connected), 3),
                "max": int(found[-1]) if len(found) else 0,
                "bases": bases,
            },
            length_histogram=[[int(length), int(lengths[length])] for length in found],
            tasks={
                "primary_iterations": counters[cpu.PRIMARY_STEPS],
                "auxiliary_iterations": counters[cpu.AUXILIARY_STEPS],
                "auxiliary_tasks": counters[cpu.AUXILIARY_TASKS],
                "candidates": counters[cpu.CANDIDATES_TAKEN],
            },
        )

    def summary(self) -> list[str]:
        """A short text summary."""
        pairs, insert = self.pairs, self.insert
        if pairs["total"] == 0:
            return ["no pairs", self.resources()]
        share = 100 * pairs["connected"] / max(1, pairs["total"])
        origin = f"estimated from {insert['pairs']:,} pairs" if insert["estimated"] else "given"
        return [
            f"fragments of {insert['mean']:g} ± {insert['sd']:g} bases ({origin}); from "
            f"{insert['min_length']:,} to {insert['max_length']:,} are connected",
            f"{pairs['connected']:,} of {pairs['total']:,} pairs connected ({share:.1f} %): "
            f"{pairs['both']:,} by both sides, {pairs['confirmed']:,} confirmed, "
            f"{pairs['one'] + pairs['differ'] + pairs['merged']:,} otherwise",
            f"extended reads of {self.lengths['mean']:.1f} bases on average",
            self.resources(),
        ]
