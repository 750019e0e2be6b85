"""Records of the files that are compared with the truth, in portions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.records import RecordTable
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import read_batches


class RecordStream:
    """The records of several files, in turn, in portions chosen by the caller."""

    def __init__(self, paths: Sequence[str | Path], threads: int) -> None:
        self._batches: Iterator[RecordBatch] = chain.from_iterable(
            read_batches(path, threads=threads) for path in paths
        )
        self.path = str(paths[-1])
        self._batch: RecordBatch | None = None
        self._at = 0
        self._read_next()

    def _read_next(self) -> None:
        self._batch = next(self._batches, None)
        self._at = 0
        if self._batch is not None:
            self.path = self._batch.path

    @property
    def left(self) -> int:
        """Records that can be taken at once; 0 at the end."""
        return 0 if self._batch is None else len(self._batch) - self._at

    def take(self, count: int) -> RecordBatch:
        """The next records, no more than ``left``."""
        assert self._batch is not None
        batch = self._batch.slice(self._at, self._at + count)
        self._at += count
        if self._at == len(self._batch):
            self._read_next()
        return batch


def unwrapped(batch: RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Text and starts of bases without line ends; a copy for wrapped FASTA."""
    if np.array_equal(batch.seq_end - batch.seq_start, batch.seq_len):
        return batch.data, np.ascontiguousarray(batch.seq_start)
    text = batch.data.tobytes()
    spans = zip(batch.seq_start.tolist(), batch.seq_end.tolist(), strict=True)
    joined = b"".join(b"".join(text[start:end].split()) for start, end in spans)
    start = np.cumsum(batch.seq_len, dtype=np.int64) - batch.seq_len
    return np.frombuffer(bytearray(joined), dtype=np.uint8), start


def check_true_lengths(batch: RecordBatch, truth: RecordTable) -> None:
    """Refuse reads whose true reads have other lengths.

    Raises:
        InputError: one has; with its number.
    """
    other = np.flatnonzero(truth.seq_len != batch.seq_len)
    if other.size:
        row = int(other[0])
        raise InputError(
            batch.path,
            f"read {batch.name(row)} has {batch.seq_len[row]} bases, its true read "
            f"{truth.seq_len[row]}",
            "give the truth of these reads",
            record=batch.first_record + row + 1,
        )
