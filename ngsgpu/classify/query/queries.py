"""Queries and their candidates as arrays, for kernels and candidate files.

A query is a read, or a pair of mates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit


class Mates(NamedTuple):
    """Positions of the sequences of reads, or of one mate of pairs, in a file's bytes.

    Attributes:
        data: uint8 [bytes].
        start: int64[n], first base; there may be line ends between bases.
        end: int64[n].
        length: int32[n], bases.
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    length: NDArray[np.int32]

    def part(self, cut: slice) -> Mates:
        """The mates of some queries."""
        return Mates(self.data, self.start[cut], self.end[cut], self.length[cut])


NO_MATES = Mates(
    np.zeros(0, dtype=np.uint8),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int32),
)


class CandidateArrays(NamedTuple):
    """The best candidates of queries; best first.

    Attributes:
        target: int32[n, m], -1 from the first place on that is free.
        hits: int32[n, m].
        window_begin: int32[n, m].
        window_end: int32[n, m].
        taxon: int32[n, m], ``PartitionArrays.taxon`` of the target; -1 where calls may be
            sequences.
    """

    target: NDArray[np.int32]
    hits: NDArray[np.int32]
    window_begin: NDArray[np.int32]
    window_end: NDArray[np.int32]
    taxon: NDArray[np.int32]

    @classmethod
    def empty(cls, queries: int, most: int) -> CandidateArrays:
        """Lists without a candidate."""
        return cls(*(np.full((queries, most), first, np.int32) for first in (-1, 0, 0, 0, -1)))

    def copy(self) -> CandidateArrays:
        """The same lists, to be changed."""
        return CandidateArrays(*(array.copy() for array in self))


@dataclass(frozen=True, slots=True)
class Queries:
    """Some reads, or pairs.

    Attributes:
        first: the reads, or first mates.
        second: second mates; ``NO_MATES`` for single reads.
        name_start: int64[n], in ``first.data``: first byte of the name.
        name_end: int64[n], its end.
    """

    first: Mates
    second: Mates
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.name_start)

    @property
    def paired(self) -> bool:
        """Whether these are pairs."""
        return self.second is not NO_MATES

    def part(self, begin: int, end: int) -> Queries:
        """Queries ``begin`` up to ``end``."""
        cut = slice(begin, end)
        second = self.second.part(cut) if self.paired else self.second
        return Queries(self.first.part(cut), second, self.name_start[cut], self.name_end[cut])


_OF_QUERIES: Final = ("name_start", "name_end", "length1", "length2", "features")


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """Queries without their sequences, but with their candidates.

    Attributes:
        names: uint8, contains the names.
        name_start: int64[n].
        name_end: int64[n].
        length1: int32[n], bases of the read or first mate.
        length2: int32[n], of the second mate; 0 for single reads.
        features: int64[n], features of the query.
        candidates: the best.
        paired: whether queries are pairs.
    """

    names: NDArray[np.uint8]
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]
    length1: NDArray[np.int32]
    length2: NDArray[np.int32]
    features: NDArray[np.int64]
    candidates: CandidateArrays
    paired: bool

    def __len__(self) -> int:
        return len(self.name_start)

    def part(self, begin: int, end: int) -> QueryBlock:
        """Queries ``begin`` up to ``end``."""
        cut = slice(begin, end)
        return replace(
            self,
            **{name: getattr(self, name)[cut] for name in _OF_QUERIES},
            candidates=CandidateArrays(*(array[cut] for array in self.candidates)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        own = [self.names, *(getattr(self, name) for name in _OF_QUERIES), *self.candidates]
        return sum(array.nbytes for array in own)

    @property
    def bases(self) -> int:
        """Of all queries."""
        return int(self.length1.sum(dtype=np.int64) + self.length2.sum(dtype=np.int64))


def concatenate(blocks: Sequence[QueryBlock]) -> QueryBlock:
    """One block of the queries of several, which are all pairs or all single reads."""
    if len(blocks) == 1:
        return blocks[0]
    sizes = [own.names.size for own in blocks]
    shifts = np.cumsum([0, *sizes[:-1]])
    fields = {
        name: np.concatenate([getattr(own, name) for own in blocks]) for name in _OF_QUERIES[2:]
    }
    for name in _OF_QUERIES[:2]:
        places = zip(blocks, shifts, strict=True)
        fields[name] = np.concatenate([getattr(own, name) + shift for own, shift in places])
    lists = zip(*(own.candidates for own in blocks), strict=True)
    return QueryBlock(
        names=np.concatenate([own.names for own in blocks]),
        candidates=CandidateArrays(*map(np.concatenate, lists)),
        paired=blocks[0].paired,
        **fields,
    )


@njit(nogil=True, cache=True)
def find_name_ends(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    strip: Integer,
    name_end: NDArray[np.int64],
) -> None:
    """Find the end of the first word of headers; with ``strip``, before a ``/1`` or ``/2``."""
    for i in range(start.size):
        at = start[i]
        while at < end[i] and data[at] != 32 and data[at] != 9:
            at += 1
        if strip and at - start[i] > 2 and data[at - 2] == 47 and 49 <= data[at - 1] <= 50:
            at -= 2
        name_end[i] = at
