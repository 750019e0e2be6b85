"""Opens a file as a feed: plain files are read, compressed ones inflated on the way."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.compress.seek import Checkpoint
from ngsgpu.io.compress.source import Source
from ngsgpu.io.gpu.feed import (
    Feed,
    FeedChunk,
    HostCache,
    IrregularInputError,
    PinnedFile,
    pinned_chunk,
)
from ngsgpu.io.gpu.inflated_feed import InflatedFeed


def open_feed(
    path: str,
    pool: ThreadPoolExecutor,
    host_cache: HostCache,
    *,
    threads: int,
    chunk_bytes: int,
    ahead: int,
    share: float = 1.0,
) -> Feed:
    """Open a file.

    Args:
        path: the file.
        pool: reading threads.
        host_cache: caches inflated data up to its limit.
        threads: threads that inflate on the host.
        chunk_bytes: size of a chunk.
        ahead: chunks in memory.
        share: of the memory for inflating on the GPU.

    Raises:
        InputError: the file cannot be opened, or has an unsupported compression format.
        IrregularInputError: it is not a regular file.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise IrregularInputError(str(error)) from error
    if not stat.S_ISREG(mode):
        raise IrregularInputError(f"{path} is not a regular file")
    source = Source(path, threads=threads, chunk_bytes=chunk_bytes)
    source.close()
    if source.compression == "plain":
        return PlainFeed(path, pool, chunk_bytes=chunk_bytes, ahead=ahead)
    return InflatedFeed(
        path,
        pool,
        host_cache,
        compression=source.compression,
        threads=threads,
        chunk_bytes=chunk_bytes,
        share=share,
    )


class PlainFeed:
    """Reads a file that is not compressed with the threads of a pool."""

    compression = "plain"

    def __init__(
        self, path: str, pool: ThreadPoolExecutor, *, chunk_bytes: int, ahead: int
    ) -> None:
        self.kept: list[NDArray[np.uint8]] | None = None
        self._file = PinnedFile(path, pool, piece_bytes=chunk_bytes, ahead=ahead)
        self.identity = self._file.identity
        self.size: int | None = self.identity.size
        self._taken = 0
        self._offset = 0

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting."""
        return self._file.ready()

    def take(self) -> FeedChunk | None:
        """The next chunk; None after the last.

        Raises:
            IrregularInputError: the file cannot be read, or ends in thousands of blank lines.
        """
        if (piece := self._file.take()) is None:
            return None
        buffer, size = piece
        self._taken += 1
        offset = self._offset
        self._offset += size
        return pinned_chunk(
            buffer,
            size,
            offset,
            last=self._taken == self._file.pieces,
            release=lambda copied: self._file.release(buffer, copied),
        )

    def checkpoints(self, size: int) -> tuple[Checkpoint, ...]:
        """None are needed."""
        return ()

    def close(self) -> None:
        """Wait for the threads and close the file."""
        self._file.close()
