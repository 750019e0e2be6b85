"""The text of a compressed file, inflated by a separate thread: on the GPU if it is gzip.

Compressed bytes cross the bus, and the text is made in the memory where it is parsed. What the
GPU does not inflate (other formats; data that are unusual or damaged, or a GPU with little memory)
``Source`` inflates from where the GPU stopped.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import free_unused
from ngsgpu.io.compress.seek import Checkpoint, Checkpoints
from ngsgpu.io.compress.source import Source
from ngsgpu.io.gpu.feed import (
    TAIL_BYTES,
    FeedChunk,
    HostCache,
    PinnedBuffer,
    PinnedFile,
    end_of_content,
    pinned_chunk,
)
from ngsgpu.io.gpu.inflate import (
    WINDOW,
    Inflater,
    NotForGpuError,
    Places,
    inflating_bytes,
    text_room,
)
from ngsgpu.io.paths import changed, identify

_LOG = logging.getLogger("ngsgpu")

BATCH_BYTES: Final = 64 << 20
"""Most compressed bytes that are inflated on the GPU at a time."""

_LEAST_BATCH: Final = 1 << 20
_MEMORY_SHARE: Final = 8
"""One part in this number of the GPU's free memory is used for inflating."""

_FORMATS: Final = ("gzip", "bgzf")
_QUEUED: Final = 4
_TEXTS: Final = 2
_HOST_BUFFERS: Final = 4
_PATIENCE: Final = 0.05
_Memory = TypeVar("_Memory")


def batch_bytes_within(memory: int, file_bytes: int) -> int:
    """Compressed bytes of a file to inflate at a time, within some memory; 0 if that is too little.

    A small file is one batch, and takes no more memory than that needs.
    """
    batch = BATCH_BYTES
    while batch > _LEAST_BATCH and batch // 2 >= file_bytes:
        batch //= 2
    while batch >= _LEAST_BATCH:
        if _bytes_for(batch) <= memory:
            return batch
        batch //= 2
    return 0


def _bytes_for(batch: int) -> int:
    return inflating_bytes(batch) + (_TEXTS - 1) * text_room(batch)


def _memory_for_inflating() -> int:
    """Bytes of the current GPU's memory that inflating may take, for all files together."""
    import cupy

    pool = cupy.get_default_memory_pool()
    free = gpu_memory().budget
    if limit := pool.get_limit():
        free = min(free, limit - int(pool.used_bytes()))
    return max(0, free) // _MEMORY_SHARE


class _Text:
    """Device memory for the text of a batch; free again when all its chunks were copied."""

    def __init__(self, size: int, free: queue.Queue[_Text]) -> None:
        import cupy

        self.array = cupy.empty(size, dtype=cupy.uint8)
        self.copied: Any = None
        self._free: queue.Queue[_Text] | None = free
        self._lock = threading.Lock()
        self._lent = 1

    def lend(self) -> None:
        """Note that one more will call ``release``."""
        with self._lock:
            self._lent += 1

    def release(self, copied: Any = None) -> None:
        """Note that one is done with it, after a CUDA event."""
        with self._lock:
            self.copied = copied or self.copied
            self._lent -= 1
            if self._lent:
                return
            self._lent = 1
            free = self._free
        if free is not None:
            free.put(self)

    def retire(self) -> None:
        """Note that nothing more will be inflated to it, and nobody waits for it."""
        with self._lock:
            self._free = None


class _StoppedError(Exception):
    """Nobody takes what is inflated."""


class InflatedFeed:
    """Gives the text of a compressed file.

    Args:
        path: a regular file.
        pool: threads that read and copy.
        host_cache: keeps text that cannot be inflated again from any place, for a second pass.
        compression: as in ``Source``.
        threads: threads that inflate on the host.
        chunk_bytes: size of a chunk.
        share: of the memory for inflating on the GPU.
    """

    def __init__(
        self,
        path: str,
        pool: ThreadPoolExecutor,
        host_cache: HostCache,
        *,
        compression: str,
        threads: int,
        chunk_bytes: int,
        share: float,
    ) -> None:
        import cupy

        self._path = path
        self._pool = pool
        self._host_cache = host_cache
        self.compression = compression
        self._threads = threads
        self._chunk_bytes = chunk_bytes
        self.kept: list[NDArray[np.uint8]] | None = []
        self.identity = identify(path)
        self.size: int | None = None
        self._checkpoints: Checkpoints | None = Checkpoints()
        self._device = cupy.cuda.runtime.getDevice()
        self._batch_bytes = 0
        if compression in _FORMATS:
            memory = int(_memory_for_inflating() * share)
            self._batch_bytes = batch_bytes_within(memory, self.identity.size)
        self._offset = 0
        self._waiting: Callable[[bool], FeedChunk] | None = None
        self._queue: queue.Queue[FeedChunk | BaseException | None] = queue.Queue(_QUEUED)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ngsgpu-inflate", daemon=True)
        self._thread.start()

    def ready(self) -> bool:
        """Whether ``take`` would return without waiting."""
        return not self._queue.empty()

    def take(self) -> FeedChunk | None:
        """The next chunk; None after the last.

        Raises:
            InputError: the data cannot be inflated.
            IrregularInputError: the file cannot be read, or ends in thousands of blank lines.
        """
        item = self._queue.get()
        if item is None or isinstance(item, BaseException):
            self._queue.put(item)  # for whoever asks again
            if item is not None:
                raise item
            return None
        return item

    def close(self) -> None:
        """Stop inflating, and give the memory for it back: to other streams and processes, too."""
        self._stopped.set()
        self._thread.join()
        free_unused()

    def _run(self) -> None:
        import cupy

        end: BaseException | None = None
        try:
            with cupy.cuda.Device(self._device), cupy.cuda.Stream(non_blocking=True) as stream:
                self._inflate(stream)
        except _StoppedError:
            return
        except BaseException as error:
            end = error
        try:
            self._put(end)
        except _StoppedError:
            return

    def _inflate(self, stream: Any) -> None:
        try:
            if self._batch_bytes:
                self._by_gpu(stream)
            else:
                self._by_host()
        except NotForGpuError as reason:
            _LOG.debug("%s: %s; inflating on the CPU", self._path, reason)
            self._by_host()
        if self._waiting is not None:
            self._put(self._waiting(True))

    def _by_gpu(self, stream: Any) -> None:
        """Give the text, inflated on the GPU; it is not kept: threads inflate any part again."""
        import cupy

        self.kept = None
        batch = self._batch_bytes
        free: queue.Queue[_Text] = queue.Queue()
        texts = [_Text(text_room(batch) + 1, free) for _ in range(_TEXTS)]
        for text in texts:
            free.put(text)
        line_feed = cupy.asarray(np.full(1, ord("\n"), dtype=np.uint8))
        inflater = Inflater(batch)
        file = PinnedFile(self._path, self._pool, piece_bytes=batch, ahead=2)
        try:
            while (piece := file.take()) is not None:
                buffer, size = piece
                inflater.add(buffer.pointer, size, stream)
                copied = cupy.cuda.Event(disable_timing=True)
                copied.record(stream)
                file.release(buffer, copied)
                more = True
                while more:
                    text = self._next(free)
                    if text.copied is not None:
                        stream.wait_event(text.copied)
                    size, more = inflater.inflate(text.array)
                    self._note(inflater.places, text.array)
                    self._give_text(text, size, line_feed, stream)
            inflater.finish()
        finally:
            file.close()
            for text in texts:
                text.retire()

    def _note(self, places: Places, text: Any) -> None:
        """Note places of a text on the device from which on the file can be read again."""
        import cupy

        assert self._checkpoints is not None
        usable = places.are_members | (places.offsets >= WINDOW)
        bits, offsets, are_members = (own[usable] for own in places)
        while (at := int(offsets.searchsorted(self._checkpoints.next - self._offset))) < len(bits):
            offset = int(offsets[at])
            window = None if are_members[at] else cupy.asnumpy(text[offset - WINDOW : offset])
            self._checkpoints.note(int(bits[at]), self._offset + offset, window)

    def checkpoints(self, size: int) -> tuple[Checkpoint, ...]:
        """See ``Feed``."""
        return self._checkpoints.found(size) if self._checkpoints is not None else ()

    def _next(self, free: queue.Queue[_Memory]) -> _Memory:
        """Memory that is free, as soon as there is some."""
        while not self._stopped.is_set():
            try:
                return free.get(timeout=_PATIENCE)
            except queue.Empty:
                continue
        raise _StoppedError

    def _give_text(self, text: _Text, size: int, line_feed: Any, stream: Any) -> None:
        """Give the chunks of a text on the device."""
        import cupy

        for begin in range(0, size, self._chunk_bytes):
            end = min(size, begin + self._chunk_bytes)
            tail = cupy.asnumpy(text.array[max(begin, end - TAIL_BYTES) : end])
            first = int(cupy.asnumpy(text.array[:1])[0]) if self._offset == 0 else 0
            text.lend()
            self._give(
                _device_chunk(text, begin, end, first, self._offset, tail, line_feed, stream)
            )
            self._offset += end - begin
        text.release()

    def _room_for(self, size: int) -> NDArray[np.uint8] | None:
        """Host memory for the next bytes of text; None if they are not kept."""
        if self.kept is None:
            return None
        if not self._host_cache.reserve(size):
            self.kept = None
            return None
        self.kept.append(np.empty(size, dtype=np.uint8))
        return self.kept[-1]

    def _by_host(self) -> None:
        """Give the text that follows on what was given, inflated on the host."""
        source = Source(self._path, threads=self._threads, chunk_bytes=self._chunk_bytes)
        if source.watched.identity != self.identity:
            source.close()
            raise changed(self._path)
        self._checkpoints = source.checkpoints
        self.kept = [] if self._checkpoints is None and self._offset == 0 else None
        free: queue.Queue[PinnedBuffer] = queue.Queue()
        for _ in range(_HOST_BUFFERS):
            free.put(PinnedBuffer(self._chunk_bytes + 1))
        try:
            skipped = 0
            while True:
                buffer = self._next(free)
                buffer.wait()
                room = min(self._chunk_bytes, max(0, self._offset - skipped) or self._chunk_bytes)
                size = source.fill(buffer.array[:room].data)
                if size == 0:
                    return
                if skipped < self._offset:
                    skipped += size
                    free.put(buffer)
                    continue
                if (kept := self._room_for(size)) is not None:
                    kept[:] = buffer.array[:size]
                self._give(_host_chunk(buffer, size, self._offset, free))
                self._offset += size
                skipped += size
        finally:
            source.close()

    def _give(self, chunk: Callable[[bool], FeedChunk]) -> None:
        """Give the chunk before this one, which turns out not to be the last."""
        if self._waiting is not None:
            self._put(self._waiting(False))
        self._waiting = chunk

    def _put(self, item: FeedChunk | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue
            return
        raise _StoppedError


def _host_chunk(
    buffer: PinnedBuffer, size: int, offset: int, free: queue.Queue[PinnedBuffer]
) -> Callable[[bool], FeedChunk]:
    """A chunk in pinned memory, once it is known whether it is the last."""

    def release(copied: Any) -> None:
        buffer.copied = copied
        free.put(buffer)

    return lambda last: pinned_chunk(buffer, size, offset, last=last, release=release)


def _device_chunk(
    text: _Text,
    begin: int,
    end: int,
    first: int,
    offset: int,
    tail: NDArray[np.uint8],
    line_feed: Any,
    stream: Any,
) -> Callable[[bool], FeedChunk]:
    """A chunk in device memory, once it is known whether it is the last."""

    def chunk(last: bool) -> FeedChunk:
        if last:
            text.array[end:].data.copy_from_device_async(line_feed.data, 1, stream)
            stream.synchronize()
        size = end - begin + last

        def copy_to(target: Any, copies: Any) -> None:
            target.copy_from_device_async(text.array[begin:].data, size, copies)

        content_end = end_of_content(tail, offset, end - begin)
        return FeedChunk(size, offset, first, content_end, last, copy_to, text.release)

    return chunk
