"""Compare merged reads with the fragments they came from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.correction import Counter, Paths, RecordStream, listed
from ngsgpu.evaluate.cpu import CLAIM_NONE
from ngsgpu.evaluate.matching import Counterparts, Names, names_of
from ngsgpu.evaluate.merging_result import (
    ALONE,
    APART,
    APART_MERGED,
    BASES,
    ERRORS,
    IN_OVERLAP,
    INDELS,
    MISSED,
    NEAR,
    NEARLY,
    OUTCOMES,
    OVERLAPPING,
    PAIRS,
    QUALITIES,
    RIGHT,
    UNKNOWN_FRAGMENT,
    WRONG,
    MergingEvaluation,
)
from ngsgpu.evaluate.records import RecordTable
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import CODES, UNKNOWN

__all__ = ["MergingEvaluation", "evaluate_merging"]


class _Texts(NamedTuple):
    """Bases of some records.

    Attributes:
        data: uint8.
        start: int64[n].
        length: int64[n].
        reverse: bool[n], whether a record is the reverse complement of the read.
        name_start: int64[n].
        name_end: int64[n].
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]


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
    """What was counted so far, and how far the merged reads were compared."""

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
            _check_lengths(batch, table)
            start = np.ascontiguousarray(batch.seq_start)
            lengths = np.ascontiguousarray(batch.seq_len, dtype=np.int64)
            count = len(batch)
            claims = np.full(count, CLAIM_NONE, dtype=np.int32)
            # Compared with themselves: nothing but whether they have indels is wanted.
            indels |= Counter().add(
                batch.data, start, batch.data, start, table, np.full(count, -1, dtype=np.int64),
                lengths, np.zeros(count, dtype=np.uint8), claims,
            )  # fmt: skip
            forward = np.zeros(count, dtype=np.bool_)
            reads.append(_Texts(batch.data, start, lengths, forward, name.start, name.end))
            true.append(
                _Texts(
                    table.data,
                    np.ascontiguousarray(table.seq_start),
                    np.ascontiguousarray(table.seq_len),
                    np.ascontiguousarray(table.reverse),
                    name.start,
                    name.end,
                )
            )
        spans = np.ascontiguousarray(truths[0].span)
        done = 0
        while done < len(indels):
            texts, qualities = self._next_merged()
            done, self._used = _compare(
                CODES, self._min_overlap, spans, indels, reads[0], reads[1], true[0], true[1],
                done, texts, qualities, self._used, self._outcomes, self._before, self._qualities,
            )  # fmt: skip

    def _next_merged(self) -> tuple[_Texts, NDArray[np.int64]]:
        """Merged reads from which to go on; none at their end."""
        if (self._batch is None or self._used == len(self._batch)) and self._merged.left:
            self._batch = self._merged.take(self._merged.left)
            self._names = names_of(self._batch, np.zeros(len(self._batch), dtype=np.uint8))
            self._used = 0
        nothing = np.zeros(0, dtype=np.int64)
        if self._batch is None or self._names is None or self._used == len(self._batch):
            self._used = 0
            self._batch = None
            no_flags = np.zeros(0, dtype=np.bool_)
            no_bytes = np.zeros(0, dtype=np.uint8)
            return _Texts(no_bytes, nothing, nothing, no_flags, nothing, nothing), nothing
        batch = self._batch
        if batch.qual_start is None:
            raise InputError(batch.path, "merged reads need qualities", "give a FASTQ file")
        texts = _Texts(
            batch.data,
            np.ascontiguousarray(batch.seq_start),
            np.ascontiguousarray(batch.seq_len, dtype=np.int64),
            np.zeros(len(batch), dtype=np.bool_),
            self._names.start,
            self._names.end,
        )
        return texts, np.ascontiguousarray(batch.qual_start)

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


def _check_lengths(batch: RecordBatch, truth: RecordTable) -> None:
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


@njit(nogil=True, cache=True)
def _code(codes: NDArray[np.uint8], texts: _Texts, i: int, position: int) -> np.uint8:
    """Code of a base of a read, in the direction of the read."""
    if not texts.reverse[i]:
        return codes[texts.data[texts.start[i] + position]]
    code = codes[texts.data[texts.start[i] + texts.length[i] - 1 - position]]
    return code if code == UNKNOWN else np.uint8(3 - code)


@njit(nogil=True, cache=True)
def _count(truth: np.uint8, called: np.uint8, counts: NDArray[np.int64]) -> None:
    """Count a base, and whether it is wrong, unless the truth is not known."""
    if truth != UNKNOWN:
        counts[BASES] += 1
        counts[ERRORS] += truth != called


@njit(nogil=True, cache=True)
def _same_name(texts: _Texts, i: int, other: _Texts, j: int) -> bool:
    length = texts.name_end[i] - texts.name_start[i]
    if length != other.name_end[j] - other.name_start[j]:
        return False
    for k in range(length):
        if texts.data[texts.name_start[i] + k] != other.data[other.name_start[j] + k]:
            return False
    return True


@njit(nogil=True, cache=True)
def _compare(
    codes: NDArray[np.uint8],
    min_overlap: int,
    spans: NDArray[np.int64],
    indels: NDArray[np.bool_],
    first: _Texts,
    second: _Texts,
    true_first: _Texts,
    true_second: _Texts,
    pair: int,
    merged: _Texts,
    merged_qualities: NDArray[np.int64],
    at: int,
    outcomes: NDArray[np.int64],
    before: NDArray[np.int64],
    qualities: NDArray[np.int64],
) -> tuple[int, int]:
    """Compare pairs with merged reads until one of them ends; counts are added to.

    Args:
        codes: uint8[256], letter to code.
        min_overlap: see ``evaluate_merging``.
        spans: int64[pairs], lengths of the fragments, 0 if not known.
        indels: bool[pairs], whether a read has an insertion or a deletion.
        first: first mates.
        second: second mates.
        true_first: first mates without errors.
        true_second: second mates without errors.
        pair: the first pair.
        merged: merged reads; none if there are no more.
        merged_qualities: int64, where their qualities start.
        at: the first of them.
        outcomes: int64[len(OUTCOMES)].
        before: int64[2].
        qualities: int64[2, QUALITIES, 2].

    Returns:
        (the pair to go on with, the merged read to go on with).
    """
    some = len(merged.start) > 0
    while pair < len(spans) and (at < len(merged.start) or not some):
        length1, length2, span = first.length[pair], second.length[pair], spans[pair]
        is_merged = some and _same_name(first, pair, merged, at)
        length = merged.length[at] if is_merged else 0
        outcomes[PAIRS] += 1
        outcomes[INDELS] += indels[pair]
        if span == 0:
            outcomes[UNKNOWN_FRAGMENT] += 1
        elif length1 + length2 - span < min_overlap:
            outcomes[APART] += 1
            outcomes[APART_MERGED] += is_merged
        else:
            outcomes[OVERLAPPING] += 1
            if not is_merged:
                outcomes[MISSED] += 1
            elif length == span:
                outcomes[RIGHT] += 1
            elif abs(length - span) <= NEAR:
                outcomes[NEARLY] += 1
            else:
                outcomes[WRONG] += 1
            if is_merged and length == span and not indels[pair]:
                for k in range(length1):
                    truth = _code(codes, true_first, pair, k)
                    _count(truth, _code(codes, first, pair, k), before)
                for k in range(length2):
                    truth = _code(codes, true_second, pair, k)
                    _count(truth, _code(codes, second, pair, k), before)
                for k in range(span):
                    if k < length1:
                        truth = _code(codes, true_first, pair, k)
                    else:
                        truth = _code(codes, true_second, pair, span - 1 - k)
                        truth = truth if truth == UNKNOWN else np.uint8(3 - truth)
                    row = IN_OVERLAP if span - length2 <= k < length1 else ALONE
                    score = np.int64(merged.data[merged_qualities[at] + k]) - 33
                    _count(truth, _code(codes, merged, at, k), qualities[row, score])
        pair += 1
        at += is_merged
    return pair, at
