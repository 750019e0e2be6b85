#!/usr/bin/env python3
"""Say which samples of a study failed, remove what stands for their results, and exit with 1.

Exits with 0 if none failed. Reads the table that study_status.py writes into the folder of results.
The empty outputs of failed jobs have served the report; without them, the next run of the workflow
tries these jobs again.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
from pathlib import Path

FOLDER_NOTE = "ngsgpu.failed"
"""Note in a folder that is an output."""


def failures(status: Path) -> tuple[dict[str, dict[str, list[str]]], int]:
    """The failures of each sample or database, as logs by message, and the number of samples."""
    found: dict[str, dict[str, list[str]]] = {}
    samples = set()
    with status.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            samples.add(row["sample"])
            if row["status"] == "failed":
                owner = row["sample"] or row["result"]
                logs = found.setdefault(owner, {}).setdefault(row["reason"], [])
                if row["log"] not in logs:
                    logs.append(row["log"])
    return found, len(samples - {""})


def remove_failed(results: Path) -> None:
    """Remove all outputs that have a note of a failure, and the notes."""
    for folder, _, names in os.walk(results):
        for name in names:
            note = Path(folder, name)
            if name == FOLDER_NOTE:
                shutil.rmtree(folder)
                break
            if note.suffix == ".failed":
                note.with_suffix("").unlink(missing_ok=True)
                note.unlink()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("status", type=Path, help="table of study_status.py, among the results")
    options = parser.parse_args(arguments)
    found, count = failures(options.status)
    for owner, messages in found.items():
        for message, logs in messages.items():
            print(f"{owner} failed: {message} ({', '.join(logs)})", file=sys.stderr)
    remove_failed(options.status.parent)
    if found:
        failed = [owner for owner in found if not owner.startswith("databases/")]
        print(
            f"{len(failed)} of {count} samples failed; the report shows the others. Fix the input "
            "or the config and run the workflow again: it makes what is missing.",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
