"""Finds where a deflate stream has a block, without decoding what is before it.

Only blocks with dynamic codes are looked for ("dynamic Huffman codes", nearly all of what gzip
writes) that are not the last of their stream; where there is none, a gzip member is. The header of
such a block describes codes that must be complete, which bits at any other place are about once in
10^9 places [Knespel and Brunst, HPDC 2023]; ``search`` decodes some of what follows, too. Whoever
uses a place still has to verify that the block before ends there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.compress.bits import is_inflated
from ngsgpu.io.compress.members import MEMBER_BEGIN, member_start
from ngsgpu.jit import njit

_HEADER_BYTES: Final = 600
"""More than the longest header has."""
_CODE_ORDER: Final = np.array(
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], dtype=np.int64
)
_MAX_CODES: Final = 29
"""Largest count of literal or distance codes as it is written in a header."""


@njit(nogil=True, cache=True)
def _bits(data, at, count):  # type: ignore[no-untyped-def]
    """Up to 17 bits of a stream from bit ``at`` on."""
    byte = at >> 3
    word = np.int64(data[byte]) | np.int64(data[byte + 1]) << 8 | np.int64(data[byte + 2]) << 16
    return (word >> (at & 7)) & ((1 << count) - 1)


@njit(nogil=True, cache=True)
def _is_header(data, at):  # type: ignore[no-untyped-def]
    """Whether the bits from ``at`` on are the header of a block, all its codes complete."""
    codes = _bits(data, at + 13, 4) + 4
    filled = 0
    for k in range(codes):
        length = _bits(data, at + 17 + 3 * k, 3)
        if length:
            filled += 128 >> length
    if filled != 128:
        return False
    lengths = np.zeros(19, dtype=np.int64)
    for k in range(codes):
        lengths[_CODE_ORDER[k]] = _bits(data, at + 17 + 3 * k, 3)
    return _has_complete_codes(data, at, at + 17 + 3 * codes, _code_table(lengths))


@njit(nogil=True, cache=True)
def _code_table(lengths):  # type: ignore[no-untyped-def]
    """For the next 7 bits of a stream: symbol and length of the code that they begin with."""
    table = np.zeros(128, dtype=np.int64)
    code = 0
    for length in range(1, 8):
        for symbol in range(19):
            if lengths[symbol] == length:
                low = 0
                for k in range(length):
                    low |= ((code >> k) & 1) << (length - 1 - k)
                for rest in range(low, 128, 1 << length):
                    table[rest] = symbol << 3 | length
                code += 1
        code <<= 1
    return table


@njit(nogil=True, cache=True)
def _has_complete_codes(data, header, at, table):  # type: ignore[no-untyped-def]
    """Whether the code lengths that begin at ``at`` are those of usable codes."""
    literals = _bits(data, header + 3, 5) + 257
    wanted = literals + _bits(data, header + 8, 5) + 1
    lengths = np.zeros(wanted, dtype=np.int64)
    done = 0
    while done < wanted:
        entry = table[_bits(data, at, 7)]
        at += entry & 7
        symbol = entry >> 3
        if symbol < 16:
            lengths[done] = symbol
            done += 1
            continue
        if symbol == 16:
            if done == 0:
                return False
            value, repeats, extra = lengths[done - 1], 3 + _bits(data, at, 2), 2
        elif symbol == 17:
            value, repeats, extra = 0, 3 + _bits(data, at, 3), 3
        else:
            value, repeats, extra = 0, 11 + _bits(data, at, 7), 7
        at += extra
        if done + repeats > wanted:
            return False
        lengths[done : done + repeats] = value
        done += repeats
    if lengths[256] == 0 or _filled(lengths[:literals]) != 1 << 15:
        return False
    distances = lengths[literals:]
    return _filled(distances) == 1 << 15 or distances.sum() <= 1


@njit(nogil=True, cache=True)
def _filled(lengths):  # type: ignore[no-untyped-def]
    """The part of all codes of 15 bits that codes of these lengths use."""
    total = 0
    for length in lengths:
        if length:
            total += 1 << (15 - length)
    return total


@njit(nogil=True, cache=True)
def next_header(data, at, end):  # type: ignore[no-untyped-def]
    """The first bit in [at, end) from which on there is a block's header; -1 if there is none."""
    end = min(end, (data.size - _HEADER_BYTES) * 8)
    while at < end:
        start = _bits(data, at, 13)
        if (
            start & 7 == 4
            and (start >> 3) & 31 <= _MAX_CODES
            and start >> 8 <= _MAX_CODES
            and _is_header(data, at)
        ):
            return at
        at += 1
    return -1


def search(data: bytes) -> int | None:
    """The first bit of a piece of a gzip file where a block begins; None if none is found."""
    array = np.frombuffer(data, dtype=np.uint8)
    at = -1
    while (at := int(next_header(array, at + 1, 8 * len(data)))) >= 0:
        if is_inflated(memoryview(data), at):
            return at
    return _first_of_member(data)


def _first_of_member(data: bytes) -> int | None:
    """The bit where the stream of the first member begins whose header is in the data."""
    view = memoryview(data)
    at = -1
    while (at := data.find(MEMBER_BEGIN, at + 1)) >= 0:
        start = member_start(view, at)
        if start is not None and start < len(data) - _HEADER_BYTES and is_inflated(view, 8 * start):
            return 8 * start
    return None
