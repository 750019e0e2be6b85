"""Outputs of runs on drawn pairs (``genome_reads``), compared with the truth."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from benchmarks.harness.drawn import LETTERS
from benchmarks.harness.genome_reads import NAME, draw, draw_fragments, record_bytes

BLOCK: Final = 1 << 14
READ_AT_A_TIME: Final = 1 << 24


class Given(NamedTuple):
    """What reads were drawn.

    Attributes:
        genome: codes 0 to 3.
        length: bases of a read.
        pairs: how many.
        checked: of how many, from the first on, the outputs are compared.
    """

    genome: NDArray[np.uint8]
    length: int
    pairs: int
    checked: int


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    found = 0
    with path.open("rb") as file:
        while data := file.read(READ_AT_A_TIME):
            found = isal_zlib.crc32(data, found)
    return found


def check_corrected(given: Given, folder: Path) -> dict[str, Any]:
    """Errors before and after correction, of reads that kept their length and order."""
    size = record_bytes(given.length)
    counts = dict.fromkeys(("errors", "corrected", "false", "left", "reads worse"), 0)
    with gzip.open(folder / "out1.fq.gz") as first, gzip.open(folder / "out2.fq.gz") as second:
        for begin in range(0, given.checked, BLOCK):
            pairs = min(BLOCK, given.checked - begin)
            drawn = np.empty((2, pairs, size), dtype=np.uint8)
            truth = np.empty((2, pairs, given.length), dtype=np.uint8)
            draw(given.genome, begin, drawn, truth)
            for mate, file in enumerate((first, second)):
                text = np.frombuffer(file.read(pairs * size), dtype=np.uint8).reshape(pairs, size)
                if (text[:, :NAME] != drawn[mate, :, :NAME]).any():
                    raise ValueError(f"records from pair {begin} on have other names")
                bases = slice(NAME, NAME + given.length)
                before = drawn[mate, :, bases] != truth[mate]
                after = text[:, bases] != truth[mate]
                counts["errors"] += int(before.sum())
                counts["corrected"] += int((before & ~after).sum())
                counts["false"] += int((~before & after).sum())
                counts["left"] += int(after.sum())
                counts["reads worse"] += int((after.sum(axis=1) > before.sum(axis=1)).sum())
    bases_checked = 2 * given.checked * given.length
    return {
        "sensitivity": round(counts["corrected"] / max(1, counts["errors"]), 5),
        "false per million": round(1e6 * counts["false"] / max(1, counts["corrected"]), 1),
        "left per million bases": round(1e6 * counts["left"] / bases_checked, 2),
        **counts,
    }


def check_fragments(given: Given, folder: Path) -> dict[str, Any]:
    """Pairs that became one read: their share, wrong lengths, wrong bases between the mates."""
    numbers, reads = [], []
    for name, read in _records(folder / "out1.fq.gz"):
        number = int(name[2:12])
        if number >= given.checked:
            break
        numbers.append(number)
        reads.append(read)
    pairs = np.array(numbers, dtype=np.int64)
    fragments = draw_fragments(given.genome, pairs, given.length)
    wrong_length = wrong_bases = bases = 0
    for read, (length, first, backward) in zip(reads, fragments, strict=True):
        if len(read) != length:
            wrong_length += 1
            continue
        codes = given.genome[first : first + length]
        truth = LETTERS[3 - codes[::-1] if backward else codes]
        gap = slice(given.length, length - given.length)  # bases of the mates stay as they are
        wrong_bases += int((np.frombuffer(read, dtype=np.uint8)[gap] != truth[gap]).sum())
        bases += max(0, length - 2 * given.length)
    return {
        "connected": round(len(pairs) / given.checked, 5),
        "wrong length per million": round(1e6 * wrong_length / max(1, len(pairs)), 1),
        "wrong bases in gaps per million": round(1e6 * wrong_bases / max(1, bases), 2),
    }


def _records(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """First line and sequence of each record."""
    with gzip.open(path) as file:
        while lines := list(islice(file, 4)):
            yield lines[0], lines[1].rstrip()


def check_histogram(given: Given, folder: Path) -> dict[str, Any]:
    """All k-mers of the reads have to be counted: ``missing`` is 0."""
    counts = np.loadtxt(folder / "out.tsv", dtype=np.int64, usecols=(0, 1), ndmin=2)
    windows = 2 * given.pairs * (given.length - 31 + 1)
    return {
        "distinct": int(counts[:, 1].sum()),
        "missing": windows - int((counts[:, 0] * counts[:, 1]).sum()),
    }
