"""Batches of anchors: how large they are, who gets which, and how their edits reach the host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ANCHORS_A_BATCH: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Memory for what a batch of anchors needs; the result does not depend on it.

    Attributes:
        edit_bytes: for the edits of two batches (one is corrected, one is copied to the host), of
            which most is never written.
        workspace_blocks: blocks that work on anchors with very many candidates, whose memory is
            not in shared memory.
    """

    edit_bytes: int = 1 << 30
    workspace_blocks: int = 264

    def smaller(self) -> BatchSizes:
        """Half of it."""
        return BatchSizes(self.edit_bytes // 2, max(1, self.workspace_blocks // 2))

    def anchors(self, max_length: int, mates: int) -> int:
        """Anchors of a batch, at least 1."""
        room = self.edit_bytes // 2 // (8 * max(1, max_length) * mates)
        return max(1, min(ANCHORS_A_BATCH, room))


def batch_bytes(sizes: BatchSizes, anchors: int, max_length: int, mates: int) -> int:
    """Bytes of the edits and lists of a batch, where there are ``anchors`` in all."""
    batch = sizes.anchors(max_length, mates)
    buffers = 2 if anchors > batch else 1
    return min(anchors, batch) * (buffers * mates * 2 * max_length * 4 + 2 * 4)


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


class EditBuffers:
    """Edits of a batch on the GPU, copied to the host while the next batch is corrected.

    Args:
        buffers: uint32 arrays on the current GPU, which take turns.

    Attributes:
        total: edits so far.
        fetched: those of finished batches, when the block has ended.
    """

    def __init__(self, buffers: list[Any]) -> None:
        self.buffers = buffers
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

    def next(self) -> Any:
        """The buffer for the next batch; waits until its last edits were copied."""
        if len(self._copies) >= len(self.buffers):
            self._copies[-len(self.buffers)].result()
        return self.buffers[len(self._copies) % len(self.buffers)]

    def fetch(self, total: int) -> None:
        """Begin to copy the edits of the batch that ended, with which there are ``total``."""
        buffer = self.buffers[len(self._copies) % len(self.buffers)]
        self._copies.append(self._thread.submit(self._copy, buffer, total - self.total))
        self.total = total

    def _copy(self, buffer: Any, count: int) -> NDArray[np.uint32]:
        with self._device:
            edits: NDArray[np.uint32] = buffer[:count].get(stream=self._stream)
        return edits
