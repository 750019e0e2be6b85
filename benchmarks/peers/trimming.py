"""Trimming beside fastp, on the same pairs, plain and compressed.

    python -m benchmarks.peers.trimming r1.fq r2.fq --threads 2 --repeats 3 -o out.json

All read and write plain files, and .gz at level 1 (made of the plain ones by ``gzip -1``), which
are also inflated and deflated without any trimming. After a first run, which is not measured, what
was written must hold the same reads, and the reports the same counts, otherwise the exit status is
1. They run in turn, as whole processes, with inputs in the page cache. Needs fastp on the PATH.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.document import head, run_in
from benchmarks.harness.measuring import ROOT, BenchmarkError, answer, measure
from benchmarks.harness.tables import markdown

FASTP: Final = "fastp"
REPACK: Final = "inflate, deflate"
FORMS: Final = {"plain": "", "gz": ".gz"}
REPORT: Final = "report.json"


def programs(form: str, backends: list[str]) -> list[str]:
    """What is measured with files of a form."""
    return [*backends, FASTP, *([REPACK] if FORMS[form] else [])]


def command(program: str, form: str, threads: int) -> list[str]:
    """The command line of a program, or of trimming with a backend, in a folder below the reads."""
    ending = FORMS[form]
    reads = [f"../r{mate}.fq{ending}" for mate in (1, 2)]
    written = [f"o{mate}.fq{ending}" for mate in (1, 2)]
    if program == REPACK:
        words = ["python3", "-m", "benchmarks.harness.repack", *reads, "-o", *written]
        return [*words, "-t", str(threads)]
    shared = ["-i", reads[0], "-I", reads[1], "-o", written[0], "-O", written[1]]
    shared += ["-j", REPORT, "-w", str(threads), "-z", "1"]
    if program == FASTP:
        return ["fastp", *shared, "-h", "/dev/null"]
    return ["ngsgpu", "trim", *shared, "--quiet", "--fastp", "--backend", program]


def content(folder: Path, form: str) -> tuple[dict[str, Any], list[str]]:
    """The report, without what names the program or one thread of fastp's counts; sums of reads."""
    report = json.loads((folder / REPORT).read_text())
    for key in ("command", "insert_size"):
        del report[key]
    del report["summary"]["fastp_version"]
    sums = []
    for mate in ("o1.fq", "o2.fq"):
        path = folder / (mate + FORMS[form])
        with gzip.open(path) if FORMS[form] else path.open("rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    return report, sums


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    packing = []
    for mate, path in enumerate((settings.first, settings.second), start=1):
        (work / f"r{mate}.fq").symlink_to(path.resolve())
        packed = f"gzip -1 <r{mate}.fq >r{mate}.fq.gz"
        packing.append(subprocess.Popen(packed, shell=True, cwd=work))
    if any(own.wait() for own in packing):
        raise BenchmarkError("gzip failed")
    differences = []
    runs = []
    for form in FORMS:
        taken: dict[str, list[dict[str, Any]]] = {}
        for repeat in range(-1, settings.repeats):  # the first one compiles kernels
            for program in programs(form, settings.backend)[:: 1 if repeat % 2 else -1]:
                folder = work / program
                folder.mkdir(exist_ok=True)
                words = command(program, form, settings.threads)
                measured = measure(words, folder)
                if repeat >= 0:
                    taken.setdefault(program, []).append(asdict(measured))
            if repeat < 0:
                expected = content(work / FASTP, form)
                differing = [
                    own for own in settings.backend if content(work / own, form) != expected
                ]
                differences += [f"{form}, {own}" for own in differing]
            for program in programs(form, settings.backend):
                shutil.rmtree(work / program)
        runs += [
            {
                "program": program,
                "form": form,
                "command": " ".join(command(program, form, settings.threads)),
                "runs": taken[program],
            }
            for program in programs(form, settings.backend)
        ]
    return {
        **head("ngsgpu.benchmark.trimming", 1),
        "fastp": answer("fastp", "--version").strip(),
        "pairs": _records(settings.first),
        "settings": {name: getattr(settings, name) for name in ("threads", "repeats", "backend")},
        "runs": runs,
        "differences": differences,
    }


def _records(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file) // 4


def table(document: dict[str, Any]) -> str:
    """A line for a form and program."""
    names = {"cpu": "`ngsgpu`, CPU", "cuda": "`ngsgpu`, GPU", FASTP: document["fastp"]}
    rows = [["form", "program", "wall, s", "CPU, s", "host, GB"]]
    for own in document["runs"]:
        runs = own["runs"]
        walls = [run["wall_s"] for run in runs]
        cpu = statistics.median(run["user_s"] + run["system_s"] for run in runs)
        most = max(run["peak_rss_bytes"] for run in runs) / 1e9
        wall = f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})"
        program = names.get(own["program"], own["program"])
        rows.append([own["form"], program, wall, f"{cpu:.2f}", f"{most:.2f}"])
    return markdown(rows, names=2)


def main() -> int:
    """Measure, write the file, print the table; the status is 1 if contents differ."""
    parser = argparse.ArgumentParser(prog="trimming", description="Trimming beside fastp.")
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backend", choices=("cpu", "cuda"), nargs="+", default=["cpu"])
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work")
    parser.add_argument("-o", "--output", type=Path, required=True)
    return run_in(parser.parse_args(), "trimming", run, table)


if __name__ == "__main__":
    sys.exit(main())
