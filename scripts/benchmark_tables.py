#!/usr/bin/env python3
"""Write the tables of accuracy and speed in docs/benchmarks.md from the results they show.

    scripts/benchmark_tables.py             write them
    scripts/benchmark_tables.py --check     only say whether they are up to date

The page holds a table between two comments, `<!-- table of NAME -->` and `<!-- end of table -->`,
where NAME.json is a file of benchmarks/results that compares programs on data sets. Columns in
which nothing was measured are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/benchmarks.md"
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


def table(name: str) -> str:
    """The table of a file of results."""
    lines = [
        ["data", "program", *COLUMNS],
        *rows(json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())),
    ]
    kept = [column for column in zip(*lines, strict=True) if any(column[1:])]
    head, *body = ["| " + " | ".join(line) + " |\n" for line in zip(*kept, strict=True)]
    return head + "|---|---|" + "---:|" * (len(kept) - 2) + "\n" + "".join(body)


def main() -> int:
    """Write the tables, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    text = PAGE.read_text()
    made = TABLE.sub(lambda found: f"{found[1]}{found[2]}\n{table(found[1])}\n", text)
    if not check:
        PAGE.write_text(made)
    elif made != text:
        print(f"{PAGE} is out of date: run scripts/benchmark_tables.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
