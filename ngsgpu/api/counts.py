"""Counts of k-mers, to be looked up by k-mer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ngsgpu.api.files import Closing
from ngsgpu.api.record import RecordLike
from ngsgpu.api.runs import Folder, How, Source, inputs_of, run_options
from ngsgpu.errors import UsageError
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.kmers import CountParameters, KmerDatabase, count_files, open_database
from ngsgpu.kmers import Source as Counted
from ngsgpu.kmers.compare import Lookup
from ngsgpu.kmers.database import DatabaseWriter, new_database
from ngsgpu.kmers.params import MAX_WIDE_COUNT
from ngsgpu.kmers.text import dump, kmers_of_text


class KmerCounts(Closing):
    """Counted canonical k-mers: ``counts["ACGT..."]``, on either strand.

    Args:
        database: the database.
        folder: holds its files, if they are temporary.

    Attributes:
        database: with ``kmers``, uint64[n, words], and ``counts``, uint16[n] or uint32[n], in
            their order.
    """

    def __init__(self, database: KmerDatabase, folder: Folder | None = None) -> None:
        self.database = database
        self._folder = folder

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The counts in a database that ``save`` or ``ngsgpu kmers count`` has written.

        Raises:
            InputError: it is missing or damaged.
        """
        return cls(open_database(path))

    @property
    def k(self) -> int:
        """Length of a k-mer."""
        return self.database.parameters.kmer

    @property
    def source(self) -> Counted:
        """What was counted: numbers of sequences, their bases and k-mers."""
        return self.database.source

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.database)

    def __len__(self) -> int:
        """Number of distinct k-mers."""
        return len(self.database)

    def __getitem__(self, kmer: str) -> int:
        """How often a k-mer or its reverse complement occurs; 0 if it does not.

        Raises:
            UsageError: its length is another one, or it has other letters than A, C, G and T.
        """
        fits = isinstance(kmer, str) and len(kmer) == self.k
        if not fits or (found := self.of_sequence(kmer)).size != 1:
            raise UsageError(f"{kmer!r} is no k-mer of {self.k} letters A, C, G and T")
        return int(found[0])

    def __contains__(self, kmer: str) -> bool:
        return self[kmer] > 0

    def __iter__(self) -> Iterator[str]:
        """The canonical k-mers, in alphabetical order."""
        for kmer, _ in self.items():
            yield kmer

    def items(self) -> Iterator[tuple[str, int]]:
        """The canonical k-mers and their counts, in alphabetical order."""
        for lines in dump(self.database, 1, MAX_WIDE_COUNT):
            for line in lines.decode().splitlines():
                kmer, count = line.split("\t")
                yield kmer, int(count)

    def of_sequence(self, sequence: str | RecordLike) -> NDArray[Any]:
        """Counts of the k-mers of a sequence, or of a record, without those with other letters."""
        text = sequence if isinstance(sequence, str) else sequence.sequence
        return self._lookup.counts(kmers_of_text(self.database, text))

    def histogram(self) -> NDArray[np.int64]:
        """Distinct k-mers by count, int64[65536]; the last one is of higher counts, too."""
        return self.database.histogram()

    def save(self, path: str | Path) -> None:
        """Write the database, for ``load`` and ``ngsgpu kmers``.

        Raises:
            OutputError: it cannot be written.
        """
        own = self.database
        with new_database(path) as folder:
            writer = DatabaseWriter(folder, own.parameters)
            writer.append(own.kmers, own.counts)
            writer.close(own.parameters, own.source)

    def close(self) -> None:
        """Remove the files, if they are temporary."""
        if self._folder is not None:
            self._folder.remove()


def count(
    reads: Source,
    mates: Source | None = None,
    k: int = 31,
    *,
    min_quality: int = 0,
    min_count: int = 1,
    count_bits: Literal[16, 32] = 16,
    phred_offset: PhredOffset = "auto",
    **how: Unpack[How],
) -> KmerCounts:
    """Count canonical k-mers exactly, as ``ngsgpu kmers count``.

    Args:
        reads: reads, or other sequences.
        mates: second mates.
        k: length of a k-mer, 11 to 127.
        min_quality: k-mers with a base of lower quality (Phred) are not counted.
        min_count: k-mers that are less frequent are left out.
        count_bits: counts end at 65,535, or with 32 bits at 4,294,967,295.
        phred_offset: 33, 64, or ``auto``.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Raises:
        NgsgpuError: see ``ngsgpu.kmers.count_files``.
    """
    options = run_options(how)
    parameters = CountParameters(k, min_quality, min_count, count_bits)
    with Folder() as folder:
        inputs = inputs_of(reads, mates, False, folder)
        database = folder.path / "kmers"
        count_files(
            [*inputs.first, *inputs.second],
            database,
            parameters,
            phred_offset=phred_offset,
            options=options,
        )
        return KmerCounts(open_database(database, check=False), folder)
