"""Every kernel of a classification on a GPU: launches, bytes, operations, floor, measured time.

    python -m benchmarks.kernels.query DB DATA/L/r1.fq DATA/L/r2.fq --name L -o out.json

Classifies the reads twice in this process, with the table of reads as output, and takes the time of
each launch of the second run by CUDA events. Needs a GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.kernels.correction import describe_run, record, write_and_show
from benchmarks.kernels.models import QUERY_MODELS, QueryLoad
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    METACACHE_CALLS,
    EvidenceParameters,
    OutputRules,
)
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import ClassificationStatistics, SampleOutputs, one_sample
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.errors import NgsgpuError
from ngsgpu.run.options import RunOptions

SCHEMA = "ngsgpu.benchmark.query_kernels"
SCHEMA_VERSION = 1
_SPECIES_IDENTITY = 0.94
_LOOKED_AT = 1 << 16
"""Lines of the table by which sizes are estimated."""


def measure_kernels(
    database: Path, files: Sequence[Path], threads: int, metacache: bool
) -> tuple[ClassificationStatistics, dict[str, tuple[int, float]], QueryLoad]:
    """Classify twice, since the first time compiles; times and sizes of the second."""
    parameters = METACACHE_CALLS if metacache else CALLS_BY_EVIDENCE
    evidence = EvidenceParameters(0.0 if metacache else _SPECIES_IDENTITY)
    classifier = Classifier(
        open_database(database),
        parameters,
        rules=OutputRules(evidence=evidence),
        options=RunOptions(threads=threads, backend="cuda"),
    )
    first, *second = map(str, files)
    sample = one_sample([first], second, interleaved=False, name="x")
    with tempfile.TemporaryDirectory(dir=files[0].parent) as folder:
        lines = Path(folder) / "reads.tsv"
        classify = partial(classifier.classify, [sample], SampleOutputs(reads=str(lines)))
        classify()
        (statistics,), totals = record(classify)
        load = load_of(classifier, statistics, lines)
    return statistics, totals, load


def load_of(classifier: Classifier, statistics: ClassificationStatistics, lines: Path) -> QueryLoad:
    """Sizes of a run, some of them estimated by its first lines."""
    engine = classifier.engine
    queries, bases = statistics.queries["total"], statistics.queries["bases"]
    reads = queries * (2 if statistics.queries["paired"] else 1)
    sketch = engine.sketch
    length = bases // max(1, reads)
    kmers = reads * max(0, length - sketch.kmer + 1)
    features = min(kmers, reads * sketch.expected_features(length))
    with lines.open("rb") as file:
        next(file)
        seen = [line.split(b"\t") for line, _ in zip(file, range(_LOOKED_AT), strict=False)]
    names = sum(len(line[0]) for line in seen) / max(1, len(seen))
    hits = sum(int(line[4]) for line in seen) / max(1, len(seen))
    lists = engine.partitions[0]
    a_feature = len(lists.locations) / max(1, int(np.count_nonzero(lists.entries)))
    return QueryLoad(
        queries=queries,
        bases=bases,
        kmers=kmers,
        features=features,
        locations=int(hits * a_feature * queries),
        candidates=engine.parameters.candidates,
        name_bytes=int(names * queries),
        line_bytes=lines.stat().st_size,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="query_kernels", description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("database", type=Path, metavar="DB")
    add("files", nargs="+", type=Path, metavar="FASTQ", help="reads, or first and second mates")
    add("--metacache", action="store_true", help="decide as MetaCache does")
    add("--name", default="", help="what the reads are, for the file")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1, help="for files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"query_kernels: error: {problem}", file=sys.stderr)
        return 2
    try:
        statistics, totals, load = measure_kernels(
            settings.database, settings.files, settings.threads, settings.metacache
        )
    except NgsgpuError as error:
        print(f"query_kernels: error: {error}", file=sys.stderr)
        return error.exit_status
    document = describe_run(
        SCHEMA, SCHEMA_VERSION, settings, load, statistics.time_s, totals, QUERY_MODELS
    )
    document["metacache"] = settings.metacache
    write_and_show(document, settings.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
