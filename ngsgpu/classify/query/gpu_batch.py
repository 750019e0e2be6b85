"""Queries on a GPU: positions of their sequences, their names, their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.candidate_file import own_names
from ngsgpu.classify.query.queries import CandidateArrays, Queries, QueryBlock
from ngsgpu.classify.sketch.cpu import unpack_sequences
from ngsgpu.device.pinned import to_device
from ngsgpu.device.team import here

NULL: Final = np.uint64(0)
"""For kernels: no array."""

_LETTERS: Final = np.frombuffer(b"ACGTN", dtype=np.uint8)
_PAD: Final = 64
"""Bytes after sequences that kernels may read."""


class GpuMates(NamedTuple):
    """Positions of the sequences of reads, or of a mate of pairs, on the device; see ``batch.cuh``.

    Attributes:
        raw: uint8, text; ``_PAD`` bytes longer than used.
        start: uint32[records].
        length: int32[records].
        first: record of the first query.
    """

    raw: Any
    start: Any
    length: Any
    first: int


class GpuReads(NamedTuple):
    """The sequences of queries on the device.

    Attributes:
        mates: the reads, or first and second mates.
        queries: how many.
        step: from a query's record to the next one's.
    """

    mates: tuple[GpuMates, ...]
    queries: int
    step: int

    def arguments(self) -> tuple[Any, ...]:
        """The kernel arguments, without the number of queries."""
        values: list[Any] = []
        for mate in self.mates:
            values += [mate.raw, mate.start, mate.length, np.uint32(mate.first)]
        if len(self.mates) == 1:
            values += [NULL, NULL, NULL, np.uint32(0)]
        return (*values, np.uint32(self.step))

    def part(self, begin: int, end: int) -> GpuReads:
        """Queries ``begin`` up to ``end``."""
        mates = (mate._replace(first=mate.first + begin * self.step) for mate in self.mates)
        return GpuReads(tuple(mates), end - begin, self.step)

    def copied(self, ready: Any) -> GpuReads:
        """A copy on the current GPU.

        Args:
            ready: CUDA event of the other GPU, after which the sequences are there.
        """
        import cupy

        cupy.cuda.get_current_stream().wait_event(ready)
        copies: dict[int, Any] = {}

        def copy(array: Any) -> Any:
            if array.data.ptr not in copies:
                copies[array.data.ptr] = here(array)
            return copies[array.data.ptr]

        mates = []
        for mate in self.mates:
            cut = slice(mate.first, mate.first + self.queries * self.step)
            mates.append(GpuMates(copy(mate.raw), copy(mate.start[cut]), copy(mate.length[cut]), 0))
        return GpuReads(tuple(mates), self.queries, self.step)


class GpuNames(NamedTuple):
    """Names of queries on the device.

    Attributes:
        text: uint8; names need not be in the order of the queries.
        start: uint32[queries].
        length: uint32[queries].
        used: int, bytes of ``text``; or uint32[1] on the device.
    """

    text: Any
    start: Any
    length: Any
    used: Any


@dataclass(slots=True)
class GpuBatch:
    """Queries on the device without their sequences, but with their candidates.

    Attributes:
        queries: how many.
        paired: whether queries are pairs.
        names: their names.
        sizes: int32[3, queries]: features, bases of the first and of the second mate (or 0).
        candidates: int32[queries, m, 4]: target, hits, first and last window; see
            ``CandidateArrays``.
    """

    queries: int
    paired: bool
    names: GpuNames
    sizes: Any
    candidates: Any

    def __len__(self) -> int:
        return self.queries

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, once they are compact."""
        return int(self.names.used + 8 * self.queries + self.sizes.nbytes + self.candidates.nbytes)

    def compact(self) -> GpuBatch:
        """The same with no more memory for names than they need."""
        text = self.names.text[: self.names.used].copy()
        return GpuBatch(
            self.queries, self.paired, self.names._replace(text=text), self.sizes, self.candidates
        )

    def to_host(self, taxon_of_target: NDArray[np.int32]) -> QueryBlock:
        """Copy the batch to the host.

        Args:
            taxon_of_target: see ``Engine``.
        """
        best = self.candidates.get()
        target, hits, begin, end = (np.ascontiguousarray(best[:, :, i]) for i in range(4))
        taxon = np.full_like(target, -1)
        if len(taxon_of_target) > 0:
            taxon = np.where(target >= 0, taxon_of_target[target], taxon)
        start = self.names.start.get().astype(np.int64)
        sizes = self.sizes.get()
        return QueryBlock(
            names=self.names.text[: self.names.used].get(),
            name_start=start,
            name_end=start + self.names.length.get(),
            length1=sizes[1],
            length2=sizes[2],
            features=sizes[0].astype(np.int64),
            candidates=CandidateArrays(target, hits, begin, end, taxon),
            paired=self.paired,
        )


class HostReads(NamedTuple):
    """Queries read by the CPU, ready to be copied to the device.

    Attributes:
        letters: uint8, of each mate: sequences without line ends, and ``_PAD`` bytes more.
        starts: uint32[queries], of each mate.
        lengths: int32[queries], of each mate.
        names: uint8, concatenated.
        name_starts: uint32[queries].
        name_lengths: uint32[queries].
    """

    letters: list[NDArray[np.uint8]]
    starts: list[NDArray[np.uint32]]
    lengths: list[NDArray[np.int32]]
    names: NDArray[np.uint8]
    name_starts: NDArray[np.uint32]
    name_lengths: NDArray[np.uint32]

    @classmethod
    def of(cls, queries: Queries) -> HostReads:
        """Extract queries from the bytes of their files; thread-safe."""
        all_mates = [queries.first, queries.second] if queries.paired else [queries.first]
        letters, starts = [], []
        for mates in all_mates:
            start = np.zeros(len(mates.length) + 1, dtype=np.int64)
            np.cumsum(mates.length, out=start[1:])
            codes = np.zeros(int(start[-1]) + _PAD, dtype=np.uint8)
            unpack_sequences(mates.data, mates.start, mates.end, codes)
            letters.append(np.take(_LETTERS, codes))
            starts.append(start[:-1].astype(np.uint32))
        data, begin, end = queries.first.data, queries.name_start, queries.name_end
        names, name_lengths = own_names(data, begin, end)
        return cls(
            letters,
            starts,
            [mates.length for mates in all_mates],
            names,
            (np.cumsum(name_lengths, dtype=np.int64) - name_lengths).astype(np.uint32),
            name_lengths,
        )

    def to_device(self) -> tuple[GpuReads, GpuNames]:
        """Copy to the current GPU."""
        mates = tuple(
            GpuMates(to_device(letters), to_device(start), to_device(length), 0)
            for letters, start, length in zip(self.letters, self.starts, self.lengths, strict=True)
        )
        return GpuReads(mates, len(self.name_starts), 1), GpuNames(
            to_device(self.names),
            to_device(self.name_starts),
            to_device(self.name_lengths),
            len(self.names),
        )


def batch_of_block(block: QueryBlock) -> GpuBatch:
    """Copy a block to the device."""
    best = block.candidates
    fields = (best.target, best.hits, best.window_begin, best.window_end)
    names, lengths = own_names(block.names, block.name_start, block.name_end)
    start = np.cumsum(lengths, dtype=np.int64) - lengths
    return GpuBatch(
        queries=len(block),
        paired=block.paired,
        names=GpuNames(
            to_device(names), to_device(start.astype(np.uint32)), to_device(lengths), len(names)
        ),
        sizes=to_device(np.stack([block.features, block.length1, block.length2]).astype(np.int32)),
        candidates=to_device(np.stack(fields, axis=-1)),
    )
