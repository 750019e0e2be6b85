"""Where reads lie between two steps: in memory if they fit, and as files on disk if not."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

import numpy as np

from ngsgpu.device.memory import available_memory
from ngsgpu.errors import NgsgpuError, output_error, unreadable
from ngsgpu.io.compress.source import is_compressed, unpacked_size
from ngsgpu.io.output.temporary import close_folder, open_folder
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import is_stream, read_at

_MEMORY: Final = Path("/dev/shm")
_GENERATIONS: Final = 2
"""Texts of the reads that are there at a time: what a step reads, and what it writes."""
_SHARE: Final = 2
"""Part of the memory that they may take: 1 / this."""
_PIECE: Final = 8 << 20
_SAMPLE: Final = 1 << 20
_MARGIN: Final = 1.2
"""Of texts that are estimated: reads behind the first ones may be packed more tightly."""
_GZIP: Final = b"\x1f\x8b"


class Places:
    """A folder for reads between steps, and copies of them for good; a context manager.

    Files in it are plain text. In memory they are tmpfs's, so that they are gone with the folder;
    that of a killed run is removed by the user's next one.

    Args:
        out: folder of the outputs.
        inputs: files of the first step.
        memory: bytes that the chain may use; None: what is free.
        threads: that compress copies.
        level: of compression.

    Attributes:
        text: about how many bytes the reads take; None: of a stream that is not known.
        in_memory: whether they lie in memory.
        folder: where they lie.

    Raises:
        InputError: an input cannot be read.
        OutputError: the folder cannot be made.
    """

    def __init__(
        self, out: Path, inputs: Iterable[str], memory: int | None, *, threads: int, level: int
    ) -> None:
        self.text = _text_size([*inputs])
        self.in_memory = self.text is not None and _fits(_GENERATIONS * self.text, memory)
        self._threads, self._level = threads, level
        self._copies: dict[str, Future[None]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-keep")
        self._remover = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-remove")
        target = out / "reads"
        if self.in_memory:
            target = _MEMORY / f"ngsgpu-{os.getuid()}"
        elif own := os.environ.get("TMPDIR"):
            target = Path(own).absolute() / f"ngsgpu-{os.getuid()}"
        try:
            self.folder, self._lock = open_folder(target, None)
        except OSError as error:
            raise output_error(target.parent, error) from error

    @property
    def taken(self) -> int:
        """Bytes of memory that the reads take, at most."""
        return _GENERATIONS * self.text if self.in_memory and self.text is not None else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: object, *more: object) -> None:
        # What steps have made before one that fails is whole; an interrupted run ends at once.
        self._pool.shutdown(wait=True, cancel_futures=not isinstance(error, NgsgpuError))
        self._remover.shutdown(wait=True)
        close_folder(self.folder, self._lock)

    def keep(self, copies: Mapping[str, str], level: int | None = None) -> None:
        """Begin to copy files, by their targets, which appear together when all are whole.

        Args:
            copies: targets by files.
            level: of compression; None: that of all others.

        Raises:
            OutputError: a target cannot be written.
        """
        if not copies:
            return
        outputs = OutputSet(
            [*copies.values()], threads=self._threads, compression_level=level or self._level
        )
        task = self._pool.submit(_copy, outputs, [*copies])
        self._copies |= dict.fromkeys(copies, task)

    def remove(self, files: Iterable[str]) -> None:
        """Remove files, once their copies are whole; that takes a while for large ones in memory.

        Raises:
            OutputError: a copy could not be written.
        """
        for path in files:
            if (task := self._copies.pop(path, None)) is not None:
                task.result()
            self._remover.submit(Path(path).unlink, missing_ok=True)


def _text_size(paths: list[str]) -> int | None:
    """About how many bytes of text files hold; None if one of them is a stream."""
    if any(path == "-" or is_stream(path) for path in paths):
        return None
    return round(sum(unpacked_size(path) * _packing(path) for path in paths))


def _packing(path: str) -> float:
    """How much more a file holds than ``unpacked_size`` assumes, by its first bytes, and some."""
    if unpacked_size(path) == 0:
        return 1.0
    try:
        with Path(path).open("rb") as file:
            packed = file.read(_SAMPLE)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        is_compressed(path)  # says why it cannot be opened
        raise unreadable(path, error) from error
    text, rest = 0, packed
    while rest[:2] == _GZIP:
        member = zlib.decompressobj(wbits=31)
        try:
            text += len(member.decompress(rest))
        except zlib.error:  # which the first step will report
            break
        rest = member.unused_data
    return _MARGIN * text / len(packed) * size / unpacked_size(path) if text else _MARGIN


def _fits(size: int, memory: int | None) -> bool:
    """Whether files of a size may lie in memory."""
    try:
        info = os.statvfs(_MEMORY)
    except OSError:
        return False
    room = min(info.f_bavail * info.f_frsize, (memory or available_memory()) // _SHARE)
    return size <= room and os.access(_MEMORY, os.W_OK | os.X_OK)


def _copy(outputs: OutputSet, files: list[str]) -> None:
    # Mapped, the pages of a file in memory would come one by one to the threads that compress.
    with outputs:
        for number, path in enumerate(files):
            with io.FileIO(path) as file:
                for begin in range(0, os.fstat(file.fileno()).st_size, _PIECE):
                    piece = np.empty(_PIECE, dtype=np.uint8)
                    outputs.write(number, piece[: read_at(file, piece, begin)])
