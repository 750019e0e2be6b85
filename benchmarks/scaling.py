"""Whole runs of ngsgpu on one GPU and on several, from start to end of the process.

    python -m benchmarks.scaling DATA/L/r1.fq DATA/L/r2.fq --gpus 1 2 4 -o out.json

Each command runs once before it is measured, so that kernels are compiled (unless they are:
``--no-warm-up``); then all in turn, as often as asked for. Their outputs go to a folder beside the
first file, or where ``--folder`` says, and have to be the same whatever the number of GPUs.
``plain copy`` copies the two files to that folder, both at the same time, which is about the least
that a correction can take.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import BenchmarkError, measure
from benchmarks.harness.tables import markdown
from ngsgpu.device.gpus import visible_gpus
from ngsgpu.io.output.store import checksum

SCHEMA: Final = "ngsgpu.benchmark.scaling"
SCHEMA_VERSION: Final = 1

OUTPUTS: Final = ("out1.fq", "out2.fq", "out3.fq")


def commands(files: Sequence[Path]) -> dict[str, list[str]]:
    """What is measured, without the number of GPUs."""
    pairs = ["-i", str(files[0]), "-I", str(files[1])]
    both = ["-o", OUTPUTS[0], "-O", OUTPUTS[1]]
    rest = ["--remaining1", OUTPUTS[1], "--remaining2", OUTPUTS[2]]
    return {
        "correct": ["correct", *pairs, *both],
        "correct, 8 GB a GPU": ["correct", *pairs, *both, "--gpu-memory", "8G"],
        "correct by k-mers": ["correct", "--method", "spectrum", *pairs, *both],
        "extend": ["extend", *pairs, "-o", OUTPUTS[0], *rest],
    }


def run(command: Sequence[str], gpus: int, folder: Path) -> dict[str, Any]:
    """Run a command; seconds of the process and of its steps, and the sums of its outputs."""
    for name in OUTPUTS:
        (folder / name).unlink(missing_ok=True)
    program = [sys.executable, "-m", "ngsgpu", *command]
    options = ["--backend", "cuda", "--gpus", str(gpus), "--stats", "stats.json"]
    measured = measure([*program, *options], folder)
    statistics = json.loads((folder / "stats.json").read_text())
    return {
        "gpus": gpus,
        "wall_s": measured.wall_s,
        "cpu_s": measured.user_s + measured.system_s,
        "peak_device_bytes": measured.peak_device_bytes,
        "steps_s": statistics["time_s"],
        "gpu_memory": statistics.get("gpu_memory", {}),
        "outputs": sums_of([folder / name for name in OUTPUTS]),
    }


def sums_of(paths: Sequence[Path]) -> dict[str, int]:
    """CRC-32 of the files that are there, by name."""
    there = [path for path in paths if path.exists()]
    with ThreadPoolExecutor(len(paths)) as pool:
        return dict(zip([path.name for path in there], pool.map(checksum, there), strict=True))


def copy(files: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Copy files at the same time; seconds."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(shutil.copyfile, files, [folder / name for name in OUTPUTS[: len(files)]]))
    return {"gpus": 0, "wall_s": time.perf_counter() - begin, "steps_s": {}}


def measure_all(
    files: Sequence[Path],
    gpus: Sequence[int],
    only: Sequence[str],
    repeats: int,
    folder: Path,
    *,
    warm_up: bool,
) -> list[dict[str, Any]]:
    """All runs, in the order in which they were made.

    Raises:
        BenchmarkError: a command fails, or outputs differ.
    """
    chosen = {name: own for name, own in commands(files).items() if not only or name in only}
    for command in chosen.values() if warm_up else ():
        run(command, gpus[0], folder)
    runs = []
    expected: dict[str, dict[str, int]] = {}
    for _ in range(repeats):
        runs.append({"name": "plain copy", **copy(files, folder)})
        for name, command in chosen.items():
            for count in gpus:
                runs.append({"name": name, **run(command, count, folder)})
                # Memory changes nothing either.
                key = name.partition(",")[0]
                if expected.setdefault(key, runs[-1]["outputs"]) != runs[-1]["outputs"]:
                    raise BenchmarkError(f"{name} with {count} GPUs wrote other bytes")
    return runs


def table(runs: Sequence[dict[str, Any]]) -> str:
    """A line for each command and number of GPUs: the shortest run, the longest, and its steps."""
    rows = [["command", "GPUs", "seconds", "steps of the shortest"]]
    for name, gpus in dict.fromkeys((own["name"], own["gpus"]) for own in runs):
        own = sorted(
            (one for one in runs if (one["name"], one["gpus"]) == (name, gpus)),
            key=lambda one: float(one["wall_s"]),
        )
        seconds = f"{own[0]['wall_s']:.1f} to {own[-1]['wall_s']:.1f}"
        steps = ", ".join(f"{step} {took:.2f}" for step, took in own[0]["steps_s"].items())
        rows.append([name, str(gpus or ""), seconds, steps])
    return markdown(rows, names=4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="scaling", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("files", nargs=2, type=Path, metavar="FASTQ", help="first and second mates, plain")
    add("--gpus", type=int, nargs="+", default=[1], help="numbers of GPUs")
    add("--only", nargs="+", default=[], choices=list(commands([Path(), Path()])))
    add("--repeats", type=int, default=3)
    add("--no-warm-up", action="store_true", help="kernels are compiled already")
    add("--name", default="", help="what the reads are, for the file")
    add("--folder", type=Path, help="where outputs go for a while")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    if max(settings.gpus) > len(visible_gpus()):
        print(f"scaling: error: there are only {len(visible_gpus())} GPUs", file=sys.stderr)
        return 2
    files = [path.resolve() for path in settings.files]
    with TemporaryDirectory(dir=settings.folder or files[0].parent) as folder:
        try:
            runs = measure_all(
                files,
                settings.gpus,
                settings.only,
                settings.repeats,
                Path(folder),
                warm_up=not settings.no_warm_up,
            )
        except BenchmarkError as error:
            print(f"scaling: error: {error}", file=sys.stderr)
            return 1
    document = {
        **head(SCHEMA, SCHEMA_VERSION),
        "name": settings.name,
        "bytes": sum(path.stat().st_size for path in files),
        "runs": runs,
    }
    write_document(document, settings.output)
    print(table(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
