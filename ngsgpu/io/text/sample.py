"""An even sample of all reads of a run, taken while they are read.

The first reads of a file are no sample of it: they come from the edge of a flow cell, or of a
sorted file. So every ``step``-th pair (or single read) of all input is kept, where ``step`` is the
smallest power of two that leaves at most ``MOST_SAMPLED``. While the end is unknown, the step
doubles whenever the sample grows beyond that, and every second one is dropped. What is sampled
depends on the records alone: not on compression, batches, threads or the backend
(``ngsgpu.io.gpu.sample`` takes it from a GPU's memory), and standard input is sampled like files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates

MOST_SAMPLED: Final = 4096
"""Pairs, or single reads, of a sample."""

MAX_SAMPLED_LENGTH: Final = 512
"""Bases of the longest read that is looked at; longer ones are no short reads."""


class SampledReads(NamedTuple):
    """Sequences of a sample, a row a pair or single read.

    Attributes:
        first: uint8[n, width], letters of first mates or single reads, zeros behind their ends;
            zeros only for reads that are not looked at.
        second: the same of second mates; zeros only for single reads.
    """

    first: NDArray[np.uint8]
    second: NDArray[np.uint8]


class _Block(NamedTuple):
    """Sampled rows of a batch, and their numbers among all pairs."""

    numbers: NDArray[np.int64]
    mates: tuple[NDArray[np.uint8], ...]


class Wanted(NamedTuple):
    """What is sampled of a batch: pairs ``start``, ``start + step``, ..., ``pairs`` of them."""

    start: int
    step: int
    pairs: int

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of them in the batch."""
        return self.start + self.step * np.arange(self.pairs, dtype=np.int64)


class ReadSample:
    """The sample of a run.

    Attributes:
        units: pairs and single reads so far.
        has_qualities: whether the last of them had qualities.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.units = 0
        self.has_qualities = True
        self._step = 1
        self._blocks: list[_Block] = []

    def wanted(self, units: int) -> Wanted:
        """What is to be sampled of the next pairs or single reads; ``add`` takes it.

        Args:
            units: their number.
        """
        begin, self.units = self.units, self.units + units
        while -(-self.units // self._step) > MOST_SAMPLED:
            self._step *= 2
            self._blocks = [_thinned(block, self._step) for block in self._blocks]
        start = -begin % self._step
        return Wanted(start, self._step, max(0, -(-(units - start) // self._step)))

    def add(self, wanted: Wanted, units: int, mates: tuple[NDArray[np.uint8], ...]) -> None:
        """Take what was wanted of the last batch.

        Args:
            wanted: as ``wanted`` returned it.
            units: as given to it.
            mates: rows as in ``SampledReads`` of first and, if there are any, second mates.
        """
        self._blocks.append(_Block(self.units - units + wanted.rows, mates))

    def take(self, mates: tuple[RecordBatch, ...], *, interleaved: bool = False) -> None:
        """Sample the next batch of single reads, of interleaved mates, or the two of both mates."""
        every = 2 if interleaved else 1
        units = len(mates[0]) // every
        wanted = self.wanted(units)
        if wanted.pairs == 0:
            return
        self.has_qualities = mates[0].qual_start is not None
        starts = [(mates[0], 0), (mates[0], 1)] if interleaved else [(batch, 0) for batch in mates]
        rows = every * wanted.rows
        self.add(wanted, units, tuple(_letters(batch, rows + at) for batch, at in starts))

    def take_mates(self, mates: tuple[Mates, ...], units: int) -> None:
        """Sample the first ``units`` pairs or single reads of a batch of FASTQ."""
        wanted = self.wanted(units)
        self.add(wanted, units, tuple(_rows(own, wanted.rows) for own in mates))

    def of_lane(
        self, batches: Iterable[tuple[RecordBatch, ...]], *, interleaved: bool = False
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """The batches of a lane, each of which is sampled when it comes."""
        for mates in batches:
            self.take(mates, interleaved=interleaved)
            yield mates

    def reads(self) -> SampledReads:
        """The sequences."""
        width = max((mate.shape[1] for block in self._blocks for mate in block.mates), default=0)
        count = sum(len(block.numbers) for block in self._blocks)
        sampled = SampledReads(*(np.zeros((count, width), dtype=np.uint8) for _ in range(2)))
        done = 0
        for block in self._blocks:
            for own, mate in zip(sampled, block.mates, strict=False):
                own[done : done + len(mate), : mate.shape[1]] = mate
            done += len(block.numbers)
        return sampled


def _thinned(block: _Block, step: int) -> _Block:
    kept = block.numbers % step == 0
    return _Block(block.numbers[kept], tuple(mate[kept] for mate in block.mates))


def _rows(reads: RecordBatch | Mates, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Letters of some reads as in ``SampledReads``, each in one line."""
    lengths = reads.seq_len[rows].astype(np.int64)
    lengths[lengths > MAX_SAMPLED_LENGTH] = 0
    columns = np.arange(int(lengths.max(initial=0)))
    places = np.minimum(reads.seq_start[rows][:, None] + columns, len(reads.data) - 1)
    return np.where(columns < lengths[:, None], reads.data[places], 0).astype(np.uint8)


def _letters(batch: RecordBatch, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Letters of some reads of a batch, as in ``SampledReads``."""
    letters = _rows(batch, rows)
    lengths, spans = batch.seq_len[rows], batch.seq_end[rows] - batch.seq_start[rows]
    for row in np.flatnonzero((spans != lengths) & (lengths <= MAX_SAMPLED_LENGTH)).tolist():
        # Wrapped FASTA.
        start = batch.seq_start[rows[row]]
        text = batch.data[start : start + spans[row]]
        letters[row] = 0
        letters[row, : lengths[row]] = text[(text != 10) & (text != 13)]
    return letters
