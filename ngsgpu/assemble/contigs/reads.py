"""Reads in memory, two bits a base; mates are neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import working
from ngsgpu.run.options import RunOptions, chunk_bytes_within
from ngsgpu.sequence.codec import AMBIGUOUS, CODES


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads, of each its longest stretch without an ambiguous base.

    Attributes:
        bases: uint8[m], four bases a byte, the first one in the lowest bits.
        starts: int64[n], byte at which each read begins.
        lengths: int32[n], its bases.
        pairs: number of pairs: reads 2i and 2i + 1 below ``2 * pairs`` are mates.
        libraries: pairs up to the end of each file, or couple of files, of pairs.
    """

    bases: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    pairs: int
    libraries: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.lengths)

    def windows(self, k: int) -> int:
        """Number of k-mers of all reads."""
        return int(np.maximum(0, self.lengths.astype(np.int64) - (k - 1)).sum())


class _Packed(NamedTuple):
    bases: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]


def load_reads(
    lanes: Sequence[ReadFiles],
    *,
    phred_offset: PhredOffset = "auto",
    options: RunOptions,
    sample: ReadSample,
    advance: Callable[[int], None] = lambda reads: None,
) -> Reads:
    """Read files into memory, pairs first.

    Args:
        lanes: the files.
        phred_offset: of the qualities.
        options: threads and memory; do not affect the result.
        sample: gets the sample of the reads.
        advance: is called with numbers of reads that have been read.

    Raises:
        InputError: a file cannot be read, or the names of mates disagree.
    """
    chunk_bytes = chunk_bytes_within(options.budget, options.chunk_bytes)
    pairs = 0
    libraries = []

    def batches() -> Iterator[tuple[RecordBatch, ...]]:
        nonlocal pairs
        for lane in sorted(lanes, key=lambda lane: not lane.paired):
            for batch in lane.batches(
                threads=options.threads, phred_offset=phred_offset, chunk_bytes=chunk_bytes
            ):
                sample.take(batch, interleaved=lane.interleaved)
                reads = sum(map(len, batch))
                pairs += reads // 2 if lane.paired else 0
                advance(reads)
                yield batch
            if lane.paired:
                libraries.append(pairs)

    def pack(mates: tuple[RecordBatch, ...]) -> _Packed:
        sizes = np.stack([own.seq_len for own in mates], axis=1).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum((sizes.reshape(-1) + 3) // 4)])
        bases = np.zeros(int(starts[-1]), dtype=np.uint8)
        lengths = np.empty(sizes.size, dtype=np.int32)
        for mate, own in enumerate(mates):
            pack_reads(
                own.data, own.seq_start, own.seq_end, mate, len(mates), starts, bases, lengths
            )
        return _Packed(bases, starts[:-1], lengths)

    with working(options.threads, pack, batches(), name="reads") as packed:
        parts = list(packed)
    places = np.cumsum([0, *(len(part.bases) for part in parts)])
    return Reads(
        concatenate([part.bases for part in parts], np.uint8),
        concatenate([at + part.starts for at, part in zip(places, parts, strict=False)], np.int64),
        concatenate([part.lengths for part in parts], np.int32),
        pairs,
        tuple(libraries),
    )


def concatenate(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    """Arrays one after the other, of which there may be none."""
    return np.concatenate([np.empty(0, dtype=kind), *parts])


@njit(nogil=True, cache=True)
def pack_reads(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    stop: NDArray[np.int64],
    mate: int,
    step: int,
    starts: NDArray[np.int64],
    bases: NDArray[np.uint8],
    lengths: NDArray[np.int32],
) -> None:
    """Pack the longest unambiguous stretch of each read.

    Args:
        data: text.
        begin: int64[n], where reads begin.
        stop: int64[n], where they end; line ends between are skipped.
        mate: place of the first read in ``lengths``.
        step: between reads.
        starts: int64[n * step + 1], first byte of each read.
        bases: zeros; gets the bases.
        lengths: gets the stretches' lengths.
    """
    for i in range(len(begin)):
        best_at, best = begin[i], 0
        at, size = begin[i], 0
        for j in range(begin[i], stop[i]):
            if data[j] == 10 or data[j] == 13:
                continue
            if CODES[data[j]] == AMBIGUOUS:
                size = 0
                continue
            if size == 0:
                at = j
            size += 1
            if size > best:
                best_at, best = at, size
        out = 4 * starts[i * step + mate]
        j = best_at
        done = 0
        while done < best:
            code = CODES[data[j]]
            j += 1
            if code < AMBIGUOUS:
                bases[(out + done) >> 2] |= code << (2 * (done & 3))
                done += 1
        lengths[i * step + mate] = best


@njit(nogil=True, cache=True)
def unpack(
    bases: NDArray[np.uint8], start: Integer, length: Integer, out: NDArray[np.uint8]
) -> None:
    """Write the codes of a read."""
    for i in range(length):
        out[i] = (bases[start + (i >> 2)] >> np.uint8(2 * (i & 3))) & np.uint8(3)
