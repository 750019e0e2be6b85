"""Hashes of k-mers by their highest bits, in memory or, where it does not suffice, in a file.

Each part of the hashes is sorted for itself, and all parts after each other are sorted then. With
little memory the parts lie in a file without a name in the folder of temporary files.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from itertools import pairwise
from mmap import MADV_DONTNEED, mmap
from typing import BinaryIO, Final, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import output_error
from ngsgpu.io.paths import nameless_file, temporary_place
from ngsgpu.sequence.kmers import distinct

PARTS: Final = 64
_PART_SHIFT: Final = np.uint64(58)

PIECE: Final = 1 << 16
"""Hashes of a piece."""

STARTS: Final = np.arange(PARTS, dtype=np.uint64) << _PART_SHIFT
"""The lowest hash that each part may have."""

Hashes = NDArray[np.uint64]


def parts_of(hashes: Hashes) -> list[Hashes]:
    """Sorted hashes by their highest bits."""
    bounds = [*np.searchsorted(hashes, STARTS).tolist(), len(hashes)]
    return [hashes[begin:end] for begin, end in pairwise(bounds)]


class Spill:
    """A file without a name for arrays; threads may write and read at the same time."""

    def __init__(self) -> None:
        self._file: BinaryIO = nameless_file()
        self.size = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def take_place(self, size: int) -> int:
        """The offset of the next ``size`` bytes."""
        self.size += size
        return self.size - size

    def write(self, array: NDArray[np.generic], offset: int) -> None:
        """Write an array at a place.

        Raises:
            OutputError: the disk is full.
        """
        view = array.view(np.uint8).data
        try:
            while len(view) > 0:
                done = os.pwrite(self._file.fileno(), view, offset)
                view, offset = view[done:], offset + done
        except OSError as error:
            raise output_error(temporary_place(), error) from error

    def read(self, into: NDArray[np.generic], offset: int) -> None:
        """Fill an array with what was written at a place."""
        view = into.view(np.uint8).data
        while len(view) > 0:
            done = os.preadv(self._file.fileno(), [view], offset)
            view, offset = view[done:], offset + done


class Pages:
    """Memory whose content lies in a file without a name, and is in memory only while in use.

    Args:
        size: bytes, all of them 0 at first.

    Raises:
        OutputError: the disk is full.
    """

    def __init__(self, size: int) -> None:
        file = nameless_file()
        try:  # filling pages for which there is no room would end the process
            os.posix_fallocate(file.fileno(), 0, size)
            self._map = mmap(file.fileno(), size)
        except OSError as error:
            raise output_error(temporary_place(), error) from error
        finally:
            file.close()
        self.bytes = np.frombuffer(self._map, dtype=np.uint8)

    def release(self) -> None:
        """Give the memory back until its content is used again."""
        self._map.madvise(MADV_DONTNEED)


class Part:
    """Hashes with the same highest bits, in pieces of memory that go back to the system at once.

    Attributes:
        size: their number.
    """

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[Hashes] = []
        self._spill: Spill | None = None
        self._places: list[int] = []

    def add(self, hashes: Hashes) -> None:
        """Append hashes."""
        while len(hashes):
            used = self.size % PIECE
            if used == 0:
                self._pieces.append(np.frombuffer(mmap(-1, 8 * PIECE), dtype=np.uint64))
            taken = min(PIECE - used, len(hashes))
            self._pieces[-1][used : used + taken] = hashes[:taken]
            self.size, hashes = self.size + taken, hashes[taken:]
            if self._spill is not None and self.size % PIECE == 0:
                self._write()

    def move_to(self, spill: Spill) -> None:
        """Keep all whole pieces in a file from now on."""
        self._spill = spill
        last = self._pieces.pop() if self.size % PIECE else None
        while self._pieces:
            self._write(0)
        if last is not None:
            self._pieces.append(last)

    def _write(self, at: int = -1) -> None:
        assert self._spill is not None
        self._places.append(self._spill.take_place(8 * PIECE))
        self._spill.write(self._pieces.pop(at), self._places[-1])

    def take(self) -> Hashes:
        """Take the hashes out, sorted and distinct."""
        return distinct(self._content())

    def put(self, hashes: Hashes) -> None:
        """Keep hashes, no more than there were, in the file."""
        assert self._spill is not None
        self.size = len(hashes)
        for number, begin in enumerate(range(0, self.size, PIECE)):
            if number == len(self._places):
                self._places.append(self._spill.take_place(8 * PIECE))
            self._spill.write(hashes[begin : begin + PIECE], self._places[number])

    def take_sorted(self) -> Hashes:
        """Take out what was ``put``."""
        return self._content()

    def _content(self) -> Hashes:
        hashes = np.empty(self.size, dtype=np.uint64)
        for number, begin in enumerate(range(0, self.size, PIECE)):
            own = hashes[begin : begin + PIECE]
            if number < len(self._places):
                assert self._spill is not None
                self._spill.read(own, self._places[number])
            else:
                own[:] = self._pieces.pop(0)[: len(own)]
        self.size = 0
        return hashes


class Parts:
    """Hashes of k-mers of sequences; a context manager, at whose end the file goes.

    Attributes:
        parts: by their highest bits.
        spill: the file that has most of them; None: all are in memory.
        sequences: they are from.
        bases: letters of these.
        short: how many of them are shorter than a k-mer.
    """

    def __init__(self) -> None:
        self.parts = [Part() for _ in range(PARTS)]
        self.spill: Spill | None = None
        self.sequences = 0
        self.bases = 0
        self.short = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.spill is not None:
            self.spill.close()

    @property
    def size(self) -> int:
        """Number of hashes."""
        return sum(part.size for part in self.parts)

    @property
    def largest(self) -> int:
        """Hashes of the largest part."""
        return max(part.size for part in self.parts)

    def add(self, hashes: Hashes) -> None:
        """Add sorted hashes."""
        for part, own in zip(self.parts, parts_of(hashes), strict=True):
            part.add(own)

    def move_to(self, spill: Spill) -> None:
        """Keep the hashes in a file from now on."""
        self.spill = spill
        for part in self.parts:
            part.move_to(spill)


class SortedParts(ABC):
    """Hashes of k-mers, ascending from part to part, each there once.

    Attributes:
        size: their number.
    """

    size: int

    @abstractmethod
    def take(self, number: int) -> Hashes:
        """Take out the hashes of a part."""

    @abstractmethod
    def room(self, size: int) -> tuple[NDArray[np.uint8], Pages | None]:
        """Bytes for what is made of them, all 0, and their pages if they lie in a file."""


class InMemory(SortedParts):
    """Hashes in memory.

    Args:
        parts: the hashes; parts that are taken out are removed.
    """

    def __init__(self, parts: list[Hashes]) -> None:
        self._parts = parts
        self.size = sum(map(len, parts))

    def take(self, number: int) -> Hashes:
        """See ``SortedParts``."""
        own, self._parts[number] = self._parts[number], np.empty(0, dtype=np.uint64)
        return own

    def room(self, size: int) -> tuple[NDArray[np.uint8], None]:
        """See ``SortedParts``."""
        return np.zeros(size, dtype=np.uint8), None


class InFile(SortedParts):
    """Hashes in a file.

    Args:
        parts: each of which was sorted and ``put``.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.size = parts.size

    def take(self, number: int) -> Hashes:
        """See ``SortedParts``."""
        return self._parts.parts[number].take_sorted()

    def room(self, size: int) -> tuple[NDArray[np.uint8], Pages]:
        """See ``SortedParts``."""
        pages = Pages(size)
        return pages.bytes, pages
