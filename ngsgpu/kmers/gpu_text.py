"""The letters of all sequences on the GPU, packed: 3 bits each, from which k-mers are found later.

K-mers take 64 bits and more each, and sorting them as much again. So where those of all letters do
not fit, they are found in ranges of k-mers, one after the other, each time from the whole text,
which stays on the GPU, or goes to the host, or to files beside the output, where there is room.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import persistent
from ngsgpu.device.cuda.kernels import THREADS, grid_of_warps
from ngsgpu.device.pinned import to_device
from ngsgpu.errors import output_error
from ngsgpu.io.gpu.parse import ParsedChunk, device_classes
from ngsgpu.kmers.gpu import KERNELS, LETTERS, PADDING, WORD_BYTES
from ngsgpu.kmers.params import words_of
from ngsgpu.kmers.runs import check_room

_LOG = logging.getLogger("ngsgpu")

_PIECES: Final = 8
"""Of a block that is looked at in part."""


@dataclass(slots=True)
class _Block:
    """A part of the text.

    Attributes:
        codes: uint64[words + PADDING], on the GPU or the host; None if it is on the disk.
        marks: uint32, likewise.
        words: that are in use.
        path: file with both.
    """

    codes: Any
    marks: Any
    words: int = 0
    path: Path | None = None


@dataclass
class PackedText:
    """Packed letters; made in the arena in use.

    Args:
        k: length of the k-mers that will be found.
        least: lowest quality character of a base that counts; 0 counts all.
        block_words: words of a block; a chunk's letters must fit.
        gpu_room: bytes of the GPU's memory for the text, of which one block is for others to pass
            through.
        host_room: of the host's; what is more goes to files.
        folder: for these files.

    Attributes:
        letters: upper limit of the k-mers and the number of bases, uint64[2] on the GPU.
        on_disk: bytes of the files.
    """

    k: int
    least: int
    block_words: int
    gpu_room: int
    host_room: int
    folder: Path
    on_disk: int = 0
    _blocks: list[_Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        import cupy

        self._classes = device_classes()
        self.letters = cupy.zeros(2, dtype=cupy.uint64)
        self._more = 0
        self.gpu_room -= WORD_BYTES * (self.block_words + PADDING)
        self._begin_block()

    @property
    def most_kmers(self) -> int:
        """K-mers of all letters, or more."""
        return int(self.letters[0]) + self._more

    @property
    def words(self) -> int:
        """Words of all blocks."""
        return sum(block.words for block in self._blocks)

    def add(self, chunk: ParsedChunk, record: int, records: int) -> None:
        """Append the letters of some records of a chunk on the GPU.

        Args:
            chunk: the chunk.
            record: number of the first record.
            records: number of records.

        Raises:
            ValueError: they do not fit into a block.
        """
        import cupy

        slot = chunk.slot
        places = cupy.cumsum(slot.lengths[record : record + records], dtype=cupy.int64)
        block, begin = self._room_for((int(places[-1]) + records) // LETTERS + 2)
        KERNELS.launch(
            "pack_letters",
            grid_of_warps(records),
            (THREADS,),
            (
                slot.raw, slot.seq_start, slot.qual_start, slot.lengths,
                np.uint32(record), np.uint32(records), self._classes, np.int32(self.least),
                np.int32(self.k), places, np.int64(LETTERS * begin), block.codes, block.marks,
                self.letters,
            ),
        )  # fmt: skip

    def append(self, codes: NDArray[np.uint64], marks: NDArray[np.uint32]) -> None:
        """Append words of the host, of which the last ends with a mark.

        Raises:
            ValueError: they do not fit into a block.
        """
        block, begin = self._room_for(len(codes))
        end = begin + len(codes)
        block.codes[begin:end] = to_device(codes)
        block.marks[begin:end] = to_device(marks)
        self._more += LETTERS * len(codes)

    @property
    def most_letters(self) -> int:
        """Of the host, that ``append`` takes at a time, each one perhaps with a separator."""
        return (self.block_words - PADDING) * LETTERS // 2

    def find(self, bounds: tuple[int, int], kmers: Any, one_in: int = 1) -> int:
        """Find the k-mers whose first word is within bounds, in any order.

        Args:
            bounds: lowest and highest first word.
            kmers: uint64[words, rows], gets as many as there is room for.
            one_in: look at one part in this number of the text.

        Returns:
            How many there are.
        """
        import cupy

        found = cupy.zeros(1, dtype=cupy.uint64)
        pieces = 1 if one_in == 1 else _PIECES
        for block in self._on_gpu():
            size = -(-block.words // (one_in * pieces))
            for piece in range(pieces):
                first = piece * block.words // pieces
                self._find(block, (first, min(size, block.words - first)), bounds, kmers, found)
            del block  # gone before the next one comes
        return int(found[0])

    def find_by_part(self, bounds: tuple[int, int], kmers: Any) -> Iterator[int]:
        """As ``find``, in parts of the text whose k-mers there is room for.

        Args:
            bounds: see ``find``.
            kmers: likewise, gets those of a part.

        Yields:
            How many a part has.
        """
        import cupy

        size = max(1, kmers.shape[1] // LETTERS)
        for block in self._on_gpu():
            for first in range(0, block.words, size):
                found = cupy.zeros(1, dtype=cupy.uint64)
                self._find(block, (first, min(size, block.words - first)), bounds, kmers, found)
                yield int(found[0])
            del block

    def _find(
        self, block: _Block, part: tuple[int, int], bounds: tuple[int, int], kmers: Any, found: Any
    ) -> None:
        """Find k-mers in a part of a block: its first word, and how many there are."""
        first, words = part
        if words <= 0:
            return
        low, high = map(np.uint64, bounds)
        KERNELS.launch(
            f"find_kmers_{words_of(self.k)}",
            grid_of_warps(words),
            (THREADS,),
            (
                block.codes, block.marks, np.uint64(first), np.uint64(words), np.int32(self.k),
                low, high, kmers, np.int64(kmers.shape[1]), found,
            ),
        )  # fmt: skip

    def close(self) -> None:
        """Remove the files."""
        for block in self._blocks:
            if block.path is not None:
                block.path.unlink(missing_ok=True)
        self._blocks = []

    def _room_for(self, words: int) -> tuple[_Block, int]:
        """A block with room for words, and the first of them, which are in use from now on."""
        if words > self.block_words:
            # Kernels would write, and read, behind the block, and count k-mers that are not there.
            raise ValueError(f"{words} words of letters for blocks of {self.block_words}")
        block = self._blocks[-1]
        if block.words + words > self.block_words:
            block = self._begin_block()
        begin, block.words = block.words, block.words + words
        return block, begin

    def _begin_block(self) -> _Block:
        """Begin another block on the GPU; what has no room there goes to the host."""
        import cupy

        size = self.block_words + PADDING
        if self.gpu_room >= WORD_BYTES * size or not self._blocks:
            self.gpu_room -= WORD_BYTES * size
            with persistent():
                codes = cupy.zeros(size, dtype=cupy.uint64)
                marks = cupy.empty(size, dtype=cupy.uint32)
        else:
            last = self._blocks[-1]
            codes, marks = last.codes, last.marks
            self._move(last)
            codes.fill(0)
        _mark_all(marks)
        self._blocks.append(_Block(codes, marks))
        return self._blocks[-1]

    def _move(self, block: _Block) -> None:
        """Move a block to the host, or to a file."""
        size = block.words + PADDING
        codes, marks = block.codes[:size].get(), block.marks[:size].get()
        block.codes, block.marks = codes, marks
        self.host_room -= WORD_BYTES * size
        if self.host_room >= 0:
            return
        check_room(self.folder, WORD_BYTES * size)
        if self.on_disk == 0:
            _LOG.info("the letters do not fit into the memory; they go to files beside the output")
        block.path = self.folder / f"text-{len(self._blocks):05d}"
        block.codes = block.marks = None
        try:
            with block.path.open("wb") as file:
                codes.tofile(file)
                marks.tofile(file)
        except OSError as error:
            raise output_error(self.folder.parent, error) from error
        self.on_disk += WORD_BYTES * size

    def _on_gpu(self) -> Iterator[_Block]:
        """All blocks, on the GPU; those of the host for the moment only."""
        for block in self._blocks:
            if hasattr(block.codes, "get"):
                yield block
                continue
            codes, marks = block.codes, block.marks
            if block.path is not None:
                size = block.words + PADDING
                codes = np.fromfile(block.path, dtype=np.uint64, count=size)
                marks = np.fromfile(block.path, dtype=np.uint32, offset=8 * size)
            yield _Block(to_device(codes), to_device(marks), block.words)


def _mark_all(marks: Any) -> None:
    """Set all bits; CuPy's ``fill`` would compile a kernel for it."""
    marks.data.memset_async(0xFF, marks.nbytes)
