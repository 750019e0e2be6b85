"""Make wrappers, modules, tools, schemas and pages from what the commands and statistics declare.

python -m scripts.derive             write them
python -m scripts.derive --check     only say whether they are up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.derive import galaxy, nextflow, schema, statistics, wrappers
from scripts.derive.stages import stages
from scripts.made import write_or_check


def products() -> dict[Path, str]:
    """Each derived file, with its text as it has to be."""
    known = stages()
    made: dict[Path, str] = {}
    for product in (wrappers, nextflow, galaxy):
        made |= product.files(known)
    return made | schema.files() | statistics.files()


def main() -> int:
    """Write the files, or compare them; return the exit status."""
    return write_or_check("python -m scripts.derive", __doc__ or "", products)


if __name__ == "__main__":
    sys.exit(main())
