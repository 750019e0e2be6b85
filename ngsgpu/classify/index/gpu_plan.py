"""Plans index builds whose words do not all fit into a GPU's memory at once.

There are two methods, both with ranges of keys processed one by one:

- sorting: the words of each range are made from all features, and sorted;
- tables: each (larger) range has a hash table in the GPU's memory, into which the features are
  inserted batch by batch; smaller ranges of its words are sorted.

A table needs less memory per word, so that features on the host are read less often; but it is
slower than sorting.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.gpu_pairs import MAX_PART_BITS, KeyRange, SketchPairs
from ngsgpu.classify.index.index import Limits, directory_bits
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.plan import Allocation, MemoryPlan, first_fitting
from ngsgpu.device.team import free_unused
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.hashtable.gpu import BUCKETS, HashTable, slots_taken, table_bytes

_LOG = logging.getLogger(__name__)

_BYTES_PER_PAIR: Final = 17
"""Device memory for a word while it is sorted, or its entry and location are written."""

_BYTES_PER_PAIR_WITH_TAXA: Final = 34
_BYTES_PER_PAIR_LENT: Final = 8
"""And for a word that another GPU waits for."""

_SPARE: Final = 2 << 20
"""GPU memory for small arrays, in bytes."""

_MAX_IN_TABLE: Final = 4096
"""Locations of a key beyond which its slots in a table are too many to look through."""

_LOAD: Final = 0.9
"""Share of a table's slots that are to be taken."""

_SAMPLE: Final = 1 << 22
"""Number of sampled words from which the number of slots is estimated."""

_SAMPLE_ERROR: Final = 1.03
_STEPS: Final = ("inserting", "sorting")
_NO_LIMIT: Final = 1 << 62
_BATCH: Final = 1 << 23
"""Words that are inserted into a table at a time."""

_BUS: Final = 45e9
"""Bytes of features that a GPU reads from the memory of the host in a second, and words that it
inserts into a table: measured on an H200."""

_INSERTED: Final = 3.5e9


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Hash tables for ranges of keys.

    Attributes:
        bits: of the ranges with separate tables.
        bucket: values per slot.
        slots: of a table.
        batch: words inserted at a time, unless one source has more.
    """

    bits: int
    bucket: int
    slots: int
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan(MemoryPlan):
    """How an index is built, and its memory on each GPU beside the features.

    Attributes:
        bits: of the ranges of keys that are sorted one by one.
        keep: whether the words of all of them can be kept until the end.
        table: hash tables for the words; None if they are made from the features again.
    """

    bits: int
    keep: bool
    table: TablePlan | None = None

    @property
    def is_scarce(self) -> bool:
        """Whether unused memory must be returned immediately."""
        return self.table is not None or 2 * self.total > self.budget

    def ranges(self, gpus: int) -> list[list[KeyRange]]:
        """The ranges of each GPU, in ascending order."""
        whole = self.bits if self.table is None else self.table.bits
        ranges: list[list[KeyRange]] = [[] for _ in range(gpus)]
        for number in range(1 << self.bits):
            keys = KeyRange(number, self.bits)
            ranges[keys.within(whole).number * gpus >> whole].append(keys)
        return ranges


def plan_build(
    source: SketchPairs,
    limits: Limits,
    gpus: int,
    room: int | None,
    *,
    use_table: bool | None = None,
) -> BuildPlan:
    """Plan an index build; needs the current GPU.

    Args:
        source: makes the words.
        limits: rules for keeping locations.
        gpus: number of participating GPUs.
        room: memory budget per GPU in bytes; None: no limit.
        use_table: whether to use hash tables; None: whichever is faster.

    Raises:
        DeviceMemoryError: the memory does not suffice even for the smallest ranges.
    """
    memory = RangeMemory(
        source.sizes.sum(axis=0), limits, gpus, _NO_LIMIT if room is None else room
    )
    by_sorting = memory.plan_sorting()
    if room is None or use_table is False or (by_sorting.keep and not use_table):
        return by_sorting
    by_table = _plan_table(source, limits, memory, by_sorting.bits)
    if by_table is None or by_table.table is None:
        return by_sorting
    sorting = _seconds_to_read(source, by_sorting.bits, memory.fewest)
    inserting = _seconds_to_read(source, by_table.table.bits, memory.fewest)
    inserting += 2 * int(source.sizes.sum()) / _INSERTED
    _LOG.debug("%s: %.2f s beside sorting; %s: %.2f s", by_sorting, sorting, by_table, inserting)
    return by_table if use_table or inserting < sorting else by_sorting


@dataclass(frozen=True, slots=True)
class RangeMemory:
    """GPU memory of ranges of keys.

    Attributes:
        sizes: int64[2^MAX_PART_BITS], words of the smallest ranges.
        limits: rules for keeping locations.
        gpus: number of participating GPUs.
        room: memory budget per GPU in bytes.
    """

    sizes: NDArray[np.int64]
    limits: Limits
    gpus: int
    room: int

    @property
    def fewest(self) -> int:
        """Bits of the largest ranges: one for each GPU."""
        return math.ceil(math.log2(self.gpus))

    @property
    def bytes_per_pair(self) -> int:
        """Memory of a word while it is sorted."""
        own = _BYTES_PER_PAIR if self.limits.taxa == 0 else _BYTES_PER_PAIR_WITH_TAXA
        return own + (_BYTES_PER_PAIR_LENT if self.gpus > 1 else 0)

    def plan(
        self, bits: int, table: TablePlan | None = None, others: tuple[Allocation, ...] = ()
    ) -> BuildPlan:
        """The plan of sorting ranges one by one.

        Args:
            bits: of the ranges.
            table: hash tables for the words.
            others: what these take.
        """
        directory = (8 << directory_bits(int(self.sizes.sum()))) >> bits
        words = self.bytes_per_pair * largest_range(self.sizes, bits)
        return BuildPlan(
            doing="building an index",
            allocations=(
                Allocation("words", words, _STEPS[1:]),
                Allocation("directory", directory, _STEPS[1:]),
                Allocation("spare", _SPARE, _STEPS),
                *others,
            ),
            budget=self.room,
            remedies=("cut the database into more partitions",),
            bits=bits,
            keep=bits == self.fewest,
            table=table,
        )

    def plan_sorting(self) -> BuildPlan:
        """The plan with the largest ranges that fit.

        Raises:
            DeviceMemoryError: not even the smallest do.
        """
        return first_fitting(map(self.plan, range(self.fewest, MAX_PART_BITS + 1)))


def largest_range(sizes: NDArray[np.int64], bits: int) -> int:
    """The most that a range of keys has, of numbers for those of ``MAX_PART_BITS`` bits."""
    return int(sizes.reshape(*sizes.shape[:-1], 1 << bits, -1).sum(axis=-1).max(initial=0))


def _seconds_to_read(source: SketchPairs, bits: int, fewest: int) -> float:
    """Time to read the features on the host, twice per range unless the words can be kept."""
    return (1 if bits == fewest else 2) * source.bytes_on_host / _BUS * (1 << bits)


def _plan_table(
    source: SketchPairs, limits: Limits, memory: RangeMemory, sorted_bits: int
) -> BuildPlan | None:
    """The plan with the fewest tables; None if there is none.

    Args:
        source: makes the words.
        limits: rules for keeping locations.
        memory: memory of ranges.
        sorted_bits: of the ranges that can be sorted.
    """
    if limits.taxa > 0 or limits.locations > _MAX_IN_TABLE:
        return None
    pairs = int(memory.sizes.sum())
    sample_bits = min(MAX_PART_BITS, max(sorted_bits, (pairs // _SAMPLE).bit_length()))
    sample = source.pairs(KeyRange(0, sample_bits))
    radix_sort(sample)
    taken = slots_taken(sample, max_in_table(limits)) / max(1, len(sample))
    del sample
    free_unused()
    for bits in range(memory.fewest, MAX_PART_BITS + 1):
        largest = largest_range(memory.sizes, bits)
        slots = np.ceil(largest * taken * _SAMPLE_ERROR / _LOAD).astype(np.int64).tolist()
        # A sample may also miss keys by chance, which matters where there are few.
        slots = [own + 4 * math.isqrt(own) + 64 for own in slots]
        least, bucket, own_slots = min(
            (table_bytes(own, bucket), bucket, own)
            for own, bucket in zip(slots, BUCKETS, strict=True)
        )
        batch = max(largest_range(source.sizes, bits), min(_BATCH, largest))
        table = TablePlan(bits, bucket, own_slots, batch)
        others = (
            Allocation("table", least, _STEPS),
            Allocation("inserted", memory.bytes_per_pair * batch, _STEPS[:1]),
        )
        with contextlib.suppress(DeviceMemoryError):
            return first_fitting(
                memory.plan(within, table, others) for within in range(bits, MAX_PART_BITS + 1)
            )
    return None


def max_in_table(limits: Limits) -> int:
    """Locations of a key that a table has to keep: where too many count as none, one more."""
    return limits.locations + limits.remove_overfull


class TablePairs:
    """Makes the words of a partition with hash tables: see ``PairSource``.

    A range of keys has its own table, which is kept until one of another range is needed.

    Args:
        source: makes the words of features.
        plan: of the tables.
        limits: rules for keeping locations; others may be missing.
    """

    def __init__(self, source: SketchPairs, plan: TablePlan, limits: Limits) -> None:
        self._source = source
        self._plan = plan
        self._most = max_in_table(limits)
        self._tables: dict[int, tuple[KeyRange, HashTable | None]] = {}

    def pairs(self, keys: KeyRange) -> Any:
        """CuPy uint64 on the current GPU, in no order; a full table is done without."""
        import cupy

        own, device = keys.within(self._plan.bits), int(cupy.cuda.Device().id)
        if device not in self._tables or self._tables[device][0] != own:
            self._tables.pop(device, None)
            free_unused()
            self._tables[device] = own, self._filled(own)
        table = self._tables[device][1]
        if table is None:
            return self._source.pairs(keys)
        return table.retrieve(keys.number, keys.bits)

    def _filled(self, keys: KeyRange) -> HashTable | None:
        """The table of a range; None if it, or the memory, does not suffice."""
        try:
            table = HashTable(self._plan.slots, self._plan.bucket, self._most)
            for batch in self._batches(keys):
                pairs = self._source.pairs(keys, batch)
                radix_sort(pairs)
                table.insert(pairs)
                del pairs
        except MemoryError as error:
            _LOG.debug("%s has no table: %s", keys, error)
            return None
        used, spilled = table.used()
        _LOG.debug("%s: %d of %d slots of %d places, %d words beside them",
                   keys, used, table.slots, self._plan.bucket, spilled)  # fmt: skip
        return None if table.is_full else table

    def _batches(self, keys: KeyRange) -> Iterator[slice]:
        """Sources whose words are inserted at a time."""
        sizes = keys.of(self._source.sizes).tolist()
        first = total = 0
        for source, size in enumerate(sizes):
            if total > 0 and total + size > self._plan.batch:
                yield slice(first, source)
                first, total = source, 0
            total += size
        if total > 0:
            yield slice(first, len(sizes))
