#!/usr/bin/env python3
"""Say which samples of a study failed, and exit with status 1 if any did.

The manifest names all results; a job that failed for good has left a note in place of its own, and
the jobs that needed them have handed it on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ngsgpu.errors import NgsgpuError
from ngsgpu.report.absent import explained, read_note
from ngsgpu.report.study import read_study


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path, help="manifest of the study")
    options = parser.parse_args(arguments)
    try:
        samples = read_study(options.study).samples
    except NgsgpuError as error:
        print(f"check_study.py: {error}", file=sys.stderr)
        return error.exit_status
    failed = 0
    for sample in samples:
        notes = [read_note(path) for path in sample.files.results()]
        failures = explained(note for note in notes if note is not None and note.is_failure)
        failed += bool(failures)
        for failure in failures:
            print(f"{sample.name} failed: {failure}", file=sys.stderr)
    if failed:
        print(
            f"{failed} of {len(samples)} samples failed; the report shows the others. Mend the "
            "input or the config, or delete the sample's results, and run the workflow again.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
