"""The arrays of an index that GPUs build, on the host: in memory, or in files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import Index, directory_bits
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.io.output.store import ArrayFile, FileList


class NewIndex:
    """Collects the arrays of an index, pieces of them in any order and from several threads.

    Args:
        folder: directory for files; None for memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._sizes = 0, 0
        self._arrays: dict[str, NDArray[np.uint32]] = {}
        self._files: dict[str, ArrayFile] = {}

    def open(self, entries: int, locations: int) -> None:
        """Set the sizes."""
        self._sizes = entries, locations
        lines = (1 << directory_bits(entries)) + 1
        shapes = {"directory": (lines, 2), "entries": (entries,), "locations": (locations,)}
        for name, shape in shapes.items():
            if self._folder is None:
                self._arrays[name] = np.empty(shape, dtype=np.uint32)
            else:
                self._files[name] = ArrayFile(self._folder, name, np.uint32, shape)

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Write bytes of the array ``name``, the first one at ``at``."""
        if self._files:
            self._files[name].put(at, data)
        else:
            self._arrays[name].reshape(-1).view(np.uint8)[at : at + len(data)] = data

    def index(self) -> Index:
        """The index in memory."""
        return Index(**self._arrays)

    def close(self) -> tuple[FileList, int, int]:
        """Close the files; see ``write.store_partition``."""
        return {f"{name}.npy": file.close() for name, file in self._files.items()}, *self._sizes

    def copy(
        self, arrays: dict[str, tuple[int, Any]], pool: ThreadPoolExecutor, pinned: PinnedPool
    ) -> None:
        """Copy arrays from the current GPU, all at the same time, and wait for them.

        Args:
            arrays: byte offset and data of each, by name.
            pool: copying threads.
            pinned: pinned buffers; up to one per thread is used.
        """
        import cupy

        device = cupy.cuda.Device()
        cupy.cuda.Stream.null.synchronize()

        def copy(name: str, to: int, array: Any, begin: int) -> None:
            size = min(pinned.size, array.nbytes - begin)
            with pinned.borrowed() as buffer, device:
                stream = cupy.cuda.Stream(non_blocking=True)
                array[begin : begin + size].get(stream, out=buffer[:size])
                self.put(name, to + begin, buffer[:size])

        pieces = [
            (begin / array.nbytes, name, to, array, begin)
            for name, (to, own) in arrays.items()
            for array in (own.reshape(-1).view(cupy.uint8),)
            for begin in range(0, array.nbytes, pinned.size)
        ]
        # The files grow side by side, for only one thread at a time gets into each.
        pieces.sort(key=lambda piece: piece[:2])
        tasks = [pool.submit(copy, *piece[1:]) for piece in pieces]
        errors = [error for task in tasks if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
