"""Every kernel of counting k-mers and of making unitigs on a GPU: launches, and measured time.

    python -m benchmarks.kernels.kmers DATA/L/r1.fq DATA/L/r2.fq --name L -o out.json

Counts the reads into a database and makes its unitigs in this process, twice, and takes the time of
each launch of the second time by CUDA events on its stream; CuPy's sorts and sums likewise. Needs a
GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kernels.correction import command_line, describe_run, record, write_and_show
from benchmarks.kernels.models import SORT_BITS
from ngsgpu.assemble import UnitigParameters, write_unitigs
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.errors import NgsgpuError
from ngsgpu.kmers import CountParameters, count_files, open_database
from ngsgpu.kmers.stats import CountStatistics
from ngsgpu.run.options import RunOptions

SCHEMA = "ngsgpu.benchmark.kmer_kernels"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class KmerLoad:
    """Sizes of a count.

    Attributes:
        bases: letters of the reads.
        kmers: their k-mers.
        distinct: different ones.
        words: of a k-mer.
    """

    bases: int
    kmers: int
    distinct: int
    words: int


MODELS = {
    "pack_letters": lambda load: (0.4 * load.bases, 20.0 * load.bases),
    "find_kmers_1": lambda load: (8.0 * load.kmers + 0.4 * load.bases, 60.0 * load.bases),
    "find_kmers_2": lambda load: (16.0 * load.kmers + 0.4 * load.bases, 120.0 * load.bases),
    "cupy.sort": lambda load: (
        load.kmers * (16 * 64 / SORT_BITS + 8), 20.0 * load.kmers * 64 / SORT_BITS,
    ),
    "count_firsts_1": lambda load: (8.0 * load.kmers, 10.0 * load.kmers),
    "list_firsts_1": lambda load: (8.0 * load.kmers + 12 * load.distinct, 10.0 * load.kmers),
    "count_rows": lambda load: (6.0 * load.distinct, 5.0 * load.distinct),
}  # fmt: skip
"""Bytes and operations of the kernels of counting; see docs/gpu.md."""


def measure_kernels(
    settings: argparse.Namespace,
) -> tuple[KmerLoad, dict[str, float], dict[str, tuple[int, float]]]:
    """Sizes, seconds of counting and of unitigs, and the times of all launches."""
    options = RunOptions(backend="cuda", threads=settings.threads)
    counting = CountParameters(settings.kmer)
    graph = UnitigParameters(settings.kmer, settings.min_abundance)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        place, unitigs = Path(name) / "kmers", Path(name) / "unitigs.fa"

        def work() -> CountStatistics:
            begin = time.perf_counter()
            source = count_files(settings.files, place, counting, options=options)
            counted = time.perf_counter()
            write_unitigs([], unitigs, None, graph, database=place, options=options)
            seconds["count"] = round(counted - begin, 3)
            seconds["unitigs"] = round(time.perf_counter() - counted, 3)
            return source

        work()
        source, totals = record(work)
        distinct = len(open_database(place, check=False))
    return KmerLoad(source.bases, source.kmers, distinct, counting.words), seconds, totals


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = command_line(__doc__, "+", "reads, plain")
    parser.add_argument("-k", "--kmer", type=int, default=31)
    parser.add_argument("--min-abundance", type=int, default=3, help="of unitigs")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"kernels: error: {problem}", file=sys.stderr)
        return 2
    try:
        load, seconds, totals = measure_kernels(settings)
    except NgsgpuError as error:
        print(f"kernels: error: {error}", file=sys.stderr)
        return error.exit_status
    models: dict[str, Any] = dict(MODELS)
    document = describe_run(SCHEMA, SCHEMA_VERSION, settings, load, seconds, totals, models)
    write_and_show(document, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
