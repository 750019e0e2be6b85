"""The report's section on correction: bases and reads, k-mers, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.files import Json, json_if_present
from ngsgpu.report.model import VARIANTS, FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, Finding, Plot, SampleSection, Table
from ngsgpu.report.sections.correction import plots
from ngsgpu.report.sections.correction.plots import PositionCounts, Spectrum, read_spectrum
from ngsgpu.report.spread import Curve, curves
from ngsgpu.report.stage import Stage, variants
from ngsgpu.report.words import Number


@dataclass(eq=False)
class Correction:
    """Results of a sample's correction.

    Attributes:
        stats: statistics of the run.
        truth: comparison with the truth.
        kmers: histograms by variant.
    """

    stats: Json | None = None
    truth: Json | None = None
    kmers: dict[str, Spectrum] = field(default_factory=dict)

    def positions(self) -> list[PositionCounts]:
        """Errors by position for each mate; empty without an evaluation."""
        if self.truth is None:
            return []
        found = []
        for number, entry in enumerate(self.truth.entries("by_position")):
            part = Json(self.truth.path, entry if isinstance(entry, dict) else {})
            arrays = [part.array(k) for k in ("bases", "errors_before", "errors_after")]
            if len({len(array) for array in arrays}) != 1:
                cause = f"the lists of by_position[{number}] differ in length"
                raise InputError(self.truth.path, cause, "make the file again")
            found.append(PositionCounts(number + 1, *arrays))
        return found

    def corrected_by_position(self) -> list[NDArray[np.float64]]:
        """Bases replaced at each position for each mate; empty without statistics."""
        if self.stats is None:
            return []
        key = "corrected_bases_by_position"
        return [self.stats.as_array(entry, key) for entry in self.stats.entries(key)]


class CorrectionStage(Stage):
    """Correction, its truth, and k-mers before and after it."""

    name = "correction"
    title = "Correction"
    files = (
        FileSpec("correct", ("correct/stats.json",)),
        FileSpec("evaluation", ("evaluate/correction.json",)),
        FileSpec("kmers", ("kmers/{}.tsv",), VARIANTS),
    )
    intro = (
        "<p>Simulated reads come with their truth, so every base can be classified by its "
        "value before\n  correction, after it, and in truth: corrected (TP), introduced error "
        "(FP), remaining error (FN), left correct\n  (TN). Reads in which the simulator placed "
        "insertions or deletions are counted separately, because\n  correction replaces bases and "
        "cannot restore a length.</p>"
    )
    is_expected = True

    def read(self, sample: Sample, missing: list[str]) -> Correction:
        """Read statistics, the comparison with the truth and k-mers."""
        files, found = sample.files, Correction()
        path = files.one("correct")
        found.stats = json_if_present(
            path, "statistics of the correction", "ngsgpu.correct", missing, "ngsgpu.spectrum"
        )
        path = files.one("evaluation")
        what = "comparison with the truth"
        if sample.kind == "simulated" or path is not None:
            found.truth = json_if_present(path, what, "ngsgpu.evaluate.correction", missing)
        else:
            missing.append(f"{what} (unknown for real reads)")
        for variant, path in variants(files, "kmers", "k-mer spectrum of the {} reads", missing):
            found.kmers[variant] = read_spectrum(path)
        return found

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """Tables of the truth and the run, errors and corrections by position, k-mer spectra."""
        found = results.of(Correction)
        if found.truth is not None:
            section.tables.append(("Against the truth", _truth_table(found.truth)))
        if found.stats is not None:
            section.tables.append(("Correction statistics", _process_table(found.stats)))
        positions = [mate for mate in found.positions() if len(mate.bases)]
        if positions:
            section.plot(
                plots.error_rate_by_position(f"error{section.number}", positions),
                "Error rate by position in the read, before and after correction. Dots: each "
                "position; lines: means over five positions. Reads without insertions and "
                "deletions.",
                is_wide=len(positions) > 1,
            )
        mates = [counts for counts in found.corrected_by_position() if len(counts)]
        if mates and not is_brief:
            section.plot(
                plots.corrected_by_position(f"corrected{section.number}", mates),
                "Bases replaced, by position in the read (means over five positions).",
            )
        # Reads without a k-mer have nothing that a logarithmic axis could show.
        spectra = {name: one for name, one in found.kmers.items() if one.count.any()}
        if spectra and not is_brief:
            k = next((s.k for s in spectra.values() if s.k), 0)
            section.plot(
                plots.spectra(f"spectrum{section.number}", spectra),
                f"Spectrum of {f'{k}-mers' if k else 'k-mers'} before and after correction; "
                "both axes are logarithmic, and points further right are means over several "
                "multiplicities. Errors make k-mers that occur once or a few times "
                "(left); error-free ones peak at the coverage, which is also on the left "
                "if there are few reads.",
            )

    def intro_for(self, samples: Sequence[SampleResults]) -> str:
        """What the truth is, where it is known."""
        return self.intro if any(results.of(Correction).truth for results in samples) else ""

    def figure(self, samples: Sequence[SampleResults]) -> Plot | None:
        """What became of errors, of all samples with a truth."""
        names = ("tp", "fn", "fp", "wrong_to_wrong")
        rows = [
            (results.sample.label, {n: truth.number(f"totals.{n}") or 0.0 for n in names})
            for results in samples
            if (truth := results.of(Correction).truth) is not None
        ]
        if not rows:
            return None
        return Plot(
            plots.outcomes("outcomes", rows),
            "Outcomes of the wrong bases of simulated reads, and correct bases changed to "
            "wrong ones (new). Reads without insertions and deletions.",
            is_wide=True,
        )

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """k-mer spectra before and after correction."""
        lines: dict[str, list[Curve]] = {}
        for variant, label in (("corrected", "corrected"), ("raw", "uncorrected")):
            for results in samples:
                spectrum = results.of(Correction).kmers.get(variant)
                if spectrum is not None and spectrum.count.any():
                    at, height = plots.binned(spectrum)
                    lines.setdefault(label, []).append((at.tolist(), height.tolist()))
        if not lines:
            return []
        axes = "multiplicity in the reads", "distinct k-mers"
        drawing = curves("all-spectra", lines, *axes, is_logarithmic=True)
        return [Plot(drawing, "k-mer spectra, a line a sample; both axes are logarithmic.")]

    def say(self, results: SampleResults, finding: Finding) -> None:
        """Sensitivity and false positives, bases replaced, coverage, k-mers that occur once."""
        found = results.of(Correction)
        if found.truth is not None:
            _say_truth(found.truth, finding)
        if found.stats is not None:
            _say_replaced(found.stats, finding, has_truth=found.truth is not None)
            _say_coverage(found.stats, finding)
        _say_kmers(found, finding)

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """Replaced bases, and how right they are."""
        stats = [results.of(Correction).stats for results in samples]
        truths = [results.of(Correction).truth for results in samples]

        def rates(name: str) -> list[float | None]:
            return [truth.number(f"rates.{name}") if truth else None for truth in truths]

        errors = [
            words.change(words.rate(before), words.rate(after))
            for before, after in zip(
                rates("error_rate_before"), rates("error_rate_after"), strict=True
            )
        ]

        def counts(name: str) -> list[Number]:
            return [words.count(s.number(name) if s else None) for s in stats]

        false = rates("fp_per_million_corrections")
        return [
            Column("bases replaced", counts("corrected.bases")),
            Column("sensitivity", [words.decimal(rate, 4) for rate in rates("sensitivity")]),
            Column("FP per million corrections", [words.decimal(rate, 1) for rate in false]),
            Column("error rate", errors),
        ]


def statistics(samples: Sequence[SampleResults]) -> list[tuple[str, Json]]:
    """Label and statistics of the samples that have them."""
    found = ((results.sample.label, results.of(Correction).stats) for results in samples)
    return [(label, stats) for label, stats in found if stats is not None]


def _say_truth(truth: Json, finding: Finding) -> None:
    tp, fn, fp = (truth.number(f"totals.{name}") or 0 for name in ("tp", "fn", "fp"))
    sensitivity = truth.number("rates.sensitivity")
    false_rate = truth.number("rates.fp_per_million_corrections")
    before, after = (truth.number(f"rates.error_rate_{when}") for when in ("before", "after"))
    finding.figures.append(("errors corrected", words.percent(sensitivity, 1)))
    finding.figures.append(
        ("false positives per million corrections", words.decimal(false_rate, 1))
    )
    sentence = (
        f"{words.count(tp)} of {words.count(tp + fn)} errors were corrected (sensitivity "
        f"{words.decimal(sensitivity, 4)}) and {words.count(fp)} correct "
        f"{'base was' if fp == 1 else 'bases were'} changed, "
        f"{words.decimal(false_rate, 1)} per million corrections."
    )
    if before is not None and after is not None:
        sentence += f" The error rate fell from {words.rate(before)} to {words.rate(after)}"
        if after >= before:
            sentence = sentence.replace("fell", "went")
        elif after > 0:
            sentence += f", {words.decimal(before / after, 1)} times lower"
        sentence += "."
        finding.figures.append(("error rate", words.change(words.rate(before), words.rate(after))))
    finding.sentences.append(sentence)


def _say_replaced(stats: Json, finding: Finding, *, has_truth: bool) -> None:
    reads, bases = stats.number("reads.total"), stats.number("reads.bases")
    changed, replaced = stats.number("corrected.reads"), stats.number("corrected.bases")
    if changed is None or replaced is None or not reads:
        return
    done = "masked (N)" if stats.get("parameters.mask") else "replaced"
    finding.sentences.append(
        f"{words.count(replaced)} bases ({words.share(replaced, bases)} of all) were {done}, in "
        f"{words.count(changed)} of {words.count(reads)} reads ({words.share(changed, reads)})."
    )
    if not has_truth:
        finding.figures.append((f"bases {done}", words.count(replaced)))
        finding.figures.append(("reads changed", words.share(changed, reads)))


LOW_COVERAGE = 15.0
"""Below this many reads a position, correction leaves many errors, and k-mers of the genome itself
occur once: of two simulated bacteria at 15x, 0.994 and 0.998 of the errors were found, at 30x
0.9997 of one."""


def _say_coverage(stats: Json, finding: Finding) -> None:
    """Warn where there are too few reads for correction to do much."""
    if not stats.number("reads.total"):
        return
    coverage = stats.number("coverage.value")
    if coverage is not None and coverage < LOW_COVERAGE:
        origin = "estimated" if stats.get("coverage.estimated") else "given"
        if stats.get("coverage.suffices") is False:
            finding.sentences.append(
                f"The coverage of {words.decimal(coverage, 1)}x ({origin}) is too low for "
                "correction: it finds about half of the errors at best. Sequence deeper before "
                "trusting k-mers or variants of these reads."
            )
            return
        finding.sentences.append(
            f"The coverage is low ({words.decimal(coverage, 1)}x, {origin}): correction compares "
            "reads of the same locus, and with so few it leaves many errors. On simulated reads "
            "it corrected 88 % of them at 15x and 99.6 % at 30x."
        )


def _say_kmers(found: Correction, finding: Finding) -> None:
    if not {"raw", "corrected"} <= found.kmers.keys():
        return
    raw, corrected = found.kmers["raw"], found.kmers["corrected"]
    before, after = raw.once / raw.sampled, corrected.once / corrected.sampled
    if not before and not after:
        return
    length = f"{raw.k}-mers" if raw.k else "k-mers"
    coverage = found.stats.number("coverage.value") if found.stats else None
    what = ""
    if coverage is not None and coverage >= LOW_COVERAGE:
        what = ", nearly all of them errors,"
    elif coverage is not None:
        what = ", as many error-free ones do at this low coverage,"
    finding.sentences.append(
        f"Distinct {length} that occur only once{what} decreased from "
        f"{words.count(before)} to {words.count(after)}."
    )


def _truth_table(truth: Json) -> Table:
    """Bases and reads by outcome, for reads without and with indels."""
    scopes = ("", "indel_reads.")

    def row(label: str, key: str, digits: int = 0) -> tuple[str, ...]:
        values = (truth.number(f"{scope}{key}") for scope in scopes)
        return (label, *(words.decimal(value, digits) for value in values))

    def rate(label: str, key: str) -> tuple[str, ...]:
        return (label, *(words.rate(truth.number(f"{scope}rates.{key}")) for scope in scopes))

    return Table(
        ("", "reads without indels", "reads with indels"),
        [
            row("reads", "reads.total"),
            row("TP: errors corrected", "totals.tp"),
            row("FP: errors introduced", "totals.fp"),
            row("FN: errors left", "totals.fn"),
            row("… of these changed to another wrong base", "totals.wrong_to_wrong"),
            row("TN: correct bases left unchanged", "totals.tn"),
            row("sensitivity, TP / (TP + FN)", "rates.sensitivity", 4),
            row("specificity, TN / (TN + FP)", "rates.specificity", 7),
            row("precision, TP / (TP + FP)", "rates.precision", 7),
            row("FP per million corrections", "rates.fp_per_million_corrections", 1),
            rate("error rate before", "error_rate_before"),
            rate("error rate after", "error_rate_after"),
            row("reads without errors from the start", "reads.kept_perfect"),
            row("reads made error-free", "reads.made_perfect"),
            row("reads with fewer errors", "reads.improved"),
            row("reads with as many errors as before", "reads.unchanged"),
            row("reads with more errors", "reads.made_worse"),
            *(
                (label, "", words.count(value))
                for label, key in (
                    ("aligned with the truth: reads nearer to it", "nearer"),
                    ("aligned with the truth: reads farther from it", "farther"),
                )
                if (value := truth.number(f"indel_reads.aligned.{key}")) is not None
            ),
        ],
    )


def _process_table(stats: Json) -> Table:
    """Statistics of the correction steps."""
    lines = (
        ("reads", "reads.total", ""),
        ("reads with a base replaced", "corrected.reads", "reads.total"),
        ("bases replaced", "corrected.bases", "reads.bases"),
        ("ambiguous bases (N) decided", "corrected.unknown_decided", ""),
        ("ambiguous bases (N) left", "corrected.unknown_left", ""),
        ("high-quality anchors", "anchors.high_quality", "anchors.total"),
        ("low-quality anchors", "anchors.low_quality", "anchors.total"),
        ("anchors without candidates", "anchors.without_candidates", "anchors.total"),
        ("candidates found", "candidates.found", ""),
        ("candidates aligned", "candidates.aligned", "candidates.found"),
        ("candidates kept by the filter", "candidates.kept", "candidates.found"),
        (
            "candidates removed by refinement",
            "candidates.removed_by_refinement",
            "candidates.found",
        ),
        ("reads whose k-mers are all solid", "classes.error_free", "reads.total"),
        ("reads whose k-mers all are after correction", "classes.fixed", "reads.total"),
        ("reads with some weak k-mers left", "classes.trimmed", "reads.total"),
        ("reads without a solid k-mer", "classes.discarded", "reads.total"),
        ("length of k-mers", "kmers.k", ""),
        ("count from which a k-mer is solid", "kmers.solid_from", ""),
        ("depth of the k-mers' main peak", "kmers.depth", ""),
        ("positions of the genome by solid k-mers", "kmers.genome_size", ""),
    )
    rows = [stats.line(*line) for line in lines if stats.number(line[1]) is not None]
    return Table(("", "number", "share"), rows)
