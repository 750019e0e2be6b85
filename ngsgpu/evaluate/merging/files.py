"""Compare merged reads with the fragments they came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.merging.cpu import Texts, compare
from ngsgpu.evaluate.merging.result import OUTCOMES, QUALITIES, MergingEvaluation
from ngsgpu.evaluate.truth.indels import find_indels
from ngsgpu.evaluate.truth.matching import Counterparts, Names, names_of
from ngsgpu.evaluate.truth.records import RecordTable
from ngsgpu.evaluate.truth.streams import Paths, RecordStream, check_true_lengths, listed, unwrapped
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.sequence.codec import CODES


def evaluate_merging(
    truth: Paths,
    in1: Paths,
    in2: Paths,
    merged: Paths,
    *,
    min_overlap: int = 10,
    threads: int = 1,
) -> MergingEvaluation:
    """Compare merged reads with the truth.

    Args:
        truth: SAM, BAM or CRAM of the error-free pairs, as ``art_illumina -ef`` writes it.
        in1: first mates that were merged.
        in2: their second mates.
        merged: the merged reads, in the order of the pairs, Phred+33.
        min_overlap: from how many common bases on pairs count as overlapping.
        threads: threads that decompress.

    Raises:
        InputError: a file cannot be read, the files do not hold the same reads, or merged reads
            are in another order.
    """
    run = _Run(listed(merged), min_overlap, threads)
    streams = [RecordStream(listed(paths), threads) for paths in (in1, in2)]
    true = Counterparts(listed(truth), group=2, what="true reads")
    while count := min(stream.left for stream in streams):
        count = true.available(count)
        mates = [stream.take(count) for stream in streams]
        names = [
            names_of(batch, np.full(count, mate, dtype=np.uint8))
            for mate, batch in enumerate(mates, start=1)
        ]
        truths = true.take(names, [batch.path for batch in mates], mates[0].first_record)
        run.add(mates, names, truths)
    if any(stream.left for stream in streams):
        short, longer = sorted(streams, key=lambda stream: stream.left)
        raise InputError(
            short.path, f"it has fewer records than {longer.path}", "give both mates of all pairs"
        )
    return run.finish()


class _Run:
    """The counts so far, and the position in the merged reads."""

    def __init__(self, merged: list[str | Path], min_overlap: int, threads: int) -> None:
        self._merged = RecordStream(merged, threads)
        self._min_overlap = min_overlap
        self._before = np.zeros(2, dtype=np.int64)
        self._outcomes = np.zeros(len(OUTCOMES), dtype=np.int64)
        self._qualities = np.zeros((2, QUALITIES, 2), dtype=np.int64)
        self._batch: RecordBatch | None = None
        self._names: Names | None = None
        self._used = 0

    def add(self, mates: list[RecordBatch], names: list[Names], truths: list[RecordTable]) -> None:
        """Compare the merged reads of some pairs."""
        reads, true = [], []
        indels = np.zeros(len(mates[0]), dtype=np.bool_)
        for batch, name, table in zip(mates, names, truths, strict=True):
            check_true_lengths(batch, table)
            read = _texts(batch, name)
            truth = Texts(
                table.data,
                np.ascontiguousarray(table.seq_start),
                np.ascontiguousarray(table.seq_len),
                np.ascontiguousarray(table.reverse),
                name,
            )
            indels |= find_indels(
                read.data, read.start, read.length, truth.data, truth.start, truth.reverse
            )
            reads.append(read)
            true.append(truth)
        spans = np.ascontiguousarray(truths[0].span)
        done = 0
        while done < len(indels):
            texts, qualities = self._next_merged()
            done, self._used = compare(
                CODES, self._min_overlap, spans, indels, reads[0], reads[1], true[0], true[1],
                done, texts, qualities, self._used, self._outcomes, self._before, self._qualities,
            )  # fmt: skip

    def _next_merged(self) -> tuple[Texts, NDArray[np.int64]]:
        """Merged reads from which to go on; none at their end."""
        if (self._batch is None or self._used == len(self._batch)) and self._merged.left:
            self._batch = self._merged.take(self._merged.left)
            self._names = names_of(self._batch, np.zeros(len(self._batch), dtype=np.uint8))
            self._used = 0
        nothing = np.zeros(0, dtype=np.int64)
        if self._batch is None or self._names is None or self._used == len(self._batch):
            self._used = 0
            self._batch = None
            no_bytes = np.zeros(0, dtype=np.uint8)
            no_names = Names(no_bytes, nothing, nothing, no_bytes)
            no_flags = np.zeros(0, dtype=np.bool_)
            return Texts(no_bytes, nothing, nothing, no_flags, no_names), nothing
        batch = self._batch
        if batch.qual_start is None:
            raise InputError(batch.path, "merged reads need qualities", "give a FASTQ file")
        return _texts(batch, self._names), np.ascontiguousarray(batch.qual_start)

    def finish(self) -> MergingEvaluation:
        """The result, if all merged reads were found.

        Raises:
            InputError: a merged read is left over.
        """
        if self._batch is not None and self._used == len(self._batch):
            self._batch = None
        if self._batch is None and self._merged.left:
            self._batch, self._used = self._merged.take(1), 0
        if self._batch is not None:
            raise InputError(
                self._batch.path,
                f"the merged read {self._batch.name(self._used)} is not that of a pair behind the "
                "one before it",
                "give the merged reads of these pairs, in their order (FLASH keeps it with -t 1)",
                record=self._batch.first_record + self._used + 1,
            )
        return MergingEvaluation(self._outcomes, self._before, self._qualities, self._min_overlap)


def _texts(batch: RecordBatch, names: Names) -> Texts:
    """Bases and names of reads."""
    data, start = unwrapped(batch)
    lengths = np.ascontiguousarray(batch.seq_len, dtype=np.int64)
    return Texts(data, start, lengths, np.zeros(len(batch), dtype=np.bool_), names)
