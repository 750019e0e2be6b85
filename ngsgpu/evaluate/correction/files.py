"""Compare corrected reads with the truth, from files or from arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate.correction.cpu import Counters, Reads, compare
from ngsgpu.evaluate.correction.result import CorrectionEvaluation
from ngsgpu.evaluate.truth.indels import BAND, CLAIM_INDEL, CLAIM_NO_INDEL, CLAIM_NONE
from ngsgpu.evaluate.truth.matching import Counterparts, Names, first_difference, names_of
from ngsgpu.evaluate.truth.reads import truth_reader
from ngsgpu.evaluate.truth.records import RecordTable
from ngsgpu.evaluate.truth.streams import RecordStream, check_true_lengths, unwrapped
from ngsgpu.io.inputs import holds_pairs
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.sequence.codec import CODES


class Counter:
    """Adds up comparisons; one batch of reads at a time."""

    def __init__(self) -> None:
        shapes = ((2, 5, 5, 5), (2, 0, 4), (94, 4), (2, 8), (5,))
        self._counters = Counters(*(np.zeros(shape, dtype=np.int64) for shape in shapes))
        self._scratch = np.empty((5, 0), dtype=np.uint8)
        self._rows = np.empty((6, 2 * BAND + 1), dtype=np.int64)

    def add(self, batch: Reads) -> None:
        """Compare reads and add them."""
        longest = int(batch.lengths.max(initial=0))
        if longest > self._scratch.shape[1]:
            self._scratch = np.empty((5, longest), dtype=np.uint8)
            grown = np.zeros((2, longest, 4), dtype=np.int64)
            grown[:, : self._counters.positions.shape[1]] = self._counters.positions
            self._counters = self._counters._replace(positions=grown)
        compare(CODES, batch, self._scratch, self._rows, self._counters)

    def result(
        self, *, paired: bool, indels_from: str, truth_in_step: bool | None
    ) -> CorrectionEvaluation:
        """The counts so far.

        Args:
            paired: whether the reads are pairs.
            indels_from: ``sequences`` or ``alignments``.
            truth_in_step: whether the truth has the reads' order; None if unknown.
        """
        counts = {name: counter.copy() for name, counter in self._counters._asdict().items()}
        return CorrectionEvaluation(
            **counts, paired=paired, indels_from=indels_from, truth_in_step=truth_in_step
        )


def evaluate_correction(
    truth: Paths,
    in1: Paths,
    out1: Paths,
    in2: Paths | None = None,
    out2: Paths | None = None,
    *,
    interleaved: bool = False,
    alignments: Paths | None = None,
    threads: int = 1,
) -> CorrectionEvaluation:
    """Compare corrected reads with the uncorrected ones and with the truth.

    Several files in one argument are read in turn, as lanes.

    Args:
        truth: SAM, BAM or CRAM of the error-free reads, as written by ``art_illumina -ef``, or
            FASTQ or FASTA of them, of pairs in two files the mates' files in turn.
        in1: the reads before correction (FASTQ or FASTA; first mates of pairs).
        out1: the same reads after correction, in the same order.
        in2: second mates before correction.
        out2: second mates after correction.
        interleaved: ``in1`` and ``out1`` hold interleaved pairs; of BAM and CRAM their flags say
            so, too.
        alignments: alignments of the uncorrected reads that show which have indels: ART's
            ``.aln`` files, or a SAM. Without them, and where a SAM's CIGAR contradicts the
            sequences, the sequences decide (`truth.indels.has_indel`).
        threads: decompression threads.

    Returns:
        Counts, rates and their break-downs.

    Raises:
        InputError: a file cannot be read; the files do not hold the same reads; a read's lengths
            differ; a read has no truth. With the number of the record.
        UsageError: only one of ``in2`` and ``out2`` is given.
    """
    if (in2 is None) != (out2 is None):
        raise UsageError("`in2` and `out2` belong together; give both or neither")
    if interleaved and in2 is not None:
        raise UsageError("`interleaved` reads hold both mates; omit `in2` and `out2`")
    if in2 is None and all(map(holds_pairs, listed(in1))):
        interleaved = True
    members = [(in1, out1)] if in2 is None or out2 is None else [(in1, out1), (in2, out2)]
    before = [RecordStream(listed(source), threads) for source, _ in members]
    after = [RecordStream(listed(target), threads) for _, target in members]
    group = len(members)
    paths = listed(truth)
    reader = truth_reader(paths, group=group, interleaved=interleaved)
    true = Counterparts(paths, group=group, what="true reads", read=reader)
    aligned = (
        None
        if alignments is None
        else Counterparts(listed(alignments), group=group, what="alignments")
    )
    counter = Counter()
    done = 0
    while (count := _portion(before, after)) > 0:
        count = true.available(count)
        if aligned is not None:
            count = aligned.available(count)
        count = _even(count) if interleaved else count
        _step(before, after, true, aligned, counter, count, done, interleaved)
        done += count
    if interleaved and done % 2:
        raise InputError(
            before[0].path,
            "it ends after a first mate",
            "give interleaved pairs, or omit `interleaved`",
            record=done,
        )
    return counter.result(
        paired=interleaved or group == 2,
        indels_from="sequences" if aligned is None else "alignments",
        truth_in_step=true.in_step,
    )


def _even(count: int) -> int:
    """Portions of an interleaved file that keep mates together if possible."""
    return count if count == 1 else count - count % 2


def _portion(before: Sequence[RecordStream], after: Sequence[RecordStream]) -> int:
    """Records that every file still has; 0 when all end together."""
    streams = [*before, *after]
    count = min(stream.left for stream in streams)
    if count == 0 and any(stream.left for stream in streams):
        short = next(stream for stream in streams if not stream.left)
        longer = next(stream for stream in streams if stream.left)
        raise InputError(
            short.path,
            f"it has fewer records than {longer.path}",
            "give the corrected reads of exactly these inputs, in the same order",
        )
    return count


def _step(
    before: Sequence[RecordStream],
    after: Sequence[RecordStream],
    true: Counterparts,
    aligned: Counterparts | None,
    counter: Counter,
    count: int,
    done: int,
    interleaved: bool,
) -> None:
    """Compare the next ``count`` records of every file."""
    inputs = [stream.take(count) for stream in before]
    outputs = [stream.take(count) for stream in after]
    mates = [_mates(member, len(inputs), count, done, interleaved) for member in range(len(inputs))]
    names = [names_of(batch, mate) for batch, mate in zip(inputs, mates, strict=True)]
    paths = [batch.path for batch in inputs]
    first = inputs[0].first_record
    truths = true.take(names, paths, first)
    claims = None if aligned is None else aligned.take(names, paths, first)
    for member, (source, target) in enumerate(zip(inputs, outputs, strict=True)):
        lengths = np.ascontiguousarray(source.seq_len, dtype=np.int64)
        _check(source, target, names[member], mates[member], truths[member], lengths)
        source_data, source_start = unwrapped(source)
        target_data, target_start = unwrapped(target)
        if source.qual_start is None:
            quality_start = np.full(count, -1, dtype=np.int64)
        else:
            quality_start = np.ascontiguousarray(source.qual_start)
        place = np.maximum(mates[member], 1) - np.uint8(1)
        claim = (
            np.full(count, CLAIM_NONE, dtype=np.int32) if claims is None else claims[member].claim
        )
        truth = truths[member]
        batch = Reads(
            source_data, source_start, target_data, target_start, truth.data,
            np.ascontiguousarray(truth.seq_start), np.ascontiguousarray(truth.reverse),
            quality_start, lengths, place, np.ascontiguousarray(claim),
        )  # fmt: skip
        counter.add(batch)


def _mates(
    member: int, members: int, count: int, done: int, interleaved: bool
) -> NDArray[np.uint8]:
    """Mate of each record, by its place: 1 or 2; 0 for single reads."""
    if interleaved:
        return ((np.arange(done, done + count) & 1) + 1).astype(np.uint8)
    return np.full(count, member + 1 if members == 2 else 0, dtype=np.uint8)


def _check(
    source: RecordBatch,
    target: RecordBatch,
    names: Names,
    mates: NDArray[np.uint8],
    truth: RecordTable,
    lengths: NDArray[np.int64],
) -> None:
    """Refuse corrected reads of other names or lengths, and truth of another length."""
    row = first_difference(names, names_of(target, mates))
    if row < len(source):
        raise InputError(
            target.path,
            f"the read is {target.name(row)} where {source.path} has {source.name(row)}",
            "give the corrected reads of exactly these inputs, in the same order",
            record=target.first_record + row + 1,
        )
    shorter = np.flatnonzero(target.seq_len != lengths)
    if shorter.size:
        row = int(shorter[0])
        raise InputError(
            target.path,
            f"read {target.name(row)} has {target.seq_len[row]} bases where {source.path} has "
            f"{lengths[row]}",
            "only correction that keeps the length of reads (no trimming, no indels) can be "
            "compared",
            record=target.first_record + row + 1,
        )
    check_true_lengths(source, truth)


def evaluate_arrays(
    before: Sequence[bytes] | NDArray[np.uint8],
    after: Sequence[bytes] | NDArray[np.uint8],
    truth: Sequence[bytes] | NDArray[np.uint8],
    *,
    qualities: Sequence[bytes] | NDArray[np.uint8] | None = None,
    mates: NDArray[np.uint8] | None = None,
    with_indel: NDArray[np.bool_] | None = None,
) -> CorrectionEvaluation:
    """Compare reads in memory.

    Each argument is a list of reads as bytes, or a matrix uint8 [reads, length] of letters; all
    in the direction of the read.

    Args:
        before: the reads before correction.
        after: the same after correction.
        truth: the same without errors.
        qualities: letters, Phred+33.
        mates: uint8 [reads], 0 or 1; omitted for single reads.
        with_indel: bool [reads]; inferred from the sequences if omitted.

    Raises:
        ValueError: numbers or lengths of reads differ.
    """
    source, start, lengths = _flat(before)
    target, target_start, target_lengths = _flat(after)
    true, true_start, true_lengths = _flat(truth)
    if not (np.array_equal(lengths, target_lengths) and np.array_equal(lengths, true_lengths)):
        raise ValueError("before, after and truth must have equal numbers and lengths of reads")
    count = len(lengths)
    quality_start = np.full(count, -1, dtype=np.int64)
    if qualities is not None:
        letters, at, quality_lengths = _flat(qualities)
        if not np.array_equal(lengths, quality_lengths):
            raise ValueError("qualities must have the lengths of the reads")
        quality_start = at + len(source)
        source = np.concatenate([source, letters])
    claims = np.full(count, CLAIM_NONE, dtype=np.int32)
    if with_indel is not None:
        claims = np.where(with_indel, CLAIM_INDEL, CLAIM_NO_INDEL).astype(np.int32)
    place = np.zeros(count, dtype=np.uint8) if mates is None else mates.astype(np.uint8)
    counter = Counter()
    forward = np.zeros(count, dtype=np.bool_)
    batch = Reads(
        source, start, target, target_start, true, true_start, forward, quality_start, lengths,
        place, claims,
    )  # fmt: skip
    counter.add(batch)
    return counter.result(
        paired=mates is not None,
        indels_from="sequences" if with_indel is None else "alignments",
        truth_in_step=None,
    )


def _flat(
    reads: Sequence[bytes] | NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Letters of all reads, concatenated, where each starts, and the lengths."""
    if isinstance(reads, np.ndarray):
        count, length = reads.shape
        lengths = np.full(count, length, dtype=np.int64)
        data = np.array(reads, dtype=np.uint8).reshape(-1)
    else:
        lengths = np.array([len(read) for read in reads], dtype=np.int64)
        data = np.frombuffer(bytearray(b"".join(reads)), dtype=np.uint8)
    return data, np.cumsum(lengths) - lengths, lengths
