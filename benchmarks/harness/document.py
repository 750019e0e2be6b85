"""The JSON files of measurements: what all begin with, and how they are written."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from benchmarks.harness.measuring import answer


def head(schema: str = "", version: int = 1) -> dict[str, Any]:
    """What a measurement's file begins with: its schema, if it has one, machine and commit."""
    named = {"schema": schema, "schema_version": version} if schema else {}
    return {**named, "machine": describe_machine(), "source": describe_commit()}


def write_document(document: dict[str, Any], path: Path) -> None:
    """Write a JSON file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.replace(path)


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


def describe_commit() -> dict[str, Any]:
    """Commit of the checkout, and whether the package differed from it.

    Where the checkout has no history, ``NGSGPU_COMMIT`` in the environment says which it is.
    """
    if commit := os.environ.get("NGSGPU_COMMIT"):
        return {"commit": commit, "changed": None}
    changes = answer("git", "status", "--porcelain", "--untracked-files=no", "--", "ngsgpu")
    return {"commit": answer("git", "rev-parse", "HEAD"), "changed": bool(changes)}
