"""Databases as text: histograms, lists of k-mers, and the counts of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.put import put_number
from ngsgpu.io.text.reader import read_batches
from ngsgpu.jit import njit
from ngsgpu.kmers.compare import Lookup, pieces
from ngsgpu.kmers.cpu import find_kmers
from ngsgpu.kmers.database import KmerDatabase
from ngsgpu.kmers.stretches import Stretches, stretches_of
from ngsgpu.sequence.codec import LETTERS

_NONE = np.empty(0, dtype=np.int64)
SHOWN_COUNTS: Final = 10_000
"""Counts of a histogram that have a line each, unless others are asked for."""

_ROWS: Final = 1 << 18
_STRETCH: Final = 1 << 22
_COUNT_DIGITS: Final = 10


def histogram_lines(
    histogram: NDArray[np.int64], highest: int, high: NDArray[np.int64] = _NONE
) -> Iterator[str]:
    """Lines of a count and the number of distinct k-mers that have it, as of ``jellyfish histo``.

    Args:
        histogram: int64, distinct k-mers by count.
        highest: the line ``highest + 1`` is of all k-mers that are more frequent.
        high: the counts beyond the histogram, whose k-mers its last element has, too.
    """
    shown = histogram[: highest + 2].copy()
    shown[highest + 1 :] += histogram[highest + 2 :].sum()
    if highest < len(histogram) - 1:
        high = _NONE
    shown[-1] -= len(high)
    for count in np.flatnonzero(shown).tolist():
        yield f"{count} {shown[count]}\n"
    counts, kmers = np.unique(np.minimum(high, highest + 1), return_counts=True)
    for count, number in zip(counts.tolist(), kmers.tolist(), strict=True):
        yield f"{count} {number}\n"


def dump(database: KmerDatabase, min_count: int, max_count: int) -> Iterator[bytes]:
    """Lines of a k-mer, a tab and its count, in order, for the k-mers with such counts.

    Args:
        database: the counted k-mers.
        min_count: lowest count that is written.
        max_count: highest count that is written.
    """
    for begin, end in pieces(len(database), _ROWS):
        kmers, counts = database.kmers[begin:end], database.counts[begin:end]
        wanted = (counts >= min_count) & (counts <= max_count)
        if not wanted.all():
            kmers, counts = kmers[wanted], counts[wanted]
        yield lines_of(kmers, counts, database.parameters.kmer)


def lines_of(kmers: NDArray[np.uint64], counts: NDArray[Any], k: int) -> bytes:
    """Lines of a k-mer, a tab and its count.

    Args:
        kmers: the k-mers, uint64[n, words].
        counts: their counts.
        k: length of a k-mer.
    """
    out = np.empty(len(kmers) * (k + _COUNT_DIGITS + 2), dtype=np.uint8)
    return out[: _write_lines(kmers, counts, k, LETTERS, out)].tobytes()


@njit(nogil=True, cache=True)
def _write_lines(
    kmers: NDArray[np.uint64],
    counts: NDArray[Any],
    k: int,
    letters: NDArray[np.uint8],
    out: NDArray[np.uint8],
) -> int:
    at = 0
    for i in range(len(kmers)):
        for base in range(k):
            shift = np.uint64(62 - 2 * (base & 31))
            out[at] = letters[(kmers[i, base >> 5] >> shift) & np.uint64(3)]
            at += 1
        out[at] = 9
        at = put_number(out, at + 1, counts[i])
        out[at] = 10
        at += 1
    return at


def counts_of_text(database: KmerDatabase, text: str) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Canonical k-mers of a sequence, uint64[n, words], and their counts."""
    kmers = kmers_of_text(database, text)
    return kmers, Lookup(database).counts(kmers)


def kmers_of_text(database: KmerDatabase, text: str) -> NDArray[np.uint64]:
    """Canonical k-mers of a sequence, as long as those of a database, uint64[n, words]."""
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    begin, stop = (np.array([at], dtype=np.int64) for at in (0, len(data)))
    return _kmers_of(database, [Stretches(data, begin, stop, begin, begin[:0], len(data))])


def _kmers_of(database: KmerDatabase, parts: Iterable[Stretches]) -> NDArray[np.uint64]:
    k, words = database.parameters.kmer, database.parameters.words
    found = [np.empty((0, words), dtype=np.uint64)]
    for part in parts:
        room = np.empty((part.room, words), dtype=np.uint64)
        size = find_kmers(part.data, part.begin, part.stop, part.low, part.quality, 0, k, room)
        found.append(room[:size])
    return np.concatenate(found)


def counts_of_files(
    database: KmerDatabase, path: str | Path, threads: int = 1
) -> Iterator[tuple[str, NDArray[np.uint64], NDArray[Any]]]:
    """Name, canonical k-mers and their counts of each sequence of a file.

    Args:
        database: that is looked up.
        path: FASTA or FASTQ file.
        threads: that read.

    Raises:
        InputError: the file cannot be read.
    """
    lookup = Lookup(database)
    for batch in read_batches(path, threads=threads):
        for i, name in enumerate(batch.names()):
            parts = stretches_of(batch.slice(i, i + 1), database.parameters.kmer, _STRETCH)
            kmers = _kmers_of(database, parts)
            yield name.decode("ascii", "backslashreplace"), kmers, lookup.counts(kmers)
