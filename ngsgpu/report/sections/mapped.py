"""The report's section on real reads judged on their reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ngsgpu.report import words
from ngsgpu.report.drawing import SMALL, drawn
from ngsgpu.report.files import Json, json_if_named
from ngsgpu.report.model import FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, SampleSection, Table
from ngsgpu.report.palette import AFTER, AMBER, BEFORE, MUTED
from ngsgpu.report.stage import Stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS: dict[str, dict[str, str]] = {
    "correction": {"before": "raw reads", "after": "corrected reads"},
    "merging": {
        "agree": "merged, mates agree",
        "disagree": "merged, mates disagree",
        "alone": "merged, one mate",
    },
}
_KINDS = {
    "gaps_or_clipped": "with gaps or clipped ends",
    "many_mismatches": "with 7 or more mismatches",
    "others": "others",
}


class Mapped:
    """Comparison of a sample's reads with its reference, if there is one."""

    def __init__(self, found: Json | None) -> None:
        self.found = found

    def has(self, part: str) -> bool:
        """Whether corrected or merged reads were compared."""
        return self.found is not None and self.found.number(f"{part}.{_FIRST[part]}") is not None


_FIRST = {"correction": "totals.bases", "merging": "pairs.pairs"}


class MappedStage(Stage):
    """Real reads on their reference."""

    name = "mapped"
    title = "Reads on the reference"
    files = (FileSpec("mapped", ("evaluate/mapped.json",)),)
    intro = (
        "<p>The raw reads were aligned to the sample's reference. Each corrected base was compared "
        "where its raw base\n  lies; positions at which the sample differs from the reference, or "
        "in itself, do not count as errors.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> Mapped:
        """Read the comparison; not every study has it."""
        path = sample.files.one("mapped")
        return Mapped(
            json_if_named(path, "reads on the reference", "ngsgpu.evaluate.mapped", missing)
        )

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """Tables of correction, alleles, minority variants and merging; calibration."""
        own = results.of(Mapped)
        if own.found is None:
            return
        if own.has("correction"):
            section.tables += [
                ("Corrected reads", _correction_table(own.found)),
                ("Errors by kind of read", _kinds_table(own.found)),
                ("Alleles and minority variants", _variants_table(own.found)),
            ]
        if own.has("merging"):
            section.tables.append(("Merged reads", _merging_table(own.found)))
        parts = {
            label: rows
            for part, names in _PARTS.items()
            for name, label in names.items()
            if (rows := _observed(own.found, f"{part}.calibration.{name}"))
        }
        if parts:
            section.tables.append(("Stated and seen errors", _stated_table(own.found)))
            if not is_brief:
                section.plot(
                    _calibration(f"mapped{section.number}", parts),
                    "Qualities: stated, and observed from differences to the reference. On the "
                    "dotted line qualities are calibrated; below it bases are worse than stated. "
                    "Qualities without errors are not shown.",
                )

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """Mismatches per kb before and after correction."""
        found = [results.of(Mapped) for results in samples]
        if not any(own.has("correction") for own in found):
            return []
        return [Column("mismatches per kb", [_change(own) for own in found])]


def _change(own: Mapped) -> str:
    if own.found is None or not own.has("correction"):
        return words.NOTHING
    before, after = (
        words.decimal(own.found.number(f"correction.rates.mismatches_per_kb_{when}"), 3)
        for when in ("before", "after")
    )
    return words.change(before, after)


def _correction_table(found: Json) -> Table:
    def number(label: str, key: str) -> tuple[str, str]:
        return label, words.count(found.number(f"correction.totals.{key}"))

    def rate(label: str, key: str) -> tuple[str, str]:
        return label, words.decimal(found.number(f"correction.rates.{key}"), 3)

    return Table(
        ("", "number"),
        [
            rate("mismatches per kb, raw reads", "mismatches_per_kb_before"),
            rate("mismatches per kb, corrected reads", "mismatches_per_kb_after"),
            number("errors mended", "mended"),
            number("errors introduced", "introduced"),
            number("… in reads whose indel was undone", "introduced_in_undone"),
            number("reads made perfect", "made_perfect"),
            number("reads no longer perfect", "made_imperfect"),
        ],
    )


def _kinds_table(found: Json) -> Table:
    keys = ("reads", "errors_before", "errors_after", "introduced")
    return Table(
        ("reads", "number", "errors before", "errors after", "introduced"),
        [
            (label, *(words.count(found.number(f"correction.by_kind.{kind}.{k}")) for k in keys))
            for kind, label in _KINDS.items()
        ],
    )


def _variants_table(found: Json) -> Table:
    alleles = "correction.heterozygous"
    rows = [
        (
            "heterozygous sites, and those that lost an allele",
            words.count(found.number(f"{alleles}.sites")),
            words.count(found.number(f"{alleles}.lost")),
        ),
        (
            "bases of their alleles, and those switched to the other",
            words.count(found.number("correction.totals.allele_bases")),
            words.count(found.number("correction.totals.alleles_switched")),
        ),
    ]
    for entry in found.entries("correction.minority"):
        own = Json(found.path, entry if isinstance(entry, dict) else {})
        low, high = (100 * (own.number(key) or 0) for key in ("from", "to"))
        rows.append(
            (
                f"minority variants of {low:g} to {high:g} %, and those that lost half their pairs",
                words.count(own.number("variants")),
                words.count(own.number("lost")),
            )
        )
    return Table(("", "raw reads", "lost or switched"), rows)


def _merging_table(found: Json) -> Table:
    labels = {
        "overlapping": "pairs that overlap",
        "right": "merged to the length of the fragment",
        "near": "merged, up to 3 bases off",
        "wrong": "merged to a wrong length",
        "missed": "not merged",
        "apart": "pairs that do not overlap",
        "apart_merged": "… merged nevertheless",
        "unknown_fragment": "pairs whose fragment is unknown",
    }
    rows = [
        (label, words.count(found.number(f"merging.pairs.{key}"))) for key, label in labels.items()
    ]
    return Table(("", "number"), rows)


def _stated_table(found: Json) -> Table:
    rows = []
    for part, names in _PARTS.items():
        for name, label in names.items():
            own = f"{part}.calibration.{name}"
            if found.number(f"{own}.bases"):
                rows.append(
                    (
                        label,
                        words.count(found.number(f"{own}.bases")),
                        words.decimal(found.number(f"{own}.stated"), 1),
                        words.count(found.number(f"{own}.seen")),
                        words.decimal(found.number(f"{own}.phred_error"), 1),
                    )
                )
    return Table(("bases", "number", "errors stated", "errors seen", "Phred too high"), rows)


def _observed(found: Json, part: str) -> list[tuple[float, float]]:
    """Stated and observed quality, where there were errors."""
    rows = []
    for entry in found.entries(f"{part}.by_quality"):
        own = Json(found.path, entry if isinstance(entry, dict) else {})
        stated, observed = own.number("quality"), own.number("observed")
        if stated is not None and observed is not None:
            rows.append((stated, observed))
    return rows


@drawn(SMALL)
def _calibration(figure: Figure, parts: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Quality that the errors speak for, by the quality stated."""
    axes = figure.subplots()
    highest = max(max(row) for rows in parts.values() for row in rows)
    axes.plot([0, highest], [0, highest], color=MUTED, linewidth=0.8, linestyle=":")
    looks = zip((BEFORE, AFTER, AMBER, AMBER, MUTED), "ooosv", strict=True)
    for (colour, marker), (label, rows) in zip(looks, parts.items(), strict=False):
        stated, observed = np.array(rows, dtype=np.float64).reshape(-1, 2).T
        axes.scatter(stated, observed, s=16, color=colour, marker=marker, label=label, linewidth=0)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("quality stated")
    axes.set_ylabel("observed quality")
    axes.legend(loc="upper left")
