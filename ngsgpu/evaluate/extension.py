"""Extended reads against the truth: what lies between the reads of a pair, and around them.

With simulated pairs the places of both reads are known, so the true gap is a piece of the
reference; the two are compared by their edit distance, as in Kallenborn (2024), section 9.3. Real
pairs are the business of ``extension_mapped``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.distance import edit_distance
from ngsgpu.evaluate.extension_result import ExtensionEvaluation
from ngsgpu.evaluate.matching import hash_names, names_of
from ngsgpu.evaluate.records import read_tables
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import read_batches
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import CODES


@dataclass(frozen=True, slots=True)
class Reference:
    """Sequences of a reference.

    Attributes:
        numbers: number of each sequence by its name.
        codes: uint8, codes of all sequences, one after the other (4 for unknown letters).
        start: int64[sequences + 1], where each begins.
    """

    numbers: dict[str, int]
    codes: NDArray[np.uint8]
    start: NDArray[np.int64]


def read_reference(path: str | Path) -> Reference:
    """Read a FASTA file, plain or compressed.

    Raises:
        InputError: it cannot be read, has no sequences, or a name is there twice.
    """
    numbers: dict[str, int] = {}
    parts: list[NDArray[np.uint8]] = []
    for batch in read_batches(path):
        for record, name in enumerate(batch.names()):
            text = batch.data[batch.seq_start[record] : batch.seq_end[record]]
            text = text[(text != ord("\n")) & (text != ord("\r"))]
            if name.decode() in numbers:
                raise InputError(
                    path, f"there are two sequences {name.decode()!r}", "rename one of them"
                )
            numbers[name.decode()] = len(parts)
            parts.append(CODES[text])
    if not parts:
        raise InputError(path, "there are no sequences", "give the reference of the reads")
    lengths = np.array([0, *map(len, parts)], dtype=np.int64)
    return Reference(numbers, np.concatenate(parts), np.cumsum(lengths))


@dataclass(frozen=True, slots=True)
class TruePairs:
    """Where the reads of simulated pairs come from, in order of their names' hashes.

    Attributes:
        hashes: uint64[n], of the names.
        sequence: int64[n], number of the reference's sequence.
        begin: int64[n, 2], first base of first and second mate.
        end: int64[n, 2], behind their last bases.
        reverse: bool[n], whether the first mate lies on the reverse strand.
    """

    hashes: NDArray[np.uint64]
    sequence: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    reverse: NDArray[np.bool_]


@njit(nogil=True, cache=True)
def parse_places(
    data: NDArray[np.uint8], name_start: NDArray[np.int64], fields: NDArray[np.int64]
) -> None:
    """Reference name (begin and end) and position (from 1) of SAM lines; ``fields`` is [3, n]."""
    for i in range(len(name_start)):
        p = name_start[i]
        for column in range(4):
            begin = p
            while data[p] != ord("\t"):
                p += 1
            if column == 2:
                fields[0, i] = begin
                fields[1, i] = p
            if column == 3:
                position = 0
                for q in range(begin, p):
                    position = 10 * position + data[q] - ord("0")
                fields[2, i] = position
            p += 1


def read_true_pairs(paths: Sequence[str | Path], reference: Reference) -> TruePairs:
    """Read the places of pairs from SAM, BAM or CRAM files of error-free reads.

    Raises:
        InputError: a file cannot be read, has reads without a mate, or of another reference.
    """
    known = _hashes([name.encode() for name in reference.numbers])
    order = np.argsort(known, kind="stable")
    hashes: list[NDArray[np.uint64]] = []
    places: list[NDArray[np.int64]] = []
    for path in paths:
        for table in read_tables(path):
            fields = np.empty((3, len(table)), dtype=np.int64)
            parse_places(table.data, np.ascontiguousarray(table.name_start), fields)
            names = np.empty(len(table), dtype=np.uint64)
            hash_names(table.data, fields[0], fields[1], names)
            found = order[np.searchsorted(known, names, sorter=order) % max(1, len(known))]
            strangers = np.flatnonzero((known[found] != names) | (fields[2] < 1))
            if len(strangers):
                start, end, _ = fields[:, strangers[0]].tolist()
                name = table.data[start:end].tobytes().decode("ascii", "replace")
                raise InputError(
                    path,
                    f"a read lies in {name!r}, which is not in the reference",
                    "give the reference that the reads were drawn from",
                )
            own = np.empty(len(table), dtype=np.uint64)
            hash_names(
                table.data,
                np.ascontiguousarray(table.name_start),
                np.ascontiguousarray(table.name_end),
                own,
            )
            hashes.append(own)
            begin = fields[2] - 1
            places.append(
                np.stack(
                    [found, begin, begin + table.seq_len, table.reverse, table.mate], axis=1
                ).astype(np.int64)
            )
    every, rows = np.concatenate(hashes), np.concatenate(places)
    mates = []
    for mate in (1, 2):
        chosen = np.flatnonzero(rows[:, 4] == mate)
        chosen = chosen[np.argsort(every[chosen], kind="stable")]
        mates.append((every[chosen], rows[chosen]))
    (first, first_rows), (second, second_rows) = mates
    if not np.array_equal(first, second):
        raise InputError(
            paths[0],
            f"there are {len(first):,} first and {len(second):,} second mates, or their names "
            "differ",
            "give the true places of pairs",
        )
    return TruePairs(
        hashes=first,
        sequence=first_rows[:, 0].copy(),
        begin=np.stack([first_rows[:, 1], second_rows[:, 1]], axis=1),
        end=np.stack([first_rows[:, 2], second_rows[:, 2]], axis=1),
        reverse=first_rows[:, 3] != 0,
    )


def _hashes(names: list[bytes]) -> NDArray[np.uint64]:
    sizes = np.array([len(name) for name in names], dtype=np.int64)
    ends = np.cumsum(sizes)
    hashes = np.empty(len(names), dtype=np.uint64)
    hash_names(np.frombuffer(b"".join(names), np.uint8), ends - sizes, ends, hashes)
    return hashes


@njit(nogil=True, cache=True)
def read_positions(
    data: NDArray[np.uint8],
    header_start: NDArray[np.int64],
    header_end: NDArray[np.int64],
    positions: NDArray[np.int64],
) -> None:
    """Parse ``read1=A-B read2=C-D`` from headers; ``positions[i]`` becomes A, B, C, D or -1s."""
    for i in range(len(header_start)):
        positions[i, :] = -1
        for p in range(header_start[i], header_end[i] - 6):
            if not (
                data[p] == ord("r")
                and data[p + 1] == ord("e")
                and data[p + 2] == ord("a")
                and data[p + 3] == ord("d")
                and (data[p + 4] == ord("1") or data[p + 4] == ord("2"))
                and data[p + 5] == ord("=")
            ):
                continue
            field = 2 * (data[p + 4] - ord("1"))
            number = 0
            for q in range(p + 6, header_end[i] + 1):
                digit = q < header_end[i] and ord("0") <= data[q] <= ord("9")
                if digit:
                    number = 10 * number + data[q] - ord("0")
                    continue
                positions[i, field] = number
                number = 0
                field += 1
                if q == header_end[i] or data[q] != ord("-") or field % 2 == 0:
                    break


@njit(nogil=True, cache=True)
def oriented_reference(
    codes: NDArray[np.uint8], begin: int, end: int, low: int, high: int, reverse: bool
) -> NDArray[np.uint8]:
    """A piece of the reference, cut to what there is (``low`` to ``high``), turned if asked for."""
    begin, end = max(begin, low), min(end, high)
    size = max(0, end - begin)
    piece = np.empty(size, dtype=np.uint8)
    for i in range(size):
        code = codes[end - 1 - i] if reverse else codes[begin + i]
        piece[i] = 3 - code if reverse and code < 4 else code
    return piece


@njit(nogil=True, cache=True)
def compare_pairs(
    sequence: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_len: NDArray[np.int32],
    positions: NDArray[np.int64],
    rows: NDArray[np.int64],
    place: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    reverse: NDArray[np.bool_],
    reference: NDArray[np.uint8],
    reference_start: NDArray[np.int64],
    edits: NDArray[np.int64],
    differences: NDArray[np.int64],
    gaps: NDArray[np.int64],
    outward: NDArray[np.int64],
) -> None:
    """Compare extended reads with where their pairs come from.

    Args:
        sequence: uint8, codes of the extended reads.
        seq_start: int64[n].
        seq_len: int32[n].
        positions: int64[n, 4], where both reads lie, or -1s: at both ends.
        rows: int64[n], the pair of each in the arrays that follow; -1 for none.
        place: int64[pairs], number of the reference's sequence.
        begin: int64[pairs, 2].
        end: int64[pairs, 2].
        reverse: bool[pairs].
        reference: uint8.
        reference_start: int64.
        edits: int64[n], set to the edit distance of the gaps.
        differences: int64[n], set to found less true length of the gap.
        gaps: int64[n], set to the true length of the gap.
        outward: int64[n, 2], set to bases and edits outside of the pair.
    """
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            continue
        read = sequence[seq_start[i] : seq_start[i] + seq_len[i]]
        low, high = reference_start[place[row]], reference_start[place[row] + 1]
        first_length = end[row, 0] - begin[row, 0]
        second_length = end[row, 1] - begin[row, 1]
        if positions[i, 3] >= 0:
            first_begin, gap_begin = positions[i, 0], positions[i, 1]
            gap_end, second_end = positions[i, 2], positions[i, 3]
        else:
            first_begin, gap_begin = 0, min(first_length, len(read))
            gap_end, second_end = max(0, len(read) - second_length), len(read)
        # In the direction of the reference, and as offsets into it.
        if reverse[row]:
            true_begin, true_end = low + end[row, 1], low + begin[row, 0]
            outer_begin, outer_end = low + begin[row, 1], low + end[row, 0]
        else:
            true_begin, true_end = low + end[row, 0], low + begin[row, 1]
            outer_begin, outer_end = low + begin[row, 0], low + end[row, 1]
        true_gap = true_end - true_begin
        gaps[i] = true_gap
        # Of pairs that overlap, the length of the whole says what is wrong.
        differences[i] = (second_end - first_begin) - (outer_end - outer_begin)
        if true_gap < 0 or gap_end < gap_begin:
            edits[i] = abs(differences[i])
        else:
            piece = oriented_reference(reference, true_begin, true_end, low, high, reverse[row])
            edits[i] = edit_distance(read[gap_begin:gap_end], piece)
        left, right = first_begin, len(read) - second_end
        before = right if reverse[row] else left
        after = left if reverse[row] else right
        for side in range(2):
            count = before if side == 0 else after
            if count == 0:
                continue
            if side == 0:
                piece = oriented_reference(
                    reference, outer_begin - count, outer_begin, low, high, reverse[row]
                )
            else:
                piece = oriented_reference(
                    reference, outer_end, outer_end + count, low, high, reverse[row]
                )
            at_left = (side == 0) != reverse[row]
            part = read[:first_begin] if at_left else read[second_end:]
            outward[i, 0] += count
            outward[i, 1] += edit_distance(part, piece)


def evaluate_extension(
    truth: Sequence[str | Path], reference: str | Path, extended: Sequence[str | Path]
) -> ExtensionEvaluation:
    """Compare extended reads of simulated pairs with the truth.

    Args:
        truth: SAM, BAM or CRAM of the error-free reads.
        reference: FASTA that they were drawn from.
        extended: extended reads, named like their pairs. Where a header says where both reads lie
            (``read1=A-B read2=C-D``) that counts, else they lie at both ends.

    Raises:
        InputError: a file cannot be read, or an extended read belongs to no pair.
    """
    genome = read_reference(reference)
    pairs = read_true_pairs(truth, genome)
    result = ExtensionEvaluation(pairs=len(pairs.hashes))
    for path in extended:
        for batch in read_batches(path):
            rows = _rows(batch, pairs)
            edits, differences, gaps, outward = _compare(batch, rows, pairs, genome)
            result.add(edits, differences, gaps, outward, batch.seq_len.astype(np.int64))
    return result


def _rows(batch: RecordBatch, pairs: TruePairs) -> NDArray[np.int64]:
    """Row of each record's pair."""
    names = names_of(batch, np.ones(len(batch), dtype=np.uint8))
    hashes = np.empty(len(batch), dtype=np.uint64)
    hash_names(names.data, names.start, names.end, hashes)
    rows = np.searchsorted(pairs.hashes, hashes).astype(np.int64)
    rows[rows == len(pairs.hashes)] = 0
    unknown = (
        np.flatnonzero(pairs.hashes[rows] != hashes) if len(pairs.hashes) else np.arange(len(batch))
    )
    if len(unknown):
        record = int(unknown[0])
        raise InputError(
            batch.path,
            f"read {batch.name(record)} is none of the true pairs",
            "give the truth of these reads",
            record=batch.first_record + record + 1,
        )
    return rows


def positions_of(batch: RecordBatch) -> NDArray[np.int64]:
    """Where both reads lie in each extended read, int64[n, 4]; -1 where the header says nothing."""
    positions = np.empty((len(batch), 4), dtype=np.int64)
    read_positions(batch.data, batch.header_start, batch.header_end, positions)
    wrong = (positions[:, 3] > batch.seq_len) | (positions[:, 0] > positions[:, 1])
    positions[wrong] = -1
    return positions


def _compare(
    batch: RecordBatch, rows: NDArray[np.int64], pairs: TruePairs, genome: Reference
) -> tuple[NDArray[np.int64], ...]:
    count = len(batch)
    edits, differences, gaps = (np.zeros(count, dtype=np.int64) for _ in range(3))
    outward = np.zeros((count, 2), dtype=np.int64)
    data, starts = _without_line_ends(batch)
    compare_pairs(
        CODES[data], starts, batch.seq_len, positions_of(batch), rows, pairs.sequence, pairs.begin,
        pairs.end, pairs.reverse, genome.codes, genome.start, edits, differences, gaps, outward,
    )  # fmt: skip
    return edits, differences, gaps, outward


def _without_line_ends(batch: RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Letters of all records one after the other, and where each begins."""
    if np.array_equal(batch.seq_end - batch.seq_start, batch.seq_len):
        return batch.data, np.ascontiguousarray(batch.seq_start)
    parts = []
    for start, end in zip(batch.seq_start.tolist(), batch.seq_end.tolist(), strict=True):
        text = batch.data[start:end]
        parts.append(text[(text != ord("\n")) & (text != ord("\r"))])
    ends = np.cumsum(batch.seq_len, dtype=np.int64)
    return np.concatenate(parts), ends - batch.seq_len
