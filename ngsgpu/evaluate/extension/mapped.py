"""Extended reads of real pairs: their gaps against where the reads align to a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.extension.cpu import edit_distance, positions_of
from ngsgpu.evaluate.extension.result import ExtensionEvaluation
from ngsgpu.evaluate.truth.reference import Reference, read_reference
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import read_batches
from ngsgpu.sequence.codec import CODES


def evaluate_mapped(
    alignments: str | Path,
    reference: str | Path,
    extended: Sequence[str | Path],
    *,
    read_length: int | None = None,
    pairs: int = 0,
) -> ExtensionEvaluation:
    """Compare extended reads with their alignments to a reference (section 9.4.1).

    Secondary, supplementary and clipped alignments do not count.

    Args:
        alignments: SAM, BAM or CRAM of the extended reads, in their order (as mappers write it).
        reference: FASTA they were aligned to.
        extended: the extended reads.
        read_length: length of the two end reads if headers lack their positions.
        pairs: number of input pairs; 0 if unknown.

    Raises:
        InputError: a file cannot be read, or the reads are not those of the alignments.
    """
    genome = read_reference(reference)
    result = ExtensionEvaluation(pairs=pairs, mapped=True)
    records = _primary_alignments(alignments)
    for path in extended:
        for batch in read_batches(path):
            positions = positions_of(batch)
            if read_length is not None:
                bare = positions[:, 3] < 0
                positions[bare, 0] = 0
                positions[bare, 1] = read_length
                positions[bare, 2] = batch.seq_len[bare] - read_length
                positions[bare, 3] = batch.seq_len[bare]
            _compare_mapped(batch, positions, records, genome, result, alignments)
    return result


@dataclass(frozen=True, slots=True)
class _Aligned:
    """One read's primary alignment; ``begin`` is -1 where it has none that counts."""

    name: str
    sequence: str
    begin: int
    cigar: list[tuple[int, int]]
    query: str
    reverse: bool
    clipped: bool


def _primary_alignments(path: str | Path) -> Iterator[_Aligned]:
    import pysam

    try:
        with pysam.AlignmentFile(str(path), check_sq=False) as file:
            for record in file:
                if record.flag & 0x900:
                    continue
                cigar = record.cigartuples or []
                clipped = any(kind in (4, 5) for kind, _ in cigar)
                usable = not record.is_unmapped and not clipped
                yield _Aligned(
                    record.query_name or "",
                    record.reference_name or "",
                    record.reference_start if usable else -1,
                    cigar,
                    record.query_sequence or "",
                    record.is_reverse,
                    clipped,
                )
    except (OSError, ValueError) as error:
        raise InputError(path, f"pysam cannot read it ({error})", "check the file") from error


def _compare_mapped(
    batch: RecordBatch,
    positions: NDArray[np.int64],
    records: Iterator[_Aligned],
    genome: Reference,
    result: ExtensionEvaluation,
    path: str | Path,
) -> None:
    """Compare a batch with its alignments; reads without a usable one are counted only."""
    for row, name in enumerate(batch.names()):
        record = next(records, None)
        if record is None or record.name != name.decode():
            raise InputError(
                path,
                f"read {batch.name(row)} is not where its alignment should be",
                "give the alignments in the order of the reads, as bwa and minimap2 write them",
            )
        _, gap_begin, gap_end, last = positions[row].tolist()
        length = np.array([batch.seq_len[row]], dtype=np.int64)
        if record.begin < 0 or last < 0 or record.sequence not in genome.numbers:
            result.skip(length, clipped=record.clipped)
            continue
        if gap_end < gap_begin:
            gap_end = gap_begin
        size = len(record.query)
        low, high = (size - gap_end, size - gap_begin) if record.reverse else (gap_begin, gap_end)
        begin, end = _reference_range(record, low, high)
        start = genome.start[genome.numbers[record.sequence]]
        piece = genome.codes[start + begin : start + end]
        query = CODES[np.frombuffer(record.query.encode(), np.uint8)][low:high]
        edits = edit_distance(query, piece)
        gap = end - begin
        result.add(np.array([[edits, high - low - gap, gap, 0, 0]], dtype=np.int64), length)


def _reference_range(record: _Aligned, low: int, high: int) -> tuple[int, int]:
    """Range of the reference under bases ``low`` to ``high`` of the aligned query."""
    at, query = record.begin, 0
    begin = end = -1
    for kind, count in record.cigar:
        uses_query = kind in (0, 1, 7, 8)
        uses_reference = kind in (0, 2, 3, 7, 8)
        if uses_query:
            for bound, known in ((low, begin), (high, end)):
                if known < 0 and query <= bound < query + count:
                    place = at + (bound - query if uses_reference else 0)
                    if bound == low and begin < 0:
                        begin = place
                    if bound == high and end < 0:
                        end = place
            query += count
        if uses_reference:
            at += count
    return (begin if begin >= 0 else at), (end if end >= 0 else at)
