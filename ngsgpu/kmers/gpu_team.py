"""K-mers of one run on several GPUs: divided by batches of reads, then joined by ranges of k-mers.

One GPU reads the files; each batch's k-mers are found by the GPU that has fewest, which reads the
letters from the memory of the first. In the end each GPU sorts and counts its own, and k-mers with
their counts go to the GPU that adds them up: in ranges of about the same size, so that the results
of all GPUs, one after the other, are in order. A k-mer goes at most once from each GPU to another
one, however often it occurs.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.collectives import Exchange
from ngsgpu.collectives.rows import even_splitters, sample_of
from ngsgpu.device.arena import Arena, persistent
from ngsgpu.device.team import Team
from ngsgpu.io.gpu.parse import ParsedChunk
from ngsgpu.kmers.gpu import MOST_ROWS, Counted, KmerBuffer, joined_row_bytes, summed

_MOST_PASSES: Final = 64
_SMALL_BYTES: Final = 1 << 20
_LOG = logging.getLogger(__name__)


class KmerBuffers:
    """Room for k-mers in the memory of several GPUs; with one, ``KmerBuffer``.

    Args:
        team: the GPUs, which must have access to each other's memory; see ``counting_team``.
        arenas: memory of each.
        k: k-mer length.
        rows: k-mers that each has room for.
        least: see ``KmerBuffer``.
        exchange: of the team; None for one GPU.
        count_type: of the counts.
    """

    def __init__(
        self,
        team: Team,
        arenas: list[Arena],
        k: int,
        rows: int,
        least: int,
        exchange: Exchange | None,
        count_type: str = "uint16",
    ) -> None:
        self._team = team
        self._arenas = arenas
        self._exchange = exchange
        self._next = 0
        self._buffers: list[KmerBuffer] = []
        for gpu in range(len(team)):
            with self.on(gpu), persistent():
                self._buffers.append(KmerBuffer(k, rows, least, count_type))
        self._ready = self._event(0)
        self._found = [self._event(gpu) for gpu in range(len(team))]

    @contextlib.contextmanager
    def on(self, gpu: int) -> Iterator[None]:
        """Make a GPU and its arena current inside of a block."""
        with self._team.devices[gpu], self._arenas[gpu].in_use():
            yield

    @property
    def total(self) -> int:
        """K-mers counted before."""
        return sum(buffer.total for buffer in self._buffers)

    @property
    def bases(self) -> int:
        """Letters of all records so far."""

        def of(gpu: int) -> int:
            return self._buffers[gpu].bases

        return sum(self._team.each(of))

    def records_that_fit(self, chunk: ParsedChunk, records: int) -> int:
        """How many of some records of a chunk have room for sure where ``find`` puts them."""
        for gpu in sorted(range(len(self._team)), key=lambda own: self._buffers[own].most):
            with self._team.devices[gpu]:
                fit = self._buffers[gpu].records_that_fit(chunk, records)
            if fit > 0:
                self._next = gpu
                return fit
        return 0

    def find(self, chunk: ParsedChunk, record: int, records: int) -> None:
        """Add the k-mers of the first records of a chunk of the first GPU, which have room.

        Args:
            chunk: a parsed chunk on the first GPU.
            record: number of the first record.
            records: number of records.
        """
        from cupy import cuda

        gpu = self._next
        if gpu == 0:
            self._buffers[0].find(chunk, record, records)
            return
        here = cuda.get_current_stream()
        self._ready.record(here)
        with self._team.devices[gpu]:
            there = cuda.get_current_stream()
            there.wait_event(self._ready)
            self._buffers[gpu].find(chunk, record, records)
            self._found[gpu].record(there)
        # The chunk's memory is used again only then.
        here.wait_event(self._found[gpu])

    def append(self, kmers: NDArray[np.uint64]) -> int:
        """Add k-mers from the host, uint64[n, words], as far as there is room; return how many."""
        for gpu in sorted(range(len(self._team)), key=lambda own: self._buffers[own].most):
            with self.on(gpu):
                if size := self._buffers[gpu].append(kmers):
                    return size
        return 0

    def counted(self) -> list[Counted]:
        """Count what is on each GPU, on all at the same time, and be empty."""

        def work(gpu: int) -> Counted:
            with self._arenas[gpu].in_use():
                return self._buffers[gpu].counted()

        return self._team.at_once(work)

    def free(self) -> None:
        """Free the room for k-mers; nothing can be added any more."""
        self._buffers = []

    def ranges(self, counted: list[Counted]) -> Ranges | None:
        """The sums of all GPUs' counts, in order, after ``free``.

        Args:
            counted: of each GPU; the caller keeps no other reference.

        Returns:
            The ranges; None if there is no memory to add them up.
        """
        if self._exchange is None:
            return Ranges(self, None, counted, np.array([[0, len(counted[0])]]), 1)
        words = counted[0].kmers.shape[0]
        row = joined_row_bytes(words, counted[0].counts.dtype.itemsize)
        room = [max(0, arena.room - _SMALL_BYTES) // row for arena in self._arenas]
        gpus, passes = len(self._team), 1
        while passes <= _MOST_PASSES:
            starts = self._starts(counted, gpus * passes)
            sizes = np.diff(starts, axis=1).sum(axis=0).reshape(passes, gpus)
            if (sizes <= np.minimum(room, MOST_ROWS)).all():
                return Ranges(self, self._exchange, counted, starts, passes)
            passes *= 2
        return None

    def _starts(self, counted: list[Counted], ranges: int) -> NDArray[np.int64]:
        """Bounds of ranges of about the same size on each GPU, int64[n, ranges + 1]."""
        import cupy

        def sample(gpu: int) -> NDArray[np.uint64]:
            with self._arenas[gpu].in_use():
                return sample_of(counted[gpu].kmers[0])

        sizes = [len(own) for own in counted]
        if not any(sizes):
            return np.zeros((len(counted), ranges + 1), dtype=np.int64)
        splitters = even_splitters(self._team.each(sample), sizes, ranges)

        def starts(gpu: int) -> NDArray[np.int64]:
            own = counted[gpu]
            if len(own) == 0:
                return np.zeros(ranges + 1, dtype=np.int64)
            with self._arenas[gpu].in_use():
                middle = cupy.searchsorted(own.kmers[0], cupy.asarray(splitters)).get()
            return np.concatenate(([0], middle, [len(own)])).astype(np.int64)

        return np.stack(self._team.each(starts))

    def _event(self, gpu: int) -> Any:
        from cupy import cuda

        with self._team.devices[gpu]:
            return cuda.Event(disable_timing=True)


class Ranges:
    """Counts of all GPUs by ranges of k-mers, added up when they are asked for.

    Attributes:
        passes: how often all GPUs add up a range each.
    """

    def __init__(
        self,
        buffers: KmerBuffers,
        exchange: Exchange | None,
        counted: list[Counted],
        starts: NDArray[np.int64],
        passes: int,
    ) -> None:
        self.passes = passes
        self._buffers = buffers
        self._exchange = exchange
        self._counted = counted
        self._starts = starts

    def of_pass(self, number: int) -> list[Counted]:
        """The sums of each GPU's range; those of the last pass use up the counts."""
        if self._exchange is None:
            return self._counted
        first = number * len(self._counted)
        starts = self._starts[:, first : first + len(self._counted) + 1]
        columns = self._received(self._exchange, starts)
        if number + 1 == self.passes:
            self._counted = []

        def add(gpu: int) -> Counted:
            with self._buffers.on(gpu):
                (kmers, counts), columns[gpu] = columns[gpu], (None, None)
                return summed(kmers, counts)

        return self._exchange.team.at_once(add)

    def _received(self, exchange: Exchange, starts: NDArray[np.int64]) -> list[tuple[Any, Any]]:
        """K-mers and counts of each GPU's range from all GPUs."""
        import cupy

        gpus = len(self._counted)
        words = self._counted[0].kmers.shape[0]
        counts = np.diff(starts, axis=1)
        sizes = counts.sum(axis=0)
        got = []
        for gpu in range(gpus):
            with self._buffers.on(gpu):
                size = int(sizes[gpu])
                kmers = cupy.empty((words, size), cupy.uint64)
                got.append((kmers, cupy.empty(size, self._counted[gpu].counts.dtype)))
        parts = [slice(int(own[0]), int(own[-1])) for own in starts]
        owns = list(zip(self._counted, parts, strict=True))
        for word in range(words):
            sent = [own.kmers[word, part] for own, part in owns]
            exchange.all_to_all(sent, counts, out=[kmers[word] for kmers, _ in got])
        sent = [own.counts[part] for own, part in owns]
        exchange.all_to_all(sent, counts, out=[own for _, own in got])
        return got


def counting_team(gpus: int) -> tuple[Team, Exchange | None]:
    """The GPUs that can count together, and their exchange: one where they have no access.

    Args:
        gpus: how many are wanted.
    """
    if gpus == 1:
        return Team(), None
    team = Team(gpus)
    exchange = Exchange(team)
    if exchange.has_access:
        return team, exchange
    _LOG.warning("the GPUs cannot access each other's memory; counting on one of them")
    return Team(), None
