"""What the report says: tables and sentences, made from the results of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ngsgpu.report import words
from ngsgpu.report.absent import explained
from ngsgpu.report.collect import SampleResults
from ngsgpu.report.sources import Quast
from ngsgpu.report.taxa import Composition


@dataclass(frozen=True)
class Table:
    """A table of the report; the first column names the rows.

    Attributes:
        headings: of all columns.
        rows: cells as text.
        marks: ``(row, column)`` of cells that are the better ones.
        text_columns: columns, besides the first, that hold words and not numbers.
    """

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    marks: frozenset[tuple[int, int]] = frozenset()
    text_columns: frozenset[int] = frozenset()

    def without_empty_columns(self) -> Table:
        """Without the columns, besides the first, in which no row has a value."""
        kept = [
            column
            for column in range(len(self.headings))
            if column == 0 or any(row[column] not in ("", words.NOTHING) for row in self.rows)
        ]
        place = {column: number for number, column in enumerate(kept)}
        return Table(
            tuple(self.headings[column] for column in kept),
            [tuple(row[column] for column in kept) for row in self.rows],
            frozenset((row, place[column]) for row, column in self.marks if column in place),
            frozenset(place[column] for column in self.text_columns if column in place),
        )


@dataclass(frozen=True)
class Finding:
    """The main results of one sample: sentences, and figures to catch the eye."""

    name: str
    label: str
    kind: str
    sentences: list[str]
    figures: list[tuple[str, str]] = field(default_factory=list)


def lead(samples: Sequence[SampleResults]) -> str:
    """What ran, on what, in one paragraph."""
    kinds = [
        words.number_words(number, f"set of {kind} reads")
        if number == 1
        else words.number_words(number, f"sets of {kind} read")
        for kind in ("real", "simulated")
        if (number := sum(s.sample.kind == kind for s in samples))
    ]
    corrected = [s.correct for s in samples if s.correct is not None]
    reads = sum(c.number("reads.total") or 0 for c in corrected)
    bases = sum(c.number("reads.bases") or 0 for c in corrected)
    text = f"{words.listed(kinds).capitalize()}"
    if corrected:
        versions = sorted({str(c.get("version")) for c in corrected if c.get("version")})
        backends = sorted({str(c.get("backend")) for c in corrected if c.get("backend")})
        program = f"ngsgpu {words.listed(versions)}" if versions else "ngsgpu"
        backend = f" on {words.listed(backends).upper()}" if backends else ""
        text += (
            f", {reads:,.0f} reads with {bases:,.0f} bases in all, went through error "
            f"correction by {program} (the CARE algorithm{backend})."
        )
    elif any(s.classification for s in samples):
        text += "."
    else:
        text += "; no statistics of their correction were found."
    classified = _classified(samples)
    if classified:
        text = f"{text} {classified}" if corrected else f"{text.rstrip('.')}; {classified}"
    assembled = sum(bool(s.contigs) for s in samples)
    if assembled:
        which = "Each was" if assembled == len(samples) else f"{assembled} of {len(samples)} were"
        text += f" {which} assembled from the uncorrected and from the corrected reads."
    known = sum(s.evaluation is not None for s in samples)
    if known:
        text += (
            " Where the reads are simulated, every base was compared with the truth; on real reads "
            "k-mer spectra and assemblies have to tell."
        )
    return text


def _classified(samples: Sequence[SampleResults]) -> str:
    """How much of all samples was classified, by database."""
    clauses = []
    for database in dict.fromkeys(name for s in samples for name in s.classification):
        found = [s.classification[database] for s in samples if database in s.classification]
        counted = [(c.composition, c.unit) for c in found if c.composition is not None]
        if not counted:
            continue
        units = words.listed(sorted({unit for _, unit in counted}, reverse=True))
        classified = sum(composition.root.clade for composition, _ in counted)
        total = sum(composition.total for composition, _ in counted)
        which = f" with {database}" if database else ""
        clauses.append(f"{classified:,} of {total:,} {units} were classified{which}")
    return f"{', '.join(clauses)}." if clauses else ""


def failures(samples: Sequence[SampleResults]) -> list[tuple[str, list[str]]]:
    """By sample, what failed and why."""
    found = [
        (s.sample.label, explained(note for note in s.notes if note.is_failure)) for s in samples
    ]
    return [(label, notes) for label, notes in found if notes]


def finding(results: SampleResults) -> Finding:
    """The main results of a sample."""
    sentences: list[str] = []
    figures: list[tuple[str, str]] = []
    _say_truth(results, sentences, figures)
    _say_correction(results, sentences, figures)
    _say_coverage(results, sentences)
    _say_kmers(results, sentences)
    _say_classification(results, sentences, figures)
    _say_assembly(results, sentences, figures)
    for kind, is_failure in (("Failed", True), ("Skipped", False)):
        notes = explained(note for note in results.notes if note.is_failure == is_failure)
        sentences += [f"{kind}: {text}." for text in notes]
    if not sentences:
        sentences.append("No results were found for this sample.")
    sample = results.sample
    return Finding(sample.name, sample.label, sample.kind, sentences, figures)


def _say_truth(
    results: SampleResults, sentences: list[str], figures: list[tuple[str, str]]
) -> None:
    truth = results.evaluation
    if truth is None:
        return
    tp, fn, fp = (truth.number(f"totals.{name}") or 0 for name in ("tp", "fn", "fp"))
    sensitivity = truth.number("rates.sensitivity")
    false_rate = truth.number("rates.fp_per_million_corrections")
    before, after = (truth.number(f"rates.error_rate_{when}") for when in ("before", "after"))
    figures.append(("errors corrected", words.percent(sensitivity, 1)))
    figures.append(("false positives per million corrections", words.decimal(false_rate, 1)))
    sentence = (
        f"{words.count(tp)} of {words.count(tp + fn)} errors were corrected (sensitivity "
        f"{words.decimal(sensitivity, 4)}) and {words.count(fp)} right "
        f"{'base was' if fp == 1 else 'bases were'} made wrong, "
        f"{words.decimal(false_rate, 1)} per million corrections."
    )
    if before is not None and after is not None:
        sentence += f" The error rate fell from {words.rate(before)} to {words.rate(after)}"
        if after >= before:
            sentence = sentence.replace("fell", "went")
        elif after > 0:
            sentence += f", {words.decimal(before / after, 1)} times lower"
        sentence += "."
        figures.append(("error rate", f"{words.rate(before)} → {words.rate(after)}"))
    sentences.append(sentence)


def _say_correction(
    results: SampleResults, sentences: list[str], figures: list[tuple[str, str]]
) -> None:
    stats = results.correct
    if stats is None:
        return
    reads, bases = stats.number("reads.total"), stats.number("reads.bases")
    changed, replaced = stats.number("corrected.reads"), stats.number("corrected.bases")
    if changed is None or replaced is None or reads is None:
        return
    sentences.append(
        f"{words.count(replaced)} bases ({words.rate(replaced / bases) if bases else words.NOTHING}"
        f" of all) were replaced, in {words.count(changed)} of {words.count(reads)} reads "
        f"({words.share(changed, reads)})."
    )
    if results.evaluation is None:
        figures.append(("bases replaced", words.count(replaced)))
        figures.append(("reads changed", words.share(changed, reads)))


_LOW_COVERAGE = 15.0
"""Below this many reads a position, correction leaves many errors, and k-mers of the genome itself
occur once. On simulated reads its sensitivity was 0.875 at 15x and 0.996 at 30x."""


def _say_coverage(results: SampleResults, sentences: list[str]) -> None:
    """Warn where there are too few reads for correction to do much."""
    stats = results.correct
    if stats is None or not stats.number("reads.total"):
        return
    coverage = stats.number("coverage.value")
    if coverage is not None and coverage < _LOW_COVERAGE:
        origin = "estimated" if stats.get("coverage.estimated") else "given"
        sentences.append(
            f"The coverage is low ({words.decimal(coverage, 1)}x, {origin}): correction compares "
            "reads of the same place, and with so few it leaves many errors. On simulated reads "
            "it found 88 % of them at 15x and 99.6 % at 30x."
        )


def _say_kmers(results: SampleResults, sentences: list[str]) -> None:
    if not {"raw", "corrected"} <= results.kmers.keys():
        return
    raw, corrected = results.kmers["raw"], results.kmers["corrected"]
    before, after = raw.once / raw.sampled, corrected.once / corrected.sampled
    if not before and not after:
        return
    length = f"{raw.k}-mers" if raw.k else "k-mers"
    coverage = results.correct.number("coverage.value") if results.correct else None
    what = ""
    if coverage is not None and coverage >= _LOW_COVERAGE:
        what = ", nearly all of them errors,"
    elif coverage is not None:
        what = ", which at so low a coverage many of the genome's own do as well,"
    sentences.append(
        f"Distinct {length} that occur only once{what} went from "
        f"{words.count(before)} to {words.count(after)}."
    )


def _say_classification(
    results: SampleResults, sentences: list[str], figures: list[tuple[str, str]]
) -> None:
    for database, found in results.classification.items():
        if found.composition is not None:
            _say_composition(database, found.composition, found.unit, sentences, figures)


def _say_composition(
    database: str,
    composition: Composition,
    unit: str,
    sentences: list[str],
    figures: list[tuple[str, str]],
) -> None:
    which = f" with {database}" if database else ""
    if composition.total == 0:
        sentences.append(f"There were no {unit} to classify{which}.")
        return
    classified, total = composition.root.clade, composition.total
    share = words.share(classified, total)
    sentence = (
        f"{words.count(classified)} of {words.count(total)} {unit} ({share}) were classified{which}"
    )
    species = sorted(
        (taxon for taxon in composition.root.walk() if taxon.code == "S"),
        key=lambda taxon: (-taxon.clade, taxon.name),
    )[:3]
    if species:
        shown = [f"{taxon.name} ({words.share(taxon.clade, total)})" for taxon in species]
        sentence += f", most of them as {words.listed(shown)}"
    sentences.append(f"{sentence}.")
    figures.append((f"{unit} classified{which}", share))


def contiguity(quast: Quast | None) -> str | None:
    """The most telling contiguity that QUAST gives for both assemblies."""
    for metric in ("NGA50", "NG50", "N50"):
        if quast and all(quast.number(metric, name) is not None for name in ("raw", "corrected")):
            return metric
    return None


def _say_assembly(
    results: SampleResults, sentences: list[str], figures: list[tuple[str, str]]
) -> None:
    without = [name for name, lengths in results.contigs.items() if not len(lengths)]
    if without:
        which = words.listed([{"raw": "uncorrected"}.get(name, name) for name in without])
        sentences.append(f"Assembly of the {which} reads gave no contigs.")
    quast, metric = results.quast, contiguity(results.quast)
    if quast is None or metric is None:
        return
    before, after = quast.number(metric, "raw"), quast.number(metric, "corrected")
    sentence = f"{metric} of the contigs: {words.count(before)} before correction, "
    sentence += f"{words.count(after)} after"
    parts = []
    for name, what in (
        ("# misassemblies", "misassemblies"),
        ("# mismatches per 100 kbp", "mismatches per 100 kb"),
    ):
        pair = [quast.metrics.get(name, {}).get(v) for v in ("raw", "corrected")]
        if None not in pair and "-" not in pair:
            parts.append(f"{what}: {pair[0]} before, {pair[1]} after")
    sentences.append("; ".join([sentence, *parts]) + ".")
    figures.append((f"{metric} of the contigs", f"{words.count(before)} → {words.count(after)}"))


def overview(samples: Sequence[SampleResults]) -> Table:
    """One line a sample: the table that most readers look for."""
    rows = []
    metrics = {metric for s in samples if (metric := contiguity(s.quast)) is not None}
    databases = list(dict.fromkeys(name for s in samples for name in s.classification))
    for results in samples:
        stats, truth, quast = results.correct, results.evaluation, results.quast
        compositions = [
            found.composition if (found := results.classification.get(name)) else None
            for name in databases
        ]
        metric = contiguity(quast)
        contigs = words.NOTHING
        if quast is not None and metric is not None:
            before, after = (quast.number(metric, v) for v in ("raw", "corrected"))
            contigs = f"{words.count(before)} → {words.count(after)}"
        error = words.NOTHING
        if truth is not None:
            error = " → ".join(
                words.rate(truth.number(f"rates.error_rate_{w}")) for w in ("before", "after")
            )
        rows.append(
            (
                results.sample.label,
                words.count(stats.number("reads.total") if stats else None),
                words.count(stats.number("corrected.bases") if stats else None),
                words.decimal(truth.number("rates.sensitivity") if truth else None, 4),
                words.decimal(
                    truth.number("rates.fp_per_million_corrections") if truth else None, 1
                ),
                error,
                contigs + (f" ({metric})" if metric and len(metrics) > 1 else ""),
                *(words.share(c.root.clade, c.total) if c else words.NOTHING for c in compositions),
                words.duration(stats.number("time_s.total") if stats else None),
                words.mebibytes(_mib(stats.number("memory.peak_rss_bytes") if stats else None)),
            )
        )
    headings = (
        "sample", "reads", "bases replaced", "sensitivity", "FP per million corrections",
        "error rate", metrics.pop() if len(metrics) == 1 else "contigs",
        *(f"classified with {name}" if name else "classified" for name in databases),
        "correction time", "peak memory",
    )  # fmt: skip
    # Narrow pages break cells before an arrow, nowhere else.
    whole = [
        tuple(c.replace(" %", "\N{NO-BREAK SPACE}%").replace("→ ", _ARROW) for c in r) for r in rows
    ]
    return Table(headings, whole).without_empty_columns()


_ARROW = "→\N{NO-BREAK SPACE}"


def _mib(value: float | None) -> float | None:
    return None if value is None else value / 2**20


def sample_table(samples: Sequence[SampleResults]) -> Table:
    """What the samples are."""
    rows = []
    for results in samples:
        sample, stats = results.sample, results.correct
        low, high = (
            (stats.number("reads.min_length"), stats.number("reads.max_length"))
            if stats
            else (None, None)
        )
        length = words.count(low) if low == high else f"{words.count(low)} to {words.count(high)}"
        coverage = words.NOTHING
        if stats is not None and (value := stats.number("coverage.value")) is not None:
            origin = "estimated" if stats.get("coverage.estimated") else "given"
            coverage = f"{words.decimal(value, 1)} ({origin})"
        rows.append(
            (
                sample.label,
                sample.kind,
                words.count(stats.number("reads.total") if stats else None),
                words.count(stats.number("reads.bases") if stats else None),
                length,
                coverage,
                "; ".join(f"{k}: {v}" for k, v in words.flat(dict(sample.parameters)).items()),
            )
        )
    headings = ("sample", "kind", "reads", "bases", "read length", "coverage", "parameters")
    return Table(headings, rows, text_columns=frozenset({1, 6})).without_empty_columns()


def missing_table(samples: Sequence[SampleResults]) -> list[tuple[str, list[str]]]:
    """What there is not, by sample."""
    return [(s.sample.label, s.missing) for s in samples if s.missing]
