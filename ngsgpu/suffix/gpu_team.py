"""Suffix arrays of texts that do not fit on one GPU, on several; equal to those of ``array``.

Prefix doubling over GPUs [Schmidt 2022, chapter 5]. Each GPU has a block of the text, with the
ranks of the suffixes that begin there, and a range of the array. The suffixes are sorted by their
first 8 letters over all GPUs, those that agree in them on one, and their ranks are sent to the GPUs
that have their letters. Suffixes that are not alone with their rank then fetch those of the
suffixes 8 letters further on, are sorted by them where they are, and send their new ranks; then 16,
32 and so on, until all are alone. Everything that GPUs send is an all-to-all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.collectives import Exchange, by_ranges, partition, shuffle, sorted_shuffle
from ngsgpu.collectives.rows import Table, even_splitters, sample_of
from ngsgpu.device.cuda.sort import order_of_rows
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, MemoryPlan, gpu_memory
from ngsgpu.device.team import Team, limited_gpu_memory
from ngsgpu.suffix.array import Places
from ngsgpu.suffix.gpu import FIRST_LETTERS, KERNELS, MOST_LETTERS, plan_array, suffix_array_on_gpu

_LETTER_BYTES: Final = {4: 60, 8: 72}
"""Peak GPU memory of a letter, by the bytes of a place: while keys and places are
sorted, or ranks sent."""

_UNEVEN: Final = 1.2
"""How much larger than the others a range of the array may be, which is chosen by samples."""


def suffix_array_on_gpus(
    text: NDArray[np.uint8], *, gpus: int = 1, limit: int | None = None
) -> Places:
    """The suffix array of a text, on as many GPUs as it takes; see ``suffix_array``.

    Args:
        text: uint8[n].
        gpus: how many may be used, the current one and those after it.
        limit: memory that may be used on each, in bytes; None: free memory.

    Raises:
        DeviceMemoryError: it does not fit.
        DeviceError: CUDA fails.
    """
    if gpus == 1 or plan_array(len(text), limit).fits:
        return suffix_array_on_gpu(text, limit=limit)
    with limited_gpu_memory(limit, gpus), cuda_errors("sorting suffixes on several GPUs"):
        team = Team(gpus)
        plan_team(len(text), team, limit).check()
        return sorted_by_team(text, Exchange(team))


def plan_on_gpus(size: int, gpus: int, limit: int | None) -> MemoryPlan:
    """Plan the suffix array of a text on each of the GPUs that sort it.

    Args:
        size: its letters.
        gpus: how many may be used.
        limit: memory that may be used on each, in bytes; None: free memory.
    """
    alone = plan_array(size, limit)
    return alone if gpus == 1 or alone.fits else plan_team(size, Team(gpus), limit)


def plan_team(size: int, team: Team, limit: int | None) -> MemoryPlan:
    """Plan the suffix array of a text on each of several GPUs.

    Args:
        size: its letters.
        team: the GPUs.
        limit: memory that may be used on each, in bytes; None: free memory.
    """
    share = int(_UNEVEN * _LETTER_BYTES[_kind(size).itemsize] * size / len(team))
    return MemoryPlan(
        doing=f"the suffix array of {size:,} letters, on each of {len(team)} GPUs,",
        allocations=(Allocation("letters", share),),
        budget=min(team.each(lambda member: gpu_memory(limit).budget)),
        remedies=("use more GPUs",),
    )


def sorted_by_team(text: NDArray[np.uint8], exchange: Exchange) -> Places:
    """The suffix array of a text of any size, by all GPUs of an exchange.

    Raises:
        DeviceError: CUDA fails, or the memory does not suffice.
    """
    if len(text) == 0:
        return np.empty(0, dtype=np.int32)
    doubling = _Doubling(text, exchange)
    known = FIRST_LETTERS
    while doubling.left():
        doubling.sort_further(known)
        known *= 2
    return doubling.places()


def _kind(size: int) -> np.dtype[Any]:
    """Type of places and ranks."""
    return np.dtype(np.uint32 if size <= MOST_LETTERS else np.uint64)


@dataclass(slots=True)
class _Part:
    """Share of a GPU.

    Attributes:
        ranks: of the suffixes that begin in its block of the text.
        places: its range of the array.
        base: number of the first one of the range in the whole array.
        slots: int64, which of ``places`` are not alone with their rank, ascending.
        suffixes: what is there.
        heads: their ranks.
    """

    ranks: Any
    places: Any
    base: int
    slots: Any
    suffixes: Any
    heads: Any


class _Doubling:
    """Suffixes of a text on several GPUs, sorted by their first letters."""

    def __init__(self, text: NDArray[np.uint8], exchange: Exchange) -> None:
        self._size = len(text)
        self._kind = _kind(self._size)
        self._exchange = exchange
        self._team = exchange.team
        gpus = len(exchange)
        self._bounds = [self._size * gpu // gpus for gpu in range(gpus + 1)]
        self._by_block = by_ranges(self._bounds[1:-1])
        tables = self._team.each(lambda gpu: self._first_keys(text, gpu))
        samples = self._team.each(lambda gpu: sample_of(tables[gpu][0]))
        splitters = even_splitters(samples, [len(keys) for keys, _ in tables], gpus)
        tables = sorted_shuffle(exchange, tables, by_ranges(splitters))
        bases = np.cumsum([0, *(len(keys) for keys, _ in tables)]).tolist()

        def begin(gpu: int) -> _Part:
            (keys, places), tables[gpu] = tables[gpu], ()
            return self._begun(gpu, keys, places, bases[gpu])

        self._parts = self._team.at_once(begin)
        self._send_ranks()
        self._team.at_once(self._drop_alone)

    def _first_keys(self, text: NDArray[np.uint8], gpu: int) -> Table:
        """The first letters of the suffixes of a block, and where these begin."""
        import cupy

        begin, end = self._bounds[gpu : gpu + 2]
        part = to_device(text[begin : end + FIRST_LETTERS - 1])
        keys = cupy.empty(len(part), dtype=cupy.uint64)
        if len(part):
            KERNELS.launch_threads("pack_bytes", len(part), part, np.int64(len(part)), keys)
        return keys[: end - begin], cupy.arange(begin, end, dtype=self._kind)

    def _begun(self, gpu: int, keys: Any, places: Any, base: int) -> _Part:
        import cupy

        count = len(places)
        ranks = cupy.empty(self._bounds[gpu + 1] - self._bounds[gpu], dtype=self._kind)
        slots = cupy.arange(count, dtype=cupy.int64)
        heads = self._heads(_changes(keys), slots, base)
        return _Part(ranks, places, base, slots, places, heads)

    def _heads(self, changes: Any, slots: Any, base: int) -> Any:
        """Ranks of sorted suffixes: the place in the array of the first one of each group.

        Args:
            changes: bool[m], where groups begin.
            slots: int64[m], where the suffixes are.
            base: see ``_Part``.
        """
        import cupy

        starts = slots[cupy.flatnonzero(changes)] + base
        return starts.astype(self._kind)[cupy.cumsum(changes) - 1]

    def left(self) -> bool:
        """Whether there are suffixes that are not alone with their rank."""
        return any(len(part.slots) > 0 for part in self._parts)

    def sort_further(self, known: int) -> None:
        """Sort what agrees in the first ``known`` letters by as many further ones."""
        rests = self._ranks_behind(known)

        def sort(gpu: int) -> None:
            part, rest = self._parts[gpu], rests[gpu]
            rests[gpu] = None
            order = order_of_rows((part.heads, rest))
            # Groups are in order and stay where they are.
            part.suffixes, rest = part.suffixes[order], rest[order]
            changes = _changes(part.heads) | _changes(rest)
            part.places[part.slots] = part.suffixes
            part.heads = self._heads(changes, part.slots, part.base)

        self._team.at_once(sort)
        self._send_ranks()
        self._team.at_once(self._drop_alone)

    def _ranks_behind(self, known: int) -> list[Any]:
        """For all that is left, what orders it by the letters behind ``known`` ones."""
        gpus = len(self._parts)

        def ask(gpu: int) -> tuple[Table, NDArray[np.int64]]:
            import cupy

            suffixes = self._parts[gpu].suffixes
            listed = cupy.flatnonzero(suffixes < max(0, self._size - known))
            wanted = suffixes[listed] + self._kind.type(known % self._size)
            return partition((wanted, listed), self._by_block(wanted), gpus)

        asked = self._team.each(ask)
        counts = np.stack([own for _, own in asked])
        arrived = self._exchange.all_to_all([wanted for (wanted, _), _ in asked], counts)

        def answer(gpu: int) -> Any:
            wanted, arrived[gpu] = arrived[gpu], None
            return self._parts[gpu].ranks[wanted - self._kind.type(self._bounds[gpu])]

        back = self._exchange.all_to_all(self._team.each(answer), counts.T)

        def take(gpu: int) -> Any:
            # A suffix that has no rest comes before the others, shorter ones first.
            rest = self._kind.type(self._size - 1) - self._parts[gpu].suffixes
            (_, listed), _ = asked[gpu]
            rest[listed] = back[gpu] + self._kind.type(known % self._size)
            return rest

        return self._team.each(take)

    def _send_ranks(self) -> None:
        """Give the ranks of what is left to the GPUs that have the text there."""
        tables = [(part.suffixes, part.heads) for part in self._parts]
        arrived = shuffle(self._exchange, tables, self._by_block)

        def write(gpu: int) -> None:
            suffixes, heads = arrived[gpu]
            self._parts[gpu].ranks[suffixes - self._kind.type(self._bounds[gpu])] = heads

        self._team.each(write)

    def _drop_alone(self, gpu: int) -> None:
        """Leave out what is alone with its rank, and so in its place."""
        import cupy

        part = self._parts[gpu]
        changes = _changes(part.heads)
        alone = changes.copy()
        alone[:-1] &= changes[1:]
        left = cupy.flatnonzero(~alone)
        part.slots, part.suffixes = part.slots[left], part.suffixes[left]
        part.heads = part.heads[left]

    def places(self) -> Places:
        """The suffix array, when nothing is left."""
        found = np.empty(self._size, dtype=self._kind)

        def fetch(gpu: int) -> None:
            part = self._parts[gpu]
            found[part.base : part.base + len(part.places)] = part.places.get()

        self._team.at_once(fetch)
        return found.view(np.int32 if self._kind.itemsize == 4 else np.int64)


def _changes(values: Any) -> Any:
    """Mask of sorted values that differ from the one before; true for the first."""
    import cupy

    changes = cupy.ones(len(values), dtype=bool)
    changes[1:] = values[1:] != values[:-1]
    return changes
