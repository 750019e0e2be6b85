"""The report's summary of all stages: samples, main results, failed and missing results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ngsgpu.report import words
from ngsgpu.report.absent import explained
from ngsgpu.report.counts import counts_of, empty_samples
from ngsgpu.report.failed import failed_steps, is_read, notes_of
from ngsgpu.report.files import Json, trimmers
from ngsgpu.report.model import Sample, SampleResults
from ngsgpu.report.page import Column, Finding, Table
from ngsgpu.report.sections import STAGES
from ngsgpu.report.sections.assembly import Assembly
from ngsgpu.report.sections.classification.section import classified
from ngsgpu.report.sections.correction.section import Correction
from ngsgpu.report.sections.cost import Cost, read_cost
from ngsgpu.report.sections.depletion import Depletion
from ngsgpu.report.sections.trimming import READS, READS_LEFT, TRIMMED, trimmed


def collect(sample: Sample) -> SampleResults:
    """Read all files of a sample.

    Raises:
        InputError: a file that is there is damaged.
    """
    results = SampleResults(sample)
    notes = notes_of(sample)
    results.notes = list(dict.fromkeys(notes.values()))
    results.failed_in, results.is_read = failed_steps(notes), is_read(sample, notes)
    # If reads were only classified, a missing correction is not reported.
    is_only_classified = sample.files.one("correct") is None and sample.is_classified
    for stage in sorted(STAGES, key=lambda stage: not stage.is_expected):
        hidden = stage.is_expected and is_only_classified
        part = stage.read(sample, [] if hidden else results.missing)
        results.parts[type(part)] = part
    results.parts[Cost] = read_cost(sample, results.missing)
    return results


def lead(samples: Sequence[SampleResults]) -> str:
    """What ran, on what, in one paragraph."""
    kinds = [
        words.number_words(number, f"set of {kind} reads")
        if number == 1
        else words.number_words(number, f"sets of {kind} read")
        for kind in ("real", "simulated")
        if (number := sum(s.sample.kind == kind for s in samples))
    ]
    corrected = [s for r in samples if (s := r.of(Correction).stats) is not None]
    reads = sum(c.number("reads.total") or 0 for c in corrected)
    bases = sum(c.number("reads.bases") or 0 for c in corrected)
    text = f"{words.listed(kinds).capitalize()}"
    if corrected:
        versions = sorted({str(c.get("version")) for c in corrected if c.get("version")})
        backends = sorted({str(c.get("backend")) for c in corrected if c.get("backend")})
        program = f"ngsgpu {words.listed(versions)}" if versions else "ngsgpu"
        backend = f" on {words.listed(backends).upper()}" if backends else ""
        known = {"ngsgpu.correct": "the CARE algorithm", "ngsgpu.spectrum": "by k-mers"}
        how = words.listed(sorted({known[str(c.get("schema"))] for c in corrected}))
        of = "" if len(corrected) == len(samples) else f"; {len(corrected)} of them"
        text += (
            f"{of}, {reads:,.0f} reads with {bases:,.0f} bases in all, went through error "
            f"correction by {program} ({how}{backend})."
        )
    elif any(results.sample.is_classified for results in samples):
        text += "."
    else:
        text += "; no statistics of their correction were found."
    if calls := classified(samples):
        text = f"{text} {calls}" if corrected else f"{text.rstrip('.')}; {calls}"
    text += _trimmed(samples) + _depleted(samples) + _assembled(samples)
    if any(results.of(Correction).truth is not None for results in samples):
        text += (
            " Where the reads are simulated, every base was compared with the truth; on real reads "
            "k-mer spectra and assemblies serve instead."
        )
    return text


def _trimmed(samples: Sequence[SampleResults]) -> str:
    """Sentence about trimmed reads; empty without."""
    having = trimmed(samples)
    total, left, cut = (
        sum(s.number(key) or 0 for s in having) for key in (READS, READS_LEFT, TRIMMED)
    )
    if not total:
        return ""
    number = words.number_words(len(having), "sample")
    which = "" if len(having) == len(samples) else f" of {number}"
    lost = f", and left out {words.count(total - left)} that were too short" if left < total else ""
    return (
        f" Before all other steps, {trimmers(having)} trimmed adapters from {words.count(cut)} of "
        f"{words.count(total)} reads{which} ({words.share(cut, total)}){lost}."
    )


def _depleted(samples: Sequence[SampleResults]) -> str:
    """Sentence about the reads that depletion took; empty without."""
    having = [s for results in samples if (s := results.of(Depletion).stats) is not None]
    is_first = not trimmed(samples)
    total, kept = (sum(s.number(f"reads.{of}") or 0 for s in having) for of in ("total", "kept"))
    if not total:
        return ""
    number = words.number_words(len(having), "sample")
    which = "" if len(having) == len(samples) else f" of {number}"
    return (
        f" Before all {'other' if is_first else 'further'} steps, depletion took out "
        f"{words.count(total - kept)} of {words.count(total)} reads{which} "
        f"({words.share(total - kept, total)})."
    )


def _assembled(samples: Sequence[SampleResults]) -> str:
    """Sentence about assembled samples, and those of them with contigs."""
    assemblies = [own for results in samples if (own := results.of(Assembly)).contigs]
    if not assemblies:
        return ""
    number, without = len(assemblies), sum(not own.has_contigs for own in assemblies)
    which = "Each was" if number == len(samples) else f"{number} of {len(samples)} were"
    text = f" {which} assembled from the uncorrected and from the corrected reads"
    gave = "it gave no contigs" if number == 1 else f"{without} of them gave no contigs"
    return f"{text}; {gave}." if without else f"{text}."


def failures(samples: Sequence[SampleResults]) -> list[tuple[str, list[str]]]:
    """By sample, what failed and why; not of samples without reads, which is their reason."""
    found = [
        (s.sample.label, explained(note for note in s.notes if note.is_failure))
        for s in samples
        if not counts_of(s).is_without_reads
    ]
    return [(label, notes) for label, notes in found if notes]


def finding(results: SampleResults) -> Finding:
    """The main results of a sample."""
    sample = results.sample
    found = Finding(sample.name, sample.label, sample.kind)
    for stage in sorted(STAGES, key=lambda stage: stage.is_conclusion):
        stage.say(results, found)
    for kind, is_failure in (("Failed", True), ("Skipped", False)):
        notes = explained(note for note in results.notes if note.is_failure == is_failure)
        found.sentences.extend(f"{kind}: {text}." for text in notes)
    for _, why in empty_samples([results]):
        found.sentences.insert(0, f"This sample has no reads: {why}.")
    if not found.sentences:
        found.sentences.append("No results were found for this sample.")
    return found


def overview(samples: Sequence[SampleResults]) -> Table:
    """One line a sample: the table that most readers look for."""
    found = [Column("sample", [results.sample.label for results in samples]), *columns(samples)]
    headings = tuple(column.heading for column in found)
    rows = list(zip(*(column.cells for column in found), strict=True))
    return Table(headings, rows).without_empty_columns()


def columns(samples: Sequence[SampleResults]) -> list[Column]:
    """The reads, the main results of all stages, and time and memory of the correction."""
    stats = [results.of(Correction).stats for results in samples]
    seconds = (s.number("time_s.total") if s else None for s in stats)
    memory = (s.number("memory.peak_rss_bytes") if s else None for s in stats)
    return [
        Column("reads", [words.count(counts_of(results).reads) for results in samples]),
        *(column for stage in STAGES for column in stage.columns(samples)),
        Column("correction time", [words.duration(value) for value in seconds]),
        Column("peak memory", [words.bytes_as_mebibytes(value) for value in memory]),
    ]


def sample_table(samples: Sequence[SampleResults]) -> Table:
    """What the samples are."""
    rows = []
    for results in samples:
        sample, stats = results.sample, results.of(Correction).stats or Json(Path(), {})
        low, high = stats.number("reads.min_length"), stats.number("reads.max_length")
        counts, coverage = counts_of(results), words.NOTHING
        if counts.is_without_reads:
            # Statistics have the values that correction starts from.
            low = high = None
        elif (value := stats.number("coverage.value")) is not None:
            origin = "estimated" if stats.get("coverage.estimated") else "given"
            coverage = words.with_note(words.decimal(value, 1), origin)
        rows.append(
            (
                sample.label,
                sample.kind,
                words.count(counts.reads),
                words.count(counts.bases),
                words.count(counts.trimmed),
                words.count(counts.left),
                words.span(words.count(low), words.count(high)),
                coverage,
                "; ".join(f"{k}: {v}" for k, v in words.flat(dict(sample.parameters)).items()),
            )
        )
    headings = (
        "sample", "kind", "reads", "bases", "reads after trimming", "reads after depletion",
        "read length", "coverage", "parameters",
    )  # fmt: skip
    return Table(headings, rows, text_columns=frozenset({1, 8})).without_empty_columns()


def missing_table(samples: Sequence[SampleResults]) -> list[tuple[str, list[str]]]:
    """Missing results, once for all samples that lack the same."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for own in samples:
        if own.missing:
            key = tuple(text.replace(own.sample.name, "SAMPLE") for text in own.missing)
            labels.setdefault(key, []).append(own.sample.label)
    first = {own.sample.label: own.missing for own in reversed(samples)}
    return [
        (
            "all samples" if 1 < len(having) == len(samples) else words.listed(having),
            first[having[0]] if len(having) == 1 else list(items),
        )
        for items, having in labels.items()
    ]
