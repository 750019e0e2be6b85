"""Compresses reads on a GPU to the bytes of ``ngsgpu.io.compress.reads``; see ``deflate_reads.cu``.

Threads that compress outputs hand over a piece each and wait for it. Copies and kernels of
different pieces overlap, each on a separate stream.
"""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass
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

MOST_PIECES: Final = 32
"""Pieces at a time; more threads wait for each other."""

_BLOCKS: Final = BGZF_PIECE_BYTES // BLOCK_BYTES
_OUT_BYTES: Final = _BLOCKS * MOST_BLOCK_BYTES
_SIZES_BYTES: Final = 4 * _BLOCKS
_PLACE_BYTES: Final = BGZF_PIECE_BYTES + _OUT_BYTES + _SIZES_BYTES

_PASSED: Final = 16
"""Pieces of a run that the CPU makes while it takes less time than preparing the GPU for them."""

_MEMORY_SHARE: Final = 64
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
        threads: that compress them.
        memory: GPU memory of the run in bytes; None: what is free.
    """
    if not outputs.compresses or level != LEVEL:
        return
    try:
        if packer_bytes(threads) * _MEMORY_SHARE <= gpu_memory(memory).budget:
            outputs.pack_by(ReadsPacker(threads, _PASSED))
    except DeviceError as error:
        _LOG.info("%s; compressing on the CPU", error)


def packer_bytes(threads: int) -> int:
    """GPU memory that a ``ReadsPacker`` takes."""
    return min(threads, MOST_PIECES) * _PLACE_BYTES


@dataclass(frozen=True, slots=True)
class _Place:
    """Memory for a piece, and its stream. Bytes of the text, the blocks, and the blocks' sizes."""

    stream: Any
    there: Any
    here: NDArray[np.uint8]


class ReadsPacker:
    """Makes BGZF blocks on the current GPU; ``pack`` is safe to use from several threads.

    Where CUDA fails, the CPU makes the same blocks. It takes 2 MiB of GPU memory for each thread,
    and as much pinned memory, from the first piece on.

    Args:
        threads: how many use it.
        passed: pieces that the CPU makes before; for few of them the GPU is not worth it.
    """

    def __init__(self, threads: int, passed: int = 0) -> None:
        import cupy

        self._count = min(threads, MOST_PIECES)
        self._passed = passed
        self._works = True
        self._lock = threading.Lock()
        self._places: queue.SimpleQueue[_Place] | None = None
        self._moves: Any = None
        self._device = cupy.cuda.runtime.getDevice()

    def _taken(self) -> queue.SimpleQueue[_Place]:
        """The places; made when they are first needed.

        Raises:
            DeviceError: there is no memory for them.
        """
        import cupy

        with self._lock:
            if self._places is None:
                places: queue.SimpleQueue[_Place] = queue.SimpleQueue()
                with cuda_errors("preparing the compression"), cupy.cuda.Device(self._device):
                    KERNELS.load()
                    self._moves = cupy.asarray(zero_moves())
                    there = cupy.empty((self._count, _PLACE_BYTES), dtype=cupy.uint8)
                    here = registered_empty(there.size).reshape(there.shape)
                    cupy.cuda.get_current_stream().synchronize()
                    for number in range(self._count):
                        stream = cupy.cuda.Stream(non_blocking=True)
                        places.put(_Place(stream, there[number], here[number]))
                self._places = places
            return self._places

    def _is_for_gpu(self, data: bytes | memoryview, level: int) -> bool:
        if not (self._works and level == LEVEL and LEAST_BYTES <= len(data) <= BGZF_PIECE_BYTES):
            return False
        with self._lock:
            self._passed -= 1
            return self._passed < 0

    def pack(self, data: bytes | memoryview, level: int) -> bytes | memoryview:
        """See ``reads_blocks``; at most as many bytes as a piece of an output has."""
        if self._is_for_gpu(data, level):
            try:
                places = self._taken()
                place = places.get()
                try:
                    if self._works:
                        return self._blocks(data, place)
                finally:
                    places.put(place)
            except DeviceError as error:
                self._give_up(error)
        return reads_blocks(data, level)

    def close(self) -> None:
        """Free the memory, which no thread may be using; the CPU packs what comes later."""
        self._works = False
        self._places = None

    def _give_up(self, error: DeviceError) -> None:
        with self._lock:
            if self._works:
                self._works = False
                _LOG.warning("%s; compressing on the CPU", error)

    def _blocks(self, data: bytes | memoryview, place: _Place) -> bytes:
        import cupy

        text = np.frombuffer(data, dtype=np.uint8)
        blocks = -(-text.size // BLOCK_BYTES)
        ends = (BGZF_PIECE_BYTES, BGZF_PIECE_BYTES + _OUT_BYTES)
        here, there, stream = place.here, place.there, place.stream
        here[: text.size] = text
        with cuda_errors("compressing"), cupy.cuda.Device(self._device):
            there.data.copy_from_host_async(here.ctypes.data, text.size, stream)
            out, out_sizes = there[ends[0] :], there[ends[1] :]
            numbers = np.uint32(text.size), np.uint32(MOST_STREAM_BYTES)
            arguments = (there, *numbers, self._moves, out, out_sizes)
            KERNELS.launch("deflate_reads", (blocks,), (THREADS,), arguments, stream=stream)
            out.get(stream, out=here[ends[0] :], blocking=False)
            stream.synchronize()
        made = here[ends[0] : ends[1]].reshape(_BLOCKS, MOST_BLOCK_BYTES)
        sizes = here[ends[1] :].view(np.uint32)[:blocks].tolist()
        return b"".join(
            made[number, :size].tobytes()
            if size
            else bgzf_blocks(data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES], LEVEL)
            for number, size in enumerate(sizes)
        )
