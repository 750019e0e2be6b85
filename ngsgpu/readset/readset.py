"""The read set: what every stage after the reader works on.

Reads are numbered from 0 in input order; the mates of pair p are reads 2p and 2p + 1. Bases lie
in two bit planes (``ngsgpu.sequence.codec``). A letter outside ACGT is replaced by a base that
depends on the read's number and the position alone, gets quality 0, and is remembered in a list,
so that the output can tell a decided base from one that was never known.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.text.batch import MAX_READ_LENGTH, RecordBatch
from ngsgpu.readset import cpu
from ngsgpu.readset.cpu import ReadArrays

_Scalar = TypeVar("_Scalar", bound=np.generic)

MAX_READS = 2**31 - 1
"""Read numbers are kept in 31 bits; one more bit marks the first read of a bucket."""


class AmbiguousBases(NamedTuple):
    """Bases that were not A, C, G or T, in order of read and position.

    Attributes:
        reads: uint32[m], the reads that have any, ascending.
        start: int64[m + 1], where each read's positions begin.
        positions: int32, positions within the read.
    """

    reads: NDArray[np.uint32]
    start: NDArray[np.int64]
    positions: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ReadSet:
    """All reads of a run.

    Attributes:
        arrays: packed bases, qualities and lengths.
        ambiguous: where the input had other letters than ACGT.
        reads: number of reads.
        bases: number of bases.
        paired: whether reads 2p and 2p + 1 are mates.
        min_length: shortest read, in bases; 0 without reads.
        max_length: longest read, in bases; 0 without reads.
    """

    arrays: ReadArrays
    ambiguous: AmbiguousBases
    reads: int
    bases: int
    paired: bool
    min_length: int
    max_length: int

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the arrays take."""
        held = [*self.arrays, *self.ambiguous]
        return sum(array.nbytes for array in held if isinstance(array, np.ndarray))

    @classmethod
    def from_sequences(
        cls,
        sequences: Sequence[bytes | str],
        qualities: Sequence[bytes | str] | None = None,
        *,
        paired: bool = False,
        quality_bits: int = 8,
        phred_offset: int = 33,
    ) -> ReadSet:
        """A read set from sequences in memory (mates alternate where ``paired``).

        Args:
            sequences: letters of each read.
            qualities: Phred characters of each read, as long as its sequence; None for none.
            paired: whether sequences 2p and 2p + 1 are mates.
            quality_bits: 8, 2, 1 or 0 bits of quality kept.
            phred_offset: what a quality character's code exceeds its score by.

        Raises:
            InputError: a quality string is not as long as its sequence, or a read is too long.
        """
        letters = [item.encode() if isinstance(item, str) else item for item in sequences]
        scores = [item.encode() if isinstance(item, str) else item for item in (qualities or [])]
        if qualities is not None and [len(s) for s in letters] != [len(q) for q in scores]:
            raise InputError(
                "sequences",
                "there is not one quality character for every base",
                "pass a quality string of the same length for each sequence",
            )
        parts = letters + scores
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        count = len(letters)
        batch = RecordBatch(
            data=np.frombuffer(b"".join(parts), dtype=np.uint8),
            begin=0,
            end=int(sizes.sum()),
            header_start=starts[:count],
            header_end=starts[:count],
            seq_start=starts[:count],
            seq_end=starts[:count] + sizes[:count],
            seq_len=sizes[:count].astype(np.int32),
            qual_start=starts[count:] if qualities is not None else None,
            first_record=0,
            path="sequences",
        )
        builder = ReadSetBuilder(
            paired=paired, quality_bits=quality_bits, phred_offset=phred_offset
        )
        builder.add(batch)
        return builder.finish()


class ReadSetBuilder:
    """Packs batches of records, in input order, into a read set.

    Args:
        paired: whether records are mates, alternating or in two batches at a time.
        quality_bits: 8, 2, 1 or 0 bits of quality kept; FASTA has none whatever is asked.
        phred_offset: what a quality character's code exceeds its score by.
        threads: how many threads pack.

    Attributes:
        reads: number of reads so far.
        bases: number of their bases.
        longest: longest read, in bases.
        nbytes: bytes that they take.
    """

    def __init__(
        self, *, paired: bool, quality_bits: int = 8, phred_offset: int = 33, threads: int = 1
    ) -> None:
        self.paired = paired
        self.quality_bits = quality_bits
        self.phred_offset = phred_offset
        self.threads = threads
        self.reads = 0
        self.bases = 0
        self.longest = 0
        self.nbytes = 0
        self._with_qualities = quality_bits > 0
        self._fasta: bool | None = None
        self._lengths: list[NDArray[np.int32]] = []
        self._planes: list[NDArray[np.uint64]] = []
        self._qualities: list[NDArray[np.uint8]] = []
        self._ambiguous: list[tuple[NDArray[np.uint32], NDArray[np.int32]]] = []

    def add(self, *mates: RecordBatch) -> None:
        """Pack one batch, or the batches of first and second mates.

        Raises:
            InputError: a read is longer than ``MAX_READ_LENGTH``, there are more reads than
                ``MAX_READS``, or FASTA and FASTQ are mixed.
        """
        step = len(mates)
        count = len(mates[0]) * step
        if count == 0:
            return
        if self.reads + count > MAX_READS:
            raise InputError(
                mates[0].path,
                f"there are more than {MAX_READS:,} reads",
                "correct the lanes or chromosomes in groups",
            )
        self._check_format(mates)
        lengths = np.empty(count, dtype=np.int32)
        for mate, batch in enumerate(mates):
            _check_lengths(batch)
            lengths[mate::step] = batch.seq_len
        long_lengths = lengths.astype(np.int64)
        plane_sizes = 2 * ((long_lengths + 63) >> 6)
        quality_sizes = (long_lengths * self.quality_bits + 7) >> 3
        plane_starts = np.cumsum(plane_sizes) - plane_sizes
        quality_starts = np.cumsum(quality_sizes) - quality_sizes
        planes = np.zeros(int(plane_sizes.sum()), dtype=np.uint64)
        qualities = np.zeros(int(quality_sizes.sum()), dtype=np.uint8)

        def pack(task: tuple[int, int, int]) -> int:
            mate, first, last = task
            batch = mates[mate]
            return cpu.pack_records(
                batch.data,
                batch.seq_start,
                # Not looked at without qualities, but it has to be an array.
                batch.seq_start if batch.qual_start is None else batch.qual_start,
                self.phred_offset,
                cpu.QUALITY_BINS[self.quality_bits],
                self.quality_bits,
                first,
                last,
                self.reads + mate,
                step,
                lengths,
                plane_starts,
                quality_starts,
                mate,
                planes,
                qualities,
            )

        pieces = np.linspace(0, len(mates[0]), self.threads + 1).astype(int).tolist()
        tasks = [
            (mate, first, last)
            for mate in range(step)
            for first, last in itertools.pairwise(pieces)
        ]
        with ThreadPoolExecutor(self.threads) as pool:
            ambiguous = sum(pool.map(pack, tasks))
        if ambiguous:
            self._list_ambiguous(mates, ambiguous)
        self._lengths.append(lengths)
        self._planes.append(planes)
        self._qualities.append(qualities)
        self.reads += count
        self.bases += int(long_lengths.sum())
        self.longest = max(self.longest, int(lengths.max()))
        self.nbytes += lengths.nbytes + planes.nbytes + qualities.nbytes

    def _check_format(self, mates: Sequence[RecordBatch]) -> None:
        """Keep no qualities of FASTA; refuse it together with FASTQ whose qualities are kept."""
        for batch in mates:
            fasta = batch.qual_start is None
            if self._fasta is None:
                self._fasta = fasta
            if fasta != self._fasta and self._with_qualities:
                raise InputError(
                    batch.path,
                    "FASTA and FASTQ are mixed in one run",
                    "give files of one format, or --quality-bits 0",
                )
        if self._fasta:
            self.quality_bits = 0

    def _list_ambiguous(self, mates: Sequence[RecordBatch], ambiguous: int) -> None:
        reads = np.empty(ambiguous, dtype=np.uint32)
        positions = np.empty(ambiguous, dtype=np.int32)
        found = 0
        for mate, batch in enumerate(mates):
            found += cpu.list_ambiguous(
                batch.data,
                batch.seq_start,
                batch.seq_end,
                self.reads + mate,
                len(mates),
                reads[found:],
                positions[found:],
            )
        order = np.argsort(reads, kind="stable")
        self._ambiguous.append((reads[order], positions[order]))

    def finish(self) -> ReadSet:
        """The read set; the builder is empty afterwards."""
        empty_starts = np.zeros(0, dtype=np.int64)
        lengths = _joined(self._lengths, np.int32)
        low, high = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        plane_start = quality_start = empty_starts
        bases = int(lengths.sum(dtype=np.int64))
        uniform = low if low == high else -1
        if uniform < 0:
            plane_sizes = 2 * ((lengths.astype(np.int64) + 63) >> 6)
            plane_start = np.cumsum(plane_sizes) - plane_sizes
            quality_sizes = (lengths.astype(np.int64) * self.quality_bits + 7) >> 3
            quality_start = np.cumsum(quality_sizes) - quality_sizes
        else:
            lengths = np.zeros(0, dtype=np.int32)
        arrays = ReadArrays(
            planes=_joined(self._planes, np.uint64),
            plane_start=plane_start,
            qualities=_joined(self._qualities, np.uint8),
            quality_start=quality_start,
            lengths=lengths,
            uniform_length=uniform,
            quality_bits=self.quality_bits,
        )
        every = _joined([reads for reads, _ in self._ambiguous], np.uint32)
        distinct, first = np.unique(every, return_index=True)
        ambiguous = AmbiguousBases(
            reads=distinct,
            start=np.append(first, len(every)).astype(np.int64),
            positions=_joined([positions for _, positions in self._ambiguous], np.int32),
        )
        self._lengths, self._planes, self._qualities, self._ambiguous = [], [], [], []
        return ReadSet(arrays, ambiguous, self.reads, bases, self.paired, low, high)


def _joined(parts: list[NDArray[_Scalar]], dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Concatenate and release ``parts``."""
    joined = np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)
    parts.clear()
    return joined


def _check_lengths(batch: RecordBatch) -> None:
    too_long = np.flatnonzero(batch.seq_len > MAX_READ_LENGTH)
    if len(too_long):
        record = int(too_long[0])
        raise InputError(
            batch.path,
            f"the read has {int(batch.seq_len[record]):,} bases, more than {MAX_READ_LENGTH:,}",
            "this program is for short reads: split or leave out longer sequences",
            record=batch.first_record + record + 1,
        )
