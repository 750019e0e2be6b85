"""Copies that carry out a plan for data of given sizes: from where, to where, and after which.

Data for the same GPU that takes the same way is one copy a step. What stops at a GPU on its way is
in a staging buffer there; its place is used again as soon as it has left, so that a plan of long
steps needs the two buffers that it is made for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.collectives.plan import ONE, Plan, demands
from ngsgpu.device.arena import Extents

PIECE_ALIGNMENT: Final = 512
"""Data is cut at multiples of this many bytes."""

SLOT_BYTES: Final = 16 << 20
"""Of a pinned buffer; each pair of GPUs that has data for each other through the host has two."""

_SLOTS: Final = 2


class Place(NamedTuple):
    """Where data is.

    Attributes:
        node: a GPU, or the number of GPUs for pinned host memory.
        buffer: ``send``, ``receive`` or ``staging``.
        at: byte in the buffer.
    """

    node: int
    buffer: str
    at: int


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy.

    Attributes:
        source: from where.
        to: to where.
        size: bytes, at least 1.
        after: numbers of the copies that must have ended before: those that bring the data, or
            read what was in its place.
    """

    source: Place
    to: Place
    size: int
    after: tuple[int, ...]


@dataclass(slots=True)
class Transfers:
    """Copies in the order in which they are issued.

    Attributes:
        sizes: int64[n, n], bytes that each GPU has for each other one.
        copies: without those of a GPU to itself.
        staging: bytes of the staging buffers of all GPUs, and of the host.
    """

    sizes: NDArray[np.int64]
    copies: list[Copy] = field(default_factory=list)
    staging: list[int] = field(default_factory=list)


def starts_to_send(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in the send buffer of a GPU (row) the data for a GPU (column) begins."""
    return np.cumsum(sizes, axis=1) - sizes


def starts_to_receive(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in the receive buffer of a GPU (column) the data of a GPU (row) begins."""
    return np.cumsum(sizes, axis=0) - sizes


def direct_transfers(sizes: NDArray[np.int64]) -> Transfers:
    """Each GPU copies to each other one, beginning with its next, so that none gets all at once."""
    gpus = len(sizes)
    ways = [(gpu, (gpu + shift) % gpus) for shift in range(1, gpus) for gpu in range(gpus)]
    found = Transfers(sizes, staging=[0] * (gpus + 1))
    sends, receives = starts_to_send(sizes), starts_to_receive(sizes)
    for way in ways:
        if sizes[way] > 0:
            source = Place(way[0], "send", int(sends[way]))
            to = Place(way[1], "receive", int(receives[way]))
            found.copies.append(Copy(source, to, int(sizes[way]), ()))
    return found


def planned_transfers(plan: Plan, sizes: NDArray[np.int64]) -> Transfers:
    """The copies of a plan.

    Args:
        plan: that was checked; pairs that it does not have must have no data.
        sizes: int64[n, n], bytes that each GPU has for each other one.

    Raises:
        ValueError: the plan is for other GPUs, or for another operation.
    """
    gpus = plan.gpus
    wanted = demands(plan.kind, gpus, plan.main)
    others = sizes.copy() if sizes.shape == (gpus, gpus) else None
    if others is not None:
        np.fill_diagonal(others, 0)
        for pair in wanted:
            others[pair] = 0
    if others is None or others.any():
        raise ValueError(f"a plan of {plan.kind} for {gpus} GPUs does not move this data")
    if plan.kind == "all2all" and plan.durations == ONE * len(plan.durations) == ONE:
        return direct_transfers(sizes)
    maker = _Maker(plan, Transfers(sizes, staging=[0] * (gpus + 1)))
    for step in range(len(plan.durations)):
        maker.take(step)
    return maker.found


@dataclass(slots=True)
class _Load:
    """Data of one GPU for another one that takes one way.

    Attributes:
        path: GPUs, before the first step and after each.
        size: bytes.
        at: where it is.
        last: number of the copy that brought it; none before the first.
    """

    path: tuple[int, ...]
    size: int
    at: Place
    last: tuple[int, ...] = ()


class _Maker:
    """Makes the copies of a plan, step by step."""

    def __init__(self, plan: Plan, found: Transfers) -> None:
        self.found = found
        room = int(found.sizes.sum()) + 2 * PIECE_ALIGNMENT * len(plan.paths)
        self._extents = [Extents(room) for _ in range(plan.gpus)]
        # Parts of staging buffers that were read: begin, end, number of the copy that did.
        self._read: list[list[tuple[int, int, int]]] = [[] for _ in range(plan.gpus)]
        self._ends: dict[int, Place] = {}
        self._loads: list[_Load] = []
        receives = starts_to_receive(found.sizes)
        for path, begin, size in _pieces(plan, found.sizes):
            at = Place(path[0], "send", int(starts_to_send(found.sizes)[path[0], path[-1]]) + begin)
            to = Place(path[-1], "receive", int(receives[path[0], path[-1]]) + begin)
            self._ends[len(self._loads)] = to
            self._loads.append(_Load(path, size, at))

    def take(self, step: int) -> None:
        """Add the copies of a step; what they free is used from the next step on."""
        left: list[tuple[Place, int, int]] = []
        for number, load in enumerate(self._loads):
            here, there = load.path[step], load.path[step + 1]
            if here == there:
                continue
            # Data that comes by its target and goes on has not arrived.
            before: tuple[int, ...] = ()
            if there == load.path[-1] and set(load.path[step + 1 :]) == {there}:
                to = self._ends[number]
            else:
                to, before = self._staged(there, load.size)
            own = len(self.found.copies)
            after = tuple(sorted({*load.last, *before}))
            self.found.copies.append(Copy(load.at, to, load.size, after))
            left.append((load.at, load.size, own))
            load.at, load.last = to, (own,)
        for place, size, reader in left:
            if place.buffer == "staging":
                self._extents[place.node].release(place.at)
                self._read[place.node].append((place.at, place.at + size, reader))

    def _staged(self, gpu: int, size: int) -> tuple[Place, tuple[int, ...]]:
        """A place on the way, and the copies that read what was there."""
        rounded = -(-size // PIECE_ALIGNMENT) * PIECE_ALIGNMENT
        at = self._extents[gpu].take(rounded, from_end=False)
        assert at is not None, "staging buffers have room for all data"
        staging = self.found.staging
        staging[gpu] = max(staging[gpu], at + rounded)
        readers = [own for begin, end, own in self._read[gpu] if begin < at + size and at < end]
        return Place(gpu, "staging", at), tuple(readers)


def _pieces(plan: Plan, sizes: NDArray[np.int64]) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Ways, each with the first byte and the size of what takes it; of each pair in order."""
    ways = Counter(plan.paths)
    used: Counter[tuple[int, int]] = Counter()
    for path in sorted(ways):
        pair = path[0], path[-1]
        size = int(sizes[pair])
        begin, end = (_cut(size, used[pair] + more, plan.chunks) for more in (0, ways[path]))
        used[pair] += ways[path]
        if end > begin:
            yield path, begin, end - begin


def _cut(size: int, chunks: int, whole: int) -> int:
    """Bytes of a given number of all chunks."""
    share = size * chunks // whole
    return size if chunks == whole else share // PIECE_ALIGNMENT * PIECE_ALIGNMENT


def host_transfers(sizes: NDArray[np.int64], slot_bytes: int = SLOT_BYTES) -> Transfers:
    """Copies through pinned host memory, each pair's through two buffers in turn."""
    gpus = len(sizes)
    found = Transfers(sizes, staging=[0] * (gpus + 1))
    sends, receives = starts_to_send(sizes), starts_to_receive(sizes)
    pairs = [(a, b) for a in range(gpus) for b in range(gpus) if a != b and sizes[a, b] > 0]
    slot = min(slot_bytes, max((int(sizes[pair]) for pair in pairs), default=0))
    slot = -(-slot // PIECE_ALIGNMENT) * PIECE_ALIGNMENT
    downs: dict[tuple[int, int], list[int]] = {pair: [] for pair in pairs}
    most = max((-(-int(sizes[pair]) // slot) for pair in pairs), default=0)
    for piece in range(most):
        for number, pair in enumerate(pairs):
            begin = piece * slot
            size = min(slot, int(sizes[pair]) - begin)
            if size <= 0:
                continue
            own = (_SLOTS * number + piece % _SLOTS) * slot
            between = Place(gpus, "staging", own)
            before = downs[pair][piece - _SLOTS :][:1] if piece >= _SLOTS else []
            source = Place(pair[0], "send", int(sends[pair]) + begin)
            to = Place(pair[1], "receive", int(receives[pair]) + begin)
            found.copies.append(Copy(source, between, size, tuple(before)))
            found.copies.append(Copy(between, to, size, (len(found.copies) - 1,)))
            downs[pair].append(len(found.copies) - 1)
    found.staging[gpus] = _SLOTS * slot * len(pairs)
    return found
