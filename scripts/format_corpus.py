#!/usr/bin/env python3
"""Keep small files of every format that ngsgpu reads again, as this version writes them.

    scripts/format_corpus.py            write tests/data/formats/VERSION.tar.gz

A release keeps its files (docs/releasing.md), and so does what changes before one: 0.1.0-windows
has a database whose features depend on where a record begins. A test reads all of them with today's
code, and compares what comes of it with the outputs kept beside them.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
CORPUS: Final = ROOT / "tests/data/formats"

BUILDING: Final = (
    "db build -d small.db --taxonomy taxonomy --map taxonomy/seqid2taxid.tsv two.fa",
    "deplete-index two.fa -o small.idx",
    "kmers count -i two.fa -k 21 -o small.kmers",
    "index build two.fa -o small.bwa",
)
"""Commands that write what others read."""

READING: Final = {
    "calls.tsv": "classify --metacache -d small.db -i reads.fa -o calls.tsv",
    "kept.fa": "deplete -d small.idx -i reads.fa -o kept.fa",
    "counts.tsv": "kmers dump -d small.kmers -o counts.tsv",
    "matches.tsv": "index query small.bwa -i reads.fa -o matches.tsv",
}
"""Outputs, and the commands that read these files for them."""


def run(command: str, folder: Path) -> None:
    """Run a command of ngsgpu, on the CPU.

    Raises:
        subprocess.CalledProcessError: it fails; its output says why.
    """
    where = os.environ | {"NGSGPU_BACKEND": "cpu", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "ngsgpu", *command.split()]
    subprocess.run(words, cwd=folder, env=where, check=True, capture_output=True, text=True)


def _write_inputs(folder: Path) -> None:
    """Two sequences with taxa, and reads of them and of nothing."""
    draw = random.Random(1)
    names = ("NC_000913.3", "NC_003197.2")
    texts = ["".join(draw.choices("ACGT", k=3000)) for _ in names]
    (folder / "two.fa").write_text(
        "".join(f">{name}\n{text}\n" for name, text in zip(names, texts, strict=True))
    )
    reads = [text[at : at + 100] for text in texts for at in range(0, 2900, 580)]
    reads += ["".join(draw.choices("ACGT", k=100)) for _ in range(3)]
    (folder / "reads.fa").write_text(
        "".join(f">read{number}\n{read}\n" for number, read in enumerate(reads))
    )
    taxonomy = ROOT / "tests/data/taxonomy/bacteria"
    (folder / "taxonomy").mkdir()
    for path in taxonomy.iterdir():
        (folder / "taxonomy" / path.name).write_bytes(path.read_bytes())


def main() -> int:
    """Write the files of this version; return the exit status."""
    from ngsgpu._version import __version__

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        for command in (*BUILDING, *READING.values()):
            run(command, folder)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "taxonomy" not in path.relative_to(folder).parts[:1]:
                    entry = tarfile.TarInfo(str(path.relative_to(folder)))
                    entry.size = path.stat().st_size
                    with path.open("rb") as file:
                        archive.addfile(entry, file)
    CORPUS.mkdir(exist_ok=True)
    target = CORPUS / f"{__version__}.tar.gz"
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
