"""gzip, inflated by several threads.

The file is read in chunks, and in each of them a place is looked for where a block begins
(``blocks``). The pieces between those places are inflated side by side (``pieces``) and completed
as soon as the windows before them are known. Where something is not as expected, all from the last
place that is sure on is inflated by one thread, which either succeeds or says what is wrong: so
the bytes are those of inflating one byte after the other, and the same files are refused. The words
may differ: libdeflate takes some codes for valid that ISA-L does not, and the checksum tells.

A piece whose window is not known is inflated twice. So where the consumer has enough pieces in
stock, further ones wait for their windows, as if there were a single thread: the work that several
threads cost more is done only where somebody waits for it.
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from gzip import BadGzipFile
from typing import Final

from isal import isal_zlib

from ngsgpu.io.compress.bits import WINDOW, filler
from ngsgpu.io.compress.blocks import search
from ngsgpu.io.compress.members import ERRORS, FOOTER_BYTES, gunzip, member_start, read_footer
from ngsgpu.io.compress.pieces import IrregularError, Segment, complete, inflate, window_after
from ngsgpu.io.compress.seek import Checkpoints
from ngsgpu.io.compress.stream import Compression, Opened, Owning, Parts, Stream

MIN_THREADS: Final = 4
"""Threads from which on several are faster than one: the pieces are inflated twice."""

CHUNK_BYTES: Final = 1 << 21
"""Compressed bytes that are read at a time, about the size of a piece."""

_MOST_AHEAD: Final = 16
"""Pieces on the way: 15 MB each while their windows are not known."""

_STOCK: Final = 4
"""Inflated pieces that the consumer has not taken, from which on others wait for their windows."""

_MAX_CHUNKS: Final = 8
"""Chunks without a place where a block begins, after which none is looked for any more."""


@dataclass(slots=True, eq=False)
class _Piece:
    """Consecutive blocks of the file.

    Attributes:
        data: compressed bytes that hold them.
        start: bit of ``data`` where they begin.
        end: bit where they end; None for the last piece.
        place: bit of the file where they begin.
        window: the bytes before, once they are known.
        segments: the inflated bytes; None if not yet inflated, or irregular.
        task: inflates the piece; None where that has not begun.
        waits: whether it begins when the window is known.
        completion: puts in bytes of the window, if the piece was inflated without.
    """

    data: memoryview
    start: int
    end: int | None
    place: int
    window: bytes | None = None
    segments: list[Segment] | None = None
    task: Future[None] | None = None
    waits: bool = False
    completion: Future[None] | None = None


class _Held:
    """Compressed bytes that were read and are not yet part of a piece."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytes]] = deque()
        self.end = 0

    def append(self, chunk: bytes) -> int:
        """Hold another chunk; where it begins in the file."""
        self._chunks.append((self.end, chunk))
        self.end += len(chunk)
        return self.end - len(chunk)

    def take(self, start: int, end: int) -> memoryview:
        """Bytes of the file, of which those before the last one are not held any longer."""
        parts = [memoryview(c)[max(0, start - at) : max(0, end - at)] for at, c in self._chunks]
        while self._chunks and self._chunks[0][0] + len(self._chunks[0][1]) < end:
            self._chunks.popleft()
        return memoryview(b"".join(parts))


class GzipStream:
    """Reads a gzip file, inflating pieces of it on several threads, in order.

    Args:
        file: the compressed file, at its start.

    Attributes:
        checkpoints: places from which on the file can be read again.
    """

    def __init__(self, file: Opened) -> None:
        self._file = file
        self.checkpoints = Checkpoints()
        self._text = 0
        self._ahead = min(file.threads + 4, _MOST_AHEAD)
        self._pool = ThreadPoolExecutor(file.threads, thread_name_prefix="ngsgpu-inflate")
        self._lock = threading.Lock()
        self._held = _Held()
        self._searches: deque[tuple[int, Future[int | None]]] = deque()
        self._pieces: deque[_Piece] = deque()
        self._unresolved: deque[_Piece] = deque()
        self._window: bytes | None = b""
        self._start = 0
        self._in_vain = 0
        self._all_read = self._all_cut = False
        self._crc = self._size = 0
        self._parts = Parts()
        self._failure: Exception | None = None
        self._serial: Stream | None = None
        self._begun = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available inflated bytes; 0 at the end."""
        if not self._begun:
            self._begun = True
            self._begin()
        while not self._parts:
            if self._serial is not None:
                return self._serial.readinto(buffer) or 0
            if self._failure is not None:
                raise self._failure
            self._work_ahead()
            if not self._pieces:
                return 0
            with self._lock:
                piece = self._pieces.popleft()
            self._take(piece)
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Stop the threads and close the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._serial is not None:
            self._serial.close()
        self._file.close()

    def _begin(self) -> None:
        """Read the first chunk, and the header in it."""
        chunk = self._read_chunk()
        start = None if self._all_read else member_start(memoryview(chunk), 0)
        if start is None:
            self._file.unread(chunk)
            self.checkpoints.drop()
            self._serial = Owning(gunzip(self._file), self._file)
        else:
            self._start = 8 * start

    def _read_chunk(self) -> bytes:
        """Read a chunk, and have a place looked for in it where a block begins."""
        chunk = self._file.read_whole(CHUNK_BYTES)
        self._all_read = len(chunk) < CHUNK_BYTES
        at = self._held.append(chunk)
        if at and chunk:
            self._searches.append((at, self._pool.submit(search, chunk)))
        return chunk

    def _work_ahead(self) -> None:
        """Have pieces inflated whose ends are known; wait for ends only if there is none."""
        with self._lock:
            self._begin_waiting()
        while len(self._pieces) < self._ahead and not self._all_cut:
            while len(self._searches) < self._ahead and not self._all_read:
                self._read_chunk()
            if not self._searches:
                self._cut(None)
                return
            at, found = self._searches[0]
            if self._pieces and not found.done():
                return
            self._searches.popleft()
            place = found.result()
            if place is not None:
                self._in_vain = 0
                self._cut(8 * at + place)
                continue
            self._in_vain += 1
            if self._in_vain == _MAX_CHUNKS:
                self._cut(None, is_irregular=True)

    def _cut(self, end: int | None, *, is_irregular: bool = False) -> None:
        """Have a piece inflated up to a bit of the file, or the rest of what was read."""
        begin = self._start >> 3
        data = self._held.take(begin, self._held.end if end is None else (end + 7) >> 3)
        stop = None if end is None else end - 8 * begin
        piece = _Piece(data, self._start & 7, stop, self._start)
        if end is None:
            self._all_cut = True
        else:
            self._start = end
        with self._lock:
            if not self._unresolved:
                piece.window = self._window
            self._unresolved.append(piece)
            self._pieces.append(piece)
            piece.waits = not is_irregular
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Have pieces inflated: all if the stock is small, otherwise that with a window."""
        stock = 0
        while stock < len(self._pieces) and self._pieces[stock].segments is not None:
            stock += 1
        for piece in self._pieces:
            if piece.waits and (stock < _STOCK or piece.window is not None):
                piece.waits = False
                piece.task = self._pool.submit(self._inflate, piece)

    def _inflate(self, piece: _Piece) -> None:
        try:
            segments = inflate(piece.data, piece.start, piece.end, piece.window)
        except IrregularError:
            return
        with self._lock:
            piece.segments = segments
            self._resolve()
            self._begin_waiting()

    def _resolve(self) -> None:
        """Hand on the windows of all pieces that can have theirs."""
        while self._unresolved and (segments := self._unresolved[0].segments) is not None:
            piece = self._unresolved.popleft()
            window = piece.window
            assert window is not None
            following = window_after(segments, window)
            if segments[0].twin is not None:
                piece.completion = self._pool.submit(_complete, piece, segments, window)
            if self._unresolved:
                self._unresolved[0].window = following
            else:
                self._window = following

    def _take(self, piece: _Piece) -> None:
        """Wait for the next piece and check what is known of it."""
        if piece.task is not None:
            piece.task.result()
        self._work_ahead()
        if piece.completion is not None:
            piece.completion.result()
        if piece.segments is None:
            self._continue_serially(piece)
            return
        if self.checkpoints.wants(self._text) and len(piece.window or b"") == WINDOW:
            self.checkpoints.note(piece.place, self._text, piece.window)
        for segment in piece.segments:
            self._parts.extend([segment.text])
            self._text += len(segment.text)
            self._crc = isal_zlib.crc32_combine(self._crc, segment.crc, len(segment.text))
            self._size += len(segment.text)
            if segment.footer is not None:
                try:
                    segment.footer.check(self._crc, self._size)
                except BadGzipFile as error:
                    self._failure = error
                    return
                self._crc = self._size = 0

    def _continue_serially(self, piece: _Piece) -> None:
        """Inflate all from a piece on that is not as expected one after the other."""
        self.checkpoints.drop()
        self._pool.shutdown(wait=True, cancel_futures=True)
        pieces = [piece, *self._pieces]
        rest = [one.data[: None if one.end is None else one.end >> 3] for one in pieces]
        if not self._all_cut:
            rest.append(self._held.take(self._start >> 3, self._held.end))
        self._file.unread(b"".join(rest))
        assert piece.window is not None
        self._serial = Remainder(self._file, piece.start, piece.window, self._crc, self._size)


def _complete(piece: _Piece, segments: list[Segment], window: bytes) -> None:
    """Put in the bytes of a window that was not known when the piece was inflated."""
    if len(window) == WINDOW:
        complete(segments, window)
        return
    # So near to its member's start the piece may repeat bytes that are not there.
    piece.segments = None
    with contextlib.suppress(IrregularError):
        piece.segments = inflate(piece.data, piece.start, piece.end, window)


def _stream(file: Opened) -> Stream:
    if file.threads < MIN_THREADS:
        return Owning(gunzip(file), file)
    return GzipStream(file)


GZIP: Final = Compression("gzip", "gzip", (b"\x1f\x8b",), _stream, ERRORS, (".gz",))


_STEP: Final = 1 << 16
"""Compressed bytes that are inflated at a time."""

_TRUNCATED: Final = "Compressed file ended before the end-of-stream marker was reached"


class Remainder:
    """Inflates the rest of a file one byte after the other.

    Args:
        file: the file, at the byte where the rest begins.
        bit: bit of that byte where it does, with a block.
        window: the member's bytes before, up to 32 KiB.
        crc: CRC-32 of all the member's bytes before.
        size: how many there are.
    """

    def __init__(self, file: Opened, bit: int, window: bytes, crc: int, size: int) -> None:
        self._file = file
        known = {"zdict": window} if window else {}
        self._inflater = isal_zlib.decompressobj(wbits=-zlib.MAX_WBITS, **known)
        self._bit = bit
        self._crc = crc
        self._size = size
        self._parts = Parts()
        self._ended = False
        self._following: Stream | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer with available inflated bytes; 0 at the end."""
        while not self._parts:
            if self._following is not None:
                return self._following.readinto(buffer) or 0
            if self._ended:
                return 0
            if self._inflater.eof:
                self._end_member()
            else:
                self._inflate()
        return self._parts.copy_into(buffer)

    def close(self) -> None:
        """Close the file."""
        if self._following is not None:
            self._following.close()
        self._file.close()

    def _inflate(self) -> None:
        data = self._file.read(1 if self._bit else _STEP)
        if not data:
            raise EOFError(_TRUNCATED)
        if self._bit:
            data = filler(self._bit, data[0])
            self._bit = 0
        part = self._inflater.decompress(data)
        self._crc = isal_zlib.crc32(part, self._crc)
        self._size += len(part)
        if part:
            self._parts.extend([part])

    def _end_member(self) -> None:
        """Check the member, and find out whether another one follows."""
        self._file.unread(self._inflater.unused_data)
        footer = read_footer(memoryview(self._file.read_whole(FOOTER_BYTES)), 0)
        if footer is None:
            raise EOFError(_TRUNCATED)
        footer.check(self._crc, self._size)
        rest = b""
        while not rest:
            more = self._file.read(_STEP)
            if not more:
                self._ended = True
                return
            rest = more.lstrip(b"\0")
        self._file.unread(rest)
        self._following = Owning(gunzip(self._file), self._file)
