"""The first table of the page: what each step did, what it gained, and what to do about it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ngsgpu.report import words
from ngsgpu.report.failed import place
from ngsgpu.report.files import Json
from ngsgpu.report.model import SampleResults, Study
from ngsgpu.report.page import Table
from ngsgpu.report.sections.assembly import Assembly
from ngsgpu.report.sections.classification.files import Composition
from ngsgpu.report.sections.classification.section import Classifications
from ngsgpu.report.sections.correction.section import LOW_COVERAGE, Correction
from ngsgpu.report.sections.depletion import Depletion
from ngsgpu.report.sections.devices import Span, day
from ngsgpu.report.sections.extension import Extension
from ngsgpu.report.sections.merging import Merging
from ngsgpu.report.sections.quality import MANY_ADAPTERS, Quality, adapters_left, whole_reads
from ngsgpu.report.sections.trimming import BASES, TRIMMED_BASES, Trimming, trimmed_share

FINE: Final = "OK"
"""Where there is no advice."""
_LOW_Q30: Final = 0.75
"""Share of bases of Q30 or more below which reads are called poor."""
_MANY_DUPLICATES: Final = 0.5
"""Share of duplicates that FastQC fails."""
_FEW: Final = 0.5
"""Share of pairs merged or connected, or of reads classified, below which a step missed most."""
_NAMED: Final = 3
"""Samples that an advice names at most."""

Values = list[tuple[str, float]]
"""Labels of samples and a value of each."""


@dataclass(frozen=True)
class Verdict:
    """What a step did in numbers, its gain, and pieces of advice; empty where all is well."""

    step: str
    did: str
    gain: str = ""
    advice: tuple[str, ...] = ()


def verdicts(samples: Sequence[SampleResults]) -> list[Verdict]:
    """One a step that ran, in the order of the page."""
    steps = (
        _trimming, _depletion, _quality, _correction, _merging, _extension, _assembly,
        _classification,
    )  # fmt: skip
    made = [verdict for step in steps for verdict in step(samples)]
    return _with_failures(made, samples)


def _with_failures(made: Sequence[Verdict], samples: Sequence[SampleResults]) -> list[Verdict]:
    """The verdicts with a word on the samples that failed; where all did, there is no other."""
    failed: dict[str, list[str]] = {}
    for results in samples:
        for step in results.failed_in:
            failed.setdefault(step, []).append(results.sample.label)
    steps = {verdict.step: verdict for verdict in made}
    for step, labels in failed.items():
        verdict = steps.get(step, Verdict(step, words.NOTHING))
        remark = _about(labels, len(samples), "failed: the reason is above")
        steps[step] = replace(verdict, advice=(*remark, *verdict.advice))
    return sorted(steps.values(), key=lambda verdict: place(verdict.step))


def verdict_table(found: Sequence[Verdict]) -> Table:
    """The verdicts as a table."""
    rows = [
        tuple(
            cell.replace(" %", "\N{NO-BREAK SPACE}%")
            for cell in (v.step, v.did, v.gain or words.NOTHING, " ".join(v.advice) or FINE)
        )
        for v in found
    ]
    headings = ("step", "what it did", "gain", "what to do")
    return Table(headings, rows, text_columns=frozenset({1, 2, 3}))


def facts(study: Study, spans: Sequence[Span], version: str | None) -> list[str]:
    """Date, versions of the program and the workflow, and databases.

    Args:
        study: the study.
        spans: begin and end of the runs.
        version: version of ngsgpu, if known.
    """
    date = study.date or (day(max(span.end for span in spans)) if spans else "")
    databases = dict.fromkeys(
        (
            *study.databases,
            *(key[1] for s in study.samples for key in s.files.paths if key[0] == "classification"),
        )
    )
    names = [name for name in databases if name]
    found = [date, f"ngsgpu {version}" if version else ""]
    found.append(study.versions.get("workflow", ""))
    if names:
        found.append(f"{'databases' if len(names) > 1 else 'database'}: {words.listed(names)}")
    return [fact for fact in found if fact]


def _advice(values: Values, is_off: str, limit: float, shown: str, what: str) -> tuple[str, ...]:
    """Advice on the samples beyond a limit, ``above`` or ``below`` it, the worst ones named.

    ``shown`` is the limit in words; ``what`` follows the colon.
    """
    sign = 1 if is_off == "below" else -1
    off = sorted((sign * value, label) for label, value in values if sign * (value - limit) < 0)
    if not off:
        return ()
    who = f"({_named([label for _, label in off])})"
    count = "" if len(values) == 1 else f"{len(off)} of {len(values)} samples {who} "
    text = f"{count}{is_off} {shown}: {what}."
    return (text[0].upper() + text[1:],)


def _about(labels: Sequence[str], number: int, what: str) -> tuple[str, ...]:
    """A remark on some of a number of samples, the first ones named; none on none."""
    if not labels:
        return ()
    if number == 1:
        return (f"It {what}.",)
    return (f"{len(labels)} of {number} samples ({_named(labels)}) {what}.",)


def _named(labels: Sequence[str]) -> str:
    """The first few of some samples, and how many more there are."""
    names, more = list(labels[:_NAMED]), len(labels) - _NAMED
    return f"{', '.join(names)} and {more} more" if more > 0 else words.listed(names)


def _numbers(stats: Sequence[tuple[str, Json]], key: str, of: str = "") -> Values:
    """Values, or their shares of others, of the samples that have them."""
    found = []
    for label, own in stats:
        value, whole = own.number(key), own.number(of) if of else 1.0
        if value is not None and whole:
            found.append((label, value / whole))
    return found


def _total(stats: Sequence[tuple[str, Json]], key: str) -> float:
    return sum(own.number(key) or 0.0 for _, own in stats)


def _range(values: Values, unit: str = "") -> str:
    """The median, and the range if there are several samples; per cent without a unit."""

    def write(value: float) -> str:
        return f"{value:,.1f}{unit}" if unit else words.percent(value, 1)

    numbers = sorted(value for _, value in values)
    if not numbers:
        return words.NOTHING
    text = write(statistics.median(numbers))
    if write(numbers[0]) == write(numbers[-1]):
        return text
    return f"{text} ({write(numbers[0])} to {write(numbers[-1])})"


def _trimming(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    shares = [(r.sample.label, own) for r in samples if (own := trimmed_share(r)) is not None]
    if shares:
        stats = [(r.sample.label, s) for r in samples if (s := r.of(Trimming).stats) is not None]
        cut, total = (_total(stats, key) for key in (TRIMMED_BASES, BASES))
        yield Verdict(
            "Trimming",
            f"reads with adapter, trimmed: {_range(shares)}",
            f"{words.count(cut)} bases of adapters ({words.share(cut, total)}) taken off",
        )


def _depletion(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    stats = [(r.sample.label, s) for r in samples if (s := r.of(Depletion).stats) is not None]
    shares = _numbers(stats, "reads.host", "reads.total")
    if not shares:
        return
    total, kept = _total(stats, "reads.total"), _total(stats, "reads.kept")
    left = _numbers(stats, "reads.kept", "reads.total")
    yield Verdict(
        "Depletion",
        f"reads of the host: {_range(shares)}",
        f"{words.count(kept)} of {words.count(total)} reads kept",
        _about([label for label, share in left if not share], len(samples), "had no read left: "
               "check that the index is not of the sample itself"),
    )  # fmt: skip


def _quality(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    raw = [(r.sample.label, own) for r in samples if (own := whole_reads(r)) is not None]
    if not raw:
        return
    good = _numbers(raw, "summary.before_filtering.q30_rate")
    twice = _numbers(raw, "duplication.rate")
    cut = [(r.sample.label, left) for r in samples if (left := adapters_left(r)) is not None]
    did = f"Q30 or more: {_range(good)} of the bases; duplicates: {_range(twice)}"
    did += f"; reads with adapter: {_range(cut)}" if cut else ""
    if doubtful := sum("raw" in r.of(Quality).reads for r in samples) - len(raw):
        did += f"; without {words.number_words(doubtful, 'failed or empty sample')}"
    yield Verdict(
        "Read quality",
        did,
        advice=(
            *_advice(good, "below", _LOW_Q30, "75 % of Q30", "look at the quality by position, "
                     "and consider trimming or sequencing again"),
            *_advice(twice, "above", _MANY_DUPLICATES, "50 % duplicates",
                     "the library has few different fragments"),
            *_advice(cut, "above", MANY_ADAPTERS, "1 % of reads with adapter", "trim it, for "
                     "example with ngsgpu trim, or merge the pairs, which trims them"),
        ),
    )  # fmt: skip


def _correction(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    having = [(r, own) for r in samples if (own := r.of(Correction).stats) is not None]
    stats = [(r.sample.label, own) for r, own in having]
    if not stats:
        return
    replaced = _total(stats, "corrected.bases")
    changed = _numbers(stats, "corrected.reads", "reads.total")
    did = f"{words.count(replaced)} bases ({words.share(replaced, _total(stats, 'reads.bases'))}) "
    did += f"replaced; reads changed: {_range(changed)}"
    coverage = _numbers([own for own in stats if own[1].number("reads.total")], "coverage.value")
    what = "correction leaves many errors with so few reads of a locus; sequence deeper if you can"
    yield Verdict(
        "Correction",
        did,
        "; ".join(_errors([r for r, _ in having])),
        _advice(coverage, "below", LOW_COVERAGE, f"{LOW_COVERAGE:.0f}x of coverage", what),
    )


def _errors(samples: Sequence[SampleResults]) -> Iterator[str]:
    """Phrases about the errors that correction removed: by the truth, or by k-mers."""
    truths = [(r.sample.label, t) for r in samples if (t := r.of(Correction).truth) is not None]
    rates = {when: _numbers(truths, f"rates.error_rate_{when}") for when in ("before", "after")}
    if all(rates.values()):
        before, after = (statistics.median(v for _, v in rates[w]) for w in ("before", "after"))
        yield f"error rate {words.rate(before)} → {words.rate(after)}"
        yield f"sensitivity {_range(_numbers(truths, 'rates.sensitivity'))}"
    spectra = [kmers for r in samples if len(kmers := r.of(Correction).kmers) == 2]
    before, after = (
        sum(kmers[name].once / kmers[name].sampled for kmers in spectra)
        for name in ("raw", "corrected")
    )
    if before:
        yield f"k-mers that occur once: {words.count(before)} → {words.count(after)}"


def _merging(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    stats = [(r.sample.label, s) for r in samples if (s := r.of(Merging).stats) is not None]
    what = "most fragments are longer than both reads together, or the reads are poor; extend the "
    what += "pairs instead"
    # The fragments of the other pairs are unknown, and most of them are longer.
    length = ("mean fragment of the merged pairs alone", "insert_size.mean")
    yield from _joined("Merging", "merged", stats, length, what)


def _extension(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    stats = [(r.sample.label, s) for r in samples if (s := r.of(Extension).stats) is not None]
    what = "the coverage is too low or the estimated insert size is wrong; give --insert-size if "
    what += "you know it"
    origins = {
        str(own.get("insert.estimated")) for _, own in stats if own.number("pairs.connected")
    }
    told = {"True": ", estimated from connected pairs", "False": ", as given"}
    name = "mean insert size" + (told.get(origins.pop(), "") if len(origins) == 1 else "")
    yield from _joined("Extension", "connected", stats, (name, "insert.mean"), what)


def _joined(
    step: str, done: str, stats: Sequence[tuple[str, Json]], length: tuple[str, str], what: str
) -> Iterator[Verdict]:
    """Verdict on pairs that became one read, with the mean of a length (its name and key)."""
    shares = _numbers(stats, f"pairs.{done}", "pairs.total")
    if shares:
        name, key = length
        # Without any such pair, the statistics have a length of none, or the one that was assumed.
        lengths = _numbers([own for own in stats if own[1].number(f"pairs.{done}")], key)
        yield Verdict(
            step,
            f"pairs {done}: {_range(shares)}",
            f"{name}: {_range(lengths, ' bases')}" if lengths else "",
            _advice(shares, "below", _FEW, f"50 % {done}", what),
        )


def _assembly(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    found = [(r.sample.label, r.of(Assembly)) for r in samples]
    ratios = [(label, ratio) for label, own in found if (ratio := own.ratio) is not None]
    assembled = [(label, own) for label, own in found if own.contigs or own.ratio is not None]
    if not assembled:
        return
    compared = {label for label, _ in ratios}
    without = [label for label, own in assembled if own.contigs and not own.has_contigs]
    others = [
        r.sample.label
        for r in samples
        if r.of(Assembly).has_contigs
        and r.sample.label not in compared
        and r.sample.files.group("quast")
        and not r.failed_in
    ]
    gain = ""
    if ratios:
        longer = sum(ratio > 1 for _, ratio in ratios)
        gain = f"contiguity {_range(ratios, 'x')} of that without correction, more in {longer} "
        gain += f"of {len(ratios)}"
    yield Verdict(
        "Assembly",
        f"{len(assembled)} of {len(samples)} samples assembled with and without correction; with "
        f"contigs: {len(assembled) - len(without)}; compared by QUAST: {len(ratios)}",
        gain,
        (
            *_about(without, len(samples), "gave no contigs: look at the number of reads and the "
                    "coverage"),
            *_about(others, len(samples), "gave contigs that QUAST could not compare: most are "
                    "too short for it (500 bases by default)"),
            *_advice(ratios, "below", 0.9, "90 % of the contiguity without correction", "compare "
                     "misassemblies, and assemble the uncorrected reads if they have no more"),
        ),
    )  # fmt: skip


def _classification(samples: Sequence[SampleResults]) -> Iterator[Verdict]:
    found = [(r.sample.label, r.of(Classifications).found) for r in samples]
    for database in dict.fromkeys(name for _, databases in found for name in databases):
        counted = [
            (label, own)
            for label, of in found
            if database in of and (own := of[database].composition) is not None and own.total
        ]
        shares = [(label, own.root.clade / own.total) for label, own in counted]
        if not shares:
            continue
        species = {taxon.name for _, own in counted for taxon in own.root.walk()
                   if taxon.code == "S" and taxon.clade >= own.total / 1000}  # fmt: skip
        count = "one" if len(species) == 1 else words.count(len(species))
        gain = f"{count} species with at least 0.1 % of a sample"
        if most := _most_frequent([own for _, own in counted]):
            gain += f"; most frequent: {most}"
        yield Verdict(
            f"Classification{f' with {database}' if database else ''}",
            f"classified: {_range(shares)}",
            gain,
            _advice(shares, "below", _FEW, "50 % classified", "most reads are unlike anything in "
                    "the database; add genomes (ngsgpu db add) or look for contamination"),
        )  # fmt: skip


def _most_frequent(compositions: Sequence[Composition]) -> str:
    """The most frequent species of a sample with their shares; of several, how many have each."""
    if len(compositions) == 1:
        (own,) = compositions
        shown = [f"{taxon.name} ({words.share(taxon.clade, own.total)})" for taxon in own.species]
        return words.listed(shown[:_NAMED]) if shown else ""
    # Ties are in the order of the samples.
    first = Counter(own.species[0].name for own in compositions if own.species).most_common()
    shown = [f"{name} (in {number} of {len(compositions)} samples)" for name, number in first]
    return _named(shown) if shown else ""
