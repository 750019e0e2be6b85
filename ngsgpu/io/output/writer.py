"""Outputs that are written in the background and appear together, whole, or not at all."""

from __future__ import annotations

import contextlib
import queue
import resource
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL, MAX_LEVEL
from ngsgpu.io.compress.formats import Packing, packing_of
from ngsgpu.io.output.atomic import AtomicFile, check_distinct, commit_all, write_text_atomically
from ngsgpu.io.output.commit import Output
from ngsgpu.io.output.encoder import Encoder
from ngsgpu.io.output.folder import AtomicFolder, FolderKind, check_place
from ngsgpu.io.output.in_memory import Appender, is_mapped
from ngsgpu.io.paths import refuse_unwritten

__all__ = ["OutputGroup", "OutputSet", "check_distinct", "write_text_atomically"]

_QUEUED: Final = 2
"""Pieces for each thread that wait to be written, while the disk lags."""
_PATIENCE: Final = 5.0


class Outputs(Protocol):
    """What is appended to; see `OutputSet`."""

    def write(self, index: int, data: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Append to one output."""

    def file_for_offsets(self, index: int) -> AtomicFile | None:
        """The file of an output whose parts can be written in any order; None for others."""

    def all_for_offsets(self) -> list[AtomicFile | None]:
        """``file_for_offsets`` of every output."""


class OutputSet:
    """Several outputs that are committed together; use it as a context manager.

    Background threads compress and write while the caller computes. When the ``with`` block
    succeeds, all files are completed and then renamed, replacing existing ones. If it raises an
    exception, or a file cannot be completed, the temporary files are removed and the targets are
    unchanged.

    Names ending in ``.gz``, ``.bgz`` or ``.bgzf`` are written as BGZF, those in ``.zst``, ``.bz2``
    and ``.xz`` as zstd, bzip2 and xz; the bytes depend neither on the number of threads nor on the
    division into writes. Other names are written plain; those of formats that are not written
    (``.bam``) are refused. ``-`` is standard output, which cannot be withdrawn.

    Args:
        paths: the targets.
        threads: compressing threads, for all files together.
        compression_level: 1 (fast) to 12 (small).
        packs: whether names decide about compression; otherwise all files are written plain.
        folder: place and kind of a folder that is committed together with the files.

    Raises:
        OutputError: a target cannot be written. All are opened at once, before any computing.
        InputError: the folder's place has other contents.
        UsageError: a duplicate target, one of a format that is not written, or an invalid
            compression level.

    Attributes:
        started: whether anything was written by ``write``.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        threads: int = 1,
        compression_level: int = DEFAULT_LEVEL,
        packs: bool = True,
        folder: tuple[str | Path, FolderKind] | None = None,
    ) -> None:
        if not 1 <= compression_level <= MAX_LEVEL:
            raise UsageError(
                f"compression level {compression_level}: choose one from 1 to {MAX_LEVEL}"
            )
        for path in paths:
            refuse_unwritten(path)
        check_distinct([], paths)
        if folder is not None:
            check_place(*folder)
        self._paths = paths
        self._threads = max(1, threads)
        self._level = compression_level
        self._packs = packs
        self._folder = None if folder is None else AtomicFolder(folder[0])
        self._open_files()

    def _open_files(self) -> None:
        self.started = False
        self._pool: ThreadPoolExecutor | None = None
        self._writers: list[_Writer] = []
        files: list[AtomicFile] = []
        try:
            for path in self._paths:
                files.append(AtomicFile(path))
        except BaseException:
            for file in files:
                file.discard()
            for folder in self._folders:
                folder.discard()
            raise
        for file in files:
            self._writers.append(self._writer(file, self._level))

    def _writer(self, file: AtomicFile, level: int) -> _Writer:
        packing = packing_of(file.path) if self._packs else None
        if packing is None:
            appender = Appender(file) if is_mapped(file, self._threads) else None
            return _Writer(file, None, _QUEUED * self._threads + 2, appender)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="ngsgpu-write")
        encoder = Encoder(self._pool, packing, level, ahead=self._threads + 2)
        return _Writer(file, encoder, self._threads + 2)

    def write(self, index: int, data: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Append to one output; returns at once unless the disk is behind.

        Args:
            index: which of ``paths``.
            data: bytes; must not be changed afterwards.

        Raises:
            OutputError: an earlier write to this output failed.
        """
        self.started = True
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        self._writers[index].put(view.cast("B"))

    def packing(self, index: int) -> tuple[Packing, int] | None:
        """What compresses an output, and its level; None for plain ones."""
        return self._writers[index].packer

    def write_packed(self, index: int, data: bytes | memoryview, size: int) -> None:
        """Append a piece that is compressed already; nothing else is written to this output.

        Args:
            index: which of ``paths``.
            data: compressed, as ``packing`` does.
            size: bytes that it holds.

        Raises:
            OutputError: an earlier write to this output failed.
        """
        self.started = True
        self._writers[index].put(Packed(data, size))

    def load_packers(self) -> None:
        """Have a thread load what compresses, for which the first piece would otherwise wait.

        For outputs that get their first bytes late, and then many.
        """
        packers = {writer.packer for writer in self._writers if writer.packer is not None}
        for packing, level in packers:
            assert self._pool is not None
            self._pool.submit(packing.pack, bytes(packing.piece_bytes), level)

    def file_for_offsets(self, index: int) -> AtomicFile | None:
        """The file of an output whose parts can be written in any order; None for others.

        That excludes compressed outputs, standard output and special files. The caller then writes
        the whole file and does not call ``write`` for this output.

        Args:
            index: which of ``paths``.
        """
        writer = self._writers[index]
        return writer.file if writer.file.takes_offsets and writer.packer is None else None

    def all_for_offsets(self) -> list[AtomicFile | None]:
        """``file_for_offsets`` of every output."""
        return [self.file_for_offsets(index) for index in range(len(self._writers))]

    def complete(self) -> None:
        """Have everything written; only the names are wanting then.

        Raises:
            OutputError: a file could not be written.
        """
        for writer in self._writers:
            writer.finish()
        for writer in self._writers:
            writer.raise_failure()
        for writer in self._writers:
            writer.file.close()
        self._shut_pool()

    @property
    def folder(self) -> Path:
        """Where the files of the folder go."""
        assert self._folder is not None
        return self._folder.place

    @property
    def _folders(self) -> list[AtomicFolder]:
        return [] if self._folder is None else [self._folder]

    @property
    def files(self) -> list[AtomicFile]:
        """The files of all outputs."""
        return [writer.file for writer in self._writers]

    @property
    def outputs(self) -> list[Output]:
        """The folder and the files."""
        return [*self._folders, *self.files]

    @property
    def withdrawable(self) -> bool:
        """Whether all that ``write`` has written can be taken back."""
        return not self.started or all(writer.file.takes_offsets for writer in self._writers)

    def withdraw(self) -> None:
        """Take back what was written, for another attempt; see ``withdrawable``.

        Raises:
            OutputError: a target cannot be written any more.
        """
        if self.started:
            self._discard_files()
            self._open_files()

    def commit(self) -> None:
        """Complete all files and give them their names.

        Raises:
            OutputError: a file could not be written or renamed; then none was replaced.
        """
        try:
            self.complete()
            commit_all(self.outputs)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the temporary files; the targets are unchanged."""
        self._discard_files()
        for folder in self._folders:
            folder.discard()

    def _discard_files(self) -> None:
        for writer in self._writers:
            writer.stop()
        for writer in self._writers:
            writer.file.discard()
        self._shut_pool()

    def _shut_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> OutputSet:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.commit()
            return
        self.abort()
        if self._folder is not None and isinstance(error, OSError):
            raise output_error(self._folder.path, error) from error


class OutputGroup:
    """Sets of outputs, opened in turn and committed together; a context manager.

    For runs that write several samples: all files of the run appear, or none. They stay open until
    then because of their locks, so the limit of open files is raised as far as possible.
    """

    def __init__(self) -> None:
        self._sets: list[OutputSet] = []
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    @contextlib.contextmanager
    def outputs(
        self,
        paths: Sequence[str | Path],
        *,
        threads: int = 1,
        compression_level: int = DEFAULT_LEVEL,
    ) -> Iterator[OutputSet]:
        """Open further outputs, as ``OutputSet`` does; the block's end completes them.

        Raises:
            OutputError: a target cannot be written.
        """
        outputs = OutputSet(paths, threads=threads, compression_level=compression_level)
        self._sets.append(outputs)
        try:
            yield outputs
            outputs.complete()
        except BaseException:
            # A retry opens them again.
            self._sets.remove(outputs)
            outputs.abort()
            raise

    def __enter__(self) -> OutputGroup:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                commit_all([own for outputs in self._sets for own in outputs.outputs])
        finally:
            for outputs in self._sets:
                outputs.abort()


class Packed(NamedTuple):
    """Compressed bytes, and how many they hold."""

    data: bytes | memoryview
    size: int


class _Writer:
    """A thread that encodes and writes the data in its queue."""

    def __init__(
        self,
        file: AtomicFile,
        encoder: Encoder | None,
        queued: int,
        appender: Appender | None = None,
    ) -> None:
        self.file = file
        self.packer = None if encoder is None else encoder.packer
        self._encoder = encoder
        self._appender = appender
        self._queue: queue.Queue[memoryview | Packed | None] = queue.Queue(queued)
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ngsgpu-write", daemon=True)
        self._thread.start()

    def put(self, data: memoryview | Packed) -> None:
        """Hand over data, waiting while too much is waiting already."""
        self.raise_failure()
        self._queue.put(data)

    def finish(self) -> None:
        """Wait until everything is written."""
        self._queue.put(None)
        self._thread.join()

    def stop(self) -> None:
        """End the thread; what waits is dropped. A write that hangs is not waited for for long."""
        self._stopped.set()
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)
        self._thread.join(_PATIENCE)

    def raise_failure(self) -> None:
        """Raise what went wrong in the thread, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        with self._appender or contextlib.nullcontext():
            self._write_all()

    def _write_all(self) -> None:
        # After a failure keep draining the queue, so that nobody waits for room in it forever.
        data: memoryview | Packed | None = memoryview(b"")
        while data is not None:
            data = self._queue.get()
            if self._stopped.is_set():
                return
            if self._failure is None:
                self._try_write(data)

    def _try_write(self, data: memoryview | Packed | None) -> None:
        try:
            if isinstance(data, Packed):
                assert self._encoder is not None
                self._encoder.note_packed((len(data.data), data.size))
                self.file.write(data.data)
            elif self._encoder is not None:
                for piece in self._encoder.encode(data):
                    self.file.write(piece)
            elif self._appender is not None:
                if data is None:
                    self._appender.finish()
                else:
                    self._appender.append(data, behind=not self._queue.empty())
            elif data is not None:
                self.file.write(data)
        except BaseException as error:
            self._failure = error
