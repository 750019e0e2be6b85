"""The output's bytes: extended reads as FASTQ or FASTA, remaining pairs unchanged.

Bases and qualities of the reads are copied from the input. Where the mates overlap, the base with
the higher quality is used, on ties that of the first read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.fragments import (
    Bases,
    OrientedRead,
    Places,
    choose_in_overlap,
    put_fragment_letters,
    put_fragment_qualities,
)
from ngsgpu.extend.tasks.joining import NOT_CONNECTED
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.put import put_bytes, put_number
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.intrinsics import borrowed

KIND_WORDS = ("none", "both", "confirmed", "one", "differ", "merged")
"""Header word for each kind of connection."""

NO_QUALITY = 40
"""Phred score of bases whose file has none."""

HEADER_BYTES = 128
"""Most bytes of a header behind the name."""


WORDS = np.array([np.frombuffer(word.ljust(9).encode(), np.uint8) for word in KIND_WORDS])
TAGS = np.frombuffer(b" length= read1= read2= by=", np.uint8)


class Format(NamedTuple):
    """Format of the output records.

    Attributes:
        fasta: 1 for FASTA, 0 for FASTQ.
        phred_offset: offset of the quality characters.
        gap_quality: Phred score of all bases outside the two reads, or -1 for the computed ones.
        include_remaining: 1 to write unconnected pairs among the extended reads.
        interleave_remaining: 1 to write remaining mates interleaved.
        reverse_complemented_input: 1 if the fragment's ends are the reads' reverse complements.
    """

    fasta: int
    phred_offset: int
    gap_quality: int
    include_remaining: int
    interleave_remaining: int
    reverse_complemented_input: int


@njit(nogil=True, cache=True)
def write_range(begin: Integer, end: Integer, out: NDArray[np.uint8], at: Integer) -> Integer:
    """Write ``begin-end``; return the place behind it."""
    at = put_number(out, at, begin)
    out[at] = ord("-")
    return put_number(out, at + 1, end)


@njit(nogil=True, cache=True)
def write_header(
    mates: Mates,
    row: Integer,
    marker: int,
    kind: Integer,
    total: Integer,
    left: Integer,
    right: Integer,
    lengths: tuple[Integer, Integer],
    out: NDArray[np.uint8],
    at: Integer,
) -> Integer:
    """Write a header: the first mate's name and both reads' positions (0-based, half-open)."""
    out[at] = marker
    at += 1
    begin, end = mates.header_start[row], mates.header_end[row]
    for p in range(begin, end):
        if mates.data[p] == 32 or mates.data[p] == 9:
            end = p
            break
    if end - begin > 2 and mates.data[end - 2] == ord("/") and mates.data[end - 1] == ord("1"):
        end -= 2
    at = put_bytes(out, at, mates.data, begin, end)
    at = put_bytes(out, at, TAGS, 0, 8)
    at = put_number(out, at, left + total + right)
    at = put_bytes(out, at, TAGS, 8, 15)
    at = write_range(left, left + min(lengths[0], total), out, at)
    at = put_bytes(out, at, TAGS, 15, 22)
    at = write_range(left + max(np.int64(0), total - lengths[1]), left + total, out, at)
    at = put_bytes(out, at, TAGS, 22, 26)
    for i in range(WORDS.shape[1]):
        if WORDS[kind, i] != 32:
            out[at] = WORDS[kind, i]
            at += 1
    out[at] = 10
    return at + 1


@njit(nogil=True, cache=True)
def write_sequence(
    how: Format,
    results: Extensions,
    row: Integer,
    first: OrientedRead,
    second: OrientedRead,
    out: NDArray[np.uint8],
    at: Integer,
) -> Integer:
    """Write bases, and qualities for FASTQ, with their line ends; return the place behind them."""
    left = np.int64(results.left[row])
    total = np.int64(results.total[row])
    right = np.int64(results.right[row])
    start = results.start[row]
    places = Places(left, min(first.length, total), total - second.length, total, right)
    whole = left + total + right
    quality_at = at + whole + 3
    put_fragment_letters(out, at, places, first, second, results.codes, start)
    if how.fasta:
        choose_in_overlap(out, at + left, np.int64(-1), places, first, second)
        out[at + whole] = 10
        return at + whole + 1
    put_fragment_qualities(
        out,
        quality_at,
        places,
        first,
        second,
        results.qualities,
        start,
        how.gap_quality,
        how.phred_offset,
    )
    choose_in_overlap(out, at + left, quality_at + left, places, first, second)
    at += whole
    out[at] = 10
    out[at + 1] = ord("+")
    out[at + 2] = 10
    at = quality_at + whole
    out[at] = 10
    return at + 1


@njit(nogil=True, cache=True)
def copy_record(mates: Mates, row: Integer, out: NDArray[np.uint8], at: Integer) -> Integer:
    """Copy a record unchanged, adding a final line end if the file lacks it."""
    at = put_bytes(out, at, mates.data, mates.header_start[row] - 1, mates.record_end[row])
    if out[at - 1] != 10:
        out[at] = 10
        at += 1
    return at


@njit(nogil=True, cache=True)
def write_records(
    mates1: Mates,
    mates2: Mates,
    bases1: Bases,
    bases2: Bases,
    begin: Integer,
    how: Format,
    results: Extensions,
    extended: NDArray[np.uint8],
    remaining1: NDArray[np.uint8],
    remaining2: NDArray[np.uint8],
) -> tuple[Integer, Integer, Integer]:
    """Write the pairs of rows from ``begin`` on of the mates; return the bytes of each output."""
    mates1 = borrowed(mates1)
    mates2 = borrowed(mates2)
    bases1 = borrowed(bases1)
    bases2 = borrowed(bases2)
    results = borrowed(results)
    extended = borrowed(extended)
    remaining1 = borrowed(remaining1)
    remaining2 = borrowed(remaining2)
    at: Integer = np.int64(0)
    at1: Integer = np.int64(0)
    at2: Integer = np.int64(0)
    marker = ord(">") if how.fasta else ord("@")
    for i in range(len(results.kind)):
        row = begin + i
        if results.kind[i] == NOT_CONNECTED:
            at1 = copy_record(mates1, row, remaining1, at1)
            if how.interleave_remaining:
                at1 = copy_record(mates2, row, remaining1, at1)
            else:
                at2 = copy_record(mates2, row, remaining2, at2)
            if how.include_remaining:
                at = copy_record(mates1, row, extended, at)
                at = copy_record(mates2, row, extended, at)
            continue
        lengths = (np.int64(mates1.seq_len[row]), np.int64(mates2.seq_len[row]))
        at = write_header(
            mates1,
            row,
            marker,
            np.int64(results.kind[i]),
            np.int64(results.total[i]),
            np.int64(results.left[i]),
            np.int64(results.right[i]),
            lengths,
            extended,
            at,
        )
        first = OrientedRead(
            bases1.letters,
            bases1.letters_start[i],
            bases1.qualities,
            bases1.qualities_start[i],
            lengths[0],
            how.reverse_complemented_input,
        )
        second = OrientedRead(
            bases2.letters,
            bases2.letters_start[i],
            bases2.qualities,
            bases2.qualities_start[i],
            lengths[1],
            1 - how.reverse_complemented_input,
        )
        at = write_sequence(how, results, i, first, second, extended, at)
    return at, at1, at2


@njit(nogil=True, cache=True)
def measure_records(
    mates1: Mates,
    mates2: Mates,
    begin: Integer,
    how: Format,
    results: Extensions,
    lengths: NDArray[np.int64],
) -> tuple[Integer, Integer, Integer, Integer]:
    """Room for the bytes of each output, and how many ``lengths`` of extended reads it wrote."""
    mates1 = borrowed(mates1)
    mates2 = borrowed(mates2)
    results = borrowed(results)
    extended: Integer = np.int64(0)
    remaining1: Integer = np.int64(0)
    remaining2: Integer = np.int64(0)
    connected: Integer = np.int64(0)
    for i in range(len(results.kind)):
        row = begin + i
        if results.kind[i] == NOT_CONNECTED:
            # With a line end that the file may lack.
            remaining1 += np.int64(mates1.record_end[row] - mates1.header_start[row] + 2)
            remaining2 += np.int64(mates2.record_end[row] - mates2.header_start[row] + 2)
            continue
        whole = np.int64(results.total[i]) + results.left[i] + results.right[i]
        lengths[connected] = whole
        connected += 1
        name = mates1.header_end[row] - mates1.header_start[row]
        extended += 2 * whole + name + HEADER_BYTES
    if how.include_remaining:
        extended += remaining1 + remaining2
    if how.interleave_remaining:
        return extended, remaining1 + remaining2, np.int64(0), connected
    return extended, remaining1, remaining2, connected


def format_pairs(
    mates1: Mates, mates2: Mates, begin: int, how: Format, results: Extensions
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes of the extended reads, and of the remaining first and second mates.

    Args:
        mates1: records of first mates.
        mates2: records of second mates.
        begin: record of the first pair in ``results``.
        how: what to write.
        results: what became of the pairs.

    Returns:
        The bytes of each output, and the lengths of the extended reads.
    """
    # Not by NumPy: threads would wait for each other at every call.
    lengths = np.empty(len(results.kind), dtype=np.int64)
    *sizes, connected = measure_records(mates1, mates2, begin, how, results, lengths)
    buffers = [np.empty(size, np.uint8) for size in sizes]
    rows = slice(begin, begin + len(results.kind))
    bases = [Bases.of(mates, rows, how.phred_offset + NO_QUALITY) for mates in (mates1, mates2)]
    written = write_records(mates1, mates2, *bases, begin, how, results, *buffers)
    first, second, third = (buffer[:size] for buffer, size in zip(buffers, written, strict=True))
    return first, second, third, lengths[:connected]
