"""The report's section on classification: what a sample's files say as tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ngsgpu.report import taxon_plots, words
from ngsgpu.report.collect import SampleResults
from ngsgpu.report.content import Table
from ngsgpu.report.sections import Figure, SampleSection
from ngsgpu.report.taxa import Classification, Composition, TargetCoverage

_MAX_STRIPS: Final = 10
_MAX_TAXA: Final = 15


def classification_sections(samples: Sequence[SampleResults]) -> list[SampleSection]:
    """One section for each sample and database, named after both."""
    pairs = [
        (results.sample, database, found)
        for results in samples
        for database, found in results.classification.items()
    ]
    return [
        _section(sample.name, labelled(sample.label, database), sample.kind, found, number)
        for number, (sample, database, found) in enumerate(pairs)
    ]


def labelled(label: str, database: str) -> str:
    """A sample's label with the database that it was classified with."""
    return f"{label}, with {database}" if database else label


def _section(name: str, label: str, kind: str, found: Classification, number: int) -> SampleSection:
    """Tables and figures of one sample and one database."""
    section = SampleSection(name, label, kind)
    unit = found.unit
    arcs = [] if found.composition is None else taxon_plots.arcs_of(found.composition)
    if found.composition is not None and arcs:
        figure = taxon_plots.sunburst(f"sunburst{number}", found.composition, unit)
        names = [taxon_plots.RING_NAMES[ring] for ring in taxon_plots.rings_of(arcs)]
        rings = words.listed(names) + (", from the inside out" if len(names) > 1 else "")
        section.figures.append(
            Figure(
                figure,
                f"What the {unit} are: {rings}. Grey: not classified. {unit.capitalize()} called "
                "above a rank leave its ring empty.",
                is_wide=True,
            )
        )
    if found.shares and found.composition is not None:
        figure = taxon_plots.abundance_bars(
            f"abundance{number}", [(label, found.shares, found.composition.total)], unit
        )
        caption = (
            f"Estimated abundances. {unit.capitalize()} called above the rank are shared out among "
            "the taxa below; a taxon with none below it stays as it is."
        )
        section.figures.append(Figure(figure, caption, is_wide=True))
    strips = most_covered(found.coverage)
    if strips:
        figure = taxon_plots.genome_coverage(f"coverage{number}", strips, unit)
        section.figures.append(
            Figure(
                figure,
                f"Where on the reference sequences {unit} were mapped, of each species the "
                "sequence with most covered windows. Even coverage speaks for the species, a few "
                "covered places speak against it.",
                is_wide=True,
            )
        )
    if found.evaluation:
        for rank in _SHOWN:
            table = rank_table(found.evaluation, rank)
            if table.rows:
                section.tables.append((f"Calls at {rank} against the truth", table))
        _add_trade_off(section, found.evaluation, number)
        deviation = deviation_table(found.evaluation)
        if deviation is not None:
            section.details.append(("Abundances beside the composition", deviation))
    if found.composition is not None:
        section.tables.append(("Most frequent taxa", taxon_table(found.composition, unit)))
    return section


def most_covered(targets: Sequence[TargetCoverage]) -> list[TargetCoverage]:
    """Of each species the reference sequence with most covered windows, most covered first."""
    best: dict[str, TargetCoverage] = {}
    for target in targets:
        if target.name not in best or target.covered > best[target.name].covered:
            best[target.name] = target
    return sorted(best.values(), key=lambda target: -target.covered)[:_MAX_STRIPS]


def taxon_table(composition: Composition, unit: str = "reads") -> Table:
    """Genera and species with most reads or pairs."""
    found = [taxon for taxon in composition.root.walk() if taxon.code in ("G", "S")]
    found.sort(key=lambda taxon: (-taxon.clade, taxon.code, taxon.name))
    rank = {"G": "genus", "S": "species"}
    rows = [
        (
            taxon.name, rank[taxon.code], words.count(taxon.clade),
            words.share(taxon.clade, composition.total),
        )
        for taxon in found[:_MAX_TAXA]
    ]  # fmt: skip
    rows.append(
        (
            "unclassified",
            "",
            words.count(composition.unclassified),
            words.share(composition.unclassified, composition.total),
        )
    )
    return Table(("taxon", "rank", unit, "of all"), rows, text_columns=frozenset({1}))


_SHOWN: Final = ("species", "genus")


def rank_table(evaluation: Mapping[str, Any], rank: str) -> Table:
    """Precision, sensitivity and F1 of each run at a rank."""
    rows = []
    for run in evaluation.get("runs", []):
        rates = run["ranks"].get(rank)
        if rates is not None:
            cells = (rates.get(rate) for rate in ("precision", "sensitivity", "f1"))
            rows.append((str(run["name"]), *(words.decimal(cell, 3) for cell in cells)))
    return Table(("run", "precision", "sensitivity", "F1"), rows)


def _add_trade_off(section: SampleSection, evaluation: Mapping[str, Any], number: int) -> None:
    rank = "species"
    runs = [run for run in evaluation.get("runs", []) if rank in run["ranks"]]
    if not any("curve" in run for run in runs):
        return
    curves = {
        run["name"]: (
            run["curve"]["ranks"][rank]["precision"],
            run["curve"]["ranks"][rank]["sensitivity"],
        )
        for run in runs
        if "curve" in run
    }
    points = {
        run["name"]: (run["ranks"][rank]["precision"], run["ranks"][rank]["sensitivity"])
        for run in runs
    }
    section.figures.append(
        Figure(
            taxon_plots.trade_off(f"tradeoff{number}", curves, points, rank),
            "Precision and sensitivity if reads of fewer hits were left unclassified; diamonds are "
            "the runs as they are.",
        )
    )


def deviation_table(evaluation: Mapping[str, Any]) -> Table | None:
    """Shares of the taxa, expected and found by each run; None if no run has them."""
    runs = [run for run in evaluation.get("runs", []) if run.get("abundance")]
    if not runs:
        return None
    expected: dict[str, float] = {}
    observed: list[dict[str, float]] = []
    for run in runs:
        shares = run["abundance"]["taxa"]
        expected |= {share["name"]: share["expected"] for share in shares if share["expected"]}
        observed.append({share["name"]: share["observed"] for share in shares})
    others = {taxon for shares in observed for taxon in shares if taxon not in expected}
    largest = {taxon: max(shares.get(taxon, 0.0) for shares in observed) for taxon in others}
    taxa_shown = [*expected, *sorted(others, key=lambda taxon: (-largest[taxon], taxon))]
    rows = [
        (
            taxon,
            words.percent(expected.get(taxon, 0.0)),
            *(words.percent(shares.get(taxon, 0.0)) for shares in observed),
        )
        for taxon in taxa_shown[:40]
    ]
    for what, name in (("false positives", "false_positives"), ("all deviations", "deviation")):
        found = (words.percent(run["abundance"][name]) for run in runs)
        rows.append((f"sum of {what}", "", *found))
    return Table(("taxon", "expected", *(str(run["name"]) for run in runs)), rows)
