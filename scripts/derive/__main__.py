"""Make wrappers, modules, tools, schemas and pages from what the commands and statistics declare.

python -m scripts.derive             write them
python -m scripts.derive --check     only say whether they are up to date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.derive import galaxy, nextflow, schema, statistics, wrappers
from scripts.derive.stages import ROOT, stages


def products() -> dict[Path, str]:
    """Each derived file, with its text as it has to be."""
    known = stages()
    made: dict[Path, str] = {}
    for product in (wrappers, nextflow, galaxy):
        made |= product.files(known)
    return made | schema.files() | statistics.files()


def main() -> int:
    """Write the files, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = [
        (path, text)
        for path, text in products().items()
        if not path.exists() or path.read_text() != text
    ]
    for path, text in stale:
        if check:
            place = path.relative_to(ROOT)
            print(f"{place} is out of date: run python -m scripts.derive", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
