#!/usr/bin/env python3
"""List the results of a study as TSV: whether each is done, was skipped or failed, and why.

A job that failed for good has left a note beside its outputs, and the jobs that depend on them have
passed it on (workflow/rules/common/failures.smk).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from ngsgpu.errors import NgsgpuError
from ngsgpu.report.absent import read_note
from ngsgpu.report.model import Study
from ngsgpu.report.study import read_study

COLUMNS = ("sample", "result", "status", "reason", "log")


def rows(study: Study) -> Iterator[tuple[str, ...]]:
    """A row per result of each sample, then one per database, which has no sample."""
    files = [
        (sample.name, "/".join(key), path)
        for sample in study.samples
        for key, path in sample.files.paths.items()
    ]
    files += [("", f"databases/{name}", path) for name, path in study.databases.items()]
    for sample, result, path in files:
        note = read_note(path)
        if note is None:
            yield sample, result, "done", "", ""
        else:
            status = "failed" if note.is_failure else "skipped"
            yield sample, result, status, note.message, note.log


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path, help="manifest of the study")
    options = parser.parse_args(arguments)
    try:
        study = read_study(options.study)
    except NgsgpuError as error:
        print(f"study_status.py: {error}", file=sys.stderr)
        return error.exit_status
    table = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
    table.writerow(COLUMNS)
    table.writerows(rows(study))
    return 0


if __name__ == "__main__":
    sys.exit(main())
