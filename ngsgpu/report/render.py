"""A study to one self-contained HTML page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ngsgpu._version import __version__
from ngsgpu.report import summary, words
from ngsgpu.report.counts import empty_samples
from ngsgpu.report.exports.methods import SOURCES, Methods
from ngsgpu.report.exports.software import read_runs
from ngsgpu.report.model import Study
from ngsgpu.report.sections import STAGES
from ngsgpu.report.sections.correction import parameters
from ngsgpu.report.sections.cost import all_costs, cost_figure, cost_table, rule_table, said
from ngsgpu.report.sections.devices import devices_figure, devices_tables, read_spans
from ngsgpu.report.spread import MANY_SAMPLES, main_results
from ngsgpu.report.verdict import FINE, facts, verdict_table, verdicts

if TYPE_CHECKING:
    from jinja2 import Environment


def render_report(study: Study) -> str:
    """Render the page; the same study and files give the same bytes.

    Raises:
        InputError: a file of the study is damaged.
        UsageError: matplotlib is not installed.
    """
    return render_page(report_context(study))


def render_page(context: dict[str, Any]) -> str:
    """Render the page of what ``report_context`` gives."""
    return templates().get_template("report.html.j2").render(context)


def templates() -> Environment:
    """The templates of the report, with their filters."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ngsgpu.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["unbroken"] = _unbroken
    return environment


def _unbroken(cell: str) -> str:
    """A cell that narrow pages do not break before a per cent sign or after an arrow."""
    return cell.replace(" %", "\N{NO-BREAK SPACE}%").replace("→ ", "→\N{NO-BREAK SPACE}")


def report_context(study: Study) -> dict[str, Any]:
    """Read the study's files and make the tables, figures and sentences of the page.

    Raises:
        InputError: a file of the study is damaged.
        UsageError: matplotlib is not installed.
    """
    samples = [summary.collect(sample) for sample in study.samples]
    are_many = len(samples) > MANY_SAMPLES
    parts = [
        {
            "name": stage.name,
            "title": stage.title,
            "intro": stage.intro_for(samples),
            "figures": [
                *filter(None, [stage.figure(samples)]),
                *(stage.overlays(samples) if are_many else []),
            ],
            "table": stage.table(study),
            "sections": stage.sections(samples),
        }
        for stage in STAGES
    ]
    spans = read_spans(study)
    every_cost = all_costs(study, samples)
    shared, differing = parameters.parameters(samples)
    overview = summary.overview(samples)
    methods = Methods(study, read_runs(study))
    return {
        "study": study,
        "are_many": are_many,
        "samples_number": len(samples),
        "verdict": verdict_table(verdicts(samples)),
        "fine": FINE,
        "facts": facts(study, spans, methods.runs.versions.get("ngsgpu")),
        "spread": main_results([s.label for s in study.samples], summary.columns(samples))
        if are_many
        else None,
        "sort_value": words.sort_value,
        "version": __version__,
        "lead": summary.lead(samples),
        "findings": [summary.finding(results) for results in samples],
        "overview": overview,
        "sample_table": summary.sample_table(samples),
        "parts": parts,
        "shown": {part["name"] for part in parts if part["sections"]},
        "costs": cost_table(samples),
        "rule_costs": rule_table(every_cost),
        "times": said(every_cost),
        "cost_figure": cost_figure(samples),
        "devices": devices_tables(spans),
        "devices_figure": devices_figure(spans),
        "stages": parameters.stage_table(samples),
        "shared_parameters": shared,
        "differing_parameters": differing,
        "config": json.dumps(study.config, indent=2) if study.config else "",
        "commands": parameters.commands(samples),
        "methods": methods,
        "sources": SOURCES,
        "missing": summary.missing_table(samples),
        "failures": summary.failures(samples),
        "empty": empty_samples(samples),
    }
