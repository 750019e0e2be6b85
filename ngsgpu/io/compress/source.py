"""Opens an input, detects its compression, and reads it ahead in large chunks.

A background thread reads and decompresses into chunk buffers while the caller works on earlier
ones; a bounded queue connects the two. Decompression libraries release the interpreter lock.
"""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.alignments.bam import BamStream
from ngsgpu.io.alignments.fastq import PAIRED
from ngsgpu.io.compress.formats import PACKED_ENDINGS, recognise
from ngsgpu.io.compress.seek import Checkpoints
from ngsgpu.io.compress.stream import Opened
from ngsgpu.io.paths import Watched, read_at
from ngsgpu.io.pipes import open_input

_READ_AHEAD: Final = 2
_PATIENCE: Final = 1.0

_PACKED_FACTOR: Final = 4
"""Bytes that one of a compressed file becomes, about."""


def unpacked_size(path: str | Path) -> int:
    """Approximate decompressed size of a file in bytes; 0 if unknown."""
    try:
        size = Path(path).stat().st_size
    except OSError:
        return 0
    return size * (_PACKED_FACTOR if Path(path).suffix in PACKED_ENDINGS else 1)


def is_compressed(path: str | Path) -> bool:
    """Whether the bytes of a file are not its text.

    Raises:
        InputError: it cannot be opened.
    """
    source = Source(path, threads=1, chunk_bytes=1)
    source.close()
    return source.compression != "plain"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Decompressed bytes of a file that follow on those of the chunk before.

    Attributes:
        buffer: uint8 [size + overlap], the chunk and the first bytes of the next one, which has
            them again.
        size: number of bytes of the chunk itself.
        ends: whether the file is known to end with the buffer.
    """

    buffer: NDArray[np.uint8]
    size: int
    ends: bool

    @property
    def data(self) -> NDArray[np.uint8]:
        """The chunk itself."""
        return self.buffer[: self.size]


class Source:
    """An opened file of known compression that yields its decompressed bytes in chunks.

    Args:
        path: the file; ``-`` is standard input.
        threads: inflating threads, for BGZF; other formats use one.
        chunk_bytes: size of a chunk.
        overlap: bytes of the next chunk that a chunk's buffer also holds.

    Attributes:
        path: the file's name as given.
        compression: the name of its format, as in ``formats``; ``plain`` for none.
        takes_offsets: whether chunks can be read in any order, with ``chunk_at``.
        watched: the file, which must not change while it is read.

    Raises:
        InputError: the file is missing, a directory, unreadable, or in an unsupported compression
            format.
    """

    def __init__(
        self, path: str | Path, *, threads: int, chunk_bytes: int, overlap: int = 0
    ) -> None:
        self.path = str(path)
        self._chunk_bytes = chunk_bytes
        self._room = chunk_bytes + overlap
        self._raw = raw = _open(self.path)
        try:
            opened = Opened(raw, self.path, threads)
            self._kind = recognise(opened)
            self.watched = Watched(self.path, raw.fileno())
        except OSError as error:
            raw.close()
            raise _unreadable(self.path, error) from error
        except BaseException:
            raw.close()
            raise
        self.compression = self._kind.name
        is_regular = self.watched.identity is not None
        self.takes_offsets = self.compression == "plain" and is_regular and self.path != "-"
        self._errors: tuple[type[Exception], ...] = (EOFError, *self._kind.errors)
        self._stream = self._kind.stream(opened)
        self._queue: queue.Queue[Chunk | BaseException | None] = queue.Queue(_READ_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ngsgpu-read", daemon=True)

    @property
    def holds_pairs(self) -> bool:
        """Whether the reads have mates by their flags; only BAM and CRAM, once read, say so."""
        return isinstance(self._stream, BamStream) and self._stream.kind == PAIRED

    @property
    def checkpoints(self) -> Checkpoints | None:
        """Places noted so far from which on a gzip file can be read again; None for others."""
        found: Checkpoints | None = getattr(self._stream, "checkpoints", None)
        return found

    def chunks(self) -> Iterator[Chunk]:
        """Yield the file's chunks; none is empty.

        Raises:
            InputError: the compressed data are damaged or end early, the disk fails, or the file
                changes while it is read.
        """
        self._thread.start()
        while (item := self._next()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def chunk_at(self, index: int) -> Chunk:
        """One of the file's chunks, empty behind its end; may be called in any thread.

        Raises:
            InputError: the disk fails, or the file has changed since it was opened.
        """
        buffer = np.empty(self._room, dtype=np.uint8)
        try:
            done = read_at(self._raw, buffer, index * self._chunk_bytes)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self.watched.check()
        return self._chunk(buffer, done)

    def _chunk(self, buffer: NDArray[np.uint8], filled: int) -> Chunk:
        if filled < self._room:
            return Chunk(buffer[:filled], filled, ends=True)
        return Chunk(buffer, self._chunk_bytes, ends=False)

    def _next(self) -> Chunk | BaseException | None:
        """The next item of the thread, if it lives to give one."""
        while True:
            try:
                return self._queue.get(timeout=_PATIENCE)
            except queue.Empty:
                if not self._thread.is_alive() and self._queue.empty():
                    return MemoryError(f"reading {self.path}")

    def close(self) -> None:
        """Stop reading ahead and close the file.

        A thread that waits for a pipe to give something is left behind: it ends with the process.
        """
        self._stopped.set()
        if self._thread.ident is None:
            self._stream.close()
        else:
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        carried = np.empty(0, dtype=np.uint8)
        try:
            while (chunk := self._read_chunk(carried)).size > 0 and self._put(chunk):
                if chunk.ends:
                    break
                carried = chunk.buffer[chunk.size :]
            self._put(None)
        except BaseException as error:
            self._put(error)
        finally:
            self._stream.close()

    def _put(self, item: Chunk | BaseException | None) -> bool:
        """Queue an item as soon as there is room; False if the consumer is gone."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False

    def _read_chunk(self, carried: NDArray[np.uint8]) -> Chunk:
        """The next chunk, whose first bytes were read with the one before."""
        buffer = np.empty(self._room, dtype=np.uint8)
        buffer[: len(carried)] = carried
        return self._chunk(buffer, len(carried) + self.fill(buffer[len(carried) :].data))

    def fill(self, view: memoryview) -> int:
        """Read the next bytes of the file into memory of the caller's, pinned memory for instance.

        Instead of ``chunks``; by one thread at a time. Threads of the stream decompress ahead.

        Args:
            view: writable bytes; filled whole unless the file ends, or ``close`` is called.

        Returns:
            How many bytes were read; 0 at the end.

        Raises:
            InputError: the compressed data are damaged or end early, the disk fails, or the file
                changes while it is read.
        """
        size = 0
        try:
            while size < len(view) and not self._stopped.is_set():
                count = self._stream.readinto(view[size:])
                if not count:
                    break
                size += count
        except self._errors as error:
            self.watched.check()  # rather the cause
            raise self._damaged(error) from error
        except OSError as error:
            if error.errno is None:
                self.watched.check()
                raise self._damaged(error) from error
            raise _unreadable(self.path, error) from error
        self.watched.check()
        return size

    def _damaged(self, error: Exception) -> InputError:
        name = self._kind.title
        if isinstance(error, EOFError):
            cause = f"the {name} data end early: the file is truncated"
        else:
            cause = f"the {name} data are damaged ({_one_line(error)})"
        return InputError(
            self.path, cause, "copy or download the file again and compare its checksum"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _open(path: str) -> io.RawIOBase:
    """Open a file, a pipe, or standard input, unbuffered."""
    try:
        return open_input(path)
    except FileNotFoundError as error:
        raise InputError(path, "no such file", "check the path") from error
    except IsADirectoryError as error:
        raise InputError(path, "this is a directory", "give a FASTQ or FASTA file") from error
    except PermissionError as error:
        remedy = "ask its owner for read access (chmod +r)"
        raise InputError(path, "permission denied", remedy) from error
    except (OSError, ValueError) as error:
        code = getattr(error, "errno", None)
        reason = os.strerror(code) if code else _one_line(error)
        raise InputError(path, f"cannot be opened ({reason})", "check the path") from error


def _unreadable(path: str, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else _one_line(error)
    return InputError(
        path, f"could not be read ({reason})", "check the disk or copy the file again"
    )
