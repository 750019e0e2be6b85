"""Bases of FASTA files, read by several threads however long the sequences are.

Each thread turns chunks of the file into codes, as if they began within a line of a sequence; where
they do not, that is done once more. What is not plain FASTA is left to ``ngsgpu.io.text``, which
reads it or says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import Chunk, Source, unpacked_size
from ngsgpu.io.text.batch import OVERLAP
from ngsgpu.io.text.reader import DEFAULT_LIMITS
from ngsgpu.io.text.scan import base_table
from ngsgpu.jit import njit
from ngsgpu.pool import map_ahead
from ngsgpu.sequence.codec import CODES

_CHUNK: Final = 8 << 20
_AHEAD: Final = 2
_LF, _CR, _NUL, _HEADER = 10, 13, 0, 62
_DONE, _FULL, _OTHER = 0, 1, 2
_BAD = 255


class Codes(NamedTuple):
    """Contents of a chunk.

    Attributes:
        codes: uint8, of its bases; 0 for ambiguous ones.
        headers: int64[h, 3], begin and end of each header in the chunk's buffer, and bases of the
            chunk before it.
        runs: int64[r, 3], first base of the chunk and length of each run of one ambiguous letter,
            and the letter.
        end: where the next chunk goes on, from the beginning of this one.
        at_start: whether that is the beginning of a line.
    """

    codes: NDArray[np.uint8]
    headers: NDArray[np.int64]
    runs: NDArray[np.int64]
    end: int
    at_start: bool


class Headers(NamedTuple):
    """The sequences of a file.

    Attributes:
        lines: their headers.
        starts: their first bases.
        runs: int64[r, 3], first base and length of each run of one ambiguous letter in a sequence,
            and the letter.
    """

    lines: list[bytes]
    starts: list[int]
    runs: NDArray[np.int64]


def read_codes(
    path: str | Path, threads: int, chunk_bytes: int = _CHUNK
) -> tuple[NDArray[np.uint8], Headers] | None:
    """Codes of all bases of a FASTA file, and its headers.

    Args:
        path: the file.
        threads: that read.
        chunk_bytes: that a thread reads at a time; does not affect the result.

    Returns:
        uint8[n], 0 for ambiguous bases, and the headers; None if this is no file, or no FASTA that
        can be read this way.
    """
    if not Path(path).is_file():
        return None
    try:
        source = Source(path, threads=threads, chunk_bytes=chunk_bytes, overlap=OVERLAP)
    except InputError:
        return None
    with closing(source), ThreadPoolExecutor(max(1, threads)) as pool:
        codes: NDArray[np.uint8] = np.empty(max(1, unpacked_size(path)), dtype=np.uint8)
        headers = Headers([], [], np.empty((0, 3), dtype=np.int64))
        runs: list[list[int]] = []
        size = 0
        try:
            for chunk, part in _parts(source, pool, threads):
                if part is None:
                    return None
                if size + len(part.codes) > len(codes):
                    # Large arrays are moved by the kernel, without a copy.
                    codes.resize(3 * (size + len(part.codes)) // 2, refcheck=False)
                codes[size : size + len(part.codes)] = part.codes
                _add(headers, runs, chunk, part, size)
                size += len(part.codes)
        except InputError:
            return None
    longest = max(np.diff([*headers.starts, size]), default=0)
    if not headers.lines or longest > DEFAULT_LIMITS.record_bytes:
        return None
    found = np.array(runs, dtype=np.int64).reshape(-1, 3)
    return codes[:size], Headers(headers.lines, headers.starts, found)


def _parts(
    source: Source, pool: ThreadPoolExecutor, threads: int
) -> Iterator[tuple[Chunk, Codes | None]]:
    """Chunks of a file with what they hold; None for one that is no plain FASTA."""
    table = _kinds()

    def work(item: Chunk | int) -> tuple[Chunk, Codes | None]:
        chunk = source.chunk_at(item) if isinstance(item, int) else item
        return chunk, _codes_of(chunk, 0, False, table)

    end, at_start = 0, True
    chunks: Iterator[Chunk | int] = count() if source.takes_offsets else source.chunks()
    with closing(map_ahead(pool, work, chunks, threads + _AHEAD)) as results:
        for chunk, guess in results:
            part = guess
            if end > 0 or (at_start and chunk.size > 0 and chunk.buffer[0] == _HEADER):
                part = _codes_of(chunk, end, at_start, table)
            yield chunk, part
            if part is None or chunk.ends:
                return
            end, at_start = part.end, part.at_start


def _codes_of(
    chunk: Chunk, begin: int, at_start: bool, table: NDArray[np.uint8]
) -> Codes | None:  # fmt: skip
    codes = np.empty(chunk.size, dtype=np.uint8)
    room = 1 << 10
    while True:
        headers = np.empty((room, 3), dtype=np.int64)
        runs = np.empty((room, 3), dtype=np.int64)
        counts = np.zeros(4, dtype=np.int64)
        status = _scan(
            chunk.buffer, begin, chunk.size, chunk.ends, at_start, table,
            DEFAULT_LIMITS.header_bytes, codes, headers, runs, counts,
        )  # fmt: skip
        if status == _FULL:
            room *= 8
            continue
        if status == _OTHER:
            return None
        bases, own_headers, own_runs, end = counts.tolist()
        start = end > 0 and chunk.buffer[end - 1] == _LF
        return Codes(
            codes[:bases], headers[:own_headers], runs[:own_runs], max(0, end - chunk.size), start
        )


def _add(headers: Headers, runs: list[list[int]], chunk: Chunk, part: Codes, size: int) -> None:
    """Add the headers and runs of a chunk; ``size`` bases are before it."""
    began = headers.starts[-1] if headers.starts else 0
    for begin, end, before in part.headers.tolist():
        headers.lines.append(chunk.buffer[begin:end].tobytes())
        headers.starts.append(size + before)
    for number, (begin, length, letter) in enumerate(part.runs.tolist()):
        first = size + begin
        joins = number == 0 and begin == 0 and bool(runs) and first > began
        joins = joins and not (len(part.headers) and part.headers[0, 2] == 0)
        if joins and runs[-1][0] + runs[-1][1] == first and runs[-1][2] == letter:
            runs[-1][1] += length
        else:
            runs.append([first, length, letter])


def _kinds() -> NDArray[np.uint8]:
    """The code of each byte that is a base, 4 for an ambiguous one, and ``_BAD`` for others."""
    kinds = CODES.copy()
    kinds[~base_table()] = _BAD
    return kinds


@njit(nogil=True, cache=True)
def _scan(
    data: NDArray[np.uint8],
    begin: int,
    size: int,
    ends: bool,
    at_start: bool,
    table: NDArray[np.uint8],
    longest_header: int,
    codes: NDArray[np.uint8],
    headers: NDArray[np.int64],
    runs: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Fill ``codes``, ``headers`` and ``runs``; ``counts`` gets how many, and where it ended."""
    bases, heads, ambiguous = 0, 0, 0
    run_end = -1
    i = begin
    while i < size:
        kind = table[data[i]]
        if kind < 4:
            codes[bases] = kind
            bases += 1
            i += 1
            at_start = False
        elif kind == 4:
            if run_end == bases and runs[ambiguous - 1, 2] == data[i]:
                runs[ambiguous - 1, 1] += 1
            else:
                if ambiguous == len(runs):
                    return _FULL
                runs[ambiguous, 0], runs[ambiguous, 1] = bases, 1
                runs[ambiguous, 2] = data[i]
                ambiguous += 1
            codes[bases] = 0
            bases += 1
            run_end = bases
            i += 1
            at_start = False
        elif data[i] == _LF:
            i += 1
            at_start = True
        elif data[i] == _CR and i + 1 < len(data) and data[i + 1] == _LF:
            i += 2
            at_start = True
        elif data[i] == _HEADER and at_start:
            if heads == len(headers):
                return _FULL
            first = i + 1
            i = first
            while i < len(data) and data[i] != _LF:
                if data[i] == _NUL or i - first >= longest_header:
                    return _OTHER
                i += 1
            if i == len(data) and not ends:
                return _OTHER
            last = i - 1 if i > first and data[i - 1] == _CR else i
            headers[heads, 0], headers[heads, 1], headers[heads, 2] = first, last, bases
            heads += 1
            run_end = -1
            i += 1
            at_start = True
        else:
            return _OTHER
    counts[0], counts[1], counts[2], counts[3] = bases, heads, ambiguous, min(i, len(data))
    return _DONE
