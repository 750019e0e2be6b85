"""Sampled k-mers of sequences and reads.

A k-mer is a uint64 of two bit planes: bit i is the low bit of the code of its base i, bit 32 + i
the high bit. Of a k-mer and its reverse complement the smaller number counts. Whether it is sampled
depends on its middle 16 bases only, so that the k-mers of a read and of the host are chosen alike
wherever the read begins, and whatever surrounds them.

Text is taken block by block, in loops without branches that the compiler turns into vector
instructions. Every byte of a plane first holds the bit of one base, and in the end those of eight.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.params import CENTRE, Sampling
from ngsgpu.jit import njit
from ngsgpu.sequence.hashing import mix64

BLOCK: Final = 1 << 14
"""Letters of a block, whose planes stay in the cache."""

SEPARATOR: Final = np.uint8(10)
"""Stands between reads of a block; like any letter that is no base, no k-mer has it."""

_PADDING: Final = 64
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_EIGHT = np.uint64(8)
_LOW = np.uint64(0xFFFFFFFF)
_TRIPLET = np.uint64(7)
_THREE = np.uint64(3)
_LF = 10
_CR = 13
_FACTOR_32 = np.uint32(0x45D9F3B)
_16 = np.uint32(16)
_8 = np.uint32(8)
_24 = np.uint32(24)
_A, _C, _G, _T = (np.uint8(letter) for letter in b"ACGT")
_B1, _B2, _B3, _B4, _UPPER = (np.uint8(number) for number in (1, 2, 3, 4, 0xDF))


class Room(NamedTuple):
    """Workspace for a block.

    Attributes:
        text: uint8, letters.
        low: uint8, low bits of the codes of a base and the seven after it.
        high: uint8, high bits.
        back_low: uint8, the same of the complements, in opposite order.
        back_high: uint8.
        hidden: uint8, whether any of 16 letters is no base.
        sampled: uint8, whether the k-mer that begins here is sampled.
        starts: int64, where sampled k-mers begin.
        kmers: uint64, the sampled k-mers.
    """

    text: NDArray[np.uint8]
    low: NDArray[np.uint8]
    high: NDArray[np.uint8]
    back_low: NDArray[np.uint8]
    back_high: NDArray[np.uint8]
    hidden: NDArray[np.uint8]
    sampled: NDArray[np.uint8]
    starts: NDArray[np.int64]
    kmers: NDArray[np.uint64]


@njit(nogil=True, cache=True)
def new_room(letters: int) -> Room:
    """Workspace for blocks of a number of letters."""
    size = letters + _PADDING
    return Room(
        np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8),
        np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8),
        np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8),
        np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.uint64),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _split(room: Room, letters: np.uint64) -> None:
    """Bits of the codes of letters, and whether they are no bases."""
    for i in range(letters):
        letter = room.text[i]
        code = (letter >> _B1) & _B3
        code ^= code >> _B1
        upper = letter & _UPPER
        room.low[i] = code & _B1
        room.high[i] = code >> _B1
        room.hidden[i] = (upper != _A) & (upper != _C) & (upper != _G) & (upper != _T)


@njit(nogil=True, cache=True)
def _gather(bits: NDArray[np.uint8], letters: np.uint64) -> None:
    """Join the bits of eight letters, the first one's lowest."""
    for i in range(letters):
        bits[i] = bits[i] | (bits[i + np.uint64(1)] << _B1)
    for i in range(letters):
        bits[i] = bits[i] | (bits[i + np.uint64(2)] << _B2)
    for i in range(letters):
        bits[i] = bits[i] | (bits[i + np.uint64(4)] << _B4)


@njit(nogil=True, cache=True)
def _gather_back(
    bits: NDArray[np.uint8], back: NDArray[np.uint8], letters: np.uint64, beyond: np.uint64
) -> None:
    """Join the opposite bits of eight letters, the last one's lowest."""
    for i in range(letters + beyond):
        back[i] = bits[i] ^ _B1
    for i in range(letters):
        back[i] = (back[i] << _B1) | back[i + np.uint64(1)]
    for i in range(letters):
        back[i] = (back[i] << _B2) | back[i + np.uint64(2)]
    for i in range(letters):
        back[i] = (back[i] << _B4) | back[i + np.uint64(4)]


@njit(nogil=True, cache=True)
def _hide(hidden: NDArray[np.uint8], letters: np.uint64) -> None:
    """Whether any of 16 letters is hidden."""
    for i in range(letters):
        hidden[i] |= hidden[i + np.uint64(1)]
    for i in range(letters):
        hidden[i] |= hidden[i + np.uint64(2)]
    for i in range(letters):
        hidden[i] |= hidden[i + np.uint64(4)]
    for i in range(letters):
        hidden[i] |= hidden[i + np.uint64(8)]


@njit(nogil=True, cache=True)
def _choose(room: Room, letters: np.uint64, sampling: Sampling) -> None:
    """Decide for each letter whether the k-mer that begins there is sampled."""
    offset = np.uint64((sampling.kmer - CENTRE) // 2)
    rest = np.uint64(sampling.kmer - CENTRE)
    low, high, back_low, back_high = room.low, room.high, room.back_low, room.back_high
    for i in range(letters):
        at = i + offset
        forward = (
            np.uint32(low[at])
            | (np.uint32(low[at + _EIGHT]) << _8)
            | (np.uint32(high[at]) << _16)
            | (np.uint32(high[at + _EIGHT]) << _24)
        )
        backward = (
            np.uint32(back_low[at + _EIGHT])
            | (np.uint32(back_low[at]) << _8)
            | (np.uint32(back_high[at + _EIGHT]) << _16)
            | (np.uint32(back_high[at]) << _24)
        )
        # mix32 of ngsgpu/sequence/hashing.py, in 32 bits
        word = np.uint32(min(forward, backward))
        word = np.uint32((word >> _16) ^ word) * _FACTOR_32
        word = np.uint32((np.uint32(word) >> _16) ^ np.uint32(word)) * _FACTOR_32
        word = np.uint32((np.uint32(word) >> _16) ^ np.uint32(word))
        is_known = np.uint8((room.hidden[i] | room.hidden[i + rest]) == 0)
        room.sampled[i] = np.uint8(np.uint32(word) <= sampling.limit) & is_known


@njit(nogil=True, cache=True)
def _joined(bits: NDArray[np.uint8], at: np.uint64, k: np.uint64) -> np.uint64:
    """Bits of the k letters from ``at`` on."""
    rest = k - np.uint64(CENTRE)
    return (
        np.uint64(bits[at])
        | (np.uint64(bits[at + _EIGHT]) << _EIGHT)
        | (np.uint64(bits[at + rest]) << rest)
        | (np.uint64(bits[at + rest + _EIGHT]) << (rest + _EIGHT))
    )


@njit(nogil=True, cache=True)
def _joined_back(bits: NDArray[np.uint8], at: np.uint64, k: np.uint64) -> np.uint64:
    """Bits of the k letters from ``at`` on, where the last one's are lowest."""
    rest = k - np.uint64(CENTRE)
    return (
        np.uint64(bits[at + rest + _EIGHT])
        | (np.uint64(bits[at + rest]) << _EIGHT)
        | (np.uint64(bits[at + _EIGHT]) << rest)
        | (np.uint64(bits[at]) << (rest + _EIGHT))
    )


@njit(nogil=True, cache=True)
def sample_block(room: Room, letters: int, sampling: Sampling) -> int:
    """Find the sampled k-mers of the first letters of ``room.text``; return their number."""
    if letters < sampling.kmer:
        return 0
    # The loops run on into the padding, so that each byte joins those after it.
    padded = np.uint64(letters + _PADDING)
    room.text[np.uint64(letters) : padded] = SEPARATOR
    _split(room, padded)
    inner = np.uint64(letters + _PADDING // 2)
    _gather_back(room.low, room.back_low, inner, np.uint64(8))
    _gather_back(room.high, room.back_high, inner, np.uint64(8))
    _gather(room.low, inner)
    _gather(room.high, inner)
    _hide(room.hidden, inner)
    possible = np.uint64(letters - sampling.kmer + 1)
    _choose(room, possible, sampling)
    found = _ZERO
    for i in range(possible):
        # Written even if it is not sampled, since a branch would be mispredicted too often.
        room.starts[found] = i
        found += np.uint64(room.sampled[i])
    k = np.uint64(sampling.kmer)
    for i in range(found):
        at = np.uint64(room.starts[i])
        forward = _joined(room.low, at, k) | (_joined(room.high, at, k) << _HALF)
        backward = _joined_back(room.back_low, at, k) | (
            _joined_back(room.back_high, at, k) << _HALF
        )
        room.kmers[i] = min(forward, backward)
    return int(found)


@njit(nogil=True, cache=True)
def repeats(kmer: np.uint64, length: int, counts: NDArray[np.int64]) -> int:
    """Pairs of equal triplets in a k-mer; ``counts`` is room for 64 numbers."""
    counts[:] = 0
    low, high = kmer & _LOW, kmer >> _HALF
    pairs = 0
    for _ in range(length - 2):
        triplet = (low & _TRIPLET) | ((high & _TRIPLET) << _THREE)
        pairs += counts[triplet]
        counts[triplet] += 1
        low >>= _ONE
        high >>= _ONE
    return pairs


@njit(nogil=True, cache=True)
def sample(
    data: NDArray[np.uint8],
    begin: int,
    stop: int,
    end: int,
    sampling: Sampling,
    max_repeats: int,
    hashes: NDArray[np.uint64],
) -> int:
    """Write the hashes of the sampled k-mers that begin in a stretch of text; return their number.

    Args:
        data: text, whose line ends do not count.
        begin: where the stretch begins.
        stop: where it ends.
        end: where the sequence ends.
        sampling: which k-mers.
        max_repeats: see ``IndexParameters``.
        hashes: room for as many as the stretch has letters.
    """
    room = new_room(BLOCK)
    counts = np.empty(64, dtype=np.int64)
    overlap = sampling.kmer - 1
    written = letters = 0
    beyond = overlap
    i = begin
    while i < end and (i < stop or beyond > 0):
        letter = data[i]
        if letter != _LF and letter != _CR:
            beyond -= i >= stop
            room.text[letters] = letter
            letters += 1
        i += 1
        if letters < BLOCK and i < end and (i < stop or beyond > 0):
            continue
        for k in range(sample_block(room, letters, sampling)):
            kmer = room.kmers[k]
            if repeats(kmer, sampling.kmer, counts) <= max_repeats:
                hashes[written] = mix64(kmer)
                written += 1
        kept = min(overlap, letters)
        room.text[:kept] = room.text[letters - kept : letters].copy()
        letters = kept
    return written
