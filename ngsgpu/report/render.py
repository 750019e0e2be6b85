"""A study to one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ngsgpu._version import __version__
from ngsgpu.report import content, plots, tables
from ngsgpu.report.classification import classification_sections
from ngsgpu.report.collect import SampleResults, collect
from ngsgpu.report.databases import database_table
from ngsgpu.report.extension import extension_sections
from ngsgpu.report.merging import merging_sections
from ngsgpu.report.sections import Figure, SampleSection
from ngsgpu.report.study import Study


def render_report(study: Study) -> str:
    """Render the page; the same study and files give the same bytes.

    Raises:
        InputError: a file of the study is damaged.
        UsageError: matplotlib is not installed.
    """
    import jinja2

    samples = [collect(sample) for sample in study.samples]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ngsgpu.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(_context(study, samples))


def _context(study: Study, samples: Sequence[SampleResults]) -> dict[str, Any]:
    shared, differing = tables.parameters(samples)
    return {
        "study": study,
        "version": __version__,
        "lead": content.lead(samples),
        "findings": [content.finding(results) for results in samples],
        "overview": content.overview(samples),
        "sample_table": content.sample_table(samples),
        "outcomes": _outcomes(samples),
        "correction": _sections(samples, _correction),
        "merging": merging_sections(samples),
        "extension": extension_sections(samples),
        "assembly": _sections(samples, _assembly),
        "classification": classification_sections(samples),
        "databases": database_table(study.databases),
        "costs": tables.cost_table(samples),
        "cost_figure": _costs(samples),
        "stages": tables.stage_table(samples),
        "reference": tables.reference_table(samples),
        "shared_parameters": shared,
        "differing_parameters": differing,
        "config": json.dumps(study.config, indent=2) if study.config else "",
        "commands": _commands(samples),
        "missing": content.missing_table(samples),
        "failures": content.failures(samples),
        "has_truth": any(results.evaluation is not None for results in samples),
    }


def _sections(
    samples: Sequence[SampleResults], make: Callable[[SampleResults, int], SampleSection]
) -> list[SampleSection]:
    """A stage's section of each sample; none of samples that were only classified or failed."""
    made = [(results, make(results, number)) for number, results in enumerate(samples)]
    return [
        section
        for results, section in made
        if not (results.classification or results.notes) or not section.is_empty
    ]


def _commands(samples: Sequence[SampleResults]) -> list[tuple[str, str]]:
    """The correction's command line of each sample, where its statistics have it."""
    found = []
    for results in samples:
        command = results.correct.get("command") if results.correct else None
        if isinstance(command, list) and command:
            found.append((results.sample.label, " ".join(str(word) for word in command)))
    return found


def _outcomes(samples: Sequence[SampleResults]) -> Figure | None:
    rows = []
    for results in samples:
        if results.evaluation is not None:
            names = ("tp", "fn", "fp", "wrong_to_wrong")
            totals = {n: results.evaluation.number(f"totals.{n}") or 0.0 for n in names}
            rows.append((results.sample.label, totals))
    if not rows:
        return None
    return Figure(
        plots.outcomes("outcomes", rows),
        "What became of the wrong bases of simulated reads, and how many right bases were made "
        "wrong (new). Reads without insertions and deletions.",
        is_wide=True,
    )


def _correction(results: SampleResults, number: int) -> SampleSection:
    sample = results.sample
    section = SampleSection(sample.name, sample.label, sample.kind)
    if results.evaluation is not None:
        section.tables.append(("Against the truth", tables.truth_table(results.evaluation)))
    if results.correct is not None:
        section.tables.append(("What correction did", tables.process_table(results.correct)))
    positions = [mate for mate in results.positions() if len(mate.bases)]
    if positions:
        figure = plots.error_rate_by_position(f"error{number}", positions)
        caption = (
            "Error rate by position in the read, before and after correction. Dots: each "
            "position; lines: means over five positions. Reads without insertions and deletions."
        )
        section.figures.append(Figure(figure, caption, is_wide=len(positions) > 1))
    mates = [counts for counts in results.corrected_by_position() if len(counts)]
    if mates:
        figure = plots.corrected_by_position(f"corrected{number}", mates)
        section.figures.append(
            Figure(figure, "Bases replaced, by position in the read (means over five positions).")
        )
    # Reads without a k-mer have nothing that a logarithmic axis could show.
    spectra = {name: found for name, found in results.kmers.items() if found.count.any()}
    if spectra:
        k = next((s.k for s in spectra.values() if s.k), 0)
        figure = plots.spectra(f"spectrum{number}", spectra)
        section.figures.append(
            Figure(
                figure,
                f"Spectrum of {f'{k}-mers' if k else 'k-mers'} before and after correction; both "
                "axes are logarithmic, and points further right are means over several numbers of "
                "occurrences. Errors make k-mers that occur once or a few times (left); "
                "the genome's own gather around the coverage, which is at the left as well where "
                "there are few reads.",
            )
        )
    return section


def _assembly(results: SampleResults, number: int) -> SampleSection:
    sample = results.sample
    section = SampleSection(sample.name, sample.label, sample.kind)
    if results.quast is not None:
        section.tables.append(("QUAST", tables.quast_table(results.quast)))
        section.details.append(
            ("All metrics of QUAST", tables.quast_table(results.quast, everything=True))
        )
    lengths = {name: contigs for name, contigs in results.contigs.items() if len(contigs)}
    if lengths:
        reference = None
        if results.quast is not None:
            found = [results.quast.number("Reference length", name) for name in lengths]
            reference = next((value for value in found if value), None)
        caption = (
            "NGx: contigs of at least this length hold x per cent of the genome."
            if reference
            else "Nx: contigs of at least this length hold x per cent of the assembly."
        )
        figure = plots.nx_curves(f"nx{number}", lengths, reference)
        section.figures.append(Figure(figure, caption))
    return section


def _costs(samples: Sequence[SampleResults]) -> Figure | None:
    having = [results for results in samples if results.benchmarks]
    rules = tables.rules_by_time(having)
    if not rules:
        return None
    values = {
        results.sample.label: {
            rule: (cost.seconds or 0.0, cost.max_rss_mib or 0.0)
            for rule, cost in results.benchmarks.items()
        }
        for results in having
    }
    return Figure(
        plots.costs("costs", rules, values),
        "Wall time (summed where a rule runs in parts) and the largest resident memory of any job, "
        "as Snakemake measured them.",
        is_wide=True,
    )
