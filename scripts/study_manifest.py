#!/usr/bin/env python3
"""Write the manifest of a study for `ngsgpu report`: what ran on what, and every file to show.

The workflow says it on standard input: one line of JSON that describes the study and its samples,
then a line a file with three columns: sample (empty for what is the study's), keys in the manifest
joined by '/', and path. Benchmarks are lists. The report shows these files and no
others, whatever else lies in the folder of results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SCHEMA = "ngsgpu.study"
SCHEMA_VERSION = 2


def add_files(study: dict[str, Any], lines: Iterable[str], folder: Path) -> None:
    """Enter the files into the study, as paths relative to the manifest's folder."""
    samples = {sample["name"]: sample.setdefault("files", {}) for sample in study["samples"]}
    for line in lines:
        name, keys, path = line.rstrip("\n").split("\t")
        *outer, key = keys.split("/")
        place = samples[name] if name else study
        for step in outer:
            place = place.setdefault(step, {})
        relative = os.path.relpath(path, folder)
        if outer == ["benchmarks"]:
            place.setdefault(key, []).append(relative)
        else:
            place[key] = relative


def add_jobs(study: dict[str, Any], folder: Path) -> None:
    """Enter the statistics of the jobs that built and searched the partitions of databases.

    Those of samples, batches and partitions that the study no longer has may still lie beside; so
    the workflow says which it has: by database the number of partitions, and each sample's batch.
    """
    for name, own in study.pop("searched", {}).items():
        home = (folder / study["databases"][name]).parent
        for number in range(own["partitions"]):
            part = f"{number:04d}"
            built = home / "partitions" / f"{part}.stats.json"
            _add_job(study, "build_partition", f"{name} {part}", built, folder)
            for sample, batch in sorted(own["batches"].items()):
                place = f"{batch}/{part}/{sample}"
                path = home / "jobs" / f"{place}.json"
                _add_job(study, "classify_partition", f"{name} {place}", path, folder)


def _add_job(study: dict[str, Any], rule: str, job: str, path: Path, folder: Path) -> None:
    if path.is_file():
        jobs = study.setdefault("jobs", {}).setdefault(rule, {})
        jobs[job] = os.path.relpath(path, folder)


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
    parser.add_argument(
        "--versions", type=Path, nargs="*", default=[], help="TOOL.txt files, one line each"
    )
    parser.add_argument("manifest", type=Path, help="JSON file to write")
    options = parser.parse_args(arguments)
    study = json.loads(sys.stdin.readline())
    versions = {path.stem: path.read_text().strip() for path in options.versions}
    versions["snakemake"] = study.pop("snakemake")
    if commit := study.pop("commit", ""):
        versions["workflow"] = f"commit {commit}"
    add_files(study, sys.stdin, options.manifest.parent)
    add_jobs(study, options.manifest.parent)
    manifest = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "title": study.pop("title"),
        "config": study.pop("config"),
        "versions": versions,
        "machine": machine(),
        **study,
    }
    options.manifest.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
