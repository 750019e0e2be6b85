#!/usr/bin/env python3
"""Write MultiQC content for one run of `ngsgpu correct`, `merge` or `extend` from its statistics.

Give the output prefix with the sample's name at its end: results/x/correct/x makes
results/x/correct/x.ngsgpu_correct_mqc.json and x.ngsgpu_correct_generalstats_mqc.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ngsgpu.errors import NgsgpuError
from ngsgpu.report.exports.multiqc import write_content


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stats", type=Path, help="JSON of --stats")
    parser.add_argument("prefix", help="where the two files go, with the sample's name at the end")
    options = parser.parse_args(arguments)
    try:
        document = json.loads(options.stats.read_text(encoding="utf-8"))
        write_content(document, options.prefix, Path(options.prefix).name)
    except (NgsgpuError, OSError, ValueError, KeyError) as error:
        print(f"multiqc_content.py: {options.stats}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
