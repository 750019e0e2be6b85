"""BAM records to FASTQ text, as ``samtools fastq`` writes it.

Secondary and supplementary alignments and records without bases are left out, reads of the reverse
strand turned back, and the names of mates get ``/1`` or ``/2`` by their flags. A second mate right
before its first is written after it. A read without qualities gets Q33 for every base
[samtools-fastq(1)]. Other than there, reads that follow one another and have the same name and mate
number are all kept.

A record has its length, 32 bytes of numbers, name, CIGAR, two bases a byte, qualities, and tags
[SAM specification, section 4.2].
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit

GOOD: Final = 0
BAD_SIZES: Final = 1
BAD_NAME: Final = 2
BAD_QUALITY: Final = 3
MIXED: Final = 4

UNKNOWN: Final = 0
SINGLE: Final = 1
PAIRED: Final = 2

BASES: Final = np.frombuffer(b"=ACMGRSVTWYHKDBN", dtype=np.uint8)
"""The letters of four bits."""
COMPLEMENTS: Final = np.frombuffer(b"=TGKCYSBAWRDMHVN", dtype=np.uint8)


@njit(nogil=True, cache=True)
def _number(data, at, size):  # type: ignore[no-untyped-def]
    """A little-endian number."""
    number = np.int64(0)
    for i in range(size):
        number |= np.int64(data[at + i]) << np.int64(8 * i)
    return number


@njit(nogil=True, cache=True)
def _spans(data, at):  # type: ignore[no-untyped-def]
    """Where a record's name, bases, qualities and end are, and its flags."""
    name = at + 36
    flags = _number(data, at + 18, 2)
    bases = name + np.int64(data[at + 12]) + 4 * _number(data, at + 16, 2)
    length = _number(data, at + 20, 4)
    return name, bases, bases + (length + 1) // 2, length, flags


@njit(nogil=True, cache=True)
def _is_kept(flags, length):  # type: ignore[no-untyped-def]
    """Whether a record is neither secondary nor supplementary, and has bases."""
    return flags & 0x900 == 0 and length > 0


@njit(nogil=True, cache=True)
def _mate(flags):  # type: ignore[no-untyped-def]
    """1 or 2 for a first or second mate, else 0."""
    if flags & 1 == 0 or flags & 0xC0 == 0xC0:
        return 0
    return (flags & 0xC0) >> 6


@njit(nogil=True, cache=True)
def scan(data, end, kind, is_last):  # type: ignore[no-untyped-def]
    """Find the whole records at the beginning of ``data`` and the size of their text.

    Args:
        data: uint8, begins with a record.
        end: valid bytes of it.
        kind: of the reads before: UNKNOWN, SINGLE or PAIRED.
        is_last: whether the file ends there; else a second mate at the end, whose first one may
            follow, is left for the next piece.

    Returns:
        Bytes of the records, bytes of their text, number of reads, kind of the reads, and GOOD, or
        what is wrong with the record behind them.
    """
    at = np.int64(0)
    size = np.int64(0)
    reads = np.int64(0)
    second = np.int64(-1)
    before = np.int64(0)
    fault = 0
    while at + 36 <= end:
        record = 4 + _number(data, at, 4)
        name, bases, qualities, length, flags = _spans(data, at)
        if name >= bases or qualities + length > at + record or data[at + 12] == 0:
            fault = 1
            break
        if at + record > end:
            break
        if _is_kept(flags, length):
            own = 2 if flags & 1 else 1
            if kind == 0:
                kind = own
            elif kind != own:
                fault = 4
                break
            mate = _mate(flags)
            second = at if mate == 2 else np.int64(-1)
            before = size
            size += np.int64(data[at + 12]) - 1 + 2 * length + 6 + (2 if mate else 0)
            reads += 1
        at += record
    if second >= 0 and not is_last and fault == 0:
        return second, before, reads - 1, kind, 0
    return at, size, reads, kind, fault


@njit(nogil=True, cache=True)
def _following(data, at, end):  # type: ignore[no-untyped-def]
    """Where the next record that is kept begins, or ``end``."""
    at += 4 + _number(data, at, 4)
    while at < end:
        _, _, _, length, flags = _spans(data, at)
        if _is_kept(flags, length):
            break
        at += 4 + _number(data, at, 4)
    return at


@njit(nogil=True, cache=True)
def _are_swapped(data, at, following):  # type: ignore[no-untyped-def]
    """Whether a record is a second mate and the other one its first."""
    name, _, _, _, flags = _spans(data, at)
    other, _, _, _, other_flags = _spans(data, following)
    if _mate(flags) != 2 or _mate(other_flags) != 1 or data[at + 12] != data[following + 12]:
        return False
    same = 0
    while same < data[at + 12] and data[name + same] == data[other + same]:
        same += 1
    return same == data[at + 12]


@njit(nogil=True, cache=True)
def _write_name(data, at, text, to):  # type: ignore[no-untyped-def]
    """Write a read's first line; returns the place behind it, or -1 for a bad name."""
    name = at + 36
    last = name + np.int64(data[at + 12]) - 1
    if data[last] != 0:
        return np.int64(-1)
    text[to] = 64  # @
    to += 1
    for i in range(name, last):
        if data[i] < 33 or data[i] > 126:
            return np.int64(-1)
        text[to] = data[i]
        to += 1
    mate = _mate(_number(data, at + 18, 2))
    if mate:
        text[to] = 47  # /
        text[to + 1] = 48 + mate
        to += 2
    text[to] = 10
    return to + 1


@njit(nogil=True, cache=True)
def _write_bases(data, bases, length, backwards, text, to, letters):  # type: ignore[no-untyped-def]
    """Write the letters of bases, two of which are in a byte."""
    if backwards:
        last = to + length - 1
        for i in range(length):
            code = data[bases + (i >> 1)] >> (4 * (1 - (i & 1))) & 15
            text[last - i] = letters[code]
        return
    for i in range(length // 2):
        both = data[bases + i]
        text[to + 2 * i] = letters[both >> 4]
        text[to + 2 * i + 1] = letters[both & 15]
    if length & 1:
        text[to + length - 1] = letters[data[bases + length // 2] >> 4]


@njit(nogil=True, cache=True)
def _write_qualities(data, qualities, length, backwards, text, to):  # type: ignore[no-untyped-def]
    """Write qualities; returns whether they can be written."""
    if data[qualities] == 0xFF:
        text[to : to + length] = 66
        return True
    highest = np.uint8(0)
    for i in range(length):
        highest = max(highest, data[qualities + i])
    if backwards:
        for i in range(length):
            text[to + i] = data[qualities + length - 1 - i] + np.uint8(33)
    else:
        for i in range(length):
            text[to + i] = data[qualities + i] + np.uint8(33)
    return highest <= 93


@njit(nogil=True, cache=True)
def _write_read(data, at, text, to, bases_of, complement_of):  # type: ignore[no-untyped-def]
    """Write one read; returns the place behind it, and GOOD, or what is wrong with it."""
    _, bases, qualities, length, flags = _spans(data, at)
    backwards = flags & 0x10 != 0
    to = _write_name(data, at, text, to)
    if to < 0:
        return to, 2
    letters = complement_of if backwards else bases_of
    _write_bases(data, bases, length, backwards, text, to, letters)
    to += length
    text[to] = 10
    text[to + 1] = 43  # +
    text[to + 2] = 10
    to += 3
    if not _write_qualities(data, qualities, length, backwards, text, to):
        return to, 3
    text[to + length] = 10
    return to + length + 1, 0


@njit(nogil=True, cache=True)
def write(data, end, text, bases_of, complement_of):  # type: ignore[no-untyped-def]
    """Write the text of whole records.

    Args:
        data: uint8, records that ``scan`` found.
        end: bytes of them.
        text: uint8 of the size that ``scan`` returned, filled.
        bases_of: uint8[16], ``BASES``.
        complement_of: uint8[16], ``COMPLEMENTS``.

    Returns:
        Number of reads written, and GOOD, or what is wrong with the next one.
    """
    to = np.int64(0)
    reads = np.int64(0)
    at = np.int64(0)
    _, _, _, length, flags = _spans(data, at)
    if not _is_kept(flags, length):
        at = _following(data, at, end)
    while at < end:
        following = _following(data, at, end)
        if following < end and _are_swapped(data, at, following):
            to, fault = _write_read(data, following, text, to, bases_of, complement_of)
            if fault:
                return reads, fault
            reads += 1
            following = _following(data, following, end)
        to, fault = _write_read(data, at, text, to, bases_of, complement_of)
        if fault:
            return reads, fault
        reads += 1
        at = following
    return reads, 0


def to_text(records: NDArray[np.uint8], size: int) -> tuple[NDArray[np.uint8], int, int]:
    """The text of whole records.

    Args:
        records: uint8, records that ``scan`` found.
        size: bytes of their text.

    Returns:
        uint8[size]; reads written; and GOOD, or what is wrong with the read after them.
    """
    text = np.empty(size, dtype=np.uint8)
    reads, fault = write(records, len(records), text, BASES, COMPLEMENTS)
    return text, int(reads), int(fault)
