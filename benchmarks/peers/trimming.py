"""Trimming beside fastp, on the same pairs, plain and compressed.

    python -m benchmarks.peers.trimming r1.fq r2.fq --threads 2 --repeats 3 -o out.json

Both read and write plain files, and .gz at level 1 (made of the plain ones by ``gzip -1``); what
they write must hold the same reads, and the reports the same counts, otherwise the exit status is
1. They run in turn, as whole processes, with inputs in the page cache. Needs fastp on the PATH.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.document import head, run_in
from benchmarks.harness.measuring import ROOT, answer, measure
from benchmarks.harness.tables import markdown

PROGRAMS: Final = ("ngsgpu", "fastp")
FORMS: Final = {"plain": "", "gz": ".gz"}
REPORT: Final = "report.json"


def command(program: str, form: str, settings: argparse.Namespace) -> list[str]:
    """The command line of a program, in a folder below that of the reads."""
    ending = FORMS[form]
    files = {"-i": f"../r1.fq{ending}", "-I": f"../r2.fq{ending}", "-o": f"o1.fq{ending}",
             "-O": f"o2.fq{ending}", "-j": REPORT}  # fmt: skip
    words = [word for both in files.items() for word in both]
    own = ["--quiet", "--fastp", "--backend", settings.backend]
    more = own if program == "ngsgpu" else ["-h", "/dev/null"]
    name = ["ngsgpu", "trim"] if program == "ngsgpu" else ["fastp"]
    return [*name, *words, "-w", str(settings.threads), "-z", "1", *more]


def content(folder: Path, form: str) -> tuple[dict[str, Any], list[bytes]]:
    """The reads, and the report without what names the program or one of fastp's threads counts."""
    report = json.loads((folder / REPORT).read_text())
    for key in ("command", "insert_size"):
        del report[key]
    del report["summary"]["fastp_version"]
    reads = []
    for mate in ("o1.fq", "o2.fq"):
        path = folder / (mate + FORMS[form])
        reads.append(gzip.decompress(path.read_bytes()) if FORMS[form] else path.read_bytes())
    return report, reads


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    for mate, path in enumerate((settings.first, settings.second), start=1):
        (work / f"r{mate}.fq").symlink_to(path.resolve())
        with (work / f"r{mate}.fq.gz").open("wb") as file:
            subprocess.run(["gzip", "-1", "-c", str(path)], stdout=file, check=True)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    differences = []
    for repeat in range(-1, settings.repeats):  # the first one compiles kernels
        for form in FORMS:
            for program in PROGRAMS[:: 1 if repeat % 2 else -1]:
                folder = work / program
                folder.mkdir(exist_ok=True)
                taken = measure(command(program, form, settings), folder)
                if repeat >= 0:
                    runs.setdefault((program, form), []).append(asdict(taken))
            if content(work / "ngsgpu", form) != content(work / "fastp", form):
                differences.append(form)
            for program in PROGRAMS:
                shutil.rmtree(work / program)
    return {
        **head("ngsgpu.benchmark.trimming", 1),
        "fastp": answer("fastp", "--version").strip(),
        "pairs": _records(settings.first),
        "settings": {name: getattr(settings, name) for name in ("threads", "repeats", "backend")},
        "runs": [
            {
                "program": program,
                "form": form,
                "command": " ".join(command(program, form, settings)),
                "runs": own,
            }
            for (program, form), own in runs.items()
        ],
        "differences": sorted(set(differences)),
    }


def _records(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file) // 4


def table(document: dict[str, Any]) -> str:
    """A line for a form and program."""
    rows = [["form", "program", "wall, s", "CPU, s", "host, GB"]]
    for own in document["runs"]:
        runs = own["runs"]
        walls = [run["wall_s"] for run in runs]
        cpu = statistics.median(run["user_s"] + run["system_s"] for run in runs)
        most = max(run["peak_rss_bytes"] for run in runs) / 1e9
        wall = f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})"
        rows.append([own["form"], own["program"], wall, f"{cpu:.2f}", f"{most:.2f}"])
    return markdown(rows, names=2)


def main() -> int:
    """Measure, write the file, print the table; the status is 1 if contents differ."""
    parser = argparse.ArgumentParser(prog="trimming", description="Trimming beside fastp.")
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work")
    parser.add_argument("-o", "--output", type=Path, required=True)
    return run_in(parser.parse_args(), "trimming", run, table)


if __name__ == "__main__":
    sys.exit(main())
