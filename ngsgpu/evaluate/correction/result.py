"""The result of comparing corrected reads with the truth: counts, rates, and their JSON.

A base is classified by its input I, truth E and output C (F. Kallenborn, dissertation, Mainz
2024, chapter 5):

==  ==================  =====================================================================
TP  I != E and E = C    a corrected error
FP  I = E and E != C    an introduced error
FN  I != E and E != C   a remaining error, also if it was changed to another wrong base
TN  I = E and E = C     a correct base left unchanged
==  ==================  =====================================================================

An N in the input is an error like any other. If the truth is unknown (an N in the reference), a
base is not classified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.output import TextTable, fixed, head, ratio

SCHEMA = "ngsgpu.evaluate.correction"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Counts:
    """Bases by outcome.

    Attributes:
        tp: errors corrected.
        fp: right bases made wrong.
        fn: errors left, or changed to another wrong base.
        tn: right bases left alone.
        wrong_to_wrong: the part of ``fn`` that was changed.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    wrong_to_wrong: int

    @property
    def bases(self) -> int:
        """Bases that were classified."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def errors_before(self) -> int:
        """Wrong bases of the input."""
        return self.tp + self.fn

    @property
    def errors_after(self) -> int:
        """Wrong bases of the output."""
        return self.fp + self.fn

    @property
    def sensitivity(self) -> float | None:
        """TP / (TP + FN); ``None`` when nothing was wrong."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float | None:
        """TN / (TN + FP); ``None`` when nothing was right."""
        return ratio(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> float | None:
        """TP / (TP + FP); ``None`` when nothing was corrected."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def fp_per_million(self) -> float | None:
        """False positives per million corrections: 1,000,000 FP / (TP + FP)."""
        return ratio(self.fp, self.tp + self.fp, 1e6)

    @property
    def error_rate_before(self) -> float | None:
        """Share of the input's bases that is wrong."""
        return ratio(self.errors_before, self.bases)

    @property
    def error_rate_after(self) -> float | None:
        """Share of the output's bases that is wrong."""
        return ratio(self.errors_after, self.bases)

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: value + vars(other)[name] for name, value in vars(self).items()})

    def totals(self) -> dict[str, int]:
        """The counts under the names of the JSON."""
        return {
            "bases": self.bases,
            **vars(self),
            "errors_before": self.errors_before,
            "errors_after": self.errors_after,
        }

    def rates(self) -> dict[str, float | None]:
        """The rates under the names of the JSON; ``None`` where the divisor is 0."""
        return {
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "precision": self.precision,
            "fp_per_million_corrections": self.fp_per_million,
            "error_rate_before": self.error_rate_before,
            "error_rate_after": self.error_rate_after,
        }


@dataclass(frozen=True)
class ReadCounts:
    """Reads by outcome.

    Attributes:
        total: all reads; the sum of the next five.
        kept_perfect: without an error before and after.
        made_perfect: with errors before, without any after.
        improved: fewer errors after than before, but some.
        unchanged: as many errors after as before, at least one.
        made_worse: more errors after than before.
        changed: any base differs between input and output.
        with_unknown_truth: some base's truth is not known (the read overlaps an N).
    """

    total: int
    kept_perfect: int
    made_perfect: int
    improved: int
    unchanged: int
    made_worse: int
    changed: int
    with_unknown_truth: int

    def document(self) -> dict[str, int]:
        """The counts under the names of the JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class AlignedCounts:
    """Reads with indels, each aligned with its truth before and after correction.

    A mismatch costs 1, a gap of g bases g + 2, and the ends of the sequences need not coincide: a
    read whose short side was fitted to the long one counts as correct, whichever side the truth is
    anchored at.

    Attributes:
        cost_before: of all input reads.
        cost_after: of all corrected reads.
        nearer: reads that cost less after correction.
        as_near: reads that cost the same.
        farther: reads that cost more.
    """

    cost_before: int
    cost_after: int
    nearer: int
    as_near: int
    farther: int

    def document(self) -> dict[str, int]:
        """The counts under the names of the JSON."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class CorrectionEvaluation:
    """Comparison of corrected reads with the truth.

    Attributes:
        bases: int64 [2, 5, 5, 5]: 0 for reads without and 1 for reads with an indel, then codes
            of truth, input and output (A, C, G, T, other).
        positions: int64 [2, longest read, 4]: mate, position, TP, FP, FN, TN; reads without
            indels.
        qualities: int64 [94, 4]: the same by the quality of the input base; all 0 without
            qualities.
        reads: int64 [2, 8]: as ``bases``, then the columns of ``cpu``.
        aligned: int64 [5]: reads with indels aligned with their truth, the columns of ``cpu``.
        paired: whether there are second mates.
        indels_from: ``sequences`` or ``alignments``, the source of the reads with indels.
        truth_in_step: whether reads and truth came in the same order; ``None`` for arrays.
    """

    bases: NDArray[np.int64]
    positions: NDArray[np.int64]
    qualities: NDArray[np.int64]
    reads: NDArray[np.int64]
    aligned: NDArray[np.int64]
    paired: bool
    indels_from: str = "sequences"
    truth_in_step: bool | None = None

    def _counts(self, indel: int) -> Counts:
        known = self.bases[indel, :4]
        truth, before, after = np.indices(known.shape)
        was_right = before == truth
        is_right = after == truth

        def total(mask: NDArray[np.bool_]) -> int:
            return int(known[mask].sum())

        return Counts(
            tp=total(~was_right & is_right),
            fp=total(was_right & ~is_right),
            fn=total(~was_right & ~is_right),
            tn=total(was_right & is_right),
            wrong_to_wrong=total(~was_right & ~is_right & (before != after)),
        )

    def _reads(self, indel: int) -> ReadCounts:
        return ReadCounts(*map(int, self.reads[indel]))

    @property
    def counts(self) -> Counts:
        """Bases of reads without indels: the figures to quote."""
        return self._counts(0)

    @property
    def indel_counts(self) -> Counts:
        """Bases of reads with indels, compared position by position."""
        return self._counts(1)

    @property
    def read_counts(self) -> ReadCounts:
        """Reads without indels."""
        return self._reads(0)

    @property
    def indel_read_counts(self) -> ReadCounts:
        """Reads with indels."""
        return self._reads(1)

    @property
    def indel_aligned(self) -> AlignedCounts:
        """Reads with indels by their alignments with the truth: the figures to judge them by."""
        return AlignedCounts(*map(int, self.aligned))

    @property
    def unknown_truth_bases(self) -> int:
        """Bases of reads without indels whose truth is not known."""
        return int(self.bases[0, 4].sum())

    def document(self) -> dict[str, Any]:
        """The evaluation as a JSON object (schema ``ngsgpu.evaluate.correction``, version 1)."""
        counts, indels = self.counts, self.indel_counts
        return {
            **head(SCHEMA, SCHEMA_VERSION),
            "paired": self.paired,
            "indels_from": self.indels_from,
            "truth_in_step": self.truth_in_step,
            "totals": counts.totals(),
            "rates": counts.rates(),
            "reads": self.read_counts.document(),
            "unknown_truth_bases": self.unknown_truth_bases,
            "indel_reads": {
                "totals": indels.totals(),
                "rates": indels.rates(),
                "reads": self.indel_read_counts.document(),
                "aligned": self.indel_aligned.document(),
            },
            "all_reads": {"totals": (counts + indels).totals(), "rates": (counts + indels).rates()},
            "by_position": [self._positions(mate) for mate in range(2 if self.paired else 1)],
            "by_quality": self._qualities(),
            "substitutions": {
                "order": "ACGTN",
                "before": self.bases[0, :4].sum(axis=2).tolist(),
                "after": self.bases[0, :4].sum(axis=1).tolist(),
                "truth_input_output": self.bases[0, :4].tolist(),
            },
        }

    def _positions(self, mate: int) -> dict[str, Any]:
        rows = self.positions[mate]
        used = int(np.flatnonzero(rows.sum(axis=1)).max(initial=-1)) + 1
        tp, fp, fn, tn = rows[:used].T
        columns = {
            "bases": tp + fp + fn + tn, "errors_before": tp + fn, "errors_after": fp + fn,
            "tp": tp, "fp": fp, "fn": fn,
        }  # fmt: skip
        return {"mate": mate + 1, **{name: column.tolist() for name, column in columns.items()}}

    def _qualities(self) -> list[dict[str, int]]:
        return [
            {"quality": quality, **dict(zip(("tp", "fp", "fn", "tn"), row.tolist(), strict=True))}
            for quality, row in enumerate(self.qualities)
            if row.any()
        ]

    def tables(self) -> list[TextTable]:
        """One table: what, for reads without indels, for reads with indels."""
        aligned = self.indel_aligned

        def number(what: str, name: str, digits: int = 0) -> tuple[str, ...]:
            values = (getattr(c, name) for c in (self.counts, self.indel_counts))
            return what, *(fixed(value, digits) for value in values)

        def reads(what: str, name: str) -> tuple[str, ...]:
            values = (getattr(r, name) for r in (self.read_counts, self.indel_read_counts))
            return what, *(fixed(value, 0) for value in values)

        rows = [
            reads("reads", "total"),
            number("bases", "bases"),
            number("TP  errors corrected", "tp"),
            number("FP  right bases made wrong", "fp"),
            number("FN  errors left", "fn"),
            number("    of these, changed to another wrong base", "wrong_to_wrong"),
            number("TN  right bases left alone", "tn"),
            number("sensitivity", "sensitivity", 5),
            number("specificity", "specificity", 7),
            number("precision", "precision", 7),
            number("FP per million corrections", "fp_per_million", 1),
            number("error rate before", "error_rate_before", 6),
            number("error rate after", "error_rate_after", 6),
            reads("reads without an error before and after", "kept_perfect"),
            reads("reads made perfect", "made_perfect"),
            reads("reads improved", "improved"),
            reads("reads left with as many errors", "unchanged"),
            reads("reads made worse", "made_worse"),
            reads("reads that overlap an N of the reference", "with_unknown_truth"),
            ("aligned with the truth: cost before", "-", f"{aligned.cost_before:,}"),
            ("    cost after", "-", f"{aligned.cost_after:,}"),
            ("    reads nearer to it than before", "-", f"{aligned.nearer:,}"),
            ("    reads farther from it", "-", f"{aligned.farther:,}"),
        ]
        headings = ("", "reads without indels", "reads with indels")
        return [TextTable("Correction against the truth", headings, rows)]
