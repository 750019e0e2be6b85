"""Runs a study of equal samples through the workflow and judges how it used the GPUs.

    scripts/gpu-study --gpus 4 -o benchmarks/results/NAME.json

Each sample is corrected, merged and extended, and classified against a database in partitions, by
``snakemake --resources gpu=N`` as a user runs it; data are made first. The wall time may be at most
1.15 x (sum of the GPU jobs / N + time in which only CPUs worked). A GPU job's time is that of the
whole process; idle time, in which no job ran, is not in the bound. Several numbers of GPUs run one
after the other, on the same data. Exit status 1: a GPU was not used or held twice, or the bound was
missed.

It needs a Python with what ngsgpu imports, CuPy, Snakemake, Jinja2 and Matplotlib; ngsgpu need not
be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.document import head, write_document
from benchmarks.study.data import Size, write_study
from benchmarks.study.timeline import judge, read_jobs
from ngsgpu.report.sections.devices import read_spans
from ngsgpu.report.study import read_study

ROOT: Final = Path(__file__).parents[2]
SCHEMA, SCHEMA_VERSION = "ngsgpu.benchmark.gpu_study", 1


def environment(folder: Path) -> dict[str, str]:
    """Commands of this checkout and of this Python, first on the PATH."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in (("ngsgpu", "-m ngsgpu"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": path}


def command(gpus: int) -> list[str]:
    """The workflow as a user runs it."""
    return [
        sys.executable, "-m", "snakemake", "-s", str(ROOT / "workflow/Snakefile"),
        "--configfile", "config.json", "--resources", f"gpu={gpus}",
    ]  # fmt: skip


def run_study(folder: Path, gpus: int) -> dict[str, Any]:
    """Run the workflow anew in a folder with its data; returns the judgement.

    Raises:
        SystemExit: the workflow failed.
    """
    for name in ("results", "logs", ".snakemake"):
        shutil.rmtree(folder / name, ignore_errors=True)
    begin = time.monotonic()
    with (folder / "snakemake.log").open("w") as log:
        done = subprocess.run(
            command(gpus), cwd=folder, env=environment(folder), stdout=log, stderr=log, check=False
        )
    wall = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit((folder / "snakemake.log").read_text()[-6000:])
    spans = read_spans(read_study(folder / "results/study.json"))
    return judge(read_jobs(folder / "results/benchmarks"), spans, gpus, wall)


def line(run: dict[str, Any]) -> str:
    """A judgement for people."""
    return (
        f"{run['gpus']} GPUs: {run['wall_s']:.1f} s, at most {run['bound_s']:.1f} s; "
        f"{run['gpu_jobs']} GPU jobs of {run['gpu_jobs_s']:.1f} s, CPUs alone "
        f"{run['cpu_alone_s']:.1f} s, idle {run['idle_s']:.1f} s; "
        f"{len(run['devices'])} GPUs used, {len(run['held_twice'])} times held twice"
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="gpu-study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = Size()
    parser.add_argument("--gpus", type=int, nargs="+", required=True, metavar="N")
    parser.add_argument("--samples", type=int, default=size.samples)
    parser.add_argument("--pairs", type=int, default=size.pairs, help="of each sample")
    parser.add_argument("--partitions", type=int, default=size.partitions)
    parser.add_argument("--threads", type=int, default=4, help="of each job")
    parser.add_argument("--work", type=Path, help="folder to keep; a temporary one by default")
    parser.add_argument(
        "--report", type=Path, help="copy of the report of the first number of GPUs"
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    size = Size(options.samples, options.pairs, partitions=options.partitions)
    with tempfile.TemporaryDirectory(prefix="gpu-study-") as temporary:
        folder = (options.work or Path(temporary)).resolve()
        write_study(folder, size, options.threads)
        runs = []
        for gpus in options.gpus:
            runs.append(run_study(folder, gpus))
            print(line(runs[-1]), flush=True)
            if options.report is not None and len(runs) == 1:
                shutil.copyfile(folder / "results/report.html", options.report)
        document = {
            **head(SCHEMA, SCHEMA_VERSION),
            "command": ["snakemake", *command(options.gpus[0])[-4:]],
            "size": vars(options) | {"work": None, "report": None, "out": None},
            "runs": runs,
        }
        write_document(json.loads(json.dumps(document, default=str)), options.out)
    good = all(run["within_bound"] and run["all_used"] and not run["held_twice"] for run in runs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
