"""Databases compared, and looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed
from ngsgpu.jit import Integer, njit
from ngsgpu.kmers.counted import highest_count
from ngsgpu.kmers.database import (
    KIND,
    DatabaseWriter,
    KmerDatabase,
    Source,
    check_same,
    open_database,
)
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.stats import CombinationStatistics
from ngsgpu.pool import working
from ngsgpu.run.driver import FilesDriver
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Run
from ngsgpu.sequence.kmers import find_row, is_less

_PART_BITS: Final = 10
_LOOKUP_BITS: Final = 16
_DRIVER: Final = FilesDriver[None](lambda: None)


class Kept(Enum):
    """K-mers of a database that are kept in a comparison with another."""

    COMMON = "intersect"
    """K-mers of both, with the smaller count."""
    OWN = "subtract"
    """K-mers that the other one lacks."""
    ANY = "union"
    """K-mers of either, with the sum of the counts."""


def combine(
    first: str | Path,
    others: Paths,
    out: str | Path,
    kept: Kept,
    threads: int = 1,
    *,
    stats: str | Path | None = None,
    command: Sequence[str] = (),
) -> int:
    """Keep the k-mers of a database that all others have, or none of them, or all k-mers.

    Args:
        first: the database.
        others: the others.
        out: folder of the new one.
        kept: which k-mers are kept.
        threads: number of threads; does not affect the result.
        stats: JSON file for the statistics.
        command: the command line, for the statistics.

    Returns:
        Number of k-mers kept.

    Raises:
        InputError: a database is missing or damaged, or their k-mers differ in length.
        OutputError: the new one cannot be written.
        UsageError: the new one is to replace one of them.
    """
    paths = [first, *listed(others)]

    def combined(run: Run[None], files: OutputSet) -> CombinationStatistics:
        databases = [open_database(path, threads) for path in paths]
        check_same(list(zip(map(str, paths), databases, strict=True)))
        parameters = _parameters_of(databases, kept)
        writer = DatabaseWriter(files.folder, parameters)
        occurrences = 0
        combine_part = _combining(databases, kept, parameters)
        with working(threads, combine_part, range(1 << _PART_BITS), name="combine") as parts:
            for kmers, counts in parts:
                writer.append(kmers, counts)
                occurrences += int(counts.sum(dtype=np.int64))
        sources = [own.source for own in databases[: None if kept is Kept.ANY else 1]]
        source = Source(
            sequences=sum(own.sequences for own in sources),
            bases=sum(own.bases for own in sources),
            kmers=occurrences,
            files=(kept.value, *(Path(path).resolve().name for path in paths)),
        )
        writer.close(parameters, source)
        return CombinationStatistics.after(
            run,
            parameters=asdict(parameters) | {"kept": kept.value},
            databases=[
                {"path": str(path), "distinct": len(own)}
                for path, own in zip(paths, databases, strict=True)
            ],
            distinct=writer.size,
            kmers=occurrences,
        )

    return _DRIVER.run_files(
        (), (), combined, parameters=None, stats=stats, folder=(out, KIND), also_read=paths,
        options=RunOptions(threads=threads, command=tuple(command)),
    ).distinct  # fmt: skip


def _parameters_of(databases: Sequence[KmerDatabase], kept: Kept) -> CountParameters:
    """Parameters of what databases are combined to."""
    own = [database.parameters for database in databases]
    first = own[:1] if kept is Kept.OWN else own
    return CountParameters(
        own[0].kmer,
        min(one.min_quality for one in first),
        min(one.min_count for one in first),
        # Of those whose counts go into the new one.
        max(one.count_bits for one in first),
    )


def _combining(
    databases: Sequence[KmerDatabase], kept: Kept, parameters: CountParameters
) -> Callable[[int], tuple[NDArray[np.uint64], NDArray[Any]]]:
    """Combines the k-mers of databases that begin with the bits of a number."""
    starts = [database.starts(_PART_BITS) for database in databases]

    def part(number: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        parts = []
        for database, own in zip(databases, starts, strict=True):
            begin, end = own[number : number + 2].tolist()
            parts.append((database.kmers[begin:end], database.counts[begin:end]))
        kmers, counts = parts[0]
        for other in parts[1:]:
            most = len(kmers) + (len(other[0]) if kept is Kept.ANY else 0)
            counts_room = np.empty(most, parameters.count_type)
            room = np.empty((most, kmers.shape[1]), kmers.dtype), counts_room
            if kept is Kept.ANY:
                size = _add(kmers, counts, *other, *room)
            else:
                size = _keep(kmers, counts, *other, kept is Kept.COMMON, *room)
            kmers, counts = room[0][:size], room[1][:size]
        return kmers, counts

    return part


@njit(nogil=True, cache=True)
def _keep(
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    other: NDArray[np.uint64],
    other_counts: NDArray[Any],
    common: bool,
    out: NDArray[np.uint64],
    out_counts: NDArray[Any],
) -> int:
    """Write the k-mers that are kept, and their counts; return their number."""
    words = kmers.shape[1]
    size = 0
    at = 0
    for i in range(len(kmers)):
        while at < len(other) and is_less(other, at, kmers, i, words):
            at += 1
        found = at < len(other) and not is_less(kmers, i, other, at, words)
        if found == common:
            for j in range(words):
                out[size, j] = kmers[i, j]
            out_counts[size] = min(counts[i], other_counts[at]) if common else counts[i]
            size += 1
    return size


@njit(nogil=True, cache=True)
def _add(
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    other: NDArray[np.uint64],
    other_counts: NDArray[Any],
    out: NDArray[np.uint64],
    out_counts: NDArray[Any],
) -> int:
    """Write the k-mers of both, and the sums of their counts; return their number."""
    words = kmers.shape[1]
    most = highest_count(out_counts)
    size, i, at = 0, 0, 0
    while i < len(kmers) or at < len(other):
        count = np.uint64(0)
        first = i < len(kmers) and (at == len(other) or not is_less(other, at, kmers, i, words))
        second = at < len(other) and (i == len(kmers) or not is_less(kmers, i, other, at, words))
        if second:
            for j in range(words):
                out[size, j] = other[at, j]
            count += np.uint64(other_counts[at])
            at += 1
        if first:
            for j in range(words):
                out[size, j] = kmers[i, j]
            count += np.uint64(counts[i])
            i += 1
        out_counts[size] = min(count, most)
        size += 1
    return size


class Lookup:
    """Looks up k-mers in a database.

    Args:
        database: the database.

    Attributes:
        count_type: of the counts, as NumPy names it.
    """

    def __init__(self, database: KmerDatabase) -> None:
        self.count_type = database.parameters.count_type
        self._database = database
        self._starts = database.starts(_LOOKUP_BITS)

    def counts(self, kmers: NDArray[np.uint64]) -> NDArray[Any]:
        """The counts of canonical k-mers, uint64[n, words]; 0 of those it does not have."""
        own = self._database
        out = np.zeros(len(kmers), dtype=self.count_type)
        _look_up(kmers, own.kmers, own.counts, self._starts, _LOOKUP_BITS, out)
        return out


@njit(nogil=True, cache=True)
def _look_up(
    wanted: NDArray[np.uint64],
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    starts: NDArray[np.int64],
    bits: Integer,
    out: NDArray[Any],
) -> None:
    for i in range(len(wanted)):
        part = wanted[i, 0] >> np.uint64(64 - bits)
        place = find_row(kmers, starts[part], starts[part + np.uint64(1)], wanted, i)
        if place >= 0:
            out[i] = counts[place]


def pieces(size: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut a range into pieces of at most ``most``."""
    return pairwise([*range(0, size, most), size])
