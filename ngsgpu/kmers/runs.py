"""Runs: sorted counts on the disk, of a part of the k-mers, to be added up in the end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import output_error
from ngsgpu.io.output.temporary import open_private


class Run(NamedTuple):
    """Sorted counts on the disk.

    Attributes:
        kmers: file of k-mers.
        counts: file of their counts.
        starts: int64[buckets + 1], where buckets begin and the last ends.
        count_type: of the counts.
    """

    kmers: Path
    counts: Path
    starts: NDArray[np.int64]
    count_type: np.dtype[Any]

    def read(self, first: int, last: int, words: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """K-mers and counts of the buckets from ``first`` up to ``last``.

        Args:
            first: first bucket.
            last: bucket after the last one.
            words: 64-bit words of a k-mer.
        """
        begin, end = int(self.starts[first]), int(self.starts[last])
        size = end - begin
        kmers = np.fromfile(self.kmers, np.uint64, size * words, offset=8 * words * begin)
        at = self.count_type.itemsize * begin
        counts = np.fromfile(self.counts, self.count_type, size, offset=at)
        return kmers.reshape(size, words), counts

    def remove(self) -> None:
        """Remove the files."""
        self.kmers.unlink(missing_ok=True)
        self.counts.unlink(missing_ok=True)


def write_run(
    folder: Path,
    number: int,
    parts: Iterable[tuple[NDArray[np.uint64], NDArray[Any]]],
    count_type: str,
    starts: NDArray[np.int64] | None = None,
) -> Run:
    """Put sorted counts on the disk.

    Args:
        folder: of the database that is being made.
        number: of the run.
        parts: k-mers, uint64[n, words], and their counts.
        count_type: of the counts.
        starts: where buckets begin; None if each part is a bucket.

    Raises:
        OutputError: they cannot be written.
    """
    kmer_path, count_path = (folder / f"run-{number:04d}.{name}" for name in ("kmers", "counts"))
    places = [0]
    try:
        with (
            open(kmer_path, "wb", opener=open_private) as kmer_file,
            open(count_path, "wb", opener=open_private) as count_file,
        ):
            for kmers, counts in parts:
                kmer_file.write(kmers.reshape(-1).view(np.uint8).data)
                count_file.write(counts.view(np.uint8).data)
                places.append(places[-1] + len(kmers))
    except OSError as error:
        raise output_error(folder.parent, error) from error
    ends = np.array(places) if starts is None else starts
    return Run(kmer_path, count_path, ends, np.dtype(count_type))
