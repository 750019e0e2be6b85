"""The counters of a run, as JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ngsgpu.run.statistics import RunStatistics
from ngsgpu.trim.counts import (
    CORRECTED_BASES,
    CORRECTED_READS,
    NO_INDEX,
    READS,
    TRIMMED_BASES,
    TRIMMED_READS,
    Counts,
)
from ngsgpu.trim.filters import LONG, MANY_N, PASSED, POOR, SHORT, SIMPLE
from ngsgpu.trim.rules import UMI_PLACES, Rules

_NAMES = {
    PASSED: "kept",
    POOR: "low_quality",
    MANY_N: "many_n",
    SHORT: "too_short",
    LONG: "too_long",
    SIMPLE: "low_complexity",
}


@dataclass(slots=True, kw_only=True)
class TrimStatistics(RunStatistics):
    """Counts and resources of a run; see also ``RunStatistics``.

    Attributes:
        paired: whether the reads have mates.
        reads: ``total``, ``kept`` and those that are not kept, by the reason; each of a pair counts
            with the pair's reason.
        bases: ``total`` and those that are ``kept``.
        adapters: ``reads`` and ``bases`` that were cut, and the sequences looked for.
        cuts: what else is cut off reads, see ``cuts_of``.
        tails: reads and bases of tails of one base.
        corrected: ``reads`` and ``bases``.
        duplicates: reads or pairs that are equal to an earlier one; None if they were not counted.
        without_index: reads or pairs whose names lack an index that is their UMI.
        two_colours: whether tails of G were cut because the names tell of such an instrument.
    """

    SCHEMA = "ngsgpu.trim"
    paired: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    bases: dict[str, int] = field(default_factory=dict)
    adapters: dict[str, Any] = field(default_factory=dict)
    cuts: dict[str, Any] = field(default_factory=dict)
    tails: dict[str, int] = field(default_factory=dict)
    corrected: dict[str, int] = field(default_factory=dict)
    duplicates: int | None = None
    without_index: int = 0
    two_colours: bool = False

    def count(self, counts: Counts) -> None:
        """Fill in the counts."""
        total = int(sum(own.totals[READS] for own in counts.before))
        results = {name: int(counts.results[number]) for number, name in _NAMES.items()}
        self.reads = {"total": total, **results}
        self.bases = {
            "total": int(sum(own.content.sum() for own in counts.before)),
            "kept": int(sum(own.content.sum() for own in counts.after)),
        }
        self.adapters |= {
            "reads": int(counts.totals[TRIMMED_READS]),
            "bases": int(counts.totals[TRIMMED_BASES]),
        }
        self.without_index = 0 if self.parameters["fastp"] else int(counts.totals[NO_INDEX])
        reads, bases = counts.poly_x.sum(axis=1).tolist()
        self.tails = {"reads": reads, "bases": bases}
        self.corrected = {
            "reads": int(counts.totals[CORRECTED_READS]),
            "bases": int(counts.totals[CORRECTED_BASES]),
        }

    def warnings(self) -> Iterator[str]:
        """What to say if most reads were lost, or have no UMI."""
        total, kept, short = (self.reads[name] for name in ("total", "kept", "too_short"))
        if total and (not kept or 2 * short > total):
            adapters = ", ".join(self.adapters["sequences"]) or "by overlaps"
            yield (
                f"{kept:,} of {total:,} reads are left: {self._lost}; adapters of "
                f"{self.adapters['reads']:,} reads were cut ({adapters}). If that is not what you "
                "expect, see `disable_adapter_trimming`, `length_required` and the other cuts"
            )
        if self.without_index:
            yield (
                f"names of {self.without_index:,} {'pairs' if self.paired else 'reads'} lack an "
                "index, which is no part of their UMI then"
            )

    @property
    def _lost(self) -> str:
        """Reads that are not kept, by the reason."""
        return ", ".join(
            f"{number:,} {name.replace('_', ' ')}"
            for name, number in self.reads.items()
            if number and name not in ("total", "kept")
        )

    def summary(self) -> list[str]:
        """A short text summary."""
        total = max(1, self.reads["total"])
        kept, lost = self.reads["kept"], self._lost
        lines = [
            f"{self.reads['total']:,} reads, {kept:,} kept ({100 * kept / total:.2f} %)"
            + (f"; {lost}" if lost else ""),
            f"{self.bases['total']:,} bases, {self.bases['kept']:,} kept; adapters of "
            f"{self.adapters['reads']:,} reads cut, {self.adapters['bases']:,} bases",
        ]
        if self.cuts:
            lines.append(f"also cut: {', '.join(map(_named, self.cuts.items()))}")
        if self.duplicates is not None:
            units = total // 2 if self.paired else total
            share = 100 * self.duplicates / max(1, units)
            kind = "pairs" if self.paired else "reads"
            lines.append(f"{self.duplicates:,} {kind} equal to an earlier one ({share:.2f} %)")
        return [*lines, self.resources()]


def cuts_of(rules: Rules, paired: bool) -> dict[str, Any]:
    """What is cut off reads besides adapters, in order; only what is asked for.

    ``front``, ``tail`` and ``longest`` are bases of first and second mates, ``poly_g`` and
    ``poly_x`` the shortest tails, ``windows`` the ends from which windows of low quality are cut,
    and ``umi`` is where it stands.
    """
    mates = 2 if paired else 1
    windows = {"front": rules.cut_front, "tail": rules.cut_tail, "right": rules.cut_right}
    cuts = {
        "umi": UMI_PLACES[rules.umi],
        "front": _any(rules.fronts[:mates]),
        "tail": _any(rules.tails[:mates]),
        "windows": [name for name, window in windows.items() if window.size],
        "poly_g": rules.poly_g,
        "poly_x": rules.poly_x,
        "longest": _any(rules.longest[:mates]),
    }
    return {name: own for name, own in cuts.items() if own}


def _any(bases: tuple[int, ...]) -> tuple[int, ...]:
    return bases if any(bases) else ()


_CUTS: Final = {
    "umi": "UMIs ({})",
    "front": "the first {} bases of each read",
    "tail": "the last {} bases of each read",
    "windows": "windows of low quality ({})",
    "poly_g": "tails of {} or more G",
    "poly_x": "tails of {} or more of one base",
    "longest": "all behind {} bases",
}


def _named(cut: tuple[str, Any]) -> str:
    """A cut for people."""
    name, own = cut
    if isinstance(own, tuple):
        own = " or, of second mates, ".join(map(str, dict.fromkeys(own)))
    return _CUTS[name].format(", ".join(own) if isinstance(own, list) else own)
