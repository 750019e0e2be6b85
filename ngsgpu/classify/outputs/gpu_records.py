"""Records of queries on a GPU, to be copied to the files of classified and other reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.gpu_batch import NULL
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.pinned import to_device, to_host
from ngsgpu.io.gpu.parse import THREADS, ParsedChunk
from ngsgpu.run.record_gpu import TILE_UNITS, grid_of_tiles

KERNELS: Final = KernelModule("ngsgpu.classify.outputs", "records.cu")

OUTPUTS: Final = 4
"""Classified reads or first mates, their second mates, and both of the others."""


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
    def of(cls, chunk: ParsedChunk) -> ChunkText:
        """A copy of a chunk's records."""
        end = chunk.end - chunk.offset
        text = chunk.slot.raw[chunk.begin : end].copy()
        return cls(text, chunk.slot.line_end[: 4 * chunk.records].copy(), chunk.begin)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.text.nbytes + self.line_end.nbytes)

    def move_to_host(self) -> None:
        """Give the memory of the device back."""
        self.text, self.line_end = to_host(self.text), to_host(self.line_end)

    def move_to_device(self) -> None:
        """Copy to the device what is on the host."""
        if isinstance(self.text, np.ndarray):
            self.text, self.line_end = to_device(self.text), to_device(self.line_end)


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

    def sorted(self, calls: Any, wanted: Collection[int]) -> list[tuple[int, Any, int]]:
        """Copies of the records by what became of the queries.

        Args:
            calls: int32[queries] on the device, below 0 for none.
            wanted: which of ``OUTPUTS``.

        Returns:
            Of each that is wanted: its number, uint8 on the device, and how many bytes of it.
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
        sizes: NDArray[np.uint32] = totals.get()
        return [(number, outputs[number], int(sizes[number])) for number in sorted(wanted)]

    def _room(self, file: int) -> int:
        """Bytes that records in a file may take, with a line feed that may be missing."""
        return int(self.parts[file][0].text.size) + 1 if file < len(self.parts) else 0
