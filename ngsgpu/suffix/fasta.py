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
from ngsgpu.io.text.scan import FASTA_BASES, base_table
from ngsgpu.pool import map_ahead
from ngsgpu.sequence.codec import CODES

_CHUNK: Final = 1 << 20
_AHEAD: Final = 2
_LF, _CR, _NUL, _HEADER = 10, 13, 0, 62
_AMBIGUOUS, _SKIPPED, _BAD = 4, 254, 255
_LINE: Final = 1 << 8
"""Bytes in which the end of a header is looked for first."""


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
    # Room for the other strand, which takes no memory before it is there.
    codes.resize(max(1, 2 * size), refcheck=False)
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
    """What a chunk holds from ``begin`` on; None if that is no plain FASTA."""
    data, size = chunk.buffer, chunk.size
    found = _headers_of(chunk, begin, at_start)
    if found is None:
        return None
    spans, end = found
    kinds = table[data[begin:size]]
    for first, last in spans[:, [0, 3]].tolist():
        kinds[first - begin : last - begin] = _SKIPPED
    others = begin + np.flatnonzero(kinds == _BAD)
    ends = others[data[others] != _LF]
    # Apart from line feeds, only what stands before one may be there: a carriage return.
    behind = np.minimum(ends + 1, len(data) - 1)
    if not np.all((data[ends] == _CR) & (ends < behind) & (data[behind] == _LF)):
        return None
    if len(ends) and ends[-1] + 1 == size:
        end = max(end, size + 1)
    own = kinds <= _AMBIGUOUS
    codes = kinds[own]
    heads = np.empty((len(spans), 3), dtype=np.int64)
    heads[:, :2] = spans[:, 1:3]
    before = last = 0
    for number, first in enumerate((spans[:, 0] - begin).tolist()):
        before += int(np.count_nonzero(own[last:first]))
        heads[number, 2], last = before, first
    runs = _runs_of(data[begin:size], kinds, codes, spans[:, 0] - begin)
    end = min(max(begin, end), len(data))
    return Codes(codes, heads, runs, max(0, end - size), end > 0 and data[end - 1] == _LF)


def _headers_of(
    chunk: Chunk, begin: int, at_start: bool
) -> tuple[NDArray[np.int64], int] | None:  # fmt: skip
    """Headers that begin in a chunk, and its end, or that of the last of them.

    Args:
        chunk: the chunk.
        begin: where to begin.
        at_start: whether that is the beginning of a line.

    Returns:
        int64[h, 4], where ``>`` is, where its line begins and ends, and the next line begins. None
        if one is not at the beginning of a line, not whole, or not text.
    """
    data = chunk.buffer
    spans = []
    end = begin
    for mark in (begin + np.flatnonzero(data[begin : chunk.size] == _HEADER)).tolist():
        if mark < end:
            continue
        if not (at_start if mark == begin else data[mark - 1] == _LF):
            return None
        first = mark + 1
        line, room = b"", _LINE
        while room <= 2 * DEFAULT_LIMITS.header_bytes:
            line = data[first : first + room].tobytes()
            if b"\n" in line or first + room >= len(data):
                break
            room *= 8
        length = line.find(b"\n")
        if length < 0 and not (chunk.ends and first + len(line) == len(data)):
            return None
        line = line[:length] if length >= 0 else line
        end = min(first + len(line) + 1, len(data))
        line = line.removesuffix(b"\r")
        if len(line) > DEFAULT_LIMITS.header_bytes or b"\0" in line or b"\r" in line:
            return None
        spans.append((mark, first, first + len(line), end))
    return np.array(spans, dtype=np.int64).reshape(-1, 4), max(end, chunk.size)


def _runs_of(
    data: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    codes: NDArray[np.uint8],
    marks: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Runs of one ambiguous letter, as in ``Codes``; these get code 0.

    Args:
        data: the bytes.
        kinds: of the bytes.
        codes: of the bases; those of ambiguous ones are changed.
        marks: where headers begin.
    """
    at = np.flatnonzero(codes == _AMBIGUOUS)
    places = np.flatnonzero(kinds == _AMBIGUOUS)
    codes[at] = 0
    letters = data[places].astype(np.int64)
    records = np.searchsorted(marks, places)
    first = np.ones(len(at), dtype=np.bool_)
    first[1:] = (np.diff(at) != 1) | (np.diff(letters) != 0) | (np.diff(records) != 0)
    begin = np.flatnonzero(first)
    return np.stack([at[begin], np.diff(np.append(begin, len(at))), letters[begin]], axis=1)


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
    kinds[~base_table(FASTA_BASES)] = _BAD
    return kinds
