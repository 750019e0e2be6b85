"""The result of comparing calls with the truth: outcomes by rank, and their JSON.

Over the reads whose truth is known at a rank:

==  =========================================================================================
TP  called correctly at the rank
FP  called wrongly at the rank; also reads of taxa without a reference sequence
FN  not called at the rank (unclassified, or called above it), though the taxon has a reference
TN  not called at the rank, and the taxon has no reference
==  =========================================================================================

Precision is TP / (TP + FP). Sensitivity is TP over all reads whose taxon has a reference sequence,
so that wrong calls of such reads lower both. F1 is the harmonic mean of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ngsgpu.evaluate.output import TextTable, fixed, head, ratio

SCHEMA: Final = "ngsgpu.evaluate.classification"
SCHEMA_VERSION: Final = 1

_HEADINGS: Final = ("rank", "precision", "sensitivity", "F1", "TP", "FP", "FN", "TN")


@dataclass(frozen=True)
class RankCounts:
    """Reads by outcome at one rank; see above.

    Attributes:
        tp: right calls.
        fp: wrong calls.
        fn: no call, though there is a reference sequence of the taxon.
        tn: no call, and there is none.
        represented: reads whose taxon has a reference sequence.
        unknown: reads whose truth at the rank is not known, counted nowhere else.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    represented: int
    unknown: int = 0

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); ``None`` without calls."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def sensitivity(self) -> float | None:
        """TP / represented; ``None`` without such reads."""
        return ratio(self.tp, self.represented)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of the two; ``None`` without one of them."""
        precision, sensitivity = self.precision, self.sensitivity
        if precision is None or sensitivity is None:
            return None
        both = precision + sensitivity
        return 2 * precision * sensitivity / both if both else 0.0

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        rates = {name: getattr(self, name) for name in ("precision", "sensitivity", "f1")}
        return {**vars(self), **rates}


@dataclass(frozen=True)
class TaxonShare:
    """Share of a taxon in a sample: parts of all reads, 0 to 1."""

    taxid: int
    name: str
    expected: float
    observed: float


@dataclass(frozen=True)
class AbundanceDeviation:
    """How far abundances are from a sample's composition (Kobus, tables 7.5 and 7.6).

    Attributes:
        rank: the rank of the taxa.
        taxa: those of the sample, and those found that are not in it; largest shares first.
        false_positives: sum of the shares found of taxa that are not in the sample.
        deviation: sum of all differences between shares expected and found, those included.
    """

    rank: str
    taxa: tuple[TaxonShare, ...]
    false_positives: float
    deviation: float


@dataclass(frozen=True)
class ProfileDistance:
    """Taxa of a rank found and missed, and how far their shares are from the truth's.

    Attributes:
        tp: taxa of the sample that were found.
        fp: taxa found that are not in the sample.
        fn: taxa of the sample that were not found.
        l1_norm: sum of the absolute differences between shares expected and found.
        shares: sum of all shares, expected and found.
    """

    tp: int
    fp: int
    fn: int
    l1_norm: float
    shares: float

    def document(self) -> dict[str, Any]:
        """As JSON holds it; rates with divisor 0 are null."""
        found = self.tp + self.fp
        return {
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
            "completeness": ratio(self.tp, self.tp + self.fn),
            "purity": ratio(self.tp, found),
            "f1": ratio(2 * self.tp, found + self.tp + self.fn) if self.tp else None,
            "l1_norm": self.l1_norm,
            "bray_curtis": self.l1_norm / self.shares if self.shares else None,
        }


@dataclass(frozen=True)
class Run:
    """Outcomes of one classifier's calls.

    Attributes:
        name: label of the run.
        program: the classifier.
        reads: reads with a line.
        unclassified: those without a call.
        without_truth: those missing from the truth.
        ranks: outcomes by rank.
        curve: outcomes by rank for reads of at least n hits, by n; empty if the file has no scores.
        abundance: deviations of abundances; None without a known composition.
        profile: distances of the taxa's shares from the truth's, by rank; empty without a truth.
    """

    name: str
    program: str
    reads: int
    unclassified: int
    without_truth: int
    ranks: Mapping[str, RankCounts]
    curve: Mapping[int, Mapping[str, RankCounts]] = field(default_factory=dict)
    abundance: AbundanceDeviation | None = None
    profile: Mapping[str, ProfileDistance] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        document: dict[str, Any] = {
            "name": self.name,
            "program": self.program,
            "reads": {
                "total": self.reads,
                "unclassified": self.unclassified,
                "without_truth": self.without_truth,
            },
            "ranks": {rank: counts.document() for rank, counts in self.ranks.items()},
            "profile": {rank: own.document() for rank, own in self.profile.items()},
        }
        if self.curve:
            document["curve"] = {
                "hits": list(self.curve),
                "ranks": {
                    rank: {
                        rate: [getattr(counts[rank], rate) for counts in self.curve.values()]
                        for rate in ("precision", "sensitivity")
                    }
                    for rank in self.ranks
                },
            }
        if self.abundance is not None:
            document["abundance"] = {
                "rank": self.abundance.rank,
                "false_positives": self.abundance.false_positives,
                "deviation": self.abundance.deviation,
                "taxa": [vars(share) for share in self.abundance.taxa],
            }
        return document

    def table(self) -> TextTable:
        """Outcomes at each rank."""
        title = f"{self.name} ({self.program}): {self.reads:,} reads"
        title += f", {self.unclassified:,} unclassified"
        if self.without_truth:
            title += f", {self.without_truth:,} without truth"
        rows = [
            (
                rank,
                *(fixed(rate, 4) for rate in (counts.precision, counts.sensitivity, counts.f1)),
                *(f"{number:,}" for number in (counts.tp, counts.fp, counts.fn, counts.tn)),
            )
            for rank, counts in self.ranks.items()
        ]
        foot = ""
        if (found := self.abundance) is not None:
            foot = (
                f"abundances at {found.rank}: false positives {100 * found.false_positives:.2f} %, "
                f"sum of deviations {100 * found.deviation:.2f} %\n"
            )
        return TextTable(title, _HEADINGS, rows, is_titled=True, foot=foot)


@dataclass(frozen=True)
class ClassificationEvaluation:
    """Results of one or more runs on the same reads."""

    runs: tuple[Run, ...]

    def document(self) -> dict[str, Any]:
        """As JSON, see ``docs/classification-outputs.md``."""
        return {
            **head(SCHEMA, SCHEMA_VERSION),
            "runs": [run.document() for run in self.runs],
        }

    def tables(self) -> list[TextTable]:
        """Outcomes at each rank, a table a run."""
        return [run.table() for run in self.runs]
