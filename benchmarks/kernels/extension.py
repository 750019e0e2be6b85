"""Every kernel of an extension on a GPU: launches, bytes, operations, floor, and measured time.

    python -m benchmarks.kernels.extension DATA/S/r1.fq DATA/S/r2.fq --name S -o out.json

Extends the pairs twice in this process, and takes the time of each launch of the second run by CUDA
events on its stream. Two batches are under way at a time, so that times of ``extend_pairs``
overlap; ``--one-batch`` extends all pairs in one, which is the time that the kernel itself takes.
Needs a GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

from benchmarks.kernels.correction import describe_run, record, write_and_show
from benchmarks.kernels.models import EXTENSION_MODELS, ExtensionLoad, Load
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.errors import NgsgpuError
from ngsgpu.extend import ExtensionOutputs, ExtensionParameters, ExtensionStatistics, extend_files
from ngsgpu.minhash.ends import cell_bits_for
from ngsgpu.run.options import RunOptions

SCHEMA = "ngsgpu.benchmark.extension_kernels"
SCHEMA_VERSION = 1
ALL_PAIRS = 1 << 30


def load_of(statistics: ExtensionStatistics, files: Sequence[Path]) -> ExtensionLoad:
    """The sizes of a finished run."""
    parameters, tasks, reads = statistics.parameters, statistics.tasks, statistics.reads
    ends = parameters["ends"]
    taken = tasks["candidates"]
    reading = Load(
        file_bytes=sum(path.stat().st_size for path in files),
        reads=reads["total"],
        bases=reads["bases"],
        kmer=ends["kmer"],
        hashes=ends["hashes"],
        quality_bits=parameters["quality_bits"],
        found=taken,
        kept=taken,
    )
    length = reads["bases"] / max(1, reads["total"])
    connected = statistics.pairs["connected"]
    return ExtensionLoad(
        reading=reading,
        window=ends["window"],
        step=parameters["step"],
        cell_bits=cell_bits_for(reads["total"], ends["kmer"]),
        tasks=reads["total"] + tasks["auxiliary_tasks"],
        iterations=tasks["primary_iterations"] + tasks["auxiliary_iterations"],
        gap_bases=max(0, int(statistics.lengths["bases"] - 2 * length * connected)),
    )


def measure_kernels(
    files: Sequence[Path], parameters: ExtensionParameters, threads: int, *, one_batch: bool
) -> tuple[ExtensionStatistics, dict[str, tuple[int, float]]]:
    """Extend pairs twice, since the first time compiles; statistics and times of the second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=files[0].parent)))
        extended, *rest = (str(folder / name) for name in ("e.fq", "n1.fq", "n2.fq"))
        outputs = ExtensionOutputs(extended, rest[0], rest[1])
        if one_batch:
            at = "ngsgpu.extend.gpu_run"
            stack.enter_context(patch(f"{at}.pairs_per_batch", lambda rules, size: ALL_PAIRS))
            stack.enter_context(patch(f"{at}.BATCHES_IN_ALL", 1))
        extend = partial(
            extend_files,
            files[:1],
            files[1:],
            outputs=outputs,
            parameters=parameters,
            options=RunOptions(backend="cuda", threads=threads),
        )
        extend()
        statistics, totals = record(extend)
    return statistics, totals


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(
        prog="extension_kernels", description=__doc__.split("\n", 1)[0]
    )
    add = parser.add_argument
    add("files", nargs=2, type=Path, metavar="FASTQ", help="first and second mates, plain")
    add("--insert", nargs=2, type=float, metavar=("MEAN", "SD"), default=(300.0, 10.0))
    add("--one-batch", action="store_true", help="all pairs in one launch")
    add("--name", default="", help="what the reads are, for the file")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1, help="for files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"extension_kernels: error: {problem}", file=sys.stderr)
        return 2
    mean, deviation = settings.insert
    try:
        statistics, totals = measure_kernels(
            settings.files,
            ExtensionParameters(insert_mean=mean, insert_sd=deviation),
            settings.threads,
            one_batch=settings.one_batch,
        )
    except NgsgpuError as error:
        print(f"extension_kernels: error: {error}", file=sys.stderr)
        return error.exit_status
    document = describe_run(
        SCHEMA,
        SCHEMA_VERSION,
        settings,
        load_of(statistics, settings.files),
        statistics.time_s,
        totals,
        EXTENSION_MODELS,
    )
    document["one_batch"] = settings.one_batch
    document["tasks"] = statistics.tasks
    document["gpu_memory"] = statistics.gpu_memory
    write_and_show(document, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
