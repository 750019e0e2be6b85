"""Merged reads in step with the pairs they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.matching import Names, names_of, same_name
from ngsgpu.evaluate.truth.streams import RecordStream
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.jit import njit


@njit(nogil=True, cache=True)
def _match(
    pairs: Names, pair: int, merged: Names, at: int, found: NDArray[np.int64]
) -> tuple[int, int]:
    """Find the merged read of each pair until one of them ends; return where both are."""
    while pair < len(pairs.start) and at < len(merged.start):
        is_merged = same_name(pairs, pair, merged, at)
        found[pair] = at if is_merged else -1
        at += is_merged
        pair += 1
    return pair, at


class MergedReads:
    """Merged reads, in the order of their pairs and named after them."""

    def __init__(self, paths: Sequence[str | Path], threads: int) -> None:
        self._stream = RecordStream(paths, threads)
        self._batch: RecordBatch | None = None
        self._names: Names | None = None
        self._used = 0

    def of(self, pairs: Names) -> Iterator[tuple[slice, RecordBatch | None, NDArray[np.int64]]]:
        """The merged reads of the next pairs.

        Args:
            pairs: the pairs' names.

        Yields:
            Some of the pairs, a batch of merged reads, and int64, the row of each of these pairs in
            it, -1 for those that were not merged; no batch for pairs behind the last merged read.

        Raises:
            InputError: a merged read has no quality.
        """
        found = np.full(len(pairs.start), -1, dtype=np.int64)
        done = 0
        while done < len(found):
            if self._batch is None or self._used == len(self._batch):
                self._next()
            if self._batch is None or self._names is None:
                yield slice(done, len(found)), None, found[done:]
                return
            begin = done
            done, self._used = _match(pairs, done, self._names, self._used, found)
            yield slice(begin, done), self._batch, found[begin:done]

    def _next(self) -> None:
        self._batch = self._stream.take(self._stream.left) if self._stream.left else None
        self._used = 0
        if self._batch is None:
            return
        if self._batch.qual_start is None:
            raise InputError(self._batch.path, "merged reads need qualities", "give a FASTQ file")
        self._names = names_of(self._batch, np.zeros(len(self._batch), dtype=np.uint8))

    def finish(self) -> None:
        """Check that every merged read was found.

        Raises:
            InputError: a merged read is left over.
        """
        if self._batch is None or self._used == len(self._batch):
            self._next()
        if self._batch is not None:
            raise InputError(
                self._batch.path,
                f"the merged read {self._batch.name(self._used)} is not that of a pair behind the "
                "one before it",
                "give the merged reads of these pairs, in their order (FLASH keeps it with -t 1)",
                record=self._batch.first_record + self._used + 1,
            )
