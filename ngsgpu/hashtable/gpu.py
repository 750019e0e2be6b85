"""A multi-bucket hash table in a GPU's memory: insert, count and retrieve (key, value) words.

A word is ``key << 32 | value``. Words are inserted in batches, so that never all of them need to
be in memory at once. Slots, their keys and their buckets are described in ``hash_table.cu``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import THREADS, TILE, KernelModule, grid_of, grid_of_warps
from ngsgpu.device.cuda.sort import again_after_freeing
from ngsgpu.errors import DeviceError

KERNELS: Final = KernelModule("ngsgpu.hashtable", "hash_table.cu")
BUCKETS: Final = (1, 2, 4, 8)
"""Values that a slot may have places for."""

_GROUP: Final = 8
"""Slots of a group; as in ``hash_table.cu``."""

_SLOTS_PER_SPILLED: Final = 64
"""There is room for one word without a slot for this many slots."""

_MAX_GROUPS: Final = (1 << 32) - 1


class HashTable:
    """A table on the current GPU, initially empty.

    Args:
        slots: minimum number of slots; rounded up to a prime number of groups.
        bucket: values per slot, one of ``BUCKETS``.
        max_values: maximum values kept per key, the first inserted.
    """

    def __init__(self, slots: int, bucket: int, max_values: int) -> None:
        import cupy

        if bucket not in BUCKETS:
            raise ValueError(f"there are no buckets of {bucket}")
        self._groups = groups_for(slots)
        self._bucket = bucket
        self._max_values = max_values
        self._keys = cupy.empty(self.slots, dtype=cupy.uint32)
        self._values = cupy.empty(self.slots * bucket, dtype=cupy.uint32)
        self._spill = cupy.empty(_spill_room(self.slots), dtype=cupy.uint64)
        self._counters = cupy.zeros(2, dtype=cupy.uint64)
        for array in (self._keys, self._values):
            array.data.memset_async(0xFF, array.nbytes)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self._groups * _GROUP

    @property
    def nbytes(self) -> int:
        """Bytes of GPU memory."""
        return table_bytes(self.slots, self._bucket)

    def insert(self, pairs: Any) -> None:
        """Insert a batch.

        Args:
            pairs: CuPy uint64, sorted. For each key, values of later batches must come after
                these.
        """
        kernel = f"insert_words_{self._bucket}"
        blocks = min(*grid_of(len(pairs), THREADS), KERNELS.resident_blocks(kernel, THREADS))
        arguments = pairs, np.int64(len(pairs)), np.uint32(self._max_values), *self._arrays()
        KERNELS.launch(kernel, (blocks,), (THREADS,), arguments)

    def used(self) -> tuple[int, int]:
        """Slots that are taken, and words for which there was none."""
        slots, spilled = self._counters.get().tolist()
        return slots, spilled

    @property
    def is_full(self) -> bool:
        """Whether words were lost."""
        return self.used()[1] > len(self._spill)

    def count(self, prefix: int = 0, bits: int = 0) -> int:
        """Number of words whose keys' top ``bits`` bits are ``prefix``.

        Raises:
            DeviceError: words were lost, for the table was too small.
        """
        if self.is_full:
            raise DeviceError(
                f"a hash table of {self.slots:,} slots with {self._bucket} places each is full; "
                "more keys or values came than it was made for"
            )
        return int(self._choose(prefix, bits, np.uint64(0)).get()[0])

    def retrieve(self, prefix: int = 0, bits: int = 0) -> Any:
        """The words whose keys' top ``bits`` bits are ``prefix``, CuPy uint64, in no order.

        Raises:
            DeviceError: pairs were lost, for the table was too small.
        """
        import cupy

        size = self.count(prefix, bits)
        pairs = again_after_freeing(lambda: cupy.empty(size, dtype=cupy.uint64))
        self._choose(prefix, bits, pairs)
        return pairs

    def _choose(self, prefix: int, bits: int, pairs: Any) -> Any:
        """Write words to an array, unless that is null; their number, CuPy uint64[1]."""
        import cupy

        count = cupy.zeros(1, dtype=cupy.uint64)
        places = self.slots * self._bucket + len(self._spill)
        KERNELS.launch(
            f"choose_slots_{self._bucket}", grid_of_warps(-(-places // TILE)), (THREADS,),
            (*self._arrays(), np.int32(bits), np.uint32(prefix), pairs, count),
        )  # fmt: skip
        return count

    def _arrays(self) -> tuple[Any, ...]:
        """The table as passed to kernels."""
        return (
            self._keys, self._values, np.uint32(self._groups), self._spill,
            np.int64(len(self._spill)), self._counters,
        )  # fmt: skip


def table_bytes(slots: int, bucket: int) -> int:
    """Size of a table in GPU memory, in bytes."""
    return slots * 4 * (1 + bucket) + 8 * _spill_room(slots)


def _spill_room(slots: int) -> int:
    return 64 + slots // _SLOTS_PER_SPILLED


def slots_taken(pairs: Any, max_values: int) -> NDArray[np.int64]:
    """Slots needed by sorted pairs, for each bucket size in ``BUCKETS``; int64.

    Args:
        pairs: CuPy uint64.
        max_values: maximum values kept per key.
    """
    import cupy

    slots = cupy.zeros(len(BUCKETS), dtype=cupy.uint64)
    if len(pairs) > 0:
        KERNELS.launch_threads(
            "count_slots", len(pairs), pairs, np.int64(len(pairs)), np.uint32(max_values), slots
        )
    return np.asarray(slots.get(), dtype=np.int64)


def groups_for(slots: int) -> int:
    """The smallest prime number of groups with at least this many slots.

    Raises:
        DeviceError: too many slots for a table.
    """
    groups = max(2, -(-slots // _GROUP))
    while not _is_prime(groups):
        groups += 1
    if groups > _MAX_GROUPS:
        raise DeviceError(f"a hash table cannot have {slots:,} slots; split the input")
    return groups


def _is_prime(number: int) -> bool:
    return all(number % factor for factor in range(2, math.isqrt(number) + 1))
