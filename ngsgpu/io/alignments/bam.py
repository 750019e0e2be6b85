"""A BAM file as a stream of FASTQ text, written by several threads."""

from __future__ import annotations

import struct
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.alignments import fastq

MAGIC: Final = b"BAM\x01"
_PIECE_BYTES: Final = 4 << 20
_FAULTS: Final = {
    fastq.BAD_SIZES: "the record's lengths contradict each other",
    fastq.BAD_NAME: "the read's name is not one of printable letters",
    fastq.BAD_QUALITY: "a quality is above 93",
}


class BamError(Exception):
    """Data that violate the format."""


class _Inflated(Protocol):
    """A stream of inflated bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...

    def close(self) -> None: ...


class _Piece(NamedTuple):
    """Text of consecutive records.

    Attributes:
        text: the task that writes it.
        first: number of the first of them.
    """

    text: Future[tuple[NDArray[np.uint8], int, int]]
    first: int


class BamStream:
    """Reads the FASTQ text of a BAM file.

    Reads with mates and reads without are not read from the same file: what reads pairs could not
    tell which are which.

    Args:
        inflated: the content of the file's blocks; closed with this stream.
        path: the file's name, for messages.
        threads: threads that write text.

    Attributes:
        kind: ``fastq.PAIRED`` or ``fastq.SINGLE``, as soon as a read was seen.
    """

    def __init__(self, inflated: _Inflated, path: str, threads: int) -> None:
        self._inflated = inflated
        self._path = path
        self._pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="ngsgpu-inflate")
        self._ahead = max(1, threads) + 1
        self._pieces: deque[_Piece] = deque()
        self._current = np.empty(0, dtype=np.uint8)
        self._rest: NDArray[np.uint8] | None = None
        self._reads = 0
        self._failure: Exception | None = None
        self._ended = False
        self.kind = fastq.UNKNOWN

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available text; 0 at the end.

        Raises:
            BamError: the records violate the format.
            EOFError: the file ends within the header or a record.
            InputError: reads with and without mates are mixed.
        """
        while len(self._current) == 0:
            while len(self._pieces) < self._ahead and not self._ended:
                self._submit()
            if not self._pieces:
                if self._failure is not None:
                    raise self._failure
                return 0
            self._current = self._taken(self._pieces.popleft())
        size = min(len(buffer), len(self._current))
        # Unlike the assignment of a memoryview this lets other threads run.
        np.copyto(np.frombuffer(buffer, dtype=np.uint8, count=size), self._current[:size])
        self._current = self._current[size:]
        return size

    def close(self) -> None:
        """Stop the threads and close the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._inflated.close()

    def _taken(self, piece: _Piece) -> NDArray[np.uint8]:
        text, reads, fault = piece.text.result()
        if fault != fastq.GOOD:
            raise self._bad_record(piece.first + reads, fault)
        return text

    def _submit(self) -> None:
        """Have the text of the next records written.

        A failure is raised once everything before it was read.
        """
        try:
            self._read_piece()
        except Exception as error:
            self._failure = error
            self._ended = True

    def _read_piece(self) -> None:
        data = self._header_skipped() if self._rest is None else self._rest
        room = _PIECE_BYTES
        while True:
            held = np.empty(max(room, len(data)), dtype=np.uint8)
            held[: len(data)] = data
            filled = self._fill(held, len(data))
            ends = filled < len(held)
            done, size, reads, kind, fault = fastq.scan(held, filled, self.kind, ends)
            self.kind = int(kind)
            if done > 0 or fault != fastq.GOOD or ends:
                break
            data, room = held[:filled], 2 * room
        self._rest = held[done:filled]
        if reads > 0:
            task = self._pool.submit(fastq.to_text, held[:done], int(size))
            self._pieces.append(_Piece(task, self._reads))
            self._reads += int(reads)
        if fault != fastq.GOOD:
            raise self._bad_record(self._reads, int(fault))
        if ends:
            self._ended = True
            if len(self._rest) > 0:
                raise EOFError

    def _fill(self, held: NDArray[np.uint8], filled: int) -> int:
        """Fill an array as far as the file does; the number of bytes in it then."""
        while filled < len(held) and (count := self._inflated.readinto(held.data[filled:])):
            filled += count
        return filled

    def _header_skipped(self) -> NDArray[np.uint8]:
        """Skip the header's text and the references' names; return the bytes read beyond them."""
        data = bytearray()

        def number(at: int) -> int:
            need(at + 4)
            return int(struct.unpack_from("<i", data, at)[0])

        def need(size: int) -> None:
            while len(data) < size:
                more = np.empty(max(1 << 16, size - len(data)) if size < 1 << 24 else 1 << 24,
                                dtype=np.uint8)  # fmt: skip
                count = self._inflated.readinto(more.data)
                if not count:
                    raise EOFError
                data.extend(more.data[:count])

        need(4)
        if data[:4] != MAGIC:
            raise BamError("it does not begin as a BAM file")
        at = 8 + _size(number(4))
        references = _size(number(at))
        at += 4
        for _ in range(references):
            at += 8 + _size(number(at))
        need(at)
        return np.frombuffer(data, dtype=np.uint8)[at:]

    def _bad_record(self, reads: int, fault: int) -> Exception:
        if fault != fastq.MIXED:
            return BamError(f"read {reads + 1:,}: {_FAULTS[fault]}")
        kinds = ("has no mate", "do") if self.kind == fastq.PAIRED else ("has a mate", "do not")
        return InputError(
            self._path,
            f"the read {kinds[0]}, but those before it {kinds[1]}",
            "give reads with and without mates in two files: `samtools view -b -f 1` and "
            "`samtools view -b -F 1`",
            record=reads + 1,
        )


def _size(number: int) -> int:
    if number < 0:
        raise BamError("a length in the header is negative")
    return number
