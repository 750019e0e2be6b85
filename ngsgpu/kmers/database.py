"""Databases of counted k-mers: a folder with a manifest and two arrays, in the order of k-mers.

``kmers.npy`` is uint64[n, words] (see ``cpu`` for the form of a k-mer), ascending; ``counts.npy``
is uint16[n], or uint32[n] if that was asked for. They are mapped into memory, and the manifest has
their checksums.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.output.folder import FolderKind, new_folder
from ngsgpu.io.output.manifest import (
    FILES,
    MANIFEST,
    REMEDY,
    fields_of,
    is_count,
    is_text,
    opened_whole,
    read_manifest,
    save_manifest,
)
from ngsgpu.io.output.store import ArrayFile, check_content, check_sizes, open_array
from ngsgpu.jit import njit
from ngsgpu.kmers.params import MAX_COUNT, CountParameters, words_of
from ngsgpu.pool import map_all

FORMAT: Final = "ngsgpu k-mer database"
VERSION: Final = 2
_FIRST_VERSION: Final = 1
"""Has counts of 16 bits, and is still what databases with such counts are."""

KIND: Final = FolderKind("a k-mer database", FORMAT, frozenset(("kmers.npy", "counts.npy")))
_SHAPE: Final = {
    "parameters": {
        "kmer": is_count,
        "min_quality": is_count,
        "min_count": is_count,
        "count_bits?": is_count,
    },
    "source": {"sequences": is_count, "bases": is_count, "kmers": is_count, "files": [is_text]},
    "distinct": is_count,
    "files": FILES,
}
_PART: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Source:
    """Source of counted k-mers.

    Attributes:
        sequences: number of sequences.
        bases: their letters.
        kmers: their counted k-mers.
        files: names of their files, or how the database was made from others.
    """

    sequences: int
    bases: int
    kmers: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KmerDatabase:
    """Counted k-mers.

    Attributes:
        parameters: which k-mers were counted.
        source: of what.
        kmers: uint64[n, words], ascending.
        counts: uint16[n] or uint32[n], of ``parameters.count_type``; its highest value is that of
            higher counts, too.
    """

    parameters: CountParameters
    source: Source
    kmers: NDArray[np.uint64]
    counts: NDArray[Any]

    def __len__(self) -> int:
        return len(self.kmers)

    def starts(self, bits: int) -> NDArray[np.int64]:
        """Where the k-mers begin that have the same ``bits`` highest bits, int64[2^bits + 1]."""
        firsts = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        middle = np.searchsorted(self.kmers[:, 0], firsts)
        return np.concatenate(([0], middle, [len(self)])).astype(np.int64)

    def histogram(self, threads: int = 1) -> NDArray[np.int64]:
        """Distinct k-mers by count, int64[MAX_COUNT + 1]; the last is of higher counts, too."""

        def work(begin: int) -> NDArray[np.int64]:
            own = np.zeros(MAX_COUNT + 1, dtype=np.int64)
            _tally(self.counts[begin : begin + _PART], own)
            return own

        parts = map_all(threads, work, range(0, len(self), _PART), name="histogram")
        return np.sum(parts, axis=0) if parts else np.zeros(MAX_COUNT + 1, dtype=np.int64)

    def high_counts(self, threads: int = 1) -> NDArray[np.int64]:
        """The counts above ``MAX_COUNT``, which the histogram does not tell apart."""
        if self.parameters.count_bits == 16:
            return np.empty(0, dtype=np.int64)

        def work(begin: int) -> NDArray[np.int64]:
            own = self.counts[begin : begin + _PART]
            return own[own > MAX_COUNT].astype(np.int64)

        parts = map_all(threads, work, range(0, len(self), _PART), name="histogram")
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])


class Tally:
    """Takes the k-mers of a database as ``DatabaseWriter`` does, but keeps their histogram alone.

    Attributes:
        histogram: distinct k-mers by count, int64[MAX_COUNT + 1]; the last is of higher ones, too.
    """

    def __init__(self) -> None:
        self.histogram = np.zeros(MAX_COUNT + 1, dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of k-mers added."""
        return int(self.histogram.sum())

    def append(self, kmers: NDArray[np.uint64], counts: NDArray[Any]) -> None:
        """Take the next k-mers."""
        _tally(counts, self.histogram)


@njit(nogil=True, cache=True)
def _tally(counts: NDArray[Any], histogram: NDArray[np.int64]) -> None:
    last = len(histogram) - 1
    for i in range(len(counts)):
        histogram[counts[i] if counts[i] < last else last] += 1


def open_database(path: str | Path, threads: int = 1, *, check: bool = True) -> KmerDatabase:
    """Map a database into memory and check it.

    Args:
        path: its folder.
        threads: that compute checksums.
        check: whether the content is compared with its checksums.

    Raises:
        InputError: it is missing, damaged, or none.
    """
    return opened_whole([path], lambda: _open(Path(path), threads, check=check))


def _open(folder: Path, threads: int, *, check: bool) -> KmerDatabase:
    values = read_manifest(
        folder / MANIFEST, FORMAT, VERSION, _SHAPE, "ngsgpu kmers count", oldest=_FIRST_VERSION
    )
    files = values["files"]
    with fields_of(folder / MANIFEST):
        parameters = CountParameters(**values["parameters"])
        if files.keys() != KIND.files:
            raise ValueError("its files are others")
    check_sizes(folder, files)
    arrays = {
        "kmers": open_array(folder, "kmers", np.uint64, words_of(parameters.kmer)),
        "counts": open_array(folder, "counts", np.dtype(parameters.count_type)),
    }
    if not len(arrays["kmers"]) == len(arrays["counts"]) == values["distinct"]:
        raise InputError(folder, "is damaged: its parts do not fit", REMEDY)
    if check:
        check_content(folder, files, arrays, threads)
    source = values["source"]
    names = tuple(source.pop("files"))
    return KmerDatabase(parameters, Source(**source, files=names), **arrays)


class DatabaseWriter:
    """Writes the k-mers of a database in order, piece by piece.

    Args:
        folder: where.
        parameters: lengths of k-mers and counts.
    """

    def __init__(self, folder: Path, parameters: CountParameters) -> None:
        self._folder = folder
        self._words = parameters.words
        self._count_bytes = parameters.count_bits // 8
        self._kmers = ArrayFile(folder, "kmers", np.uint64, (0, self._words))
        self._counts = ArrayFile(folder, "counts", np.dtype(parameters.count_type), (0,))
        self.size = 0

    def append(self, kmers: NDArray[np.uint64], counts: NDArray[Any]) -> None:
        """Write the next k-mers, all of which come after those before.

        Raises:
            OutputError: they cannot be written.
        """
        self.put(self.reserve(len(kmers)), kmers, counts)

    def reserve(self, size: int) -> int:
        """The place of the next k-mers, for ``put``."""
        self.size += size
        return self.size - size

    def put(self, at: int, kmers: NDArray[np.uint64], counts: NDArray[Any]) -> None:
        """Write k-mers at a reserved place; several threads may, at the same time.

        Args:
            at: row of the first k-mer.
            kmers: the k-mers, uint64[n, words].
            counts: their counts, of the parameters' type.

        Raises:
            OutputError: they cannot be written.
        """
        self._kmers.put(8 * self._words * at, kmers)
        self._counts.put(self._count_bytes * at, counts)

    def close(self, parameters: CountParameters, source: Source) -> None:
        """Write the manifest.

        Raises:
            OutputError: it cannot be written.
        """
        self._kmers.reshape((self.size, self._words))
        self._counts.reshape((self.size,))
        is_wide = parameters.count_bits > 16
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION if is_wide else _FIRST_VERSION,
            "parameters": {
                "kmer": parameters.kmer,
                "min_quality": parameters.min_quality,
                "min_count": parameters.min_count,
                **({"count_bits": parameters.count_bits} if is_wide else {}),
            },
            "source": {
                "sequences": source.sequences,
                "bases": source.bases,
                "kmers": source.kmers,
                "files": list(source.files),
            },
            "distinct": self.size,
            "files": {"kmers.npy": self._kmers.close(), "counts.npy": self._counts.close()},
        }
        save_manifest(self._folder / MANIFEST, manifest)


def new_database(path: str | Path) -> AbstractContextManager[Path]:
    """A folder that becomes a database; see ``new_folder``."""
    return new_folder(path, KIND)


def check_same(databases: Sequence[tuple[str, KmerDatabase]]) -> None:
    """Refuse databases of different k-mer lengths.

    Raises:
        InputError: names them.
    """
    (first, one), *others = databases
    for path, other in others:
        if other.parameters.kmer != one.parameters.kmer:
            raise InputError(
                path,
                f"has {other.parameters.kmer}-mers and {first} has {one.parameters.kmer}-mers",
                "count both with the same k-mer length",
            )
