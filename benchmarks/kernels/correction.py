"""Every kernel of a correction on a GPU: launches, bytes, operations, floor, and measured time.

    python -m benchmarks.kernels.correction DATA/L/r1.fq DATA/L/r2.fq --name L -o out.json

Corrects the reads in this process and takes the time of each launch by CUDA events on its stream.
CuPy's sorts and sums are timed in the same way. What takes time beside these (copies, CuPy's
smaller kernels, files) is seen from the seconds by stage, which the file holds as well. Needs a
GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial, wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown
from benchmarks.kernels.models import MODELS, Load, floor_seconds
from ngsgpu.correct import RunOptions, correct_files
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.device.cuda.kernels import observed_launches
from ngsgpu.errors import NgsgpuError

SCHEMA = "ngsgpu.benchmark.kernels"
SCHEMA_VERSION = 1
MATES = "first and second mates, plain"
CUPY_FUNCTIONS = {
    "cupy.argsort": "cupy.cuda.thrust.argsort",
    "cupy.cumsum": "cupy.cumsum",
    "cupy.sort": "cupy.cuda.thrust.sort",
}
"""What of CuPy is timed, and where it is found by all that use it."""


class Recorder:
    """Times launches by pairs of CUDA events.

    Args:
        event: makes an event, as ``cupy.cuda.Event``.
        elapsed: milliseconds between two of them, as ``cupy.cuda.get_elapsed_time``.
    """

    def __init__(self, event: Callable[[], Any], elapsed: Callable[[Any, Any], float]) -> None:
        self._event = event
        self._elapsed = elapsed
        self._launches: list[tuple[str, Any, Any]] = []

    @contextmanager
    def launch(self, name: str, stream: Any = None) -> Iterator[None]:
        """Record an event before and after what is launched in the block."""
        begin, end = self._event(), self._event()
        begin.record(stream)
        yield
        end.record(stream)
        self._launches.append((name, begin, end))

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose every call is recorded."""

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            with self.launch(name):
                return function(*arguments, **options)

        return call

    def totals(self) -> dict[str, tuple[int, float]]:
        """Number of launches and milliseconds of each kernel, in the order of the first ones."""
        totals: dict[str, tuple[int, float]] = {}
        for name, begin, end in self._launches:
            end.synchronize()
            count, milliseconds = totals.get(name, (0, 0.0))
            totals[name] = count + 1, milliseconds + self._elapsed(begin, end)
        return totals


def record(work: Callable[[], Any]) -> tuple[Any, dict[str, tuple[int, float]]]:
    """Do some work with all launches recorded; what it gives, and the times by kernel."""
    import cupy

    recorder = Recorder(cupy.cuda.Event, cupy.cuda.get_elapsed_time)
    with ExitStack() as stack:
        for name, place in CUPY_FUNCTIONS.items():
            stack.enter_context(patch(place, recorder.timed(name, resolve_name(place))))
        stack.enter_context(observed_launches(recorder.launch))
        given = work()
    return given, recorder.totals()


def describe_kernel(
    name: str,
    count: int,
    milliseconds: float,
    load: Any,
    models: Mapping[str, Callable[[Any], tuple[float, float]]] = MODELS,
) -> dict[str, Any]:
    """One line of the result; a kernel without a model has nothing but its time."""
    line: dict[str, Any] = {"kernel": name, "launches": count, "measured_ms": milliseconds}
    if name in models:
        moved, operations = models[name](load)
        floor = 1000 * floor_seconds(moved, operations)
        line |= {"bytes": round(moved), "operations": round(operations), "floor_ms": floor}
    return line


def describe_run(
    schema: str,
    version: int,
    settings: argparse.Namespace,
    load: Any,
    time_s: dict[str, float],
    totals: Mapping[str, tuple[int, float]],
    models: Mapping[str, Callable[[Any], tuple[float, float]]] = MODELS,
) -> dict[str, Any]:
    """The document of a run: where and of what, and a line for each of its kernels."""
    return {
        **head(schema, version),
        "data": settings.name,
        "threads": settings.threads,
        "load": asdict(load),
        "time_s": time_s,
        "kernels": [
            describe_kernel(name, count, round(milliseconds, 4), load, models)
            for name, (count, milliseconds) in totals.items()
        ],
    }


def write_and_show(document: dict[str, Any], path: Path) -> None:
    """Write the JSON file, print the table."""
    write_document(document, path)
    print(table(document), end="")


def table(document: dict[str, Any]) -> str:
    """The kernels as a Markdown table, the seconds by stage below it."""
    rows = [["kernel", "launches", "GB", "Gop", "floor, ms", "measured, ms", "x floor"]]
    for line in document["kernels"]:
        model = ["-", "-", "-"]
        ratio = "-"
        if "floor_ms" in line:
            model = [f"{line['bytes'] / 1e9:.2f}", f"{line['operations'] / 1e9:,.1f}"]
            model.append(f"{line['floor_ms']:.2f}")
            ratio = f"{line['measured_ms'] / line['floor_ms']:.1f}" if line["floor_ms"] else "-"
        measured = f"{line['measured_ms']:.2f}"
        rows.append([f"`{line['kernel']}`", f"{line['launches']:,}", *model, measured, ratio])
    total = sum(line["measured_ms"] for line in document["kernels"])
    stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in document["time_s"].items())
    return f"{markdown(rows, names=1)}\nall of these {total:.1f} ms; stages in seconds: {stages}\n"


def measure_kernels(files: list[Path], threads: int) -> tuple[Any, dict[str, tuple[int, float]]]:
    """Correct pairs twice, since the first time compiles; statistics and times of the second."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{mate}.fq" for mate in (1, 2)]
        correct = partial(
            correct_files,
            [files[0]],
            [outputs[0]],
            [files[1]],
            [outputs[1]],
            options=RunOptions(backend="cuda", threads=threads),
        )
        correct()
        return record(correct)


def command_line(document: str | None, files: int | str, what: str) -> argparse.ArgumentParser:
    """The options of a benchmark of kernels.

    Args:
        document: of its module.
        files: how many it reads, as for ``argparse``.
        what: these are.
    """
    parser = argparse.ArgumentParser(prog="kernels", description=(document or "").split("\n", 1)[0])
    add = parser.add_argument
    add("files", nargs=files, type=Path, metavar="FASTQ", help=what)
    add("--name", default="", help="what the reads are, for the file")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1, help="for files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    settings = command_line(__doc__, 2, MATES).parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"kernels: error: {problem}", file=sys.stderr)
        return 2
    try:
        statistics, totals = measure_kernels(settings.files, settings.threads)
    except NgsgpuError as error:
        print(f"kernels: error: {error}", file=sys.stderr)
        return error.exit_status
    load = Load.of(statistics, settings.files)
    document = describe_run(SCHEMA, SCHEMA_VERSION, settings, load, statistics.time_s, totals)
    write_and_show(document, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
