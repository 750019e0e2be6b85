"""The JSON files of measurements: what all begin with, and how they are written."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import ROOT, BenchmarkError, answer


def head(schema: str = "", version: int = 1) -> dict[str, Any]:
    """What a measurement's file begins with: its schema, if it has one, machine and commit."""
    named = {"schema": schema, "schema_version": version} if schema else {}
    return {**named, "machine": describe_machine(), "source": describe_commit()}


def write_document(document: dict[str, Any], path: Path, *, compact: bool = False) -> None:
    """Write a JSON file, whole or not at all; a compact one has a line for each of its fields."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    text = json.dumps(document, indent=1)
    if compact:
        fields = (f"{json.dumps(name)}: {json.dumps(own)}" for name, own in document.items())
        text = "{\n" + ",\n".join(fields) + "\n}"
    unfinished.write_text(text + "\n")
    unfinished.replace(path)


def run_in(
    settings: argparse.Namespace,
    name: str,
    run: Callable[[argparse.Namespace, Path], dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
) -> int:
    """Measure in a temporary folder of ``settings.work``, write ``settings.output``, print a table.

    Args:
        settings: of the benchmark.
        name: of the benchmark, for messages.
        run: measures everything; the document, with its ``differences``.
        table: makes the table of it.

    Returns:
        The exit status: 1 if the measurement failed, or outputs differ.
    """
    settings.work.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=settings.work) as work:
            document = run(settings, Path(work))
    except (BenchmarkError, OSError, json.JSONDecodeError) as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    write_document(document, settings.output)
    print(table(document), end="")
    for difference in document["differences"]:
        print(f"{name}: these differ: {difference}", file=sys.stderr)
    return 1 if document["differences"] else 0


def describe_machine() -> dict[str, Any]:
    """CPU, GPUs, memory, system and versions, as ``ngsgpu doctor`` sees them, without paths."""
    seen = json.loads(answer("ngsgpu", "doctor", "--json"))
    models = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cpu": models[0] if models else "unknown",
        "cpus": seen["cpus"],
        "memory_bytes": seen["memory"]["total"],
        "gpus": [gpu["name"] for gpu in seen["gpus"]],
        "system": seen["system"],
        "versions": {name: version for name, version in seen["versions"].items() if version},
    }


def describe_commit(folder: Path = ROOT) -> dict[str, Any]:
    """Commit of a checkout, and whether the package differed from it.

    Where this one has no history, ``NGSGPU_COMMIT`` in the environment says which it is, and of
    another one its name.
    """
    if folder == ROOT and (commit := os.environ.get("NGSGPU_COMMIT")):
        return {"commit": commit, "changed": None}
    if folder != ROOT and not (folder / ".git").exists():
        return {"commit": folder.name, "changed": None}
    status = ("status", "--porcelain", "--untracked-files=no", "--", "ngsgpu")
    changes = answer("git", *status, directory=folder)
    return {
        "commit": answer("git", "rev-parse", "HEAD", directory=folder),
        "changed": bool(changes),
    }
