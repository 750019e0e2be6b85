#!/usr/bin/env python3
"""Fetch the demo's real reads: the test data in QUAST's source package, through pip.

QUAST 5.2.0 ships 28,160 Illumina read pairs (30 to 100 bases) of the first 10 kb of E. coli K-12
MG1655 and that reference, under GPL-2.0. pip finds the package wherever it is set up to look, so
proxies and mirrors need no further setting. Each file's SHA-256 is checked before it is put in
place.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "quast==5.2.0"
SHA256 = {
    "reads1.fastq.gz": "6fb490d745ae368cb81774da665e06ef6c1fdb56d57665dd61c996032b2b4f11",
    "reads2.fastq.gz": "b2c57a5d4298e18e75a59f0819e5e1d4e655777019f0505cc614bbdb4d26fd15",
    "reference.fasta.gz": "96688b1c91d311fa3b6a5b3e7ae674c8fd2a51814672b0310a5f2005e64da884",
}


class FetchError(Exception):
    """Something the user can fix; the message says what."""


def download(directory: Path) -> Path:
    """Download QUAST's source package with pip and return the archive's path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    command += ["--quiet", "--disable-pip-version-check", "--dest", str(directory), PACKAGE]
    if subprocess.run(command, check=False).returncode != 0:
        raise FetchError(f"pip could not download {PACKAGE}: see its message above")
    archives = sorted(directory.glob("quast-*.tar.gz"))
    if not archives:
        raise FetchError(f"pip downloaded no source archive of {PACKAGE}")
    return archives[0]


def extract(archive: Path, target: Path) -> None:
    """Take the three files out of the archive, check them and write them to ``target``."""
    root = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as tar:
        for name, expected in SHA256.items():
            member = tar.extractfile(f"{root}/test_data/{name}")
            if member is None:
                raise FetchError(f"{archive.name} holds no test_data/{name}")
            content = member.read()
            digest = hashlib.sha256(content).hexdigest()
            if digest != expected:
                raise FetchError(f"test_data/{name} has SHA-256 {digest}, expected {expected}")
            partial = target / f".{name}.partial"
            partial.write_bytes(content)
            partial.replace(target / name)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, help="where the three files go")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            extract(download(Path(scratch)), options.directory)
    except (FetchError, KeyError, OSError, tarfile.TarError) as error:
        print(f"fetch_demo_reads.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
