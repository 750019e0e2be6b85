"""Batches of anchors: their sizes, their distribution, and copying their edits to the host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ANCHORS_PER_BATCH: Final = 1 << 20

COPIES: Final = 2
COPY_SHARE: Final = 16
"""Edits of ``COPIES`` batches may be on their way to the host; each uses this share of the memory
for a batch, otherwise its batch waits for it."""


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Memory for a batch of anchors; does not affect the result.

    Attributes:
        edit_bytes: for the edits of a batch, most of which is never written.
        workspace_blocks: blocks for anchors with too many candidates for shared memory.
    """

    edit_bytes: int = 1 << 30
    workspace_blocks: int = 528

    def smaller(self) -> BatchSizes:
        """Half of it."""
        return BatchSizes(self.edit_bytes // 2, max(1, self.workspace_blocks // 2))

    def anchors(self, max_length: int, mates: int) -> int:
        """Anchors per batch, at least 1."""
        room = self.edit_bytes // (8 * max(1, max_length) * mates)
        return max(1, min(ANCHORS_PER_BATCH, room))


def batch_bytes(sizes: BatchSizes, anchors: int, max_length: int, mates: int) -> int:
    """Bytes of the edits and lists of a batch, for ``anchors`` in total."""
    batch = min(anchors, sizes.anchors(max_length, mates))
    edits = batch * mates * 2 * max_length * 4
    return edits + COPIES * (edits // COPY_SHARE) + batch * 2 * 4


class AnchorBatches:
    """Hands out batches of anchors, by their places in the list; safe among threads.

    Args:
        anchors: number of anchors.
        batch: how many are handed out at a time.
    """

    def __init__(self, anchors: int, batch: int) -> None:
        self._starts = iter(range(0, anchors, batch))
        self._batch = batch
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Hand out no more."""
        self._stopped = True

    def __iter__(self) -> Iterator[slice]:
        while not self._stopped:
            with self._lock:
                start = next(self._starts, None)
            if start is None:
                return
            yield slice(start, start + self._batch)


class EditFetcher:
    """Copies the edits of a batch to the host while the next batch is corrected; a context manager.

    The written part of the buffer is first copied on the GPU, if there is room.

    Args:
        buffer: uint32 array on the current GPU, for the edits of a batch.

    Attributes:
        total: edits so far.
        fetched: the edits of all batches, after the block has ended.
    """

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.total = 0
        self.fetched: list[NDArray[np.uint32]] = []
        self._copies: list[Future[NDArray[np.uint32]]] = []

    def __enter__(self) -> None:
        import cupy

        self._device = cupy.cuda.Device()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-edits")

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=True)
        if error[0] is None:
            self.fetched += [copy.result() for copy in self._copies]
        self._copies.clear()

    def fetch(self, total: int) -> None:
        """Begin to copy the edits of the batch that ended, with which there are ``total``."""
        import cupy

        written = self.buffer[: total - self.total]
        self.total = total
        if len(self._copies) >= COPIES:
            self._copies[-COPIES].result()
        try:
            aside = written.copy()
        except MemoryError:
            self._copies.append(self._thread.submit(self._get, written))
            self._copies[-1].result()
            return
        # The copy is in the buffer's stream, what fetches it in another.
        cupy.cuda.get_current_stream().synchronize()
        self._copies.append(self._thread.submit(self._get, aside))

    def _get(self, edits: Any) -> NDArray[np.uint32]:
        with self._device:
            fetched: NDArray[np.uint32] = edits.get(stream=self._stream)
        return fetched
