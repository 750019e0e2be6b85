"""Opens an input, detects its compression, and reads it ahead in large chunks.

A background thread reads and decompresses into chunk buffers while the caller works on earlier
ones; a bounded queue connects the two. Decompression libraries release the interpreter lock.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import queue
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.bgzf import BgzfError, BgzfStream, Prefixed, gunzip, is_bgzf
from ngsgpu.io.paths import Watched, read_at

_MAGIC_BYTES: Final = 32
_READ_AHEAD: Final = 2
_PATIENCE: Final = 1.0

_REFUSED: Final = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd, which is not read here", "zstd -dc"),
    (b"\x04\x22\x4d\x18", "compressed with lz4, which is not read here", "lz4 -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"\x1f\x9d", "compressed with compress (.Z), which is not read here", "uncompress -c"),
)
_ISAL_ERROR: Final[type[Exception]] = isal_zlib.error  # type: ignore[assignment]
_DECOMPRESSION_ERRORS: Final = (
    EOFError,
    BgzfError,
    gzip.BadGzipFile,
    _ISAL_ERROR,
    zlib.error,
    lzma.LZMAError,
)


_PACKED_FACTOR: Final = 4
"""Bytes that one of a compressed file becomes, about."""


def unpacked_size(path: str | Path) -> int:
    """Approximate decompressed size of a file in bytes; 0 if unknown."""
    try:
        size = Path(path).stat().st_size
    except OSError:
        return 0
    return size * (_PACKED_FACTOR if Path(path).suffix in (".gz", ".bgz", ".bz2", ".xz") else 1)


class Stream(Protocol):
    """The byte stream of a source."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer at least partly; 0 at the end."""

    def close(self) -> None:
        """Release files and threads."""


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
        compression: ``plain``, ``gzip``, ``bgzf``, ``bzip2`` or ``xz``.
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
            head = _read_head(self.path, raw)
            self.compression = _recognise(self.path, head)
            self.watched = Watched(self.path, raw.fileno())
        except BaseException:
            raw.close()
            raise
        is_regular = self.watched.identity is not None
        self.takes_offsets = self.compression == "plain" and is_regular and self.path != "-"
        self._stream = _stream(Prefixed(head, raw), self.path, self.compression, threads)
        self._queue: queue.Queue[Chunk | BaseException | None] = queue.Queue(_READ_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ngsgpu-read", daemon=True)

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
        view = buffer.data
        size = len(carried)
        try:
            while size < len(view) and not self._stopped.is_set():
                count = self._stream.readinto(view[size:])
                if not count:
                    break
                size += count
        except _DECOMPRESSION_ERRORS as error:
            self.watched.check()  # rather the cause
            raise self._damaged(error) from error
        except OSError as error:
            if error.errno is None:
                self.watched.check()
                raise self._damaged(error) from error
            raise _unreadable(self.path, error) from error
        self.watched.check()
        return self._chunk(buffer, size)

    def _damaged(self, error: Exception) -> InputError:
        name = "BGZF" if self.compression == "bgzf" else self.compression
        if isinstance(error, EOFError):
            cause = f"the {name} data end early: the file is truncated"
        else:
            cause = f"the {name} data are damaged ({_one_line(error)})"
        return InputError(
            self.path, cause, "copy or download the file again and compare its checksum"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _open(path: str) -> io.FileIO:
    """Open a file, or standard input, unbuffered."""
    try:
        raw = io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)
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
    return raw


def _read_head(path: str, raw: io.FileIO) -> bytes:
    head = b""
    try:
        while len(head) < _MAGIC_BYTES and (more := raw.read(_MAGIC_BYTES - len(head))):
            head += more
    except OSError as error:
        raise _unreadable(path, error) from error
    return head


def _unreadable(path: str, error: OSError) -> InputError:
    reason = os.strerror(error.errno) if error.errno else _one_line(error)
    return InputError(
        path, f"could not be read ({reason})", "check the disk or copy the file again"
    )


def _recognise(path: str, head: bytes) -> str:
    """Name the compression by the first bytes."""
    if head.startswith(b"\x1f\x8b"):
        return "bgzf" if is_bgzf(head) else "gzip"
    if head.startswith(b"BZh"):
        return "bzip2"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    for magic, cause, command in _REFUSED:
        if head.startswith(magic):
            remedy = f"decompress it first, for instance with `{command}`, or recompress with gzip"
            raise InputError(path, cause, remedy)
    return "plain"


def _stream(raw: Prefixed, path: str, compression: str, threads: int) -> Stream:
    if compression == "plain":
        return raw
    if compression == "bgzf":
        return BgzfStream(raw, path, threads)
    if compression == "gzip":
        return _Owning(gunzip(raw), raw)
    buffered = io.BufferedReader(raw, 1 << 20)
    if compression == "bzip2":
        return _Owning(bz2.BZ2File(buffered), buffered)
    return _Owning(lzma.LZMAFile(buffered), buffered)


class _Owning:
    """A decompressing file that also closes the file below it."""

    def __init__(self, stream: io.BufferedIOBase, below: io.IOBase) -> None:
        self._stream = stream
        self._below = below

    def readinto(self, buffer: memoryview, /) -> int:
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        self._below.close()
