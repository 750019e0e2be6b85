"""Compresses reads on a GPU to the bytes of ``ngsgpu.io.compress.reads``; see ``deflate_reads.cu``.

Threads that compress outputs hand over a piece each and wait for it. Copies and kernels of
different pieces overlap, each on a separate stream.
"""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import THREADS, KernelModule
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import registered_empty
from ngsgpu.errors import DeviceError
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, MOST_BLOCK_BYTES, bgzf_blocks
from ngsgpu.io.compress.packing import BGZF_PIECE_BYTES
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES, LEVEL, MOST_STREAM_BYTES, reads_blocks
from ngsgpu.io.gpu.inflate import zero_moves

KERNELS: Final = KernelModule("ngsgpu.io.gpu", "deflate_reads.cu")

MOST_PIECES: Final = 32
"""Pieces at a time; more threads wait for each other."""

_BLOCKS: Final = BGZF_PIECE_BYTES // BLOCK_BYTES
_OUT_BYTES: Final = _BLOCKS * MOST_BLOCK_BYTES
_SIZES_BYTES: Final = 4 * _BLOCKS
_PINNED_BYTES: Final = BGZF_PIECE_BYTES + _OUT_BYTES + _SIZES_BYTES

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """Memory for a piece, and its stream. Bytes of the text, the blocks, and the blocks' sizes."""

    stream: Any
    there: Any
    here: NDArray[np.uint8]


class ReadsPacker:
    """Makes BGZF blocks on the current GPU; ``pack`` is safe to use from several threads.

    Where CUDA fails, the CPU makes the same blocks. It takes 2 MiB of GPU memory for each thread,
    and as much pinned memory.

    Args:
        threads: how many use it.

    Raises:
        DeviceError: there is no memory for it.
    """

    def __init__(self, threads: int) -> None:
        import cupy

        count = min(threads, MOST_PIECES)
        self._works = True
        self._lock = threading.Lock()
        self._places: queue.SimpleQueue[_Place] = queue.SimpleQueue()
        with cuda_errors("preparing the compression"):
            KERNELS.load()
            self._device = cupy.cuda.runtime.getDevice()
            self._moves = cupy.asarray(zero_moves())
            there = cupy.empty((count, _PINNED_BYTES), dtype=cupy.uint8)
            here = registered_empty(count * _PINNED_BYTES).reshape(count, _PINNED_BYTES)
            cupy.cuda.get_current_stream().synchronize()
            for number in range(count):
                stream = cupy.cuda.Stream(non_blocking=True)
                self._places.put(_Place(stream, there[number], here[number]))

    def pack(self, data: bytes | memoryview, level: int) -> bytes | memoryview:
        """See ``reads_blocks``; at most as many bytes as a piece of an output has."""
        if self._works and level == LEVEL and LEAST_BYTES <= len(data) <= BGZF_PIECE_BYTES:
            place = self._places.get()
            try:
                if self._works:
                    return self._blocks(data, place)
            except DeviceError as error:
                self._give_up(error)
            finally:
                self._places.put(place)
        return reads_blocks(data, level)

    def close(self) -> None:
        """Free the memory, which no thread may be using; the CPU packs what comes later."""
        self._works = False
        while not self._places.empty():
            self._places.get()

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
