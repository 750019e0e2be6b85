"""Whole runs of ngsgpu on one GPU and on several, from start to end of the process.

    python -m benchmarks.scaling DATA/L/r1.fq DATA/L/r2.fq --gpus 1 2 4 -o out.json
    python -m benchmarks.scaling DATA/L/r1.fq DATA/L/r2.fq --references GENOMES/*.fna.gz \
        --copies 19 --only "db build" classify --gpus 1 2 4 -o out.json

Each command runs once before it is measured, so that kernels are compiled (unless they are:
``--no-warm-up``); then all in turn, as often as asked for. Their outputs go to a folder beside the
first file, or where ``--folder`` says, and have to be the same whatever the number of GPUs.
Databases are built with ``--references`` alone, and mutated copies of them. Of compressed reads the
outputs are compressed too.
``plain copy`` copies the two files to that folder, both at the same time, which is about the least
that a correction can take.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.harness.copies import write_copies
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import BenchmarkError, measure
from benchmarks.harness.tables import markdown
from ngsgpu.device.gpus import visible_gpus
from ngsgpu.io.output.store import checksum

SCHEMA: Final = "ngsgpu.benchmark.scaling"
SCHEMA_VERSION: Final = 1

OUTPUTS: Final = ("out1.fq", "out2.fq", "out3.fq")
DATABASE: Final = "database"
DATABASES: Final = {"db build", "classify"}
"""Commands that need one."""


def commands(files: Sequence[Path], references: Sequence[Path] = ()) -> dict[str, list[str]]:
    """What is measured, without the number of GPUs."""
    pairs = ["-i", str(files[0]), "-I", str(files[1])]
    first, second, third = written(files)
    both = ["-o", first, "-O", second]
    rest = ["--remaining1", second, "--remaining2", third]
    found = {
        "correct": ["correct", *pairs, *both],
        "correct, 8 GB a GPU": ["correct", *pairs, *both, "--gpu-memory", "8G"],
        "correct by k-mers": ["correct", "--method", "spectrum", *pairs, *both],
        "extend": ["extend", *pairs, "-o", first, *rest],
    }
    if references:
        found["db build"] = ["db", "build", *map(str, references), "-d", DATABASE]
        found["classify"] = ["classify", "-d", DATABASE, *pairs, "-o", first]
    return found


def written(files: Sequence[Path]) -> list[str]:
    """Names of the outputs, compressed if the reads are."""
    suffix = ".gz" if files[0].suffix == ".gz" else ""
    return [name + suffix for name in OUTPUTS]


def run(command: Sequence[str], gpus: int, folder: Path) -> dict[str, Any]:
    """Run a command; seconds of the process and of its steps, and the sums of its outputs."""
    for path in folder.glob("out?.fq*"):
        path.unlink()
    if command[0] == "db":
        shutil.rmtree(folder / DATABASE, ignore_errors=True)  # a rebuilt one has other names
    program = [sys.executable, "-m", "ngsgpu", *command]
    options = ["--backend", "cuda", "--gpus", str(gpus), "--stats", "stats.json"]
    measured = measure([*program, *options], folder)
    statistics = json.loads((folder / "stats.json").read_text())
    found = folder.glob(DATABASE if command[0] == "db" else "out?.fq*")
    outputs = sorted(
        file for path in found for file in (path.rglob("*") if path.is_dir() else [path])
    )
    return {
        "gpus": gpus,
        "wall_s": measured.wall_s,
        "cpu_s": measured.user_s + measured.system_s,
        "peak_device_bytes": measured.peak_device_bytes,
        "steps_s": statistics["time_s"],
        "gpu_memory": statistics.get("gpu_memory", {}),
        "outputs": sums_of([path for path in outputs if path.is_file()], folder),
    }


def sums_of(paths: Sequence[Path], folder: Path) -> dict[str, int]:
    """CRC-32 of the files that are there, by name in the folder.

    Raises:
        BenchmarkError: reads were written to one, and it is empty.
    """
    there = {str(path.relative_to(folder)): path for path in paths}
    for name, path in there.items():
        if name.startswith("out") and path.stat().st_size == 0:
            raise BenchmarkError(f"{name} is empty")
    with ThreadPoolExecutor() as pool:
        return dict(zip(there, pool.map(checksum, there.values()), strict=True))


def copy(files: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Copy files at the same time; seconds."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(shutil.copyfile, files, [folder / name for name in OUTPUTS[: len(files)]]))
    return {"gpus": 0, "wall_s": time.perf_counter() - begin, "steps_s": {}}


def measure_all(
    chosen: Mapping[str, list[str]],
    files: Sequence[Path],
    gpus: Sequence[int],
    repeats: int,
    folder: Path,
    *,
    warm_up: bool,
) -> list[dict[str, Any]]:
    """All runs, in the order in which they were made; each is reported on standard error.

    Args:
        chosen: commands by name.
        files: the reads.
        gpus: numbers of GPUs.
        repeats: how often.
        folder: for outputs.
        warm_up: whether each command is run once before.

    Raises:
        BenchmarkError: a command fails, or outputs differ.
    """
    # Memory changes nothing, neither kernels nor outputs.
    kinds = {name: name.partition(",")[0] for name in chosen}
    for name, kind in kinds.items() if warm_up else ():
        if name == kind or kind not in kinds:
            run(chosen[name], gpus[0], folder)
    runs = []
    expected: dict[str, dict[str, int]] = {}
    for _ in range(repeats):
        runs.append({"name": "plain copy", **copy(files, folder)})
        for name, command in chosen.items():
            for count in gpus:
                runs.append({"name": name, **run(command, count, folder)})
                print(f"{name}, {count}: {runs[-1]['wall_s']:.1f} s", file=sys.stderr, flush=True)
                if expected.setdefault(kinds[name], runs[-1]["outputs"]) != runs[-1]["outputs"]:
                    raise BenchmarkError(f"{name} with {count} GPUs wrote other bytes")
    return runs


def table(document: Mapping[str, Any]) -> str:
    """A line for each command and number of GPUs: the shortest run, the longest, and its steps."""
    runs = document["runs"]
    rows = [["command", "GPUs", "seconds", "steps of the shortest"]]
    for name, gpus in dict.fromkeys((own["name"], own["gpus"]) for own in runs):
        own = sorted(
            (one for one in runs if (one["name"], one["gpus"]) == (name, gpus)),
            key=lambda one: float(one["wall_s"]),
        )
        shortest, longest = (f"{one['wall_s']:.1f}" for one in (own[0], own[-1]))
        seconds = shortest if len(own) == 1 else f"{shortest} to {longest}"
        steps = ", ".join(f"{step} {took:.2f}" for step, took in own[0]["steps_s"].items())
        rows.append([name, str(gpus or ""), seconds, steps])
    return markdown(rows, names=4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="scaling", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("files", nargs=2, type=Path, metavar="FASTQ", help="first and second mates")
    add("--gpus", type=int, nargs="+", default=[1], help="numbers of GPUs")
    add("--only", nargs="+", default=[], choices=list(commands([Path()] * 2, [Path()])))
    add("--references", type=Path, nargs="+", default=[], help="build a database of them")
    add("--gpu-memory", metavar="SIZE", help="of all commands but those that name their own")
    add("--copies", type=int, default=0, help="and of as many mutated copies of each")
    add("--repeats", type=int, default=3)
    add("--no-warm-up", action="store_true", help="kernels are compiled already")
    add("--name", default="", help="what the reads are, for the file")
    add("--folder", type=Path, help="where outputs go for a while")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    if max(settings.gpus) > len(visible_gpus()):
        print(f"scaling: error: there are only {len(visible_gpus())} GPUs", file=sys.stderr)
        return 2
    if DATABASES.intersection(settings.only) and not settings.references:
        parser.error("databases are built of --references")
    files = [path.resolve() for path in settings.files]
    with TemporaryDirectory(dir=settings.folder or files[0].parent) as name:
        folder = Path(name)
        references = write_copies(settings.references, settings.copies, folder)
        all_commands = commands(files, references)
        if settings.gpu_memory:
            for command in all_commands.values():
                if "--gpu-memory" not in command:
                    command += ["--gpu-memory", settings.gpu_memory]
        chosen = {key: all_commands[key] for key in settings.only or all_commands}
        try:
            runs = measure_all(
                chosen,
                files,
                settings.gpus,
                settings.repeats,
                folder,
                warm_up=not settings.no_warm_up,
            )
        except BenchmarkError as error:
            print(f"scaling: error: {error}", file=sys.stderr)
            return 1
        reference_bytes = sum(path.stat().st_size for path in references)
    document = {
        **head(SCHEMA, SCHEMA_VERSION),
        "name": settings.name,
        "bytes": sum(path.stat().st_size for path in files),
        "reference_bytes": reference_bytes,
        "gpu_memory": settings.gpu_memory,
        "runs": runs,
    }
    write_document(document, settings.output)
    print(table(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
