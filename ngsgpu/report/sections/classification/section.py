"""The report's section on classification: composition, abundances, species, calls and truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.absent import read_note
from ngsgpu.report.files import Json, load_json
from ngsgpu.report.model import FileSpec, Sample, SampleResults, Study
from ngsgpu.report.page import Column, Finding, Plot, SampleSection, Table
from ngsgpu.report.sections.classification import plots
from ngsgpu.report.sections.classification.files import (
    FILES,
    Classification,
    Composition,
    Share,
    SpeciesEvidence,
    TargetCoverage,
    collect_classification,
)
from ngsgpu.report.spread import MANY_SAMPLES
from ngsgpu.report.stage import Stage
from ngsgpu.report.words import NOTHING, Number

_MAX_STRIPS: Final = 10
_MAX_TAXA: Final = 15
_MAX_SPECIES: Final = 60
_FEW_SPECIES: Final = 12
"""Tables of more species are folded."""


@dataclass(eq=False)
class Classifications:
    """Results of a sample's classification, by database."""

    found: dict[str, Classification] = field(default_factory=dict)


class ClassificationStage(Stage):
    """Classification with any number of databases."""

    name = "classification"
    title = "Classification"
    files = (FileSpec("classification", keys=FILES, by_database=True),)
    intro = (
        "<p>Reads are called as the lowest taxon that they are from with high probability, by a\n"
        "  model of the whole sample, or (MetaCache's rule) that their best reference sequences\n"
        "  have in common. [4]</p>"
    )

    def find(self, sample: str, folder: Path) -> dict[tuple[str, ...], Path]:
        """Files of each database that the sample was classified with, by its folder's name."""
        report = f"{sample}.kraken2.report.txt"
        calls = folder / "classify"
        homes = {path.parent.name: path.parent for path in sorted(calls.glob(f"*/{report}"))}
        if (calls / report).is_file():
            homes = {"": calls} | homes
        found: dict[tuple[str, ...], Path] = {}
        for database, home in homes.items():
            files = {
                "report": home / report,
                "abundance": home / "abundance.tsv",
                "coverage": home / "coverage.tsv",
                "evidence": home / "evidence.tsv",
                "stats": home / "stats.json",
                "evaluation": home / "evaluation.json",
            }
            if not database and not files["evaluation"].is_file():
                files["evaluation"] = folder / "evaluate/classification.json"
            for name, path in files.items():
                if path.is_file():
                    found["classification", database, name] = path
        return found

    def read(self, sample: Sample, missing: list[str]) -> Classifications:
        """Read what classification with each database wrote."""
        by_database = sample.files.by_database("classification")
        return Classifications(
            {
                database: collect_classification(database, paths, missing)
                for database, paths in by_database.items()
            }
        )

    def sections(self, samples: Sequence[SampleResults]) -> list[SampleSection]:
        """One section for each sample and database, named after both."""
        pairs = [
            (results.sample, database, found)
            for results in samples
            for database, found in results.of(Classifications).found.items()
        ]
        brief = len(samples) > MANY_SAMPLES
        return [
            _section(
                sample.name, labelled(sample.label, database), sample.kind, found, number, brief
            )
            for number, (sample, database, found) in enumerate(pairs)
        ]

    def overlays(self, samples: Sequence[SampleResults]) -> list[Plot]:
        """Abundances in all samples, a stacked bar each, with each database."""
        by_database: dict[str, list[tuple[str, Sequence[Share], Composition]]] = {}
        for results in samples:
            for database, found in results.of(Classifications).found.items():
                if found.shares and found.composition is not None:
                    bar = (results.sample.label, found.shares, found.composition)
                    by_database.setdefault(database, []).append(bar)
        return [
            Plot(
                plots.stacked_abundances(f"all-abundances{number}", bars),
                f"Estimated abundances{_with(database)}, of the taxa with most reads over all "
                "samples; a bar a sample. What is left to 100 % are other taxa.",
                is_wide=True,
            )
            for number, (database, bars) in enumerate(by_database.items())
        ]

    def table(self, study: Study) -> Table | None:
        """The databases."""
        return _database_table(study.databases)

    def say(self, results: SampleResults, finding: Finding) -> None:
        """How much was classified with each database, and as what."""
        for database, found in results.of(Classifications).found.items():
            if found.composition is not None:
                _say_composition(database, found.composition, found.unit, finding)

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """With each database the share that was classified, and the most frequent species."""
        found = [results.of(Classifications).found for results in samples]
        columns = []
        for database in dict.fromkeys(name for databases in found for name in databases):
            calls = [of[database].composition if database in of else None for of in found]
            shares = [words.share(own.root.clade, own.total) if own else NOTHING for own in calls]
            columns.append(Column(f"classified{_with(database)}", shares))
            columns.append(Column(f"most frequent species{_with(database)}", _firsts(calls)))
        return columns


def _firsts(calls: Sequence[Composition | None]) -> list[str]:
    """The most frequent species of each sample, and its share of the sample."""
    cells: list[str] = []
    for own in calls:
        if own is None or not own.species:
            cells.append(NOTHING)
        else:
            taxon = own.species[0]
            cells.append(words.with_share(taxon.name, words.share(taxon.clade, own.total)))
    return cells


def _with(database: str) -> str:
    """Names a database that has a name."""
    return f" with {database}" if database else ""


def classified(samples: Sequence[SampleResults]) -> str:
    """How much of all samples was classified, by database, in a sentence; empty for none."""
    clauses = []
    found = [results.of(Classifications).found for results in samples]
    for database in dict.fromkeys(name for databases in found for name in databases):
        of = [databases[database] for databases in found if database in databases]
        counted = [(c.composition, c.unit) for c in of if c.composition is not None]
        if not counted:
            continue
        units = words.listed(sorted({unit for _, unit in counted}, reverse=True))
        called = sum(composition.root.clade for composition, _ in counted)
        total = sum(composition.total for composition, _ in counted)
        clauses.append(f"{called:,} of {total:,} {units} were classified{_with(database)}")
    return f"{', '.join(clauses)}." if clauses else ""


def labelled(label: str, database: str) -> str:
    """A sample's label with the database that it was classified with."""
    return f"{label}, with {database}" if database else label


def _section(
    name: str, label: str, kind: str, found: Classification, number: int, is_brief: bool
) -> SampleSection:
    """Tables and figures of one sample and one database."""
    section = SampleSection(name, label, kind)
    unit = found.unit
    arcs = [] if found.composition is None else plots.arcs_of(found.composition)
    if found.composition is not None and arcs:
        names = [plots.RING_NAMES[ring] for ring in plots.rings_of(arcs)]
        rings = words.listed(names) + (", from the inside out" if len(names) > 1 else "")
        section.plot(
            plots.sunburst(f"sunburst{number}", found.composition, unit),
            f"Composition of the {unit}: {rings}. "
            f"{'Grey: unclassified. ' if found.composition.unclassified else ''}"
            f"{unit.capitalize()} called above a rank leave its ring empty.",
            is_wide=True,
        )
    if found.shares and found.composition is not None and not is_brief:
        bars = [(label, found.shares, found.composition.total)]
        section.plot(
            plots.abundance_bars(f"abundance{number}", bars, unit),
            f"Estimated abundances. {unit.capitalize()} called above the rank are distributed "
            "among the taxa below; a taxon with none below it is unchanged.",
            is_wide=True,
        )
    strips = most_covered(found.coverage)
    if strips and not is_brief:
        section.plot(
            plots.genome_coverage(f"coverage{number}", strips, unit),
            f"Coverage of the reference sequences by mapped {unit}, for each species the "
            "sequence with the most covered windows. Even coverage supports the species, a few "
            "covered spots speak against it.",
            is_wide=True,
        )
    if found.evaluation:
        for rank in _SHOWN:
            table = rank_table(found.evaluation, rank)
            if table.rows:
                section.tables.append((f"Calls at {rank} against the truth", table))
        _add_trade_off(section, found.evaluation, number)
        deviation = deviation_table(found.evaluation)
        if deviation is not None:
            section.details.append(("Abundances compared with the composition", deviation))
    if found.composition is not None:
        section.tables.append(("Most frequent taxa", taxon_table(found.composition, unit)))
    if any(own.is_finding for own in found.evidence):
        is_long = is_brief or len(found.evidence) > _FEW_SPECIES
        place = section.details if is_long else section.tables
        place.append((f"Species that {unit} look like", species_table(found.evidence, unit)))
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
    rest = composition.unclassified
    rows.append(("unclassified", "", words.count(rest), words.share(rest, composition.total)))
    return Table(("taxon", "rank", unit, "of all"), rows, text_columns=frozenset({1}))


def species_table(evidence: Sequence[SpeciesEvidence], unit: str = "reads") -> Table:
    """Species that reads look like, most reads first, and what became of each."""
    shown = [own for own in evidence if own.is_finding]
    rows = [
        (
            own.name, ", ".join(filter(None, (own.called, own.note))),
            words.count(round(own.reads)), words.count(own.own), words.count(own.places),
            words.percent(own.identity, 1),
            words.span(*(Number(f"{100 * end:.1f}", end, "%") for end in (own.low, own.high))),
            words.decimal(own.ratio, 1),
        )
        for own in shown[:_MAX_SPECIES]
    ]  # fmt: skip
    headings = (
        "species", "called as", unit, f"{unit} only it explains", "places of these", "identity",
        "95 % interval", "log10 of likelihood ratio",
    )  # fmt: skip
    return Table(headings, rows, text_columns=frozenset({1}))


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

    def rates(of: Mapping[str, Any]) -> tuple[Any, Any]:
        return of["ranks"][rank]["precision"], of["ranks"][rank]["sensitivity"]

    curves = {run["name"]: rates(run["curve"]) for run in runs if "curve" in run}
    points = {run["name"]: rates(run) for run in runs}
    section.plot(
        plots.trade_off(f"tradeoff{number}", curves, points, rank),
        "Precision and sensitivity if reads with fewer hits were unclassified; diamonds mark "
        "the actual runs.",
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


def _say_composition(database: str, composition: Composition, unit: str, finding: Finding) -> None:
    total, which = composition.total, _with(database)
    if total == 0:
        finding.sentences.append(f"No {unit} to classify{which}.")
        return
    share = words.share(composition.root.clade, total)
    sentence = f"{words.count(composition.root.clade)} of {words.count(total)} {unit} ({share})"
    sentence += f" were classified{which}"
    if species := composition.species[:3]:
        shown = [f"{taxon.name} ({words.share(taxon.clade, total)})" for taxon in species]
        sentence += f", most of them as {words.listed(shown)}"
    finding.sentences.append(f"{sentence}.")
    finding.figures.append((f"{unit} classified{which}", share))


def _database_table(databases: Mapping[str, Path]) -> Table | None:
    """One row per database; None if the study names none.

    Databases come with the output of ``ngsgpu db info --json``.

    Raises:
        InputError: a file exists but is damaged.
    """
    if not databases:
        return None
    rows = []
    for name, path in databases.items():
        facts = _facts(path)
        targets = facts.number("targets")
        without = facts.number("without_taxon")
        rows.append(
            (
                name,
                words.count(targets),
                words.count(facts.number("bases")),
                words.count(facts.number("taxa")) if facts.number("taxa") else "no taxonomy",
                words.with_share(words.count(without), words.share(without, targets))
                if without
                else words.count(without),
                words.count(len(facts.entries("partitions")) or None),
                str(facts.get("digest") or words.NOTHING)[:12],
            )
        )
    headings = (
        "database", "reference sequences", "bases", "taxa in the taxonomy",
        "sequences without a taxon", "partitions", "digest",
    )  # fmt: skip
    return Table(headings, rows, text_columns=frozenset({1}))


def _facts(path: Path) -> Json:
    """Contents of a database's file; nothing if it is missing."""
    if not path.is_file() or read_note(path) is not None:
        return Json(path, {})
    remedy = "make it again with `ngsgpu db info --json`"
    document = load_json(path, remedy)
    if not isinstance(document, dict):
        raise InputError(path, "it is not a JSON object", remedy)
    return Json(path, document)
