"""Inflates gzip files on the GPU, any number of members and BGZF among them; see ``inflate.cu``.

What is decoded was checked against the checksums of the members. Anything unusual is left to the
host (``NotForGpuError``), which words what is wrong with a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import THREADS, KernelModule
from ngsgpu.device.cuda.structs import Struct

KERNELS: Final = KernelModule("ngsgpu.io.gpu", "inflate.cu")

CHUNK: Final = Struct(
    __name__, "Chunk", {"end": "uint64_t", "symbols": "uint32_t", "fate": "uint32_t"}
)
"""A measured chunk: the place behind its last whole block, symbols, ``Fate`` of ``deflate.cuh``."""

MEMBER_END: Final = Struct(
    __name__,
    "MemberEnd",
    dict.fromkeys(("chunk", "symbols", "checksum", "size"), "uint32_t"),
)
"""The end of a member: in which chunk, after how many symbols of it, and what its trailer says."""

WINDOW: Final = 32 << 10
"""Bytes that deflate's matches reach back."""

_MEMBER: Final = np.uint64(1 << 63)
_NOWHERE: Final = np.uint64(2**64 - 1)
_BAD: Final = 2
_SLICE: Final = 16 << 10
"""Compressed bytes in which one start is looked for. Blocks of zlib have 16,383 symbols, which are
15 to 25 KB of FASTQ."""

_RATIO: Final = 4
"""Room for text, in compressed bytes of a batch; what is more comes with the next batch."""

_GROUP: Final = 32
"""Chunks whose windows are put together one after the other."""

_PIECE: Final = 1024
_PAD: Final = 64
_TRIES: Final = 8
_MOST_MEMBERS: Final = 64
"""Least compressed bytes for each member."""

_POLYNOMIAL: Final = 0xEDB88320


class NotForGpuError(Exception):
    """The data are damaged, or unusual; the host decides."""


def inflating_bytes(batch_bytes: int) -> int:
    """Device memory of an ``Inflater``, and of one text for it."""
    windows = 2 * WINDOW * (_most_chunks(batch_bytes) + 1)
    return (2 * 2 + 3 * _RATIO) * batch_bytes + windows + batch_bytes // _MOST_MEMBERS * 16


def text_room(batch_bytes: int) -> int:
    """Most bytes of text that a batch gives."""
    return _RATIO * batch_bytes


def _most_chunks(batch_bytes: int) -> int:
    return batch_bytes // _SLICE + 4


@dataclass(frozen=True, slots=True)
class _Measured:
    """Chunks of a batch that are decoded together.

    Attributes:
        starts: uint64[chunks] on the device.
        places: the same on the host.
        chunks: their measures on the device.
        offsets: int64[chunks + 1], their places in the text.
        end: where the last one ends.
        members: ``MEMBER_END``, the members that end in them, in order.
        whole: whether they are all chunks of the batch.
    """

    starts: Any
    places: NDArray[np.uint64]
    chunks: Any
    offsets: NDArray[np.int64]
    end: np.uint64
    members: NDArray[np.void]
    whole: bool


class Places(NamedTuple):
    """Where chunks begin.

    Attributes:
        bits: int64[chunks], of the file.
        offsets: int64[chunks], of the text.
        are_members: bool[chunks], whether a member's header is there rather than a block.
    """

    bits: NDArray[np.int64]
    offsets: NDArray[np.int64]
    are_members: NDArray[np.bool_]


class Inflater:
    """Inflates one file on the current GPU and stream, batch by batch.

    Args:
        batch_bytes: most compressed bytes that are added at a time.

    Attributes:
        places: where the chunks begin that ``inflate`` has made text of.
    """

    def __init__(self, batch_bytes: int) -> None:
        import cupy

        none = np.empty(0, dtype=np.int64)
        self.places = Places(none, none, none.astype(bool))
        self._passed = 0

        self._batch_bytes = batch_bytes
        self._most_chunks = _most_chunks(batch_bytes)
        room = 2 * batch_bytes
        self._data = cupy.zeros(room + _PAD, dtype=cupy.uint8)
        self._other = cupy.zeros(room + _PAD, dtype=cupy.uint8)
        self._starts = cupy.empty(room // _SLICE + 2, dtype=cupy.uint64)
        self._symbols = cupy.empty(text_room(batch_bytes), dtype=cupy.uint16)
        self._windows = cupy.empty(self._most_chunks * WINDOW, dtype=cupy.uint16)
        groups = -(-self._most_chunks // _GROUP) + 1
        self._before_groups = cupy.zeros(groups * WINDOW, dtype=cupy.uint8)
        self._ends = cupy.empty(
            (room // _MOST_MEMBERS + 64) * MEMBER_END.dtype.itemsize, dtype=cupy.uint8
        )
        self._moves = cupy.asarray(zero_moves())
        self._held = 0
        self._begin = _MEMBER
        self._sum = 0xFFFFFFFF
        self._size = 0

    def add(self, pointer: int, size: int, stream: Any) -> None:
        """Copy the next compressed bytes from pinned memory; asynchronous.

        Args:
            pointer: address of the bytes.
            size: number of bytes.
            stream: CUDA stream of the copy.

        Raises:
            NotForGpuError: there is no block for very long.
        """
        if self._held + size > 2 * self._batch_bytes:
            raise NotForGpuError("a block of the compressed data is very long")
        target = self._data[self._held : self._held + size].data
        target.copy_from_host_async(pointer, size, stream)
        self._held += size

    def inflate(self, text: Any) -> tuple[int, bool]:
        """Inflate what can be of the bytes that were added.

        Args:
            text: uint8 on the device; room for ``text_room`` bytes.

        Returns:
            The number of bytes of text, and whether more can be inflated without more data.

        Raises:
            NotForGpuError: the data are damaged, or unusual.
        """
        found = self._measure()
        size = int(found.offsets[-1])
        if size:
            self._decode(found, text)
        self._check(found, text)
        bits = (found.places & ~_MEMBER).astype(np.int64) + 8 * self._passed
        self.places = Places(bits, found.offsets[:-1], (found.places & _MEMBER) != 0)
        self._keep_from(found.end)
        return size, not found.whole

    def finish(self) -> None:
        """Check that the file ends where a member does.

        Raises:
            NotForGpuError: it does not.
        """
        if self._held or self._begin != _MEMBER:
            raise NotForGpuError("the compressed data end early, or something follows them")

    def _measure(self) -> _Measured:
        """Find the chunks of the data, as many as there is room for."""
        import cupy

        slices = -(-self._held // _SLICE)
        size = np.uint64(self._held)
        KERNELS.launch(
            "find_starts", (slices,), (256,), (self._data, size, np.uint32(_SLICE), self._starts)
        )
        places = cupy.asnumpy(self._starts[:slices])
        places = places[(places != _NOWHERE) & (places & ~_MEMBER > self._begin & ~_MEMBER)]
        starts = np.concatenate([np.array([self._begin], dtype=np.uint64), places])
        room = len(self._ends) // MEMBER_END.dtype.itemsize
        for _ in range(_TRIES):
            chunks = len(starts)
            there = cupy.asarray(starts)
            measured = cupy.empty(chunks * CHUNK.dtype.itemsize, dtype=cupy.uint8)
            found = cupy.zeros(1, dtype=cupy.uint32)
            KERNELS.launch(
                "measure_chunks",
                (chunks,),
                (32,),
                (
                    self._data,
                    size,
                    there,
                    np.uint32(chunks),
                    measured,
                    self._ends,
                    np.uint32(room),
                    found,
                ),
            )
            own = cupy.asnumpy(measured).view(CHUNK.dtype)
            wrong = np.flatnonzero(own["end"][:-1] != starts[1:])
            if len(wrong) == 0:
                break
            starts = np.delete(starts, wrong[0] + 1)
        else:
            raise NotForGpuError("blocks of the compressed data do not follow on each other")
        if own["fate"][-1] == _BAD:
            raise NotForGpuError("the compressed data are damaged")
        offsets = np.concatenate([[0], np.cumsum(own["symbols"], dtype=np.int64)])
        fitting = int(np.searchsorted(offsets, text_room(self._batch_bytes), side="right")) - 1
        taken = min(chunks, fitting, self._most_chunks)
        ends = int(cupy.asnumpy(found)[0])
        if taken == 0 or ends > room:
            raise NotForGpuError("the compressed data have very long or very short parts")
        members = cupy.asnumpy(self._ends[: ends * MEMBER_END.dtype.itemsize])
        return _Measured(
            there,
            starts[:taken],
            measured,
            offsets[: taken + 1],
            own["end"][taken - 1],
            _in_order(members.view(MEMBER_END.dtype), taken),
            taken == chunks,
        )

    def _decode(self, found: _Measured, text: Any) -> None:
        """Decode chunks into ``text``."""
        import cupy

        chunks = len(found.offsets) - 1
        offsets = cupy.asarray(found.offsets.astype(np.uint32))
        number, group = np.uint32(chunks), np.uint32(_GROUP)
        data = (self._data, np.uint64(self._held), found.starts, found.chunks)
        KERNELS.launch("decode_chunks", (chunks,), (32,), (*data, offsets, self._symbols))
        groups = -(-chunks // _GROUP)
        KERNELS.launch(
            "compose_windows",
            (groups,),
            (1024,),
            (self._symbols, offsets, number, group, self._windows),
        )
        KERNELS.launch(
            "chain_windows", (1,), (1024,), (self._windows, number, group, self._before_groups)
        )
        KERNELS.launch(
            "resolve_symbols",
            (chunks, 4),
            (THREADS,),
            (self._symbols, offsets, group, self._windows, self._before_groups, text),
        )
        _copy(self._before_groups, self._before_groups[groups * WINDOW :], WINDOW)

    def _check(self, found: _Measured, text: Any) -> None:
        """Compare the checksums and sizes of members, also those that end without any text."""
        members = found.members
        ends = found.offsets[members["chunk"]] + members["symbols"]
        places = np.concatenate([[0], ends, found.offsets[-1:]])
        sizes = np.diff(places)
        initial = np.full(len(sizes), 0xFFFFFFFF, dtype=np.uint32)
        initial[0] = self._sum
        sums = np.where(sizes == 0, initial, self._sums(text, places, initial))
        sizes[0] += self._size
        if not np.array_equal(~sums[:-1], members["checksum"]) or not np.array_equal(
            sizes[:-1] & 0xFFFFFFFF, members["size"]
        ):
            raise NotForGpuError("the compressed data do not have their checksum")
        self._sum, self._size = int(sums[-1]), int(sizes[-1])

    def _sums(
        self, text: Any, places: NDArray[np.int64], initial: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        """CRC-32 registers after the sections of a text."""
        import cupy

        pieces = np.concatenate([[0], np.cumsum(-(-np.diff(places) // _PIECE))])
        sums = cupy.zeros(len(initial), dtype=cupy.uint32)
        KERNELS.launch(
            "sum_sections",
            (-(-int(pieces[-1]) // 256),),
            (256,),
            (
                text,
                cupy.asarray(places.astype(np.uint32)),
                cupy.asarray(pieces.astype(np.uint32)),
                np.uint32(len(initial)),
                cupy.asarray(initial),
                self._moves,
                sums,
            ),
        )
        on_host: NDArray[np.uint32] = cupy.asnumpy(sums)
        return on_host

    def _keep_from(self, end: np.uint64) -> None:
        """Keep the data from a place on, for the next batch."""
        byte = int(end & ~_MEMBER) // 8
        left = self._held - byte
        if left:
            _copy(self._other, self._data[byte:], left)
        self._data, self._other = self._other, self._data
        self._held = left
        self._passed += byte
        self._begin = (end & _MEMBER) | (end & np.uint64(7))


def _copy(target: Any, source: Any, size: int) -> None:
    """Copy bytes on the device; CuPy would compile a kernel for it."""
    import cupy

    target.data.copy_from_device_async(source.data, size, cupy.cuda.get_current_stream())


def _in_order(members: NDArray[np.void], chunks: int) -> NDArray[np.void]:
    """The ends of members in some chunks, in the order of the file."""
    order = np.argsort(members["chunk"], kind="stable")
    return members[order[: np.searchsorted(members["chunk"], chunks, sorter=order)]]


@lru_cache(maxsize=1)
def zero_moves() -> NDArray[np.uint32]:
    """uint32[31, 32]: what each bit of a CRC-32 register becomes by 1, 2, 4, ... bytes of zeros."""
    columns = np.array([1 << bit for bit in range(32)], dtype=np.uint32)
    for _ in range(8):
        columns = np.where(columns & 1, columns >> 1 ^ np.uint32(_POLYNOMIAL), columns >> 1)
    powers = [columns]
    bits = np.arange(32, dtype=np.uint32)
    for _ in range(30):
        chosen = np.where(columns[:, None] >> bits & 1, columns[None, :], 0)
        columns = np.bitwise_xor.reduce(chosen, axis=1).astype(np.uint32)
        powers.append(columns)
    return np.array(powers, dtype=np.uint32)
