"""BAM records to FASTQ text, as ``samtools fastq`` writes it.

Secondary and supplementary alignments and records without bases are left out, reads of the reverse
strand turned back, and the names of mates get ``/1`` or ``/2`` by their flags. A read without
qualities gets Q33 for every base [samtools-fastq(1)].

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

_FIXED: Final = 36
"""Bytes before a record's name, its length included."""
_LEFT_OUT: Final = 0x900
_ABSENT: Final = 0xFF

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
def scan(data, end, kind):  # type: ignore[no-untyped-def]
    """Find the whole records at the beginning of ``data`` and the size of their text.

    Args:
        data: uint8, begins with a record.
        end: valid bytes of it.
        kind: of the reads before: UNKNOWN, SINGLE or PAIRED.

    Returns:
        Bytes of the records, bytes of their text, number of reads, kind of the reads, and GOOD, or
        what is wrong with the record behind them.
    """
    at = np.int64(0)
    size = np.int64(0)
    reads = np.int64(0)
    while at + 36 <= end:
        record = 4 + _number(data, at, 4)
        name, bases, qualities, length, flags = _spans(data, at)
        if name >= bases or qualities + length > at + record or data[at + 12] == 0:
            return at, size, reads, kind, 1
        if at + record > end:
            break
        if flags & 0x900 == 0 and length > 0:
            own = 2 if flags & 1 else 1
            if kind == 0:
                kind = own
            elif kind != own:
                return at, size, reads, kind, 4
            size += np.int64(data[at + 12]) - 1 + 2 * length + 6
            mate = flags & 0xC0
            if own == 2 and (mate == 0x40 or mate == 0x80):
                size += 2
            reads += 1
        at += record
    return at, size, reads, kind, 0


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
    at = np.int64(0)
    to = np.int64(0)
    reads = np.int64(0)
    while at < end:
        record = 4 + _number(data, at, 4)
        name, bases, qualities, length, flags = _spans(data, at)
        if flags & 0x900 == 0 and length > 0:
            last = name + np.int64(data[at + 12]) - 1
            if data[last] != 0:
                return reads, 2
            text[to] = 64  # @
            to += 1
            for i in range(name, last):
                if data[i] < 33 or data[i] > 126:
                    return reads, 2
                text[to] = data[i]
                to += 1
            mate = flags & 0xC0
            if flags & 1 and (mate == 0x40 or mate == 0x80):
                text[to] = 47  # /
                text[to + 1] = 49 if mate == 0x40 else 50
                to += 2
            text[to] = 10
            to += 1
            plus = to + length
            text[plus] = 10
            text[plus + 1] = 43  # +
            text[plus + 2] = 10
            after = plus + 3
            if flags & 0x10:
                for i in range(length):
                    code = data[bases + (i >> 1)] >> (4 * (1 - (i & 1))) & 15
                    text[plus - 1 - i] = complement_of[code]
            else:
                for i in range(length // 2):
                    both = data[bases + i]
                    text[to + 2 * i] = bases_of[both >> 4]
                    text[to + 2 * i + 1] = bases_of[both & 15]
                if length & 1:
                    text[plus - 1] = bases_of[data[bases + length // 2] >> 4]
            if data[qualities] == 0xFF:
                text[after : after + length] = 66
            else:
                highest = np.uint8(0)
                for i in range(length):
                    highest = max(highest, data[qualities + i])
                if highest > 93:
                    return reads, 3
                if flags & 0x10:
                    for i in range(length):
                        text[after + i] = data[qualities + length - 1 - i] + np.uint8(33)
                else:
                    for i in range(length):
                        text[after + i] = data[qualities + i] + np.uint8(33)
            to = after + length
            text[to] = 10
            to += 1
            reads += 1
        at += record
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
