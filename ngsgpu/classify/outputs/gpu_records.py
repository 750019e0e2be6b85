"""Records of queries on a GPU, to be copied to the files of classified and other reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.gpu_batch import NULL
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.pinned import empty_pinned, to_device, to_host
from ngsgpu.io.gpu.parse import THREADS, ParsedChunk
from ngsgpu.run.record_gpu import TILE_UNITS, grid_of_tiles

KERNELS: Final = KernelModule("ngsgpu.classify.outputs", "records.cu")

OUTPUTS: Final = 4
"""Classified reads or first mates, their second mates, and both of the others."""


_MOST_AT_ONCE: Final = 256 << 20
_ALIGNED: Final = 256


class Slabs:
    """Device memory for copies of many arrays, taken from CUDA in few pieces.

    Taking it for each array takes longer than to fill it, and other threads wait meanwhile.

    Args:
        room: bytes that are taken at most.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._taken = 0
        self._slab: Any = None
        self._left = 0

    def take(self, size: int) -> Any:
        """Uninitialised uint8[size]; None if there is no room for it."""
        import cupy

        whole = -(-size // _ALIGNED) * _ALIGNED
        if whole > self._left:
            if whole > self._room:
                return None
            # As much as so far: few pieces, and little more than is needed.
            self._left = max(whole, min(self._taken, self._room, _MOST_AT_ONCE))
            self._room -= self._left
            self._taken += self._left
            self._slab = cupy.empty(self._left, dtype=cupy.uint8)
        begin = self._slab.size - self._left
        self._left -= whole
        return self._slab[begin : begin + size]


@dataclass(slots=True)
class ChunkText:
    """The records of a chunk, kept beyond it on the device, or on the host.

    Attributes:
        text: uint8, from the first record on.
        line_end: uint32[4 * records], places of line feeds, ``begin`` bytes more than in ``text``.
        begin: place of the first record in the chunk.
    """

    text: Any
    line_end: Any
    begin: int

    @classmethod
    def of(cls, chunk: ParsedChunk, slabs: Slabs) -> ChunkText:
        """A copy of a chunk's records, on the host if the slabs have no room for it."""
        import cupy

        text = chunk.slot.raw[chunk.begin : chunk.end - chunk.offset]
        line_end = chunk.slot.line_end[: 4 * chunk.records]
        size = -(-text.nbytes // _ALIGNED) * _ALIGNED
        memory = slabs.take(size + line_end.nbytes)
        if memory is None:
            return cls(to_host(text), to_host(line_end), chunk.begin)
        own = cls(memory[: text.nbytes], memory[size:].view(line_end.dtype), chunk.begin)
        stream = cupy.cuda.get_current_stream()
        for copy, array in ((own.text, text), (own.line_end, line_end)):
            copy.data.copy_from_device_async(array.data, array.nbytes, stream)
        return own

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.text.nbytes + self.line_end.nbytes)

    @property
    def is_on_host(self) -> bool:
        """Whether the device has no room for it."""
        return isinstance(self.text, np.ndarray)

    def move_to_device(self) -> None:
        """Copy to the device what is on the host."""
        if self.is_on_host:
            self.text, self.line_end = to_device(self.text), to_device(self.line_end)


@dataclass(frozen=True, slots=True)
class SortedText:
    """Copies of the records of a batch of queries, by outputs.

    Attributes:
        outputs: of each that is wanted, its number in ``OUTPUTS`` and uint8 on the device.
        totals: uint32[OUTPUTS] on the host, in pinned memory: bytes of each.
        counted: CUDA event after which ``totals`` is there.
    """

    outputs: list[tuple[int, Any]]
    totals: NDArray[np.uint32]
    counted: Any

    def parts(self) -> Iterator[tuple[int, Any, int]]:
        """Number, text and bytes of it; waits until these are known."""
        self.counted.synchronize()
        for number, text in self.outputs:
            yield number, text, int(self.totals[number])


@dataclass(frozen=True, slots=True)
class QueryText:
    """The records of a batch of queries.

    Attributes:
        parts: of each mate: the chunk, and the number in it of the first record.
        step: from one query's record to the next one's.
        files: in which the mates are.
        queries: how many.
    """

    parts: tuple[tuple[ChunkText, int], ...]
    step: int
    files: int
    queries: int

    def sorted(self, calls: Any, wanted: Collection[int]) -> SortedText:
        """Copies of the records by what became of the queries; does not wait.

        Args:
            calls: int32[queries] on the device, below 0 for none.
            wanted: which of ``OUTPUTS``.
        """
        import cupy

        for text, _ in self.parts:
            text.move_to_device()
        arguments: list[Any] = []
        for text, record in (self.parts[0], self.parts[-1]):
            arguments += [text.text, text.line_end, np.uint32(text.begin), np.uint32(record)]
        numbers = (self.step, len(self.parts), self.files, self.queries)
        arguments += [*map(np.uint32, numbers), calls]
        tiles = -(-self.queries // TILE_UNITS)
        offsets = cupy.empty(OUTPUTS * self.queries, dtype=cupy.uint32)
        tile_bytes = cupy.empty(OUTPUTS * tiles, dtype=cupy.uint32)
        totals = cupy.empty(OUTPUTS, dtype=cupy.uint32)
        outputs = [
            cupy.empty(self._room(number % 2), dtype=cupy.uint8) if number in wanted else NULL
            for number in range(OUTPUTS)
        ]
        grid = grid_of_tiles(self.queries)
        KERNELS.launch("place_called", grid, (THREADS,), (*arguments, offsets, tile_bytes))
        KERNELS.launch(
            "write_called", grid, (THREADS,), (*arguments, offsets, tile_bytes, *outputs, totals)
        )
        texts = [(number, outputs[number]) for number in sorted(wanted)]
        counted = cupy.cuda.Event(disable_timing=True)
        own = SortedText(texts, empty_pinned((OUTPUTS,), np.uint32), counted)
        totals.get(out=own.totals, blocking=False)
        counted.record(cupy.cuda.get_current_stream())
        return own

    def _room(self, file: int) -> int:
        """Bytes that records in a file may take, with a line feed that may be missing."""
        return int(self.parts[file][0].text.size) + 1 if file < len(self.parts) else 0
