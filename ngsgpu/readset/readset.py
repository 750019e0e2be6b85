"""The read set: the input of every stage after the reader.

Reads are numbered from 0 in input order; the mates of pair p are reads 2p and 2p + 1. Bases are
stored in two bit planes (``ngsgpu.sequence.codec``). A letter outside ACGT is replaced by a base
that depends only on the read's number and the position, gets quality 0, and is listed, so that the
output can distinguish a decided base from one that was never known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.pool import working
from ngsgpu.readset import cpu
from ngsgpu.readset.cpu import ReadArrays
from ngsgpu.readset.qualities import LEVEL_BITS, Levels, SeenScores, codes_of, widened

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
        ambiguous: positions of letters other than ACGT.
        reads: number of reads.
        bases: number of bases.
        paired: whether reads 2p and 2p + 1 are mates.
        min_length: shortest read, in bases; 0 without reads.
        max_length: longest read, in bases; 0 without reads.
        levels: Phred scores of the quality codes, if these are all that occur.
    """

    arrays: ReadArrays
    ambiguous: AmbiguousBases
    reads: int
    bases: int
    paired: bool
    min_length: int
    max_length: int
    levels: Levels = ()

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
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
        """A read set from sequences in memory (mates alternate if ``paired``).

        Args:
            sequences: letters of each read.
            qualities: Phred characters of each read, as long as its sequence; None for none.
            paired: whether sequences 2p and 2p + 1 are mates.
            quality_bits: 8, 2, 1 or 0 bits per quality.
            phred_offset: offset of the quality characters.

        Raises:
            InputError: a quality string is not as long as its sequence, or a read is too long.
            UsageError: a string is given for a list of strings.
        """
        for given in (sequences, qualities):
            if isinstance(given, str | bytes):
                raise UsageError("one string was given for a list of sequences; put it in a list")
        letters = [item.encode() if isinstance(item, str) else item for item in sequences]
        scores = [item.encode() if isinstance(item, str) else item for item in (qualities or [])]
        if qualities is not None and [len(s) for s in letters] != [len(q) for q in scores]:
            raise InputError(
                "sequences",
                "sequence and quality string differ in length",
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


class _Packed(NamedTuple):
    """A batch of reads; arrays as in ``ReadArrays`` and ``AmbiguousBases``.

    ``unknown`` is the number of qualities that are none of the levels.
    """

    mates: tuple[RecordBatch, ...]
    lengths: NDArray[np.int32]
    planes: NDArray[np.uint64]
    qualities: NDArray[np.uint8]
    levels: Levels
    unknown: int
    ambiguous: tuple[NDArray[np.uint32], NDArray[np.int32]] | None


class ReadSetBuilder:
    """Packs batches of records, in input order, into a read set.

    Args:
        paired: whether records are mates, alternating or in two batches at a time.
        quality_bits: 8, 2, 1 or 0 bits per quality; always 0 for FASTA.
        phred_offset: offset of the quality characters.
        threads: packing threads.
        by_level: keep 2 bits of 8 where there are so few levels that nothing is lost.

    Attributes:
        reads: number of reads so far.
        bases: number of their bases.
        longest: longest read, in bases.
        nbytes: their size in bytes.
    """

    def __init__(
        self,
        *,
        paired: bool,
        quality_bits: int = 8,
        phred_offset: int = 33,
        threads: int = 1,
        by_level: bool = False,
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
        self._by_level = by_level and quality_bits == 8
        self._levels: Levels = ()
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
        for task in self._tasks([mates]):
            self._take(self._pack(task))

    def add_all(
        self, batches: Iterable[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Pack many, with all threads; yields each when it was added.

        Raises:
            InputError: as ``add``.
        """
        tasks, ahead = self._tasks(batches), self.threads + 2
        with working(self.threads, self._pack, tasks, ahead=ahead, name="pack") as done:
            for packed in done:
                self._take(packed)
                yield packed.mates

    def _tasks(
        self, batches: Iterable[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[tuple[RecordBatch, ...], int]]:
        """Batches, and the number of the first read of each."""
        reads = self.reads
        for mates in batches:
            count = sum(map(len, mates))
            if count == 0:
                continue
            if reads + count > MAX_READS:
                raise InputError(
                    mates[0].path,
                    f"there are more than {MAX_READS:,} reads",
                    "correct the lanes or chromosomes in groups",
                )
            self._check_format(mates)
            if self._by_level:
                self._find_levels(mates)
            yield mates, reads
            reads += count

    def _find_levels(self, mates: Sequence[RecordBatch]) -> None:
        """Decide by the first batch whether qualities take a byte each."""
        self._by_level = False
        seen = SeenScores(self.phred_offset)
        for batch in mates:
            seen.add(batch)
        if seen.levels:
            self.quality_bits, self._levels = LEVEL_BITS, seen.levels

    def _take(self, packed: _Packed) -> None:
        if packed.unknown and self._levels:
            pieces = zip(self._qualities, self._lengths, strict=True)
            narrow = sum(map(len, self._qualities))
            self._qualities = [widened(*piece, self._levels) for piece in pieces]
            self.nbytes += sum(map(len, self._qualities)) - narrow
            self.quality_bits, self._levels = 8, ()
        if packed.unknown:
            # Of which the first read is the next one.
            packed = self._pack((packed.mates, self.reads))
        elif packed.levels != self._levels:
            packed = packed._replace(
                qualities=widened(packed.qualities, packed.lengths, packed.levels)
            )
        self._lengths.append(packed.lengths)
        self._planes.append(packed.planes)
        self._qualities.append(packed.qualities)
        if packed.ambiguous is not None:
            self._ambiguous.append(packed.ambiguous)
        self.reads += len(packed.lengths)
        self.bases += int(packed.lengths.sum(dtype=np.int64))
        self.longest = max(self.longest, int(packed.lengths.max()))
        self.nbytes += packed.lengths.nbytes + packed.planes.nbytes + packed.qualities.nbytes

    def _pack(self, task: tuple[tuple[RecordBatch, ...], int]) -> _Packed:
        """Pack mates whose first read has a number."""
        mates, first_read = task
        levels = self._levels
        # Another thread may find that a byte is needed.
        bits = LEVEL_BITS if levels else self.quality_bits
        unknown = np.zeros(1, dtype=np.int64)
        step = len(mates)
        lengths = np.empty(len(mates[0]) * step, dtype=np.int32)
        for mate, batch in enumerate(mates):
            _check_lengths(batch)
            lengths[mate::step] = batch.seq_len
        plane_starts = _starts(2 * ((lengths.astype(np.int64) + 63) >> 6))
        quality_starts = _starts((lengths.astype(np.int64) * bits + 7) >> 3)
        planes = np.zeros(plane_starts[-1], dtype=np.uint64)
        qualities = np.zeros(quality_starts[-1], dtype=np.uint8)
        ambiguous = 0
        for mate, batch in enumerate(mates):
            ambiguous += cpu.pack_records(
                batch.data,
                batch.seq_start,
                # Not looked at without qualities, but it has to be an array.
                batch.seq_start if batch.qual_start is None else batch.qual_start,
                self.phred_offset,
                codes_of(bits, levels),
                bits,
                first_read + mate,
                step,
                lengths,
                plane_starts,
                quality_starts,
                mate,
                planes,
                qualities,
                unknown,
            )
        found = _list_ambiguous(mates, first_read, ambiguous) if ambiguous else None
        return _Packed(mates, lengths, planes, qualities, levels, int(unknown[0]), found)

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
                    "give files of one format, or `quality_bits=0`",
                )
        if self._fasta:
            self.quality_bits = 0

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
        return ReadSet(arrays, ambiguous, self.reads, bases, self.paired, low, high, self._levels)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts of consecutive pieces of some sizes, and the end of the last."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _list_ambiguous(
    mates: Sequence[RecordBatch], first_read: int, count: int
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Reads and positions of ambiguous bases, in their order."""
    reads = np.empty(count, dtype=np.uint32)
    positions = np.empty(count, dtype=np.int32)
    found = 0
    for mate, batch in enumerate(mates):
        found += cpu.list_ambiguous(
            batch.data,
            batch.seq_start,
            batch.seq_end,
            first_read + mate,
            len(mates),
            reads[found:],
            positions[found:],
        )
    order = np.argsort(reads, kind="stable")
    return reads[order], positions[order]


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
            "ngsgpu is for short reads: split or remove longer sequences",
            record=batch.first_record + record + 1,
        )
