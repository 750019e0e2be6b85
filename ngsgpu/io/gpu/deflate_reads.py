"""Compresses reads on a GPU to the bytes of ``ngsgpu.io.compress.reads``; see ``deflate_reads.cu``.

Threads that compress outputs hand over a piece each. Pieces that come while the GPU is busy are
packed together, by one launch: the thread that brought the first one launches it when its turn has
come, the others wait for it. Where there is no room for a piece, its thread compresses it on the
CPU, so that both work.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import THREADS, KernelModule
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import registered_empty
from ngsgpu.device.plan import gpu_memory
from ngsgpu.errors import DeviceError
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, MOST_BLOCK_BYTES, bgzf_blocks
from ngsgpu.io.compress.packing import BGZF_PIECE_BYTES
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES, LEVEL, MOST_STREAM_BYTES, reads_blocks
from ngsgpu.io.gpu.inflate import zero_moves

if TYPE_CHECKING:
    from ngsgpu.io.output.writer import OutputSet

KERNELS: Final = KernelModule("ngsgpu.io.gpu", "deflate_reads.cu")

PIECES: Final = 32
"""Of a launch: two give each multiprocessor of a large GPU as many blocks as it has room for."""

_LAUNCHES: Final = 2
_BATCHES: Final = _LAUNCHES + 1
"""At a time, and with one that is being filled or emptied."""

_BLOCKS: Final = BGZF_PIECE_BYTES // BLOCK_BYTES
_PIECE_OUT_BYTES: Final = _BLOCKS * MOST_BLOCK_BYTES
_TEXT: Final = 4 * PIECES
_OUT: Final = _TEXT + PIECES * BGZF_PIECE_BYTES
_SIZES: Final = _OUT + PIECES * _PIECE_OUT_BYTES
_BATCH_BYTES: Final = _SIZES + 4 * PIECES * _BLOCKS

PACKER_BYTES: Final = _BATCHES * _BATCH_BYTES
"""GPU memory that a ``ReadsPacker`` takes, and pinned memory."""

_PASSED: Final = 16
"""Pieces of a run that the CPU makes while it takes less time than preparing the GPU for them."""

_MEMORY_SHARE: Final = 16
"""Of the GPU memory that a run may use, the part for this."""

_LOG = logging.getLogger(__name__)


def compile_for(outputs: OutputSet, level: int) -> None:
    """Begin to compile the kernel if ``pack_on_gpu`` is going to need it.

    Args:
        outputs: the outputs of a run.
        level: at which they are compressed.
    """
    if outputs.compresses and level == LEVEL:
        KERNELS.compile_aside()


def pack_on_gpu(outputs: OutputSet, level: int, threads: int, memory: int | None) -> None:
    """Have the current GPU compress outputs, if it can and has memory to spare.

    Args:
        outputs: the outputs of a run, to which reads are written.
        level: at which they are compressed.
        threads: that compress on the CPU.
        memory: GPU memory of the run in bytes; None: what is free.
    """
    if not outputs.compresses or level != LEVEL:
        return
    try:
        if gpu_memory(memory).budget >= PACKER_BYTES * _MEMORY_SHARE:
            outputs.pack_by(ReadsPacker(threads, _PASSED))
    except DeviceError as error:
        _LOG.info("%s; compressing on the CPU", error)


class _Batch:
    """Pieces for a launch, and the memory for them.

    Args:
        here: uint8[_BATCH_BYTES], pinned: bytes of each piece, pieces, blocks, bytes of each block.
        there: the same on the GPU.
        stream: on which they are packed.

    Attributes:
        taken: pieces that belong to it.
        inside: threads that have not taken their blocks yet.
        copied: counts pieces that are there.
        made: set when the launch has ended.
        works: whether the blocks are there then.
    """

    def __init__(self, here: NDArray[np.uint8], there: Any, stream: Any) -> None:
        self.here, self.there, self.stream = here, there, stream
        self._text = here[_TEXT:_OUT].reshape(PIECES, BGZF_PIECE_BYTES)
        self._blocks = here[_OUT:_SIZES].reshape(PIECES, _BLOCKS, MOST_BLOCK_BYTES)
        self.begin()

    def begin(self) -> None:
        """Take new pieces."""
        self.taken = self.inside = 0
        self.copied = threading.Semaphore(0)
        self.made = threading.Event()
        self.works = False

    def put(self, number: int, data: bytes | memoryview) -> None:
        """Copy a piece to its place."""
        self._text[number, : len(data)] = np.frombuffer(data, dtype=np.uint8)
        self.here[:_TEXT].view(np.uint32)[number] = len(data)
        self.copied.release()

    def blocks_of(self, number: int, data: bytes | memoryview) -> memoryview:
        """The blocks of a piece; those that are not reads are made now."""
        count = -(-len(data) // BLOCK_BYTES)
        sizes = self.here[_SIZES:].view(np.uint32).reshape(PIECES, _BLOCKS)[number, :count]
        # Without Python's lock.
        return np.concatenate(
            [
                self._blocks[number, block, :size]
                if size
                else np.frombuffer(
                    bgzf_blocks(data[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES], LEVEL),
                    dtype=np.uint8,
                )
                for block, size in enumerate(sizes.tolist())
            ]
        ).data


class ReadsPacker:
    """Makes BGZF blocks on the current GPU; ``pack`` is safe to use from several threads.

    Where CUDA fails, the CPU makes the same blocks. It takes ``PACKER_BYTES`` when the first piece
    comes that is for the GPU.

    Args:
        threads: how many compress on the CPU at a time.
        passed: pieces that the CPU makes before; for few of them the GPU is not worth it.

    Attributes:
        waiting: threads that may wait for the GPU at a time, beside those that work on the CPU.
    """

    waiting: Final = _BATCHES * PIECES

    def __init__(self, threads: int, passed: int = 0) -> None:
        import cupy

        self._passed = passed
        self._works = True
        self._lock = threading.Lock()
        self._prepared = self._prepares = False
        self._free: list[_Batch] = []
        self._open: _Batch | None = None
        self._turns = threading.Semaphore(_LAUNCHES)
        self._on_cpu = threading.Semaphore(threads)
        self._moves: Any = None
        self._device = cupy.cuda.runtime.getDevice()

    def pack(self, data: bytes | memoryview, level: int) -> bytes | memoryview:
        """See ``reads_blocks``; at most as many bytes as a piece of an output has."""
        if level == LEVEL and LEAST_BYTES <= len(data) <= BGZF_PIECE_BYTES and self._is_ready():
            batch, number = self._enter()
            if batch is not None:
                try:
                    if self._pack_in(batch, number, data):
                        return batch.blocks_of(number, data)
                finally:
                    self._leave(batch)
        with self._on_cpu:
            return reads_blocks(data, level)

    def close(self) -> None:
        """Free the memory, which no thread may be using; the CPU packs what comes later."""
        self._works = False
        self._free.clear()

    def _is_ready(self) -> bool:
        """Whether the GPU works, and has been prepared by the first thread that asks."""
        with self._lock:
            self._passed -= 1
            if self._passed >= 0 or not self._works or self._prepares:
                return False
            if self._prepared:
                return True
            self._prepares = True
        try:
            self._free = self._new_batches()
        except DeviceError as error:
            self._give_up(error)
        with self._lock:
            self._prepared, self._prepares = True, False
        return self._works

    def _new_batches(self) -> list[_Batch]:
        import cupy

        with cuda_errors("preparing the compression"), cupy.cuda.Device(self._device):
            KERNELS.load()
            self._moves = cupy.asarray(zero_moves())
            there = cupy.empty((_BATCHES, _BATCH_BYTES), dtype=cupy.uint8)
            here = registered_empty(PACKER_BYTES).reshape(_BATCHES, _BATCH_BYTES)
            cupy.cuda.get_current_stream().synchronize()
            return [
                _Batch(here[number], there[number], cupy.cuda.Stream(non_blocking=True))
                for number in range(_BATCHES)
            ]

    def _enter(self) -> tuple[_Batch | None, int]:
        """A place in a batch, and its number; None if all are taken."""
        with self._lock:
            if self._open is None:
                if not self._free:
                    return None, 0
                self._open = self._free.pop()
                self._open.begin()
            batch, number = self._open, self._open.taken
            batch.taken += 1
            batch.inside += 1
            if batch.taken == PIECES:
                self._open = None
            return batch, number

    def _leave(self, batch: _Batch) -> None:
        with self._lock:
            batch.inside -= 1
            if batch.inside == 0 and self._works:
                self._free.append(batch)

    def _pack_in(self, batch: _Batch, number: int, data: bytes | memoryview) -> bool:
        """Pack a piece with others; False if CUDA failed."""
        batch.put(number, data)
        if number:
            batch.made.wait()
            return batch.works
        try:
            with self._turns:
                with self._lock:
                    if self._open is batch:
                        self._open = None
                for _ in range(batch.taken):
                    batch.copied.acquire()
                if self._works:
                    self._launch(batch)
                    batch.works = True
        except DeviceError as error:
            self._give_up(error)
        finally:
            batch.made.set()
        return batch.works

    def _give_up(self, error: DeviceError) -> None:
        with self._lock:
            if self._works:
                self._works = False
                _LOG.warning("%s; compressing on the CPU", error)

    def _launch(self, batch: _Batch) -> None:
        import cupy

        here, there, stream, count = batch.here, batch.there, batch.stream, batch.taken
        with cuda_errors("compressing"), cupy.cuda.Device(self._device):
            text_end = _TEXT + count * BGZF_PIECE_BYTES
            there.data.copy_from_host_async(here.ctypes.data, text_end, stream)
            parts = (there[_TEXT:_OUT], there[:_TEXT], np.uint32(MOST_STREAM_BYTES), self._moves)
            arguments = (*parts, there[_OUT:_SIZES], there[_SIZES:])
            grid = (count * _BLOCKS,)
            KERNELS.launch("deflate_reads", grid, (THREADS,), arguments, stream=stream)
            for begin, size in ((_OUT, _PIECE_OUT_BYTES), (_SIZES, 4 * _BLOCKS)):
                end = begin + count * size
                there[begin:end].get(stream, out=here[begin:end], blocking=False)
            stream.synchronize()
