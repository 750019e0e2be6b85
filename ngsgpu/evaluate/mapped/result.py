"""The result of comparing corrected or merged reads with a reference: counts, rates, JSON, tables.

A base is an error if it differs from the reference outside variant sites; N is one, too. Every
corrected base is compared at the position of its raw base.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.evaluate.mapped.compare import KINDS, TOTALS, Counters
from ngsgpu.evaluate.mapped.fragments import (
    APART,
    APART_MERGED,
    MISSED,
    NEAR,
    NEARLY,
    OUTCOMES,
    OVERLAPPING,
    RIGHT,
    UNKNOWN,
    WHERE,
    WRONG,
)
from ngsgpu.evaluate.mapped.params import Thresholds
from ngsgpu.evaluate.mapped.sites import Sites
from ngsgpu.evaluate.output import TextTable, fixed, head, ratio

SCHEMA = "ngsgpu.evaluate.mapped"
SCHEMA_VERSION = 1

FREQUENCIES = (0.01, 0.05, 0.1, 0.25, 0.5)
"""Edges of the bins of minority variants by frequency; the first is ``min_frequency``."""


@dataclass(frozen=True)
class Merging:
    """Merged reads against the fragments of their pairs.

    Attributes:
        outcomes: int64[len(OUTCOMES)], pairs.
        qualities: int64[len(WHERE), QUALITIES, 2], merged bases and errors in them, by what the
            mates say and by quality.
    """

    outcomes: NDArray[np.int64]
    qualities: NDArray[np.int64]

    def __getitem__(self, outcome: int) -> int:
        return int(self.outcomes[outcome])

    @property
    def wrong(self) -> int:
        """Merged reads of another length, those of pairs that do not overlap among them."""
        return self[WRONG] + self[APART_MERGED]

    def document(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "pairs": {name: self[number] for number, name in enumerate(OUTCOMES)},
            "right": self[RIGHT],
            "wrong": self.wrong,
            "calibration": {
                name: calibration(self.qualities[row]) for row, name in enumerate(WHERE)
            },
        }


@dataclass(frozen=True)
class MappedEvaluation:
    """Counts of a comparison.

    Attributes:
        aligner: program that aligned the raw reads; empty if alignments were given.
        limits: the thresholds.
        reads: raw reads.
        aligned: those with an alignment that counts.
        sites: variant sites.
        corrected: counts of corrected reads.
        merging: counts of merged reads.
    """

    aligner: str
    limits: Thresholds
    reads: int
    aligned: int
    sites: Sites
    corrected: Counters | None
    merging: Merging | None

    def document(self) -> dict[str, Any]:
        """Everything, for JSON."""
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "aligner": self.aligner or None,
            "thresholds": asdict(self.limits),
            "reads": {"total": self.reads, "aligned": self.aligned},
            "sites": {
                "all": len(self.sites.position),
                "known": self.sites.known,
                "homozygous": self.sites.homozygous,
                "heterozygous": len(self.sites.heterozygous),
                "minority_variants": len(self.sites.site),
            },
        }
        if self.corrected is not None:
            document["correction"] = correction_document(self.corrected, self.sites, self.limits)
        if self.merging is not None:
            document["merging"] = self.merging.document()
        return document

    def tables(self) -> list[TextTable]:
        """A table for each part: the alignments, the corrected reads, the merged ones."""
        sites = self.document()["sites"]
        rows = [
            ("raw reads", f"{self.reads:,}"),
            (f"    aligned, mapping quality {self.limits.min_mapq} or more", f"{self.aligned:,}"),
            ("variant sites, not counted as errors", f"{sites['all']:,}"),
            ("    heterozygous", f"{sites['heterozygous']:,}"),
            ("    another base than the reference's", f"{sites['homozygous']:,}"),
            ("minority variants", f"{sites['minority_variants']:,}"),
        ]
        tables = [TextTable("Alignments", ("", ""), rows)]
        if self.corrected is not None:
            tables += _correction_tables(self.document()["correction"])
        if self.merging is not None:
            tables += _merging_tables(self.merging)
        return tables


def calibration(table: NDArray[np.int64]) -> dict[str, Any]:
    """Errors that qualities state, and those seen.

    Args:
        table: int64[QUALITIES, 2], bases and errors by quality.

    Returns:
        ``bases``, ``seen``, ``stated`` (errors), ``phred_error`` (decibels by which more errors are
        seen than stated), ``mean_phred_error`` (mean over bases of the absolute difference between
        stated and seen quality, of the qualities at which errors are seen), and ``by_quality``.
    """
    entries = []
    weight = total = stated = 0.0
    for quality in np.flatnonzero(table[:, 0]).tolist():
        bases, errors = (int(value) for value in table[quality])
        observed = round(-10 * math.log10(errors / bases), 2) if errors else None
        entries.append({"quality": quality, "bases": bases, "errors": errors, "observed": observed})
        stated += bases * 10 ** (-quality / 10)
        if observed is not None:
            weight += bases
            total += bases * abs(quality - observed)
    seen = int(table[:, 1].sum())
    return {
        "bases": int(table[:, 0].sum()),
        "seen": seen,
        "stated": round(stated, 2),
        "phred_error": round(10 * math.log10(seen / stated), 2) if seen and stated else None,
        "mean_phred_error": round(total / weight, 2) if weight else None,
        "by_quality": entries,
    }


def correction_document(counters: Counters, sites: Sites, limits: Thresholds) -> dict[str, Any]:
    """What correction did, for JSON."""
    totals = {name: int(counters.totals[number]) for number, name in enumerate(TOTALS)}
    bases = totals["bases"]
    return {
        "totals": totals,
        "rates": {
            "mismatches_per_kb_before": ratio(totals["errors_before"], bases, 1000),
            "mismatches_per_kb_after": ratio(totals["errors_after"], bases, 1000),
            "sensitivity": ratio(totals["mended"], totals["errors_before"]),
            "alleles_switched": ratio(totals["alleles_switched"], totals["allele_bases"]),
        },
        "by_kind": {
            name: dict(
                zip(
                    ("reads", "errors_before", "errors_after", "introduced"),
                    counters.kinds[row].tolist(),
                    strict=True,
                )
            )
            for row, name in enumerate(KINDS)
        },
        "heterozygous": _alleles(counters, sites),
        "minority": _minority(counters, sites, limits),
        "calibration": {
            name: calibration(counters.quality[side]) for side, name in enumerate(_SIDES)
        },
    }


_SIDES = ("before", "after")


def _alleles(counters: Counters, sites: Sites) -> dict[str, Any]:
    """Heterozygous sites, those that lost an allele, and the mean share of the rarer one."""
    rows = sites.heterozygous
    pairs = sites.alleles[rows]
    before, after = (
        np.take_along_axis(counters.counts[side][rows].astype(np.int64), pairs, axis=1)
        for side in range(2)
    )
    lost = (2 * after < before).any(axis=1)
    shares = [
        float(np.mean(own.min(axis=1) / np.maximum(1, own.sum(axis=1)))) if len(rows) else None
        for own in (before, after)
    ]
    return {
        "sites": len(rows),
        "lost": int(lost.sum()),
        "rarer_allele_before": shares[0],
        "rarer_allele_after": shares[1],
    }


def _minority(counters: Counters, sites: Sites, limits: Thresholds) -> list[dict[str, Any]]:
    """Minority variants by frequency: how many lost more than half of their pairs, or all."""
    before, after = (
        counters.agreeing[side][sites.site, sites.base].astype(np.int64) for side in range(2)
    )
    edges = [limits.min_frequency, *(e for e in FREQUENCIES if e > limits.min_frequency)]
    entries = []
    for low, high in itertools.pairwise(edges):
        last = high == edges[-1]
        own = (sites.frequency >= low) & ((sites.frequency < high) | last)
        entries.append(
            {
                "from": low,
                "to": high,
                "variants": int(own.sum()),
                "lost": int((2 * after[own] < before[own]).sum()),
                "erased": int((after[own] == 0).sum()),
                "pairs_before": int(before[own].sum()),
                "pairs_after": int(after[own].sum()),
            }
        )
    return entries


def _correction_tables(document: dict[str, Any]) -> list[TextTable]:
    totals, rates = document["totals"], document["rates"]
    alleles = document["heterozygous"]
    rows = [
        ("mismatches per kb, raw reads", fixed(rates["mismatches_per_kb_before"], 3)),
        ("mismatches per kb, corrected reads", fixed(rates["mismatches_per_kb_after"], 3)),
        ("errors mended", f"{totals['mended']:,}"),
        ("errors introduced", f"{totals['introduced']:,}"),
        ("    in reads whose indel was undone", f"{totals['introduced_in_undone']:,}"),
        ("errors that stay", f"{totals['errors_after'] - totals['introduced']:,}"),
        ("reads made perfect", f"{totals['made_perfect']:,}"),
        ("reads no longer perfect", f"{totals['made_imperfect']:,}"),
        ("heterozygous sites", f"{alleles['sites']:,}"),
        ("    that lost an allele", f"{alleles['lost']:,}"),
        ("    bases of their alleles", f"{totals['allele_bases']:,}"),
        ("    switched to the other allele", f"{totals['alleles_switched']:,}"),
    ]
    if totals["changed_length"]:
        rows.append(("reads of another length, not compared", f"{totals['changed_length']:,}"))
    kinds = [
        (name.replace("_", " "), *(f"{entry[key]:,}" for key in entry))
        for name, entry in document["by_kind"].items()
    ]
    minority = [
        (
            f"{100 * entry['from']:g} to {100 * entry['to']:g} %",
            *(f"{entry[key]:,}" for key in ("variants", "lost", "erased")),
        )
        for entry in document["minority"]
    ]
    return [
        TextTable("Corrected reads", ("", ""), rows),
        TextTable(
            "Errors by kind of read",
            ("alignment", "reads", "errors before", "errors after", "introduced"),
            kinds,
            is_titled=True,
        ),
        TextTable(
            "Minority variants",
            ("frequency", "variants", "lost", "erased"),
            minority,
            is_titled=True,
        ),
        _calibration_table(document["calibration"]),
    ]


def _calibration_table(parts: dict[str, Any]) -> TextTable:
    return TextTable(
        "Qualities",
        ("bases", "number", "errors stated", "errors seen", "Phred error", "mean"),
        [
            (
                name,
                f"{entry['bases']:,}",
                fixed(entry["stated"], 1),
                f"{entry['seen']:,}",
                fixed(entry["phred_error"], 2),
                fixed(entry["mean_phred_error"], 2),
            )
            for name, entry in parts.items()
        ],
        is_titled=True,
    )


def _merging_tables(merging: Merging) -> list[TextTable]:
    rows = [
        ("pairs that overlap", f"{merging[OVERLAPPING]:,}"),
        ("    merged, right length", f"{merging[RIGHT]:,}"),
        (f"    merged, up to {NEAR} bases off", f"{merging[NEARLY]:,}"),
        ("    merged, wrong length", f"{merging[WRONG]:,}"),
        ("    not merged", f"{merging[MISSED]:,}"),
        ("pairs that do not overlap", f"{merging[APART]:,}"),
        ("    merged all the same", f"{merging[APART_MERGED]:,}"),
        ("pairs of unknown fragments", f"{merging[UNKNOWN]:,}"),
    ]
    return [
        TextTable("Merged reads", ("", ""), rows),
        _calibration_table(merging.document()["calibration"]),
    ]
