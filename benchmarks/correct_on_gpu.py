"""Correction on a GPU from files to files: wall time, its parts, memory, and the same bytes.

    python -m benchmarks.correct_on_gpu R1.fq R2.fq --repeats 3 -o benchmarks/results/NAME.json

Runs ``ngsgpu correct --backend cuda`` on plain files in the page cache, and with ``--parity`` once
``--backend cpu``, whose output must be the same. One JSON file holds every measurement, a Markdown
table goes to standard output.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.measuring import BenchmarkError, describe_commit, describe_machine, measure

SCHEMA = "ngsgpu.benchmark.correct_on_gpu"
SCHEMA_VERSION = 1


def run(settings: argparse.Namespace, backend: str, directory: Path) -> dict[str, Any]:
    """Correct once; the measurement, and what the run says of itself."""
    command = (
        f"ngsgpu correct -q --backend {backend} -t {settings.threads} -i {settings.first.resolve()}"
        f" -I {settings.second.resolve()} -o {backend}_1.fq -O {backend}_2.fq"
        f" --stats {backend}.json"
    )
    measured = measure(command.split(), directory)
    stats = json.loads((directory / f"{backend}.json").read_text())
    if stats["backend"] != backend:
        raise BenchmarkError(f"the run used {stats['backend']}, not {backend}")
    keys = ("coverage", "reads", "corrected", "time_s", "device", "gpu_memory")
    parts = {key: stats[key] for key in keys}
    return asdict(measured) | parts


def same_output(directory: Path) -> bool:
    """Whether both backends wrote the same bytes."""
    return all(
        filecmp.cmp(directory / f"cpu_{mate}.fq", directory / f"cuda_{mate}.fq", shallow=False)
        for mate in (1, 2)
    )


def table(document: dict[str, Any]) -> str:
    """Median wall time and its parts, a column a stage."""
    runs = document["runs"]
    stages = list(runs[0]["time_s"])
    middle = {
        stage: statistics.median(one["time_s"].get(stage, 0.0) for one in runs) for stage in stages
    }
    wall = statistics.median(one["wall_s"] for one in runs)
    rows = [
        ["reads", "wall s", *(f"{stage} s" for stage in stages), "reads/s", "host GiB"],
        [
            f"{runs[0]['reads']['total']:,}",
            f"{wall:.2f}",
            *(f"{middle[stage]:.2f}" for stage in stages),
            f"{runs[0]['reads']['total'] / wall:,.0f}",
            f"{max(one['peak_rss_bytes'] for one in runs) / 2**30:.1f}",
        ],
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---:|" * len(rows[0]), lines[1]])


def main() -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("first", type=Path, help="first mates, FASTQ")
    parser.add_argument("second", type=Path, help="second mates, FASTQ")
    parser.add_argument("--name", default="", help="what the reads are, for the file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parity", action="store_true", help="compare with the CPU's output")
    parser.add_argument("-o", "--output", type=Path, required=True)
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        # The first run compiles, and brings the files into the page cache.
        run(settings, "cuda", directory)
        runs = [run(settings, "cuda", directory) for _ in range(settings.repeats)]
        document = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "data": settings.name,
            "machine": describe_machine(),
            "commit": os.environ.get("NGSGPU_COMMIT") or describe_commit(),
            "threads": settings.threads,
            "runs": runs,
        }
        if settings.parity:
            document["cpu_run"] = run(settings, "cpu", directory)
            document["same_output_as_cpu"] = same_output(directory)
    settings.output.write_text(json.dumps(document, indent=1) + "\n")
    print(table(document))
    return 0 if document.get("same_output_as_cpu", True) else 1


if __name__ == "__main__":
    sys.exit(main())
