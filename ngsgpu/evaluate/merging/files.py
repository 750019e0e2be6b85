"""Compare merged reads with the fragments they came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ngsgpu.errors import InputError
from ngsgpu.evaluate.merging.cpu import Texts, compare
from ngsgpu.evaluate.merging.result import OUTCOMES, QUALITIES, MergingEvaluation
from ngsgpu.evaluate.truth.indels import find_indels
from ngsgpu.evaluate.truth.matching import Counterparts, Names, names_of
from ngsgpu.evaluate.truth.merged import MergedReads
from ngsgpu.evaluate.truth.records import RecordTable
from ngsgpu.evaluate.truth.streams import RecordStream, check_true_lengths, unwrapped
from ngsgpu.io.paths import Paths, listed
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
        self._merged = MergedReads(merged, threads)
        self._min_overlap = min_overlap
        self._before = np.zeros(2, dtype=np.int64)
        self._outcomes = np.zeros(len(OUTCOMES), dtype=np.int64)
        self._qualities = np.zeros((2, QUALITIES, 2), dtype=np.int64)

    def add(self, mates: list[RecordBatch], names: list[Names], truths: list[RecordTable]) -> None:
        """Compare the merged reads of some pairs."""
        reads, true = [], []
        indels = np.zeros(len(mates[0]), dtype=np.bool_)
        for batch, table in zip(mates, truths, strict=True):
            check_true_lengths(batch, table)
            read = _texts(batch)
            truth = Texts(
                table.data,
                np.ascontiguousarray(table.seq_start),
                np.ascontiguousarray(table.seq_len),
                np.ascontiguousarray(table.reverse),
            )
            indels |= find_indels(
                read.data, read.start, read.length, truth.data, truth.start, truth.reverse
            )
            reads.append(read)
            true.append(truth)
        spans = np.ascontiguousarray(truths[0].span)
        nothing = np.zeros(0, dtype=np.int64)
        unnamed = names[0]._replace(mate=np.zeros_like(names[0].mate))
        for part, found, rows in self._merged.of(unnamed):
            merged = reads[0] if found is None else _texts(found)
            start = nothing if found is None else np.ascontiguousarray(found.qual_start)
            compare(
                CODES, self._min_overlap, spans, indels, reads[0], reads[1], true[0], true[1],
                part.start, merged, start, rows, self._outcomes, self._before, self._qualities,
            )  # fmt: skip

    def finish(self) -> MergingEvaluation:
        """The result, if all merged reads were found.

        Raises:
            InputError: a merged read is left over.
        """
        self._merged.finish()
        return MergingEvaluation(self._outcomes, self._before, self._qualities, self._min_overlap)


def _texts(batch: RecordBatch) -> Texts:
    """Bases of reads."""
    data, start = unwrapped(batch)
    lengths = np.ascontiguousarray(batch.seq_len, dtype=np.int64)
    return Texts(data, start, lengths, np.zeros(len(batch), dtype=np.bool_))
