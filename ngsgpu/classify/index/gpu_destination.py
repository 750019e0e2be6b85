"""Where the arrays of an index that was built on GPUs go: memory of the host, or files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import Index, directory_bits
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.io.output.store import ArrayFile, FileList

_DEVICE_TO_HOST: Final = 2
_NAMES: Final = ("directory", "entries", "locations")


class Destination(Protocol):
    """Takes the arrays of an index; pieces of them in any order, from several threads."""

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""


class HostIndex:
    """Arrays in memory."""

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""
        lines = (1 << directory_bits(entries)) + 1
        self._arrays = {
            "directory": np.empty((lines, 2), dtype=np.uint32),
            "entries": np.empty(entries, dtype=np.uint32),
            "locations": np.empty(locations, dtype=np.uint32),
        }

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""
        flat = self._arrays[name].reshape(-1).view(np.uint8)
        flat[at : at + len(data)] = data

    def index(self) -> Index:
        """What they are."""
        return Index(**self._arrays)


class StoredIndex:
    """Files in a folder.

    Args:
        folder: where they are made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes = 0, 0

    def open(self, entries: int, locations: int) -> None:
        """The sizes are known."""
        self._sizes = entries, locations
        lines = (1 << directory_bits(entries)) + 1
        shapes = {"directory": (lines, 2), "entries": (entries,), "locations": (locations,)}
        self._files = {
            name: ArrayFile(self._folder, name, np.uint32, shape) for name, shape in shapes.items()
        }

    def put(self, name: str, at: int, data: NDArray[np.uint8]) -> None:
        """Some bytes of the array ``name``, the first one at ``at``."""
        self._files[name].put(at, data)

    def files(self) -> tuple[FileList, int, int]:
        """Close the files; see ``database_write.store_partition``."""
        return {f"{name}.npy": self._files[name].close() for name in _NAMES}, *self._sizes


def copy_arrays(
    arrays: dict[str, tuple[int, Any]],
    destination: Destination,
    pool: ThreadPoolExecutor,
    pinned: PinnedPool,
) -> None:
    """Copy arrays of the current GPU to the host, all at the same time, and wait for them.

    Args:
        arrays: where each belongs in bytes, and what it is, by name.
        destination: takes them.
        pool: threads that copy.
        pinned: pinned buffers; as many as there are threads may be taken.
    """
    import cupy

    device = cupy.cuda.Device()
    cupy.cuda.Stream.null.synchronize()

    def copy(name: str, to: int, array: Any, begin: int) -> None:
        size = min(pinned.size, array.nbytes - begin)
        with pinned.borrowed() as buffer, device:
            stream = cupy.cuda.Stream(non_blocking=True)
            cupy.cuda.runtime.memcpyAsync(
                buffer.ctypes.data, array.data.ptr + begin, size, _DEVICE_TO_HOST, stream.ptr
            )
            stream.synchronize()
            destination.put(name, to + begin, buffer[:size])

    pieces = [
        (begin / array.nbytes, name, to, array, begin)
        for name, (to, array) in arrays.items()
        for begin in range(0, array.nbytes, pinned.size)
    ]
    # The files grow side by side, for only one thread at a time gets into each.
    pieces.sort(key=lambda piece: piece[:2])
    wait_for_all([pool.submit(copy, *piece[1:]) for piece in pieces])


def wait_for_all(tasks: Sequence[Future[Any]]) -> None:
    """Wait for all tasks, also where one fails."""
    errors = [error for task in tasks if (error := task.exception()) is not None]
    if errors:
        raise errors[0]
