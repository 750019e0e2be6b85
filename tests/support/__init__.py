"""What tests share: oracles, makers of data, small worlds, stand-ins for GPUs.

A folder a package of ``ngsgpu``. Tests import from here and from the package, never from each
other.
"""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
"""Real reads, genomes, taxonomies and awkward files; the README there names their sources."""


def content(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder: the bytes of files by their paths in it; None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
