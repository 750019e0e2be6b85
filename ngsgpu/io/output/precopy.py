"""Copies inputs to their plain outputs in the background, so that only edits remain.

Correction on a GPU leaves the CPU cores idle for a while; an output has the size of its input and
most of its bytes. Inputs are plain files, text that was inflated and kept in memory, or gzip files
that can be inflated from many places. Outputs in memory are mapped by eight threads and more: Linux
lets only one at a time write to a file, but several copy to its pages.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, Self

import numpy as np

from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.in_memory import MAPPED_BYTES, is_mapped
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import FileLayout, PieceReader, ReadFilesLayout, check_same, open_again

COPIED_AT_ONCE: Final = 4 << 20

_MAPPED_AT_ONCE: Final = MAPPED_BYTES // 4
"""Bytes of an output that is mapped: their room is reserved by one thread at a time."""

_COPIERS: Final = 2
"""Threads for an output that is written: others would wait, and keep cores busy meanwhile."""


class Precopy:
    """Copies of inputs to outputs that can be written in any order.

    As a context manager it ends all copying when the block ends.

    Args:
        lanes: the inputs.
        targets: for each file of each lane, the index of its output.
        outputs: the outputs.
        threads: available threads.
    """

    def __init__(
        self,
        lanes: Sequence[ReadFilesLayout],
        targets: Sequence[Sequence[int]],
        outputs: OutputSet,
        threads: int,
    ) -> None:
        self._jobs: list[tuple[FileLayout, int, int]] = []
        self._files: dict[int, AtomicFile] = {}
        self._sizes: dict[int, int] = {}
        self._stopped = threading.Event()
        self._tasks: list[Future[None]] = []
        self._open = ExitStack()
        plain = self._plain_outputs(lanes, targets)
        for lane, indices in zip(lanes, targets, strict=True):
            for file, index in zip(lane.files, indices, strict=True):
                target = outputs.file_for_offsets(index) if index in plain else None
                if target is not None:
                    self._files[index] = target
                    self._jobs.append((file, index, self._sizes.get(index, 0)))
                self._sizes[index] = self._sizes.get(index, 0) + file.size
        self._mapped = {index for index, own in self._files.items() if is_mapped(own, threads)}
        written = len(self._files) - len(self._mapped)
        self._threads = threads if self._mapped else max(1, min(threads, _COPIERS * written))

    @staticmethod
    def _plain_outputs(
        lanes: Sequence[ReadFilesLayout], targets: Sequence[Sequence[int]]
    ) -> set[int]:
        """Outputs all of whose inputs can be copied as they are."""
        copied: set[int] = set()
        others: set[int] = set()
        for lane, indices in zip(lanes, targets, strict=True):
            for file, index in zip(lane.files, indices, strict=True):
                (copied if file.takes_offsets else others).add(index)
        return copied - others

    def __enter__(self) -> Self:
        """Begin to copy."""
        pool = self._open.enter_context(
            ThreadPoolExecutor(self._threads, thread_name_prefix="ngsgpu-copy")
        )
        parts = []
        for layout, index, place in self._jobs:
            reader = open_again(layout, threads=1)
            self._open.callback(reader.close)
            size = _MAPPED_AT_ONCE if index in self._mapped else COPIED_AT_ONCE
            # Whoever inflates does so from one place to the next.
            places = [own.text for own in layout.checkpoints] or [*range(0, layout.size, size)]
            for start, end in pairwise([*places, layout.size]):
                if start < end:
                    parts.append((start, end, reader, index, place))
        # All outputs at the same time, as a file is written by one thread at a time.
        for start, end, reader, index, place in sorted(parts, key=itemgetter(0)):
            self._tasks.append(pool.submit(self._copy, reader, index, start, end, place))
        # Called before the pool waits for its threads.
        self._open.callback(self._stop)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def _stop(self) -> None:
        self._stopped.set()
        for task in self._tasks:
            task.cancel()

    def _copy(self, reader: PieceReader, index: int, start: int, end: int, place: int) -> None:
        if self._stopped.is_set():
            return
        fill, target = reader.prepare(start, end), self._files[index]
        if index in self._mapped:
            fill(target.pages(end - start, place + start))
            return
        data = np.empty(end - start, dtype=np.uint8)
        fill(data)
        target.write_at(data.data, place + start)

    def finish(self) -> dict[int, AtomicFile]:
        """Wait for the copies.

        Returns:
            The copied outputs, to be edited in place. On copy-on-write file systems, changes need
            room for a second copy; outputs on a disk without that room are not included and must be
            written.

        Raises:
            InputError: an input cannot be read, or has changed.
            OutputError: an output cannot be written.
        """
        for task in self._tasks:
            task.result()
        for layout, _, _ in self._jobs:
            check_same(layout)
        return {
            index: file
            for index, file in self._files.items()
            if self._sizes[index]
            and (index in self._mapped or file.free_space() > self._sizes[index])
        }
