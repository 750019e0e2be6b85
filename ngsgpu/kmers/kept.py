"""K-mers that are counted on a GPU and stay in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.kmers.gpu import Counted
from ngsgpu.kmers.params import MAX_COUNT


def beside_arenas() -> AbstractContextManager[Any]:
    """Arrays made inside outlast the arena that is in use."""
    import cupy

    own: AbstractContextManager[Any] = cupy.cuda.using_allocator(
        cupy.get_default_memory_pool().malloc
    )
    return own


class KeptKmers:
    """Takes the k-mers of a database as ``DatabaseWriter`` does, but keeps them in memory.

    That is the GPU's where it has room beside what counting takes, otherwise the host's.

    Args:
        words: of a k-mer.
        room: bytes of GPU memory that they may take.
        keeping: entered to make arrays on the GPU.

    Attributes:
        pieces: k-mers, uint64[n, words], and their counts, uint16[n], of CuPy or NumPy.
        histogram: int64[65536], distinct k-mers by count, also of those that were not kept.
        room: bytes of GPU memory that are left.
    """

    def __init__(
        self,
        words: int,
        room: int = 0,
        keeping: Callable[[], AbstractContextManager[object]] = beside_arenas,
    ) -> None:
        self.room = room
        self.pieces: list[tuple[Any, Any]] = []
        self.histogram: NDArray[np.int64] = np.zeros(MAX_COUNT + 1, dtype=np.int64)
        self._words = words
        self._keeping = keeping

    @property
    def size(self) -> int:
        """Number of k-mers kept."""
        return sum(len(counts) for _, counts in self.pieces)

    def take(self, counted: Counted, least: int, rows: int) -> None:
        """Take further k-mers, at most ``rows`` at a time, without those that occur fewer times.

        Args:
            counted: sorted k-mers with counts.
            least: lowest count that is kept.
            rows: number of k-mers handled at a time.
        """
        import cupy

        histogram = counted.histogram()
        self.histogram += histogram
        size = int(histogram[least:].sum())
        needed = size * kept_bytes(self._words)
        fits = needed <= self.room
        if fits:
            self.room -= needed
        library = cupy if fits else np
        with self._keeping():
            kmers = library.empty((size, self._words), dtype=np.uint64)
            counts = library.empty(size, dtype=np.uint16)
        at = 0
        for piece in counted.pieces(least, rows):
            end = at + len(piece[1])
            kmers[at:end], counts[at:end] = piece if fits else _on_host(piece)
            at = end
        self.pieces.append((kmers, counts))

    def move_to_host(self) -> None:
        """Make room on the GPU."""
        self.pieces = [_on_host(piece) for piece in self.pieces]

    def together(self) -> tuple[Any, Any]:
        """All k-mers and their counts, on the GPU if all of them are there and fit twice."""
        import cupy

        if len(self.pieces) == 1:
            return self.pieces[0]
        are_there = all(hasattr(counts, "get") for _, counts in self.pieces)
        if not are_there or self.size * kept_bytes(self._words) > self.room:
            self.move_to_host()
        empty = np.empty((0, self._words), dtype=np.uint64), np.empty(0, dtype=np.uint16)
        pieces = self.pieces or [empty]
        library = cupy.get_array_module(pieces[0][0])
        with self._keeping():
            kmers, counts = (library.concatenate(own) for own in zip(*pieces, strict=True))
        self.pieces = [(kmers, counts)]
        return kmers, counts


def kept_bytes(words: int) -> int:
    """Bytes of a k-mer that is kept, and its count."""
    return 8 * words + 2


def _on_host(taken: tuple[Any, Any]) -> tuple[Any, Any]:
    """K-mers and counts on the host."""
    kmers, counts = taken
    return (kmers.get(), counts.get()) if hasattr(kmers, "get") else taken
