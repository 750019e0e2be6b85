"""A multi-bucket hash table of (key, window) words in a GPU's memory.

Words come in batches, so that it is never necessary to have all of them at once. The slots, their
keys and their buckets are described in ``hash_table.cu``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.gpu import THREADS, grid_of, grid_of_threads
from ngsgpu.classify.index.gpu_pairs import PAIR_TILE, KeyRange, empty_pairs, grid_of_tiles
from ngsgpu.device.kernels import KernelModule
from ngsgpu.errors import DeviceError

KERNELS: Final = KernelModule("ngsgpu.hashtable", "hash_table.cu")
BUCKETS: Final = (1, 2, 4, 8)
"""Windows that a slot may have places for."""

_GROUP: Final = 8
"""Slots of a group; as in ``hash_table.cu``."""

_SLOTS_PER_SPILLED: Final = 64
"""There is room for one word without a slot for so many slots."""

_MAX_GROUPS: Final = (1 << 32) - 1


class HashTable:
    """A table on the current GPU, empty at first.

    Args:
        slots: how many there are; a few are added, so that groups are a prime number.
        bucket: places for windows of each, one of ``BUCKETS``.
        most: windows of a key that are kept, the first that are inserted.
    """

    def __init__(self, slots: int, bucket: int, most: int) -> None:
        import cupy

        if bucket not in BUCKETS:
            raise ValueError(f"there are no buckets of {bucket}")
        self._groups = groups_for(slots)
        self._bucket = bucket
        self._most = most
        self._keys = cupy.empty(self.slots, dtype=cupy.uint32)
        self._windows = cupy.empty(self.slots * bucket, dtype=cupy.uint32)
        self._spill = cupy.empty(_spill_room(self.slots), dtype=cupy.uint64)
        self._counters = cupy.empty(2, dtype=cupy.uint64)
        for array, byte in ((self._keys, 0xFF), (self._windows, 0xFF), (self._counters, 0)):
            array.data.memset_async(byte, array.nbytes)

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return self._groups * _GROUP

    @property
    def nbytes(self) -> int:
        """Bytes of GPU memory."""
        return table_bytes(self.slots, self._bucket)

    def insert(self, pairs: Any) -> None:
        """Insert a batch.

        Args:
            pairs: CuPy uint64, sorted. Of each key, the windows that are inserted in later batches
                come after these.
        """
        kernel = f"insert_words_{self._bucket}"
        tiles = grid_of(len(pairs), THREADS)[0]
        KERNELS.launch(
            kernel, (min(tiles, KERNELS.resident_blocks(kernel, THREADS)),), (THREADS,),
            (pairs, np.int64(len(pairs)), np.uint32(self._most), *self._arrays()),
        )  # fmt: skip

    def used(self) -> tuple[int, int]:
        """Slots that are taken, and words for which there was none."""
        slots, spilled = self._counters.get().tolist()
        return slots, spilled

    @property
    def is_full(self) -> bool:
        """Whether words were lost."""
        return self.used()[1] > len(self._spill)

    def pairs(self, keys: KeyRange) -> Any:
        """The words of a range of keys, CuPy uint64, in no order.

        Raises:
            DeviceError: words were lost, for the table was too small.
        """
        import cupy

        if self.is_full:
            raise DeviceError(
                f"a hash table of {self.slots:,} slots with {self._bucket} places each is full; "
                "more keys or locations came than it was made for"
            )
        counts = cupy.empty(2, dtype=cupy.uint64)
        counts.data.memset_async(0, counts.nbytes)
        self._choose(keys, np.uint64(0), counts[:1])
        pairs = empty_pairs(int(counts[:1].get()[0]))
        self._choose(keys, pairs, counts[1:])
        return pairs

    def _choose(self, keys: KeyRange, pairs: Any, count: Any) -> None:
        places = self.slots * self._bucket + len(self._spill)
        KERNELS.launch(
            f"choose_slots_{self._bucket}", grid_of_tiles(-(-places // PAIR_TILE)), (THREADS,),
            (*self._arrays(), np.int32(keys.bits), np.uint32(keys.number), pairs, count),
        )  # fmt: skip

    def _arrays(self) -> tuple[Any, ...]:
        """The table as kernels take it."""
        return (
            self._keys, self._windows, np.uint32(self._groups), self._spill,
            np.int64(len(self._spill)), self._counters,
        )  # fmt: skip


def table_bytes(slots: int, bucket: int) -> int:
    """Bytes of GPU memory that a table takes."""
    return slots * 4 * (1 + bucket) + 8 * _spill_room(slots)


def _spill_room(slots: int) -> int:
    return 64 + slots // _SLOTS_PER_SPILLED


def slots_taken(pairs: Any, most: int) -> NDArray[np.int64]:
    """Slots that sorted words take, with buckets of each size in ``BUCKETS``; int64.

    Args:
        pairs: CuPy uint64.
        most: windows of a key that are kept.
    """
    import cupy

    slots = cupy.empty(len(BUCKETS), dtype=cupy.uint64)
    slots.data.memset_async(0, slots.nbytes)
    if len(pairs) > 0:
        KERNELS.launch(
            "count_slots", grid_of_threads(len(pairs)), (THREADS,),
            (pairs, np.int64(len(pairs)), np.uint32(most), slots),
        )  # fmt: skip
    return np.asarray(slots.get(), dtype=np.int64)


def groups_for(slots: int) -> int:
    """The least prime number of groups with so many slots.

    Raises:
        DeviceError: a table cannot have so many.
    """
    groups = max(2, -(-slots // _GROUP))
    while not _is_prime(groups):
        groups += 1
    if groups > _MAX_GROUPS:
        raise DeviceError(f"a hash table cannot have {slots:,} slots; cut the database into parts")
    return groups


def _is_prime(number: int) -> bool:
    return all(number % factor for factor in range(2, math.isqrt(number) + 1))
