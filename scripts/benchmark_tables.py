#!/usr/bin/env python3
"""Write the tables of accuracy and speed in docs from the results they show.

    scripts/benchmark_tables.py             write them
    scripts/benchmark_tables.py --check     only say whether they are up to date

A page holds a table between two comments, `<!-- table of NAME -->` and `<!-- end of table -->`,
where NAME.json is a file of benchmarks/results that compares programs on data sets. Columns in
which nothing was measured are left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.made import write_or_check  # noqa: E402

PAGES = sorted(ROOT.glob("docs/*.md"))
TABLE = re.compile(r"(?<=<!-- table of )(\S+)( -->\n).*?(?=<!-- end of table -->)", re.DOTALL)

# With their versions; ngsgpu's is this page's.
PROGRAMS = {
    "ngsgpu": "`ngsgpu`",
    "lighter": "Lighter {}",
    "flash": "FLASH {}",
    "care-gpu": "CARE {}, GPU",
    "carex-gpu": "CAREx {}, GPU",
    "konnector": "Konnector {}",
}
DATA = {
    "chr20_checked": "human chr20, 2.5-3 and 3.6-5 Mb",
    "escherichia_coli__DSM_30083": "*E. coli* DSM 30083",
    "escherichia_coli__K_12_MG1655": "*E. coli* K-12 MG1655",
    "mycobacterium_tuberculosis__H37Rv": "*M. tuberculosis* H37Rv",
    "saccharomyces_cerevisiae_R64": "yeast R64",
    "shigella_dysenteriae__ATCC_13313": "*S. dysenteriae*",
}

Program = dict[str, Any]
Cell = Callable[[Program, Program], str]
"""A cell of a program's row, beside ngsgpu's results on the same data."""


def wall(program: Program) -> list[float]:
    """Wall times of the runs, in seconds."""
    return [run["wall_s"] for run in program.get("runs", [])]


def wall_time(program: Program, _: Program) -> str:
    """Median and range of the wall time."""
    if not (times := wall(program)):
        return ""
    middle, least, most = (
        f"{time:.2f}" if time < 10 else f"{time:.1f}"
        for time in (median(times), min(times), max(times))
    )
    return middle if len(times) == 1 else f"{middle} ({least}-{most})"


def times_ngsgpu(program: Program, ngsgpu: Program) -> str:
    """Wall time in wall times of ngsgpu."""
    return f"{median(wall(program)) / median(wall(ngsgpu)):.2f}" if wall(program) else ""


def cpu_time(program: Program, _: Program) -> str:
    """Median of the CPU time."""
    times = [run["user_s"] + run["system_s"] for run in program.get("runs", [])]
    return f"{median(times):.1f}" if times else ""


def most_memory(key: str) -> Cell:
    """The largest of the runs' peaks, in GB."""

    def cell(program: Program, _: Program) -> str:
        most = max((run.get(key) or 0 for run in program.get("runs", [])), default=0)
        return f"{most / 1e9:.2f}" if most else ""

    return cell


def rate(key: str, shown: Callable[[float], str]) -> Cell:
    """A rate of the comparison with the truth."""

    def cell(program: Program, _: Program) -> str:
        rates = (program.get("accuracy") or {}).get("rates", {})
        return shown(rates[key]) if rates.get(key) is not None else ""

    return cell


COLUMNS: dict[str, Cell] = {
    "wall, s": wall_time,
    "x `ngsgpu`": times_ngsgpu,
    "CPU, s": cpu_time,
    "host, GB": most_memory("peak_rss_bytes"),
    "GPU, GB": most_memory("peak_device_bytes"),
    "sensitivity": rate("sensitivity", "{:.4f}".format),
    "FP per million": rate("fp_per_million_corrections", "{:,.1f}".format),
    "errors left per million bases": rate(
        "error_rate_after", lambda errors: f"{errors * 1e6:,.1f}"
    ),
}


def rows(result: dict[str, Any]) -> Iterator[list[str]]:
    """The rows of a file: data, program, and a cell for each of COLUMNS."""
    for data in result["datasets"]:
        for program in data["programs"]:
            own, comma, more = program["program"].partition(", ")
            label = PROGRAMS.get(own, own).format(result["programs"].get(own, ""))
            cells = [cell(program, data["programs"][0]) for cell in COLUMNS.values()]
            yield [DATA.get(data["name"], data["name"]), f"{label}{comma}{more}", *cells]


def number(value: float | None, digits: int = 0) -> str:
    """A number of a table, empty where there is none."""
    return "" if value is None else f"{value:,.{digits}f}"


def corrected_row(found: dict[str, Any]) -> list[str]:
    """Cells of a program's corrected real reads."""
    own = found["correction"]
    totals, rates, alleles = own["totals"], own["rates"], own["heterozygous"]
    bins = {entry["from"]: f"{entry['lost']} of {entry['variants']}" for entry in own["minority"]}
    return [
        number(rates["mismatches_per_kb_before"], 3),
        number(rates["mismatches_per_kb_after"], 3),
        number(totals["introduced"]),
        number(totals["introduced_in_undone"]),
        number(totals["made_perfect"]),
        f"{alleles['lost']} of {alleles['sites']}",
        f"{totals['alleles_switched']} of {totals['allele_bases']:,}",
        bins[0.01],
        bins[0.05],
        bins[0.1],
    ]


def merged_row(found: dict[str, Any]) -> list[str]:
    """Cells of a program's merged reads."""
    own = found["merging"]
    pairs, quality = own["pairs"], own["calibration"]
    errors = [
        f"{number(quality[key]['stated'])} / {quality[key]['seen']:,}" if key in quality else ""
        for key in ("agree", "disagree")
    ]
    return [
        number(pairs["overlapping"]),
        number(pairs["right"]),
        number(pairs["near"]),
        number(pairs["wrong"]),
        number(pairs["apart"]),
        number(pairs["apart_merged"]),
        *errors,
    ]


def strain_row(found: dict[str, Any]) -> list[str]:
    """Cells of a corrected mixture of strains."""
    own = found["minority"]
    return [
        number(own["covered"]),
        number(100 * own["share_kept"], 2),
        number(found["true"]["lost"]),
        number(found["false"]["before"]),
        number(found["false"]["after"]),
        number(found["false"]["introduced"]),
    ]


REAL_READS: dict[str, tuple[str, Callable[[dict[str, Any]], list[str]]]] = {
    "correct": (
        "mismatches per kb, raw|corrected|errors introduced|in reads whose indel was undone|"
        "reads made perfect|heterozygous SNVs lost|alleles switched|variants of 1-5 % lost|"
        "5-10 %|10-25 %",
        corrected_row,
    ),
    "strains": (
        "minority's own 31-mers in 4 or more reads|still in 3 or more, %|true 31-mers lost|"
        "false before|after|introduced",
        strain_row,
    ),
    "merge": (
        "pairs that overlap|merged right|up to 3 off|wrong|pairs that do not|merged all the same|"
        "errors stated / seen, mates agree|disagree",
        merged_row,
    ),
}


def real_read_tables(result: dict[str, Any]) -> str:
    """The tables of benchmarks.accuracy.real_reads: correction, mixtures, merging."""
    tables = []
    for stage, (columns, cells) in REAL_READS.items():
        lines = [["data", "program", *columns.split("|")]]
        for data in result["datasets"]:
            if data["stage"] == stage:
                for label, program in data["programs"].items():
                    lines.append([data["name"], label, *cells(program["evaluation"])])
        tables += [drawn(lines)] if len(lines) > 1 else []
    return "\n".join(tables)


STAND_INS = {
    "a_aeolicus": ("*A. aeolicus*", "C. jejuni"),
    "n_meningitidis": ("*N. meningitidis*", "N. meningitidis"),
    "s_epidermidis": ("*S. epidermidis*", "L. lactis"),
}
"""Genomes of benchmarks.accuracy.euler: their names, and the published genomes they are for."""
PUBLISHED = (
    "N50", "contigs", "mean length", "maximum length", "aligned bases", "weighted accuracy, %",
)  # fmt: skip


def cpu(run: dict[str, Any]) -> str:
    """CPU seconds of a run, as text."""
    return f"{run['user_s'] + run['system_s']:.1f}"


def euler_steps(result: dict[str, Any]) -> str:
    """The table of benchmarks.accuracy.euler --steps: CPU seconds by tuple and step."""
    lines = [["bases a read", "l", *result["sets"][0]["runs"][0]["cpu_s"], "all"]]
    for data in result["sets"]:
        for run in data["runs"]:
            times = list(run["cpu_s"].values())
            cells = [f"{own:.3f}" for own in times]
            lines.append([str(data["read"]), str(run["tuple"]), *cells, f"{sum(times):.1f}"])
    return drawn(lines)


def euler_table(result: dict[str, Any]) -> str:
    """The table of benchmarks.accuracy.euler: the runs with the best N50, and published ones."""
    best = [["data", "program", "l or k", "CPU, s", "N50", "N50, half the genome", "contigs",
             "mean", "longest", "bases", "weighted accuracy, %"]]  # fmt: skip
    published = published_euler()
    for data in result["sets"]:
        shown, source = STAND_INS[data["genome"]]
        label = f"{shown}, {data['read']} bases"
        for program in ("ngsgpu", "velvet"):
            runs = [run for run in data["runs"] if run["program"] == program]
            own = max(runs, key=lambda run: int(run["n50"]))
            best.append([
                label, {"ngsgpu": "`ngsgpu`", "velvet": "Velvet 1.2.10"}[program],
                str(own["tuple"]), cpu(own), number(own["n50"]), number(own["n50_source"]),
                number(own["contigs"]), number(own["mean"]), number(own["longest"]),
                number(own["bases"]), number(own["weighted_accuracy"], 2),
            ])  # fmt: skip
        length, values = published[f"{source}, {data['read']} bp"]
        n50, contigs, mean, longest, bases, accuracy = (float(values[own]) for own in PUBLISHED)
        best.append([
            f"*{source}*, {data['read']} bases", "GPU-Euler, published", length, "", "",
            number(n50), number(contigs), number(mean), number(longest), number(bases),
            number(accuracy, 2),
        ])  # fmt: skip
    return drawn(best)


def published_euler() -> dict[str, tuple[str, dict[str, str]]]:
    """Tables 3.6 to 3.8 of GPU-Euler: l, and values by metric, by data set."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for line in (ROOT / "config/reproduce/gpu-euler/published.tsv").read_text().splitlines():
        number, _, data, program, metric, value = (line.split("\t") + [""] * 5)[:6]
        if number in ("3.6", "3.7", "3.8") and program.startswith("GPU-Euler, l "):
            found.setdefault(data, (program.rpartition(" ")[2], {}))[1][metric] = value
    return found


_SHI = (
    "set, bases, errors|program|wall, s|reads found, sensitivity %|specificity %|"
    "of those corrected, %|trimmed, %|of these right, %|wrong reads made right, %"
)
_EULER = (
    "set, bases, reads without errors|program|unmodified / modified / discarded, %|"
    "decided right, %|output reads without errors, %"
)


def spectrum_tables(result: dict[str, Any]) -> str:
    """The tables of benchmarks.accuracy.spectrum: those of Shi and others, and Mahmood's."""
    shi = [_SHI.split("|")]
    keys = ("sensitivity", "specificity", "corrected", "trimmed", "accuracy", "made_right")
    euler = [_EULER.split("|")]
    for data in result["sets"]:
        for program in data["programs"]:
            if data["of"] == "shi":
                name = f"{data['name']}, {data['read']}, {100 * data['rate']:.0f} %"
                cells = [number(program[key], 2) for key in keys]
                shi.append([name, program["program"], number(program["wall_s"], 1), *cells])
            else:
                name = f"{data['name']}, {data['read']}, {data['error_free']:.1f} %"
                decisions = " / ".join(number(one, 1) for one in program["decisions"].values())
                shares = [
                    number(program[key], 1) for key in ("correct_decisions", "error_free_kept")
                ]
                euler.append([name, program["program"], decisions, *shares])
    return "\n".join(drawn(lines) for lines in (shi, euler) if len(lines) > 1)


_SIMULATED = "reads|coverage|program|errors found|left a million bases|N left|right bases changed"
_SIMULATED += "|reads made worse|by more than one base"


def simulated_name(settings: dict[str, str]) -> str:
    """What the reads of a run of benchmarks.accuracy.simulated are."""
    file = settings["genome"].partition(".")[0]
    genus, _, species = file.partition("__")[0].partition("_")
    is_human = genus.startswith("human")
    of = "human, chr20" if is_human else f"*{genus[0].upper()}. {species}*"
    name = f"{of}, {settings['profile']}, {settings['length']}"
    if settings["unknown"] != "[0, 0]":
        name += ", N {} to {}".format(*json.loads(settings["unknown"]))
    if settings["strain"] != "None":
        name += ", strain {:g} % apart".format(100 * json.loads(settings["strain"])[1])
    return name


def simulated_table(result: dict[str, Any]) -> str:
    """The table of benchmarks.accuracy.simulated."""
    lines = [_SIMULATED.split("|")]
    for run in result["runs"]:
        settings = run["settings"]
        coverage = f"{float(settings['coverage']):g}"
        if settings["strain"] != "None":
            coverage += f" + {json.loads(settings['strain'])[0]:g}"
        for program, found in run["results"].items():
            unknown = number(found["unknown_left"]) if found["unknown"] else ""
            lines.append([
                simulated_name(settings), coverage, program, f"{100 * found['found']:.3f} %",
                number(found["left_per_million"], 1), unknown,
                number(found["right_bases_changed"]), number(found["reads_made_worse"]),
                number(found["by_more_than_one_base"]),
            ])  # fmt: skip
    return drawn(lines)


MODULES = {
    "forms": "forms.__main__",
    "scaling": "scaling",
    "classify_threads": "classify_threads",
    "serving": "serving",
    "chains": "chains",
    "trimming": "peers.trimming",
    "database_size": "database_size",
    "assembly": "accuracy.assembly",
    "long_reads": "accuracy.long_reads",
    "depletion_long": "accuracy.depletion_long",
    "whole_host": "whole_host",
    "human": "human",
}
"""Of benchmarks, those that draw the table of their results, by schema."""


def table(name: str) -> str:
    """The table of a file of results."""
    result = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
    if module := MODULES.get(result.get("schema", "").removeprefix("ngsgpu.benchmark.")):
        return str(import_module(f"benchmarks.{module}").table(result))
    if result.get("schema") == "ngsgpu.benchmark.euler":
        return euler_table(result)
    if result.get("schema") == "ngsgpu.benchmark.euler_steps":
        return euler_steps(result)
    if result.get("schema") == "ngsgpu.benchmark.real_reads":
        return real_read_tables(result)
    if result.get("schema") == "ngsgpu.benchmark.correct_simulated":
        return simulated_table(result)
    if result.get("schema") == "ngsgpu.benchmark.spectrum":
        return spectrum_tables(result)
    return drawn([["data", "program", *COLUMNS], *rows(result)])


def drawn(lines: list[list[str]]) -> str:
    """A Markdown table without the columns in which nothing was measured."""
    kept = [column for column in zip(*lines, strict=True) if any(column[1:])]
    head, *body = ["| " + " | ".join(line) + " |\n" for line in zip(*kept, strict=True)]
    return head + "|---|---|" + "---:|" * (len(kept) - 2) + "\n" + "".join(body)


def pages() -> dict[Path, str]:
    """Each page, with its tables as they have to be."""
    return {
        page: TABLE.sub(
            lambda found: f"{found[1]}{found[2]}\n{table(found[1])}\n", page.read_text()
        )
        for page in PAGES
    }


def main() -> int:
    """Write the tables, or compare them; return the exit status."""
    return write_or_check("scripts/benchmark_tables.py", __doc__ or "", pages)


if __name__ == "__main__":
    sys.exit(main())
