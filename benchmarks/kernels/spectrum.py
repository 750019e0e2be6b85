"""Every kernel of a correction by k-mers on a GPU: launches, and measured time.

    python -m benchmarks.kernels.spectrum DATA/L/r1.fq DATA/L/r2.fq --name L -o out.json

As ``benchmarks.kernels.correction``, with ``--method spectrum``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kernels.correction import MATES, command_line, describe_run, record, write_and_show
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.errors import NgsgpuError
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum import SpectrumStatistics, correct_files

SCHEMA = "ngsgpu.benchmark.spectrum_kernels"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SpectrumLoad:
    """Sizes of a correction.

    Attributes:
        reads: number of reads.
        bases: their letters.
        k: k-mer length.
    """

    reads: int
    bases: int
    k: int


MODELS = {
    "collect_kmers": lambda load: (
        load.bases / 2 + 8.0 * (load.bases - load.reads * (load.k - 1)), 70.0 * load.bases,
    ),
    "list_weak": lambda load: (
        load.bases / 4 + 32.0 * load.reads * (load.bases / load.reads - load.k) / (load.k // 4),
        25.0 * load.bases,
    ),
}  # fmt: skip
"""Bytes and operations of the kernels whose work does not depend on the errors; see docs/gpu.md."""


def measure_kernels(
    settings: argparse.Namespace,
) -> tuple[SpectrumStatistics, dict[str, tuple[int, float]]]:
    """Correct pairs twice, since the first time compiles; statistics and times of the second."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{mate}.fq" for mate in (1, 2)]
        first, second = settings.files
        correct = partial(
            correct_files, [first], [outputs[0]], [second], [outputs[1]],
            options=RunOptions(backend="cuda", threads=settings.threads),
        )  # fmt: skip
        correct()
        return record(correct)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    settings = command_line(__doc__, 2, MATES).parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"kernels: error: {problem}", file=sys.stderr)
        return 2
    try:
        statistics, totals = measure_kernels(settings)
    except NgsgpuError as error:
        print(f"kernels: error: {error}", file=sys.stderr)
        return error.exit_status
    load = SpectrumLoad(statistics.reads["total"], statistics.reads["bases"], statistics.kmers["k"])
    models: dict[str, Any] = dict(MODELS)
    run = describe_run(SCHEMA, SCHEMA_VERSION, settings, load, statistics.time_s, totals, models)
    write_and_show(run, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
