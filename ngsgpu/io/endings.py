"""Outputs have names of the format that they get."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.compress.formats import is_named_fasta
from ngsgpu.io.compress.source import Source

_LOOKED_AT: Final = 1 << 16


def check_names(inputs: Iterable[str], outputs: Iterable[str | Path]) -> None:
    """Refuse outputs named as FASTA if they get the records of FASTQ files.

    Streams are not looked at; see `refuse_fasta_name`.

    Raises:
        UsageError: names the output.
    """
    files = (path for path in inputs if Path(path).is_file())
    if any(map(is_named_fasta, outputs)) and any(map(_is_fastq, files)):
        refuse_fasta_name(outputs)


def refuse_fasta_name(outputs: Iterable[str | Path]) -> None:
    """Refuse outputs named as FASTA, for reads that have qualities.

    Raises:
        UsageError: names the first of them.
    """
    if named := next(filter(is_named_fasta, outputs), None):
        raise UsageError(
            f"{named}: is named as FASTA, but gets FASTQ, as the input is; choose a name that "
            "ends in .fastq, or .fastq.gz"
        )


def _is_fastq(path: str) -> bool:
    """Whether a file begins as FASTQ does; faults of the file are left to its readers."""
    first = bytearray(1)
    try:
        source = Source(path, threads=1, chunk_bytes=_LOOKED_AT)
        try:
            source.fill(memoryview(first))
        finally:
            source.close()
    except (InputError, OSError):
        return False
    return first == b"@"
