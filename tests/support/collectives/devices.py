"""GPUs of NumPy arrays that carry out what was issued later, in any order that streams allow."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from ngsgpu.collectives.transfers import Place

Span = tuple[int, int, int]
"""Memory: array, begin, end."""


class Team:
    """As many GPUs as wanted."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus

    def __len__(self) -> int:
        return self.gpus


@dataclass(eq=False)
class Operation:
    """One of a stream.

    Attributes:
        work: what it does.
        after: operations that it is ordered after.
        reads: memory.
        writes: likewise.
    """

    work: Callable[[], None]
    after: list[Operation]
    reads: list[Span] = field(default_factory=list)
    writes: list[Span] = field(default_factory=list)


@dataclass(eq=False)
class Stream:
    """Operations in order."""

    last: Operation | None = None


class Devices:
    """Stands in for ``Peers``.

    Args:
        gpus: how many.
        access: whether they have access to each other's memory.
        nccl: whether NCCL is there.

    Attributes:
        issued: all operations.
        used: ways by which data went.
    """

    def __init__(self, gpus: int, *, access: bool = True, nccl: bool = False) -> None:
        self.gpus, self.access, self.with_nccl = gpus, access, nccl
        self.here = [Stream() for _ in range(gpus)]
        self.lanes: dict[tuple[int, int], Stream] = {}
        self.issued: list[Operation] = []
        self.used: list[tuple[int, int]] = []
        self.kernels = 0
        self._arrays: list[Any] = []

    def errors(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def issuing(self) -> Iterator[None]:
        yield

    def no_access(self) -> str | None:
        return None if self.access else "GPUs without access to each other's memory: 0 and 1"

    def no_nccl(self) -> str | None:
        return None if self.with_nccl else "NCCL is not installed"

    def need_access(self) -> None:
        assert self.access

    def need_nccl(self) -> None:
        assert self.with_nccl

    def empty(self, gpu: int, size: int, dtype: np.dtype[Any]) -> Any:
        garbage = np.frombuffer(b"\xa5" * (size * dtype.itemsize), dtype=np.uint8)
        return garbage.copy().view(dtype)

    def staging(self, node: int, size: int) -> Any:
        return self.empty(node, size, np.dtype(np.uint8))

    def keep(self, pinned: Any, here: Sequence[Stream]) -> None:
        pass

    def check_home(self, gpu: int, array: Any) -> None:
        pass

    def current(self, gpu: int) -> Stream:
        return self.here[gpu]

    def lane(self, source: int, to: int) -> Stream:
        return self.lanes.setdefault((source, to), Stream())

    def record(self, stream: Stream) -> Any:
        return SimpleNamespace(last=stream.last)

    def wait(self, stream: Stream, event: Any) -> None:
        before = [own for own in (stream.last, event.last) if own is not None]
        self._issue(stream, Operation(lambda: None, before))

    def copy(self, stream: Stream, to: Place, source: Place, size: int, buffers: Any) -> None:
        self.used.append((source.node, to.node))
        self._copy(stream, [(to, source, size)], buffers)

    def pull(self, stream: Stream, to: Place, parts: Any, buffers: Any) -> None:
        self.kernels += 1
        at, copies = to.at, []
        for place, size in parts:
            copies.append((to._replace(at=at), place, size))
            at += size
        self._copy(stream, copies, buffers)

    def nccl_exchange(self, buffers: Any, sizes: Any) -> None:
        raise AssertionError("not here")

    def work(self, gpu: int, array: Any, write: Callable[[], None]) -> None:
        """Order something that writes an array on a GPU's own stream."""
        stream = self.here[gpu]
        before = [stream.last] if stream.last else []
        span = self._span(array, 0, array.nbytes)
        self._issue(stream, Operation(write, before, writes=[span]))

    def run(self, seed: int) -> None:
        """Carry out everything, always any operation that may be next."""
        rng = random.Random(seed)
        self._check_order()
        waits = {id(own): len(own.after) for own in self.issued}
        nexts: dict[int, list[Operation]] = {id(own): [] for own in self.issued}
        for own in self.issued:
            for one in own.after:
                nexts[id(one)].append(own)
        able = [own for own in self.issued if not own.after]
        while able:
            at = rng.randrange(len(able))
            able[at], able[-1] = able[-1], able[at]
            own = able.pop()
            own.work()
            for one in nexts[id(own)]:
                waits[id(one)] -= 1
                if waits[id(one)] == 0:
                    able.append(one)
        assert not any(waits.values())

    def _copy(self, stream: Stream, copies: list[tuple[Place, Place, int]], buffers: Any) -> None:
        reads, writes, pairs = [], [], []
        for to, source, size in copies:
            if size == 0:
                continue
            ends = [buffers[place.buffer][place.node] for place in (to, source)]
            writes.append(self._span(ends[0], to.at, size))
            reads.append(self._span(ends[1], source.at, size))
            views = [_bytes(end) for end in ends]
            pairs.append((views[0][to.at : to.at + size], views[1][source.at : source.at + size]))
            assert len(pairs[-1][0]) == len(pairs[-1][1]) == size

        def work() -> None:
            for there, here in pairs:
                there[:] = here

        before = [stream.last] if stream.last else []
        self._issue(stream, Operation(work, before, reads, writes))

    def _issue(self, stream: Stream, own: Operation) -> None:
        self.issued.append(own)
        stream.last = own

    def _span(self, array: Any, begin: int, size: int) -> Span:
        self._arrays.append(array)  # addresses are not used again
        first = array.ctypes.data + begin
        return 0, first, first + size

    def _check_order(self) -> None:
        """No two operations that are not ordered use the same memory, unless both read."""
        place = {id(own): i for i, own in enumerate(self.issued)}
        before = [0] * len(self.issued)
        for i, own in enumerate(self.issued):
            for one in own.after:
                before[i] |= before[place[id(one)]] | 1 << place[id(one)]
        users = [i for i, own in enumerate(self.issued) if own.reads or own.writes]
        for i in users:
            late = self.issued[i]
            for j in users:
                early = self.issued[j]
                if j >= i or before[i] >> j & 1:
                    continue
                for written, used in (
                    (late.writes, early.writes + early.reads),
                    (early.writes, late.reads),
                ):
                    assert not any(_meet(a, b) for a in written for b in used)


def _meet(a: Span, b: Span) -> bool:
    return a[1] < b[2] and b[1] < a[2]


def _bytes(array: Any) -> Any:
    return array.view(np.uint8)
