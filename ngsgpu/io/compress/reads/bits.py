"""Makes the deflate stream of a block of reads."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES
from ngsgpu.io.compress.reads.codes import (
    HEADER_WORDS,
    MOST_BITS,
    code_lengths,
    flush,
    make_codes,
    put_header,
)
from ngsgpu.io.compress.reads.matches import (
    BASES,
    DISTANCE_BITS,
    LENGTH_BITS,
    MOST_LINES,
    PLACE_BITS,
    SLOTS,
    find_steps,
)
from ngsgpu.io.compress.reads.symbols import (
    DISTANCE_EXTRA,
    DISTANCE_FIRST,
    FIRST_DISTANCE,
    FIRST_LENGTH,
    LENGTH_EXTRA,
    LENGTH_FIRST,
    LENGTH_SYMBOL,
    LITERALS,
    SYMBOLS,
    distance_symbol,
)
from ngsgpu.io.compress.reads.words import LANES, equal_to, load_byte, load_word, ones
from ngsgpu.jit import njit
from ngsgpu.sequence.intrinsics import array_at

PADDING: Final = LANES
"""Bytes behind a block that are read, whatever they are."""

_END = 256
_PAIR_BITS = 56
_A, _C, _G, _T = (ord(letter) for letter in "ACGT")
_LOW_BITS = 0x0303030303030303
_GATHER = 0x01041040
"""Times four codes of two bits, each lowest in its byte, this has them side by side from bit 24."""

_FOURS = np.array(
    [sum(b"ACTG"[(four >> 2 * k) & 3] << 8 * k for k in range(4)) for four in range(256)]
)
"""Four bases as text, by the bits 1 and 2 of each."""

_FIRST_OF_WORD = np.array(
    [
        [sum(63 << 8 * k for k in range(4) if 4 * half + k < count) for half in range(2)]
        for count in range(8)
    ]
)
"""For each number of first bytes of a word: 63 in the place of each of its two halves, else 0."""


class Work(NamedTuple):
    """Memory of one thread, for ``put_stream``; ``padded`` is for a block that nothing follows."""

    padded: NDArray[np.uint8]
    lines: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    tables: NDArray[np.uint16]
    counts: NDArray[np.int64]
    more_counts: NDArray[np.int64]
    steps: NDArray[np.int64]
    lengths: NDArray[np.int64]
    codes: NDArray[np.int64]
    length_codes: NDArray[np.int64]
    fours: NDArray[np.int64]
    words: NDArray[np.int64]


_SIZES = (
    BLOCK_BYTES + PADDING, MOST_LINES + 3, MOST_LINES + 1, 2 * SLOTS + 3, SYMBOLS, 3 * 256,
    BLOCK_BYTES // 3 + 4, SYMBOLS, SYMBOLS, 259, 256, HEADER_WORDS,
)  # fmt: skip
"""Items of each array. Words are read at the ends of some."""

_WIDTHS = (1, 4, 1, 2, 8, 8, 8, 8, 8, 8, 8, 8)
_PLACES = (0, *accumulate(-(-s * w // 8) * 8 for s, w in zip(_SIZES, _WIDTHS, strict=True)))

WORK_BYTES: Final = _PLACES[-1]


@njit(nogil=True, cache=True, _nrt=False)
def work_at(place):  # type: ignore[no-untyped-def]
    """The arrays in ``WORK_BYTES`` of memory at an address that eight divide."""
    return Work(
        array_at(place, _SIZES[0], np.uint8),
        array_at(place + _PLACES[1], _SIZES[1], np.int32),
        array_at(place + _PLACES[2], _SIZES[2], np.uint8),
        array_at(place + _PLACES[3], _SIZES[3], np.uint16),
        array_at(place + _PLACES[4], _SIZES[4], np.int64),
        array_at(place + _PLACES[5], _SIZES[5], np.int64),
        array_at(place + _PLACES[6], _SIZES[6], np.int64),
        array_at(place + _PLACES[7], _SIZES[7], np.int64),
        array_at(place + _PLACES[8], _SIZES[8], np.int64),
        array_at(place + _PLACES[9], _SIZES[9], np.int64),
        array_at(place + _PLACES[10], _SIZES[10], np.int64),
        array_at(place + _PLACES[11], _SIZES[11], np.int64),
    )


@njit(nogil=True, cache=True, _nrt=False)
def put_stream(text, size, work, place, most):  # type: ignore[no-untyped-def]
    """Put the deflate stream of a block.

    Args:
        text: address of the block; ``PADDING`` bytes behind it can be read.
        size: its bytes, at most 65,280.
        work: from ``work_at``.
        place: address to put it, with room for ``most`` and 600 bytes.
        most: bytes that it may have.

    Returns:
        Bytes of the stream; 0 if the block is not reads, -1 if it would have more than ``most``.
    """
    count = find_steps(text, size, work)
    if count == 0:
        return 0
    _count_literals(text, count, work)
    counts, lengths, codes, words = work.counts, work.lengths, work.codes, work.words
    code_lengths(counts[:LITERALS], MOST_BITS, lengths[:LITERALS], words)
    code_lengths(counts[FIRST_DISTANCE:], MOST_BITS, lengths[FIRST_DISTANCE:], words)
    begin = place
    place, word, held = put_header(lengths, place, words)
    if 8 * (place - begin) + held + _bits(counts, lengths) > 8 * most:
        return -1
    make_codes(lengths[:LITERALS], codes[:LITERALS], words)
    make_codes(lengths[FIRST_DISTANCE:], codes[FIRST_DISTANCE:], words)
    _join_codes(work)
    return _put_steps(text, count, work, place, word, held) - begin


@njit(nogil=True, cache=True, _nrt=False)
def _count_literals(text, count, work):  # type: ignore[no-untyped-def]
    """Count the bytes that are not copied, and the block's end."""
    counts, more = work.counts, work.more_counts
    more[:] = 0
    at = 0
    for number in range(count):
        step = work.steps[number]
        end = step & ((1 << PLACE_BITS) - 1)
        while step & BASES and at < end:
            _count_bases(text + at, min(LANES, end - at), counts)
            at = min(at + LANES, end)
        while at + 8 <= end:
            _count_word(load_word(text + at), counts, more)
            at += 8
        word = load_word(text + at)
        first = _FIRST_OF_WORD[end - at, 0]
        counts[word & 255] += first & 1
        more[word >> 8 & 255] += first >> 8 & 1
        more[256 + (word >> 16 & 255)] += first >> 16 & 1
        more[512 + (word >> 24 & 255)] += first >> 24 & 1
        first = _FIRST_OF_WORD[end - at, 1]
        counts[word >> 32 & 255] += first & 1
        more[word >> 40 & 255] += first >> 8 & 1
        more[256 + (word >> 48 & 255)] += first >> 16 & 1
        at = end + (step >> PLACE_BITS & ((1 << LENGTH_BITS) - 1))
    for byte in range(256):
        counts[byte] += more[byte] + more[256 + byte] + more[512 + byte]
    counts[_END] = 1


@njit(nogil=True, cache=True, _nrt=False)
def _count_word(word, counts, more):  # type: ignore[no-untyped-def]
    """Count eight bytes in four tables, so that equal neighbours do not wait for each other."""
    for _ in range(2):
        counts[word & 255] += 1
        more[word >> 8 & 255] += 1
        more[256 + (word >> 16 & 255)] += 1
        more[512 + (word >> 24 & 255)] += 1
        word >>= 32


@njit(nogil=True, cache=True, _nrt=False)
def _count_bases(place, size, counts):  # type: ignore[no-untyped-def]
    """Count up to ``LANES`` bytes of a sequence."""
    inside = (1 << size) - 1 if size < LANES else -1
    a, c = ones(equal_to(place, _A) & inside), ones(equal_to(place, _C) & inside)
    g, t = ones(equal_to(place, _G) & inside), ones(equal_to(place, _T) & inside)
    if a + c + g + t < size:
        for at in range(size):
            counts[load_byte(place + at)] += 1
        return
    counts[_A] += a
    counts[_C] += c
    counts[_G] += g
    counts[_T] += t


@njit(nogil=True, cache=True, _nrt=False)
def _bits(counts, lengths):  # type: ignore[no-untyped-def]
    """Bits of all symbols and of what follows on them."""
    total = 0
    for symbol in range(counts.size):
        total += counts[symbol] * lengths[symbol]
    for symbol in range(LENGTH_EXTRA.size):
        total += counts[FIRST_LENGTH + symbol] * LENGTH_EXTRA[symbol]
    for symbol in range(DISTANCE_EXTRA.size):
        total += counts[FIRST_DISTANCE + symbol] * DISTANCE_EXTRA[symbol]
    return total


@njit(nogil=True, cache=True, _nrt=False)
def _join_codes(work):  # type: ignore[no-untyped-def]
    """Put the entries of four bases together, and of all lengths with what follows on them."""
    codes = work.codes
    for four in range(256):
        word, held = _four(codes, _FOURS[four], 0x3F3F3F3F)
        work.fours[four] = word << 6 | held
    for length in range(3, 259):
        symbol = np.int64(LENGTH_SYMBOL[length])
        entry = codes[FIRST_LENGTH + symbol]
        more = (length - LENGTH_FIRST[symbol]) << (entry & 63)
        work.length_codes[length] = (entry >> 6 | more) << 6 | (entry & 63) + LENGTH_EXTRA[symbol]


@njit(nogil=True, cache=True, _nrt=False)
def _four(codes, word, first):  # type: ignore[no-untyped-def]
    """The codes of the low four bytes, or the first of them, as a word of them all and its bits.

    Args:
        codes: of all bytes.
        word: the bytes.
        first: 63 for each that counts, in its place.
    """
    own, second = codes[word & 255], codes[word >> 8 & 255]
    third, fourth = codes[word >> 16 & 255], codes[word >> 24 & 255]
    length = own & first & 63
    both = length + (second & first >> 8 & 63)
    third_length = third & first >> 16 & 63
    total = both + third_length + (fourth & first >> 24 & 63)
    low = own >> 6 | second >> 6 << length
    high = third >> 6 | fourth >> 6 << third_length
    return (low | high << both) & ((1 << total) - 1), total


@njit(nogil=True, cache=True, _nrt=False)
def _put_steps(text, count, work, place, word, held):  # type: ignore[no-untyped-def]
    """Put literals, copies and the block's end; the address behind it."""
    codes = work.codes
    at = 0
    for number in range(count):
        step = work.steps[number]
        end = step & ((1 << PLACE_BITS) - 1)
        if step & BASES:
            at, place, word, held = _put_bases(text, at, end, work.fours, place, word, held)
        while at + 8 <= end:
            bytes_ = load_word(text + at)
            own, bits = _four(codes, bytes_, 0x3F3F3F3F)
            others, other_bits = _four(codes, bytes_ >> 32, 0x3F3F3F3F)
            at += 8
            if bits + other_bits > _PAIR_BITS:
                place, word, held = flush(place, word | own << held, held + bits)
                own, bits = others, other_bits
            else:
                own |= others << bits
                bits += other_bits
            place, word, held = flush(place, word | own << held, held + bits)
        bytes_ = load_word(text + at)
        own, bits = _four(codes, bytes_, _FIRST_OF_WORD[end - at, 0])
        place, word, held = flush(place, word | own << held, held + bits)
        own, bits = _four(codes, bytes_ >> 32, _FIRST_OF_WORD[end - at, 1])
        place, word, held = flush(place, word | own << held, held + bits)
        length = step >> PLACE_BITS & ((1 << LENGTH_BITS) - 1)
        at = end + length
        if length > 0:
            entry = work.length_codes[length]
            word |= entry >> 6 << held
            held += entry & 63
            distance = step >> (PLACE_BITS + LENGTH_BITS) & ((1 << DISTANCE_BITS) - 1)
            symbol = distance_symbol(distance)
            entry = codes[FIRST_DISTANCE + symbol]
            more = (distance - DISTANCE_FIRST[symbol]) << (entry & 63)
            word |= (entry >> 6 | more) << held
            held += (entry & 63) + DISTANCE_EXTRA[symbol]
            place, word, held = flush(place, word, held)
    place, word, held = flush(place, word | codes[_END] >> 6 << held, held + (codes[_END] & 63))
    return flush(place, word, held + 7)[0]


@njit(nogil=True, cache=True, _nrt=False)
def _put_bases(text, at, end, fours, place, word, held):  # type: ignore[no-untyped-def]
    """Put literals by eight, as long as they are A, C, G and T; where it stopped, and the rest."""
    while at + 8 <= end:
        bytes_ = load_word(text + at)
        two_bits = bytes_ >> 1 & _LOW_BITS
        low = (two_bits & 0xFFFFFFFF) * _GATHER >> 24 & 255
        high = (two_bits >> 32) * _GATHER >> 24 & 255
        own, others = fours[low], fours[high]
        bits = own & 63
        both = bits + (others & 63)
        if _FOURS[low] | _FOURS[high] << 32 != bytes_ or both > _PAIR_BITS:
            break
        own = own >> 6 | others >> 6 << bits
        place, word, held = flush(place, word | own << held, held + both)
        at += 8
    return at, place, word, held
