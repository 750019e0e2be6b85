#!/usr/bin/env python3
"""Set what was measured beside what was published: a page, its figures as JSON, and Markdown.

Standard input says what is compared: a line of JSON, then a line for each file of figures, with the
set of reads, the program, what the file holds, and its path, separated by tabs. A program that
failed has a note in place of its figures.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ngsgpu._version import __version__
from ngsgpu.report import words
from ngsgpu.report.absent import read_note
from ngsgpu.report.page import Table
from ngsgpu.report.render import templates

SCHEMA = "ngsgpu.reproduction"
SCHEMA_VERSION = 1
NOTHING = words.NOTHING
UNCORRECTED = "uncorrected"
HIGHEST_COVERAGE = 10
"""Up to which lost k-mers are shown, as published."""

COMBINED = "combined pairs, %"
Figures = dict[str, float]

TEMPLATE = """{% import "macros.html.j2" as show %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>{% include "style.css" %}</style>
</head>
<body>
<header><div class="inner">
  <p class="eyebrow">ngsgpu {{ version }} · reproduction</p>
  <h1>{{ title }}</h1>
  <p class="description">Published: {{ source }}</p>
  <p class="description">Measured: {{ scale }}</p>
</div></header>
<div class="inner"><main>
{% for heading, blocks in sections %}
<section>
  <h2>{{ heading }}</h2>
  {% for caption, table in blocks %}{{ show.table(table, caption) }}{% endfor %}
</section>
{% endfor %}
</main></div>
</body>
</html>
"""


@dataclass(frozen=True)
class Published:
    """A published value; numbers are numbers, and all else is text, such as DNF."""

    table: str
    page: str
    dataset: str
    program: str
    metric: str
    value: str


@dataclass
class Measured:
    """What was measured: figures by set and program, and why some are missing.

    Attributes:
        figures: by set and program; the set is empty for what a program has only once.
        versions: by program.
        failures: messages by program.
        agreement: header and rows of the table of OPAL's figures and ours.
    """

    figures: dict[tuple[str, str], Figures] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    agreement: list[tuple[str, ...]] = field(default_factory=list)

    def of(self, own: str, program: str) -> Figures:
        """Figures of a program on a set, those of its database included."""
        return self.figures.get(("", program), {}) | self.figures.get((own, program), {})


def mapped_figures(document: Mapping[str, Any]) -> Figures:
    """Real reads on a reference: errors left and made, alleles, or lengths of merged reads."""
    if merging := document.get("merging"):
        names = ("right", "near", "wrong", "missed", "apart", "apart_merged")
        found = {
            f"{name.replace('_', ' ')} on the reference": merging["pairs"][name] for name in names
        }
        for name in ("agree", "disagree"):
            own = merging["calibration"][name]
            found[f"errors seen where mates {name}"] = own["seen"]
            found[f"errors stated where mates {name}"] = own["stated"]
        return found
    own = document["correction"]
    totals, rates = own["totals"], own["rates"]
    found = {
        "mismatches per kb, raw": rates["mismatches_per_kb_before"],
        "mismatches per kb, corrected": rates["mismatches_per_kb_after"],
        "errors mended": totals["mended"],
        "errors introduced": totals["introduced"],
        "errors introduced where an indel was undone": totals["introduced_in_undone"],
        "reads made perfect": totals["made_perfect"],
        "heterozygous SNVs": own["heterozygous"]["sites"],
        "heterozygous SNVs lost": own["heterozygous"]["lost"],
        "alleles at heterozygous sites": totals["allele_bases"],
        "alleles switched": totals["alleles_switched"],
    }
    for entry in own["minority"]:
        place = f"of {100 * entry['from']:g} to {100 * entry['to']:g} %"
        found[f"variants {place}"] = entry["variants"]
        found[f"variants {place}, lost"] = entry["lost"]
    return found


def correction_figures(document: Mapping[str, Any]) -> Figures:
    """Counts and rates over all reads, as the dissertation counts them; or lost k-mers."""
    if "true" in document:
        kind = f"lost true {document['k']}-mers"
        return {kind: document["true"]["lost"]} | {
            f"{kind}, coverage {entry['coverage']}": entry["lost"]
            for entry in document["true"]["by_coverage"][:HIGHEST_COVERAGE]
        }
    totals, rates = document["all_reads"]["totals"], document["all_reads"]["rates"]
    return {name.upper(): totals[name] for name in ("tp", "fp", "fn", "tn")} | {
        "FP per million corrections": rates["fp_per_million_corrections"],
        "sensitivity": rates["sensitivity"],
        "specificity": rates["specificity"],
        "precision": rates["precision"],
    }


def merging_figures(document: Mapping[str, Any]) -> Figures:
    """Shares of merged pairs and, with a truth, of those merged right."""
    pairs = document["pairs"]
    if "merged" in pairs:
        return {COMBINED: 100 * pairs["merged"] / max(pairs["pairs"], 1)}
    merged = sum(pairs[name] for name in ("right", "near", "wrong", "apart_merged"))
    bases = document["bases"]
    return {
        COMBINED: 100 * merged / max(pairs["pairs"], 1),
        "overlapping, %": 100 * pairs["overlapping"] / max(pairs["pairs"], 1),
        "sensitivity": document["rates"]["sensitivity"],
        "precision": document["rates"]["precision"],
        "errors left per million bases": 1e6 * bases["errors_after"] / max(bases["after"], 1),
    }


def extension_figures(document: Mapping[str, Any]) -> Figures:
    """Connected pairs, and errors in and outside the gaps."""
    rates, lengths = document["rates"], document["lengths"]
    found: dict[str, float | None] = {
        "error rate in gaps": rates["error_rate"],
        "error rate in gaps without length differences": rates["error_rate_without_length"],
        "error rate outside": rates["outward_error_rate"],
        "shortest, bases": lengths["min"],
        "mean length, bases": lengths["mean"],
        "longest, bases": lengths["max"],
    }
    for name in ("connected", "error_free"):
        found[f"{name.replace('_', '-')}, % of pairs"] = 100 * (rates[name] or 0)
    for label, count in document["length_differences"].items():
        place = label.replace("<", "below ").replace(">", "above ")
        found[f"length difference {place}"] = count
    return {name: value for name, value in found.items() if value is not None}


def classification_figures(document: Mapping[str, Any]) -> Figures:
    """Precision and sensitivity by rank, and the distance of the abundances."""
    run = document["runs"][0]
    found = {
        f"{rank} {rate}": run["ranks"][rank][rate]
        for rank in ("species", "genus")
        for rate in ("precision", "sensitivity")
    }
    if abundance := run.get("abundance"):
        found["false positives, %"] = 100 * abundance["false_positives"]
        found["sum of deviations, %"] = 100 * abundance["deviation"]
    return found


JUDGES: dict[str, Callable[[Mapping[str, Any]], Figures]] = {
    "correct": correction_figures,
    "merge": merging_figures,
    "extend": extension_figures,
    "classify": classification_figures,
}


def cost(path: Path, what: str) -> Figures:
    """Wall time and memory in Snakemake's benchmark; CPU time is sampled there, and left out."""
    with path.open() as file:
        row = next(csv.DictReader(file, delimiter="\t"))
    known = {"s": "time, s", "max_rss": "memory, MB"}
    found = {f"{what}{name}": float(row[key]) for key, name in known.items() if row[key] != "-"}
    if what:
        # A whole process: it reads the references and writes the database.
        found["build and write time, s"] = found.pop("build time, s")
        found["build memory, GB"] = found.pop("build memory, MB", 0.0) / 1000
    return found


QUAST = {
    "# contigs (>= 50000 bp)": "contigs of 50 kb or more",
    "# contigs": "contigs",
    "# misassembled contigs": "misassembled contigs",
    "N50": "N50",
    "NG50": "NG50",
}
"""QUAST's names, and the publications'."""


def assembly_figures(path: Path) -> dict[str, Figures]:
    """QUAST's figures by program."""
    _, *names = path.read_text().splitlines()[0].split("\t")
    found: dict[str, Figures] = {name: {} for name in names}
    for line in path.read_text().splitlines()[1:]:
        metric, *values = line.split("\t")
        if metric in QUAST:
            for name, value in zip(names, values, strict=True):
                if value != "-":
                    found[name][QUAST[metric]] = float(value)
    return found


def measured_in(lines: list[str], stage: str) -> Measured:
    """Read the files of figures."""
    found = Measured()
    for line in lines:
        own, program, what, name = line.split("\t")
        path = Path(name)
        if not path.is_file():
            continue
        if (note := read_note(path)) is not None:
            found.failures.setdefault(program, []).append(f"{note.message} ({note.log})")
            continue
        if what == "opal":
            found.agreement = [tuple(row.split("\t")) for row in path.read_text().splitlines()]
            continue
        if what == "assemblies":
            for name, values in assembly_figures(path).items():
                found.figures.setdefault((own, name), {}).update(values)
            continue
        figures = found.figures.setdefault((own, program), {})
        if what == "version":
            found.versions[program] = path.read_text().strip() or NOTHING
        elif what in ("run", "build"):
            figures |= cost(path, "build " if what == "build" else "")
        elif what == "database":
            figures["database, GB"] = json.loads(path.read_text())["bytes"] / 1e9
        else:
            document = json.loads(path.read_text())
            is_mapped = document.get("schema") == "ngsgpu.evaluate.mapped"
            judged = mapped_figures(document) if is_mapped else JUDGES[stage](document)
            figures |= {key: value for key, value in judged.items() if value is not None}
    if stage == "merge":
        compare_with_flash(found.figures)
    return found


def compare_with_flash(figures: dict[tuple[str, str], Figures]) -> None:
    """Add how much more of the pairs than FLASH each program combined."""
    for (own, _), found in figures.items():
        flash = figures.get((own, "flash"), {})
        if own and COMBINED in flash and COMBINED in found:
            found[f"difference from FLASH in {COMBINED}"] = found[COMBINED] - flash[COMBINED]


def read_published(path: Path) -> Iterator[Published]:
    """Values of a table; lines with # are comments."""
    with path.open() as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        for row in rows:
            yield Published(**row)


def shown(value: float | str | None) -> str:
    """A figure, rounded to what can be read."""
    if value is None:
        return NOTHING
    try:
        number = float(value)
    except ValueError:
        return str(value)
    if number == int(number):
        return f"{int(number):,}"
    if abs(number) >= 100:
        return f"{number:,.1f}"
    return f"{number:.4g}" if abs(number) >= 1e-4 else f"{number:.2e}"


class Comparison:
    """Everything that the page shows."""

    def __init__(
        self, described: Mapping[str, Any], measured: Measured, published: list[Published]
    ) -> None:
        self.described = described
        self.measured = measured
        self.published = published
        programs = described["programs"]
        self.titles: dict[str, str] = {own["name"]: own["title"] for own in programs}
        if any(program == UNCORRECTED for _, program in measured.figures):
            self.titles[UNCORRECTED] = UNCORRECTED
        names = {own["title"]: own["name"] for own in programs}
        given = {
            other: name for name, other in described["counterparts"].items() if name in self.titles
        }
        self.ours = names | given
        if UNCORRECTED in self.titles:
            self.ours[UNCORRECTED] = UNCORRECTED

    def pairs(self) -> Iterator[tuple[str, str, list[Published]]]:
        """Set, table and values of each published table that is shown beside a set."""
        sets = {own["name"] for own in self.described["sets"]}
        for own, patterns in self.described["beside"].items():
            if own not in sets:
                continue
            tables: dict[tuple[str, str], list[Published]] = {}
            for value in self.published:
                if any(re.fullmatch(pattern, value.dataset) for pattern in patterns):
                    tables.setdefault((value.table, value.dataset), []).append(value)
            for (table, _), values in tables.items():
                yield own, table, values

    def beside(self, own: str, value: Published) -> float | None:
        """What was measured where a value was published."""
        program = self.ours.get(value.program)
        return None if program is None else self.measured.of(own, program).get(value.metric)

    def table(self, own: str, values: list[Published]) -> Table:
        """Measured beside published: programs as rows, or metrics if there are more of them."""
        programs = list(dict.fromkeys(value.program for value in values))
        metrics = list(dict.fromkeys(value.metric for value in values))
        cells = {(value.program, value.metric): value for value in values}
        turned = len(metrics) > max(8, len(programs))
        across = programs if turned else metrics
        rows = []
        for name in metrics if turned else programs:
            row = [name if turned else self.row_title(name)]
            for other in across:
                value = cells.get((other, name) if turned else (name, other))
                row += [
                    shown(None if value is None else self.beside(own, value)),
                    shown(None if value is None else value.value),
                ]
            rows.append(tuple(row))
        headings = [
            heading
            for other in across
            for heading in (
                f"{self.row_title(other) if turned else other}: measured",
                "published",
            )
        ]
        return Table(("metric" if turned else "program", *headings), rows)

    def row_title(self, program: str) -> str:
        """A published program, after ours that stands beside it."""
        name = self.ours.get(program)
        if name is None or self.titles[name] == program:
            return program
        return f"{self.titles[name]} | {program}"

    def all_figures(self, own: str) -> Table:
        """Everything that was measured on a set."""
        found = {name: self.measured.of(own, name) for name in self.titles}
        found = {name: figures for name, figures in found.items() if figures}
        metrics = dict.fromkeys(key for figures in found.values() for key in figures)
        rows = [
            (metric, *(shown(figures.get(metric)) for figures in found.values()))
            for metric in metrics
        ]
        return Table(("metric", *(self.titles[name] for name in found)), rows)

    def programs(self) -> Table:
        """Which programs took part."""
        rows = []
        for own in self.described["programs"]:
            state = "run" if own["is_installed"] else "not installed"
            if failures := self.measured.failures.get(own["name"]):
                state = f"failed: {'; '.join(dict.fromkeys(failures))}"
            version = self.measured.versions.get(own["name"], NOTHING)
            rows.append((own["title"], version, state))
        return Table(("program", "version", "state"), rows, text_columns=frozenset({1, 2}))

    def sets(self) -> Table:
        """The sets of reads."""
        rows = [
            (own["name"], own["kind"], ", ".join(f"{k} {v}" for k, v in own["parameters"].items()))
            for own in self.described["sets"]
        ]
        return Table(("set", "kind", "parameters"), rows, text_columns=frozenset({1, 2}))

    def agreement(self) -> list[tuple[str, Table]]:
        """OPAL's figures beside ours: a table a program."""
        if not self.measured.agreement:
            return []
        _, *rows = self.measured.agreement
        blocks = []
        for name in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == name]
            ranks, metrics = (list(dict.fromkeys(row[n] for row in own)) for n in (1, 2))
            cells = {(row[1], row[2]): row[3:] for row in own}
            lines = [
                (
                    f"{metric}: {who}",
                    *(shown(cells[rank, metric][at]) if (rank, metric) in cells else NOTHING
                      for rank in ranks),
                )
                for metric in metrics
                for at, who in enumerate(("OPAL", "ngsgpu"))
            ]  # fmt: skip
            blocks.append((f"Calls of {self.titles[name]}", Table(("", *ranks), lines)))
        return blocks

    def sections(self) -> list[tuple[str, list[tuple[str, Table]]]]:
        """Headings and tables of the page."""
        found: dict[str, list[tuple[str, Table]]] = {}
        for own, name, values in self.pairs():
            where = f"{name if name.startswith('figure') else f'Table {name}'}, "
            where += values[0].page if "section" in values[0].page else f"page {values[0].page}"
            caption = f"{where[0].upper()}{where[1:]}: published for {values[0].dataset}"
            found.setdefault(f"Measured on {own}, beside the publication", []).append(
                (caption, self.table(own, values))
            )
        threads = self.described["threads"]
        everything = [
            (f"{own['name']}: all figures; every program with {threads} threads", table)
            for own in self.described["sets"]
            if (table := self.all_figures(own["name"])).rows
        ]
        about = [("", self.programs()), ("", self.sets())]
        if blocks := self.agreement():
            found["Taxa found, scored by OPAL and by ngsgpu evaluate classification"] = blocks
        return [*found.items(), ("All that was measured", everything), ("Programs, reads", about)]

    def document(self) -> dict[str, Any]:
        """The figures as JSON."""
        keys = ("title", "source", "scale", "stage", "threads", "sets")
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            **{key: self.described[key] for key in keys},
            "machine": machine(),
            "ngsgpu": __version__,
            "programs": [
                own
                | {
                    "version": self.measured.versions.get(own["name"]),
                    "failures": self.measured.failures.get(own["name"], []),
                }
                for own in self.described["programs"]
            ],
            "measured": [
                {"set": own, "program": program, "figures": figures}
                for (own, program), figures in sorted(self.measured.figures.items())
                if figures
            ],
            "beside": [
                vars(value) | {"set": own, "measured": self.beside(own, value)}
                for own, _, values in self.pairs()
                for value in values
            ],
            "opal_and_ngsgpu": [list(row) for row in self.measured.agreement],
        }


def machine() -> dict[str, Any]:
    """Processor, cores and memory."""
    models = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": models[0] if models else "unknown",
        "cpus": os.cpu_count(),
        "memory_bytes": pages,
    }


def markdown(comparison: Comparison) -> str:
    """The tables in Markdown."""
    blocks = []
    for heading, tables in comparison.sections():
        blocks.append(f"### {heading}\n")
        for caption, table in tables:
            rule = ["---"] + ["---" if n in table.text_columns else "---:" for n in
                              range(1, len(table.headings))]  # fmt: skip
            lines = [table.headings, rule, *table.rows]
            body = "\n".join(
                f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines
            )
            blocks.append(f"{caption}\n\n{body}\n" if caption else f"{body}\n")
    return "\n".join(blocks)


def page(comparison: Comparison) -> str:
    """The page."""
    described = comparison.described
    return (
        templates()
        .from_string(TEMPLATE)
        .render(
            title=described["title"],
            source=described["source"],
            scale=described["scale"],
            version=__version__,
            sections=comparison.sections(),
        )
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--published", type=Path, nargs="*", default=[], help="tables of published values")
    for kind in ("html", "json", "markdown"):
        add(f"--{kind}", type=Path, required=True, help=f"{kind} file to write")
    options = parser.parse_args(arguments)
    described, *lines = sys.stdin.read().splitlines()
    study = json.loads(described)
    comparison = Comparison(
        study,
        measured_in(lines, study["stage"]),
        [value for path in options.published for value in read_published(path)],
    )
    options.html.write_text(page(comparison))
    options.json.write_text(json.dumps(comparison.document(), indent=1) + "\n")
    options.markdown.write_text(markdown(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main())
