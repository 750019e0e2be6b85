#!/usr/bin/env python3
"""Write the manifest of a study for `ngsgpu report`: samples, parameters, versions, machine.

The sheets were checked by the workflow; here they are only retold. The manifest names no result
files: the report finds them in the workflow's layout.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

SCHEMA = "ngsgpu.study"
SCHEMA_VERSION = 1


def rows(sheet: Path) -> list[dict[str, str]]:
    """Read a tab-separated sheet; blank lines and lines that begin with '#' are skipped."""
    lines = [
        line
        for line in sheet.read_text(encoding="utf-8-sig").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return [
        {name: (cell or "").strip() for name, cell in row.items() if name is not None}
        for row in csv.DictReader(lines, delimiter="\t")
    ]


def real_samples(sheet: Path) -> list[dict[str, Any]]:
    """Describe the real samples: lanes, files and reference."""
    lanes: dict[str, list[dict[str, str]]] = {}
    for row in rows(sheet):
        lanes.setdefault(row["sample"], []).append(row)
    samples = []
    for name, of_sample in lanes.items():
        files = [row[c] for row in of_sample for c in ("fastq_1", "fastq_2") if row.get(c)]
        parameters: dict[str, Any] = {"lanes": len(of_sample), "files": ", ".join(files)}
        if of_sample[0].get("reference"):
            parameters["reference"] = of_sample[0]["reference"]
        samples.append({"name": name, "kind": "real", "parameters": parameters})
    return samples


def simulated_samples(sheet: Path) -> list[dict[str, Any]]:
    """Describe the simulated sets by the columns of their sheet."""
    return [
        {
            "name": row["dataset"],
            "kind": "simulated",
            "parameters": {c: v for c, v in row.items() if c != "dataset" and v},
        }
        for row in rows(sheet)
    ]


def machine() -> dict[str, str]:
    """Say what this machine is: system, processor, cores this process may use, memory."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass  # not Linux: the platform module's answer stands
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory / 2**30:.0f} GiB",
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--title", required=True)
    parser.add_argument("--samples", type=Path, help="sheet of real samples")
    parser.add_argument("--datasets", type=Path, help="sheet of simulated sets")
    parser.add_argument("--config", type=json.loads, default={}, help="configuration as JSON")
    parser.add_argument(
        "--versions", type=Path, nargs="*", default=[], help="TOOL.txt files, one line each"
    )
    parser.add_argument("--snakemake", metavar="VERSION", help="version of Snakemake")
    parser.add_argument("manifest", type=Path, help="JSON file to write")
    options = parser.parse_args(arguments)
    samples = simulated_samples(options.datasets) if options.datasets else []
    samples += real_samples(options.samples) if options.samples else []
    versions = {path.stem: path.read_text().strip() for path in options.versions}
    if options.snakemake:
        versions["snakemake"] = options.snakemake
    manifest = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "title": options.title,
        "config": options.config,
        "versions": versions,
        "machine": machine(),
        "samples": samples,
    }
    options.manifest.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
