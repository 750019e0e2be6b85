#!/usr/bin/env python3
"""Fetch the reads of a run in the Sequence Read Archive as FASTQ, by fasterq-dump of sra-tools.

    fetch_run.py SRR1234567 R1.fastq.gz R2.fastq.gz      pairs
    fetch_run.py SRR1234567 reads.fastq.gz               single-end reads

A run whose reads are of the other kind is refused. Reads without their mates, which a run of pairs
may have as well, are left out. The files appear whole or not at all.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = "fasterq-dump"


class FetchError(Exception):
    """Something the user can fix; the message says what."""


def fetch(accession: str, folder: Path, threads: int) -> None:
    """Have the reads of a run written to a folder, those of mates to separate files."""
    if shutil.which(PROGRAM) is None:
        raise FetchError(f"{PROGRAM} is not on the PATH; install sra-tools, or use --sdm conda")
    command = [PROGRAM, accession, "--split-3", "--threads", str(threads)]
    command += ["--outdir", str(folder), "--temp", str(folder)]
    if subprocess.run(command, check=False).returncode != 0:
        raise FetchError(
            f"{PROGRAM} could not fetch {accession}: see its messages above; is there a network "
            "connection, and is that the accession of a public run?"
        )


def found(accession: str, folder: Path, count: int) -> list[Path]:
    """The files of a run, which has to be of pairs if ``count`` is 2."""
    mates = [folder / f"{accession}_{mate}.fastq" for mate in (1, 2)]
    paired = all(path.is_file() for path in mates)
    if count == 2 and not paired:
        raise FetchError(f"{accession} is a run of single-end reads: leave fastq_2 empty")
    if count == 1 and paired:
        raise FetchError(f"{accession} is a run of pairs: give sra:{accession} as fastq_2, too")
    single = [folder / f"{accession}.fastq", mates[0]]
    files = mates if count == 2 else [path for path in single if path.is_file()][:1]
    if not files:
        raise FetchError(f"{PROGRAM} wrote no reads of {accession}")
    return files


def compress(path: Path, threads: int) -> Path:
    """Compress a file, with several threads if bgzip is there."""
    if shutil.which("bgzip"):
        command = ["bgzip", "-@", str(threads), str(path)]
    else:
        command = ["gzip", "-1", str(path)]
    subprocess.run(command, check=True)
    return path.with_name(f"{path.name}.gz")


def main() -> int:
    """Fetch, compress and put in place."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("accession")
    parser.add_argument(
        "outputs", nargs="+", type=Path, metavar="FILE", help="one, or two of mates"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    options = parser.parse_args()
    if len(options.outputs) > 2:
        parser.error("give one file, or two of mates")
    home = options.outputs[0].parent
    home.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=home, prefix=f".{options.accession}-") as name:
            fetch(options.accession, Path(name), options.threads)
            files = found(options.accession, Path(name), len(options.outputs))
            packed = [compress(path, options.threads) for path in files]
            for path, output in zip(packed, options.outputs, strict=True):
                path.replace(output)
    except (FetchError, subprocess.CalledProcessError, OSError) as error:
        print(f"fetch_run.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
