"""Paired reads of a synthetic genome of any size, as two .gz files of one member, and their truth.

The genome has families of repeats like Alu, L1 and alpha satellites. Every pair is drawn from its
number alone, so that the truth of any pair can be drawn again. Fragments are 350 bases in the mean,
qualities have four levels, and each level has the error rate that its Phred score says. A pair's
name is its number, in ten digits; all records of a file have the same length.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from benchmarks.harness.drawn import LETTERS
from ngsgpu.jit import Integer, njit

Codes = NDArray[np.uint8]

PAIRS_PER_PIECE: Final = 16384
BASES_PER_TASK: Final = 1 << 27
FAMILIES: Final = ((300, 350, 120), (6000, 16, 100), (3000, 10, 40), (171, 200, 250))
"""Length, copies a million bases and substitutions per thousand bases of a family of repeats."""

LONGEST_FRAGMENT: Final = 700
NAME: Final = 19
"""Bytes of a record's first line, as ``@h0000000001 1:N:0``."""

_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LAST_BLOCK: Final = b"\x03\0"
_TRAILER: Final = struct.Struct("<II")


@njit(inline="always")
def _next(state: Any) -> Any:
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@njit(nogil=True, cache=True)
def _fill(genome: Codes, seed: int) -> None:
    state = np.uint64(seed * 2654435761 + 88172645463325252)
    random = state
    for i in range(genome.size):
        if i & 31 == 0:
            state = _next(state)
            random = state
        genome[i] = random & np.uint64(3)
        random = random >> np.uint64(2)


@njit(nogil=True, cache=True)
def _put_repeats(genome: Codes, family: Codes, copies: int, changed: int, seed: int) -> None:
    state = np.uint64(seed * 7919 + 123456789)
    length = family.size
    for _ in range(copies):
        state = _next(state)
        place = np.int64(state >> np.uint64(1)) % (genome.size - length)
        state = _next(state)
        backward = state & np.uint64(1)
        for i in range(length):
            code = np.uint8(3) - family[length - 1 - i] if backward else family[i]
            state = _next(state)
            if (state >> np.uint64(20)) % np.uint64(1000) < np.uint64(changed):
                other = np.uint64(1) + (state >> np.uint64(8)) % np.uint64(3)
                code = np.uint8((code + other) & np.uint64(3))
            genome[place + i] = code


@njit(inline="always")
def _place(pair: int, bases: int, length: int) -> tuple[Any, Integer, Integer, Integer]:
    """State after them; bases of the fragment; its first position; whether mates are swapped."""
    state = np.uint64(pair + 1) * np.uint64(0x9E3779B97F4A7C15)
    state ^= state >> np.uint64(29)
    for _ in range(5):
        state = _next(state)
    random = state
    fragment: Integer = 150
    for _ in range(4):
        fragment += np.int64(random % np.uint64(101))
        random = random >> np.uint64(12)
    state = _next(state)
    first = np.int64(state >> np.uint64(1)) % (bases - LONGEST_FRAGMENT)
    state = _next(state)
    return state, max(fragment, length), first, np.int64(state & np.uint64(1))


@njit(nogil=True, cache=True)
def draw_fragments(genome: Codes, pairs: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Of each pair: bases of its fragment, first position, 1 if mate 1 is of the other strand."""
    found = np.empty((len(pairs), 3), dtype=np.int64)
    for i in range(len(pairs)):
        _, found[i, 0], found[i, 1], found[i, 2] = _place(pairs[i], genome.size, length)
    return found


@njit(nogil=True, cache=True)
def draw(genome: Codes, first_pair: int, records: Codes, truth: Codes) -> None:
    """Draw consecutive pairs.

    Args:
        genome: codes 0 to 3.
        first_pair: number of the first one.
        records: uint8[2, pairs, bytes of a record], written here.
        truth: uint8[2, pairs, bases], gets the reads without errors; it may have no pairs.
    """
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    qualities = np.frombuffer(b"#,:F", dtype=np.uint8)
    wrong = np.array([630957, 63096, 5012, 200], dtype=np.uint64)
    length = (records.shape[2] - NAME - 4) // 2
    for j in range(records.shape[1]):
        state, fragment, first, backward = _place(first_pair + j, genome.size, length)
        for mate in range(2):
            out = records[mate, j]
            number = first_pair + j
            out[0], out[1] = 64, 104
            for digit in range(10):
                out[11 - digit] = 48 + number % 10
                number //= 10
            out[12], out[13], out[14], out[15] = 32, 49 + mate, 58, 78
            out[16], out[17], out[18] = 58, 48, 10
            forward = mate == backward
            for i in range(length):
                if forward:
                    code = genome[first + i]
                else:
                    code = np.uint8(3) - genome[first + fragment - 1 - i]
                if truth.shape[1]:
                    truth[mate, j, i] = letters[code]
                state = _next(state)
                random = (state >> np.uint64(11)) % np.uint64(100000)
                low = np.uint64(3000 + 7000 * i // length)  # per 100,000: 3 % to 10 % below Q37
                level = 3
                if random < low:
                    share = random * np.uint64(100) // low
                    level = 0 if share < 3 else (1 if share < 70 else 2)
                if (state >> np.uint64(40)) % np.uint64(1000000) < wrong[level]:
                    code = np.uint8((code + 1 + (state % np.uint64(3))) & np.uint64(3))
                out[NAME + i] = letters[code]
                out[NAME + length + 3 + i] = qualities[level]
            at = NAME + length
            out[at], out[at + 1], out[at + 2], out[at + 3 + length] = 10, 43, 10, 10


def make_genome(bases: int, path: Path, threads: int) -> Codes:
    """Write a genome as codes 0 to 3, one a byte; the genome, mapped."""
    genome = np.memmap(path, dtype=np.uint8, mode="w+", shape=(bases,))
    rng = np.random.default_rng(5)
    families = [rng.integers(0, 4, length, dtype=np.uint8) for length, _, _ in FAMILIES]

    def make(begin: int) -> None:
        part = genome[begin : begin + BASES_PER_TASK]
        _fill(part, begin + 1)
        for i, (_, copies, changed) in enumerate(FAMILIES):
            _put_repeats(part, families[i], copies * part.size // 10**6, changed, begin + i + 3)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(make, range(0, bases, BASES_PER_TASK)))
    return np.memmap(path, dtype=np.uint8, mode="r")


def record_bytes(length: int) -> int:
    """Bytes of a record of a read of ``length`` bases."""
    return NAME + 2 * length + 4


class DrawnReads:
    """Two growing .gz files of the first pairs of a genome.

    Attributes:
        paths: of first and second mates.
        pairs: in the files.
    """

    def __init__(self, genome: Codes, length: int, paths: tuple[Path, Path], threads: int) -> None:
        self.paths = paths
        self.pairs = 0
        self.length = length
        self._genome = genome
        self._threads = threads
        self._sums = [0, 0]
        for path in paths:
            path.write_bytes(_HEAD + _LAST_BLOCK + _TRAILER.pack(0, 0))

    def grow(self, pairs: int) -> None:
        """Append pairs until the files have as many; the member goes on."""
        ends = [path.stat().st_size - len(_LAST_BLOCK) - _TRAILER.size for path in self.paths]
        files = [os.open(path, os.O_WRONLY) for path in self.paths]
        size = record_bytes(self.length)
        starts = range(self.pairs, pairs, PAIRS_PER_PIECE)
        shift = {
            n: _shift(n * size) for n in (PAIRS_PER_PIECE, (pairs - self.pairs) % PAIRS_PER_PIECE)
        }
        drawing: deque[tuple[int, Future[list[tuple[bytes, int]]]]] = deque()
        writing: deque[Future[int]] = deque()
        with ThreadPoolExecutor(self._threads) as pool:

            def take() -> None:
                count, drawn = drawing.popleft()
                for mate, (packed, own) in enumerate(drawn.result()):
                    writing.append(pool.submit(os.pwrite, files[mate], packed, ends[mate]))
                    ends[mate] += len(packed)
                    self._sums[mate] = shift[count](self._sums[mate]) ^ own
                while len(writing) > 4 * self._threads:
                    writing.popleft().result()

            for start in starts:
                count = min(PAIRS_PER_PIECE, pairs - start)
                drawing.append((count, pool.submit(self._piece, start, count)))
                if len(drawing) > 4 * self._threads:
                    take()
            while drawing:
                take()
        for done in writing:
            done.result()
        self.pairs = max(self.pairs, pairs)
        for mate, file in enumerate(files):
            total = self.pairs * size & 0xFFFFFFFF
            os.pwrite(file, _LAST_BLOCK + _TRAILER.pack(self._sums[mate], total), ends[mate])
            os.close(file)

    def _piece(self, first: int, pairs: int) -> list[tuple[bytes, int]]:
        """Deflated bytes and CRC-32 of both mates' records."""
        records = np.empty((2, pairs, record_bytes(self.length)), dtype=np.uint8)
        draw(self._genome, first, records, np.empty((2, 0, 0), dtype=np.uint8))
        found = []
        for mate in range(2):
            text = records[mate].reshape(-1).data
            packer = isal_zlib.compressobj(level=1, wbits=-15)
            packed = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
            found.append((packed, isal_zlib.crc32(text)))
        return found


def _shift(count: int) -> Callable[[int], int]:
    """What appending ``count`` bytes does to a CRC-32, before their own sum is added (XOR).

    Multiplication by x^(8 count) modulo the polynomial, as in zlib's ``crc32_combine``.
    """

    def times(matrix: list[int], vector: int) -> int:
        found = 0
        for bit in range(32):
            if vector >> bit & 1:
                found ^= matrix[bit]
        return found

    power = [0xEDB88320] + [1 << bit for bit in range(31)]  # one bit
    whole = [1 << bit for bit in range(32)]
    bits = 8 * count
    while bits:
        if bits & 1:
            whole = [times(power, column) for column in whole]
        power = [times(power, column) for column in power]
        bits >>= 1
    return lambda vector: times(whole, vector)


def write_fasta(genome: Codes, path: Path, sequences: int, threads: int) -> None:
    """Write a genome as sequences of equal length, each one line, called ``chr1`` and so on."""
    step = -(-len(genome) // sequences)
    names = [b">chr%d\n" % (i + 1) for i in range(sequences)]
    parts = [genome[i * step : (i + 1) * step] for i in range(sequences)]
    sizes = [len(name) + len(part) + 1 for name, part in zip(names, parts, strict=True)]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def write(i: int) -> None:
        os.pwrite(file, names[i], int(starts[i]))
        at = int(starts[i]) + len(names[i])
        for begin in range(0, len(parts[i]), 1 << 24):
            os.pwrite(file, LETTERS[parts[i][begin : begin + (1 << 24)]].data, at + begin)
        os.pwrite(file, b"\n", at + len(parts[i]))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(sequences)))
    os.close(file)
