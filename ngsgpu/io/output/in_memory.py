"""Files in memory (tmpfs), filled by several threads at a time."""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.output.atomic import AtomicFile

MEMORY_WRITERS: Final = 8
"""Threads that fill files in memory, whose pages they map and need not wait for. As pages are
zeroed first, fewer than so many threads are sooner done by writing."""


def is_mapped(file: AtomicFile, threads: int) -> bool:
    """Whether a file is written sooner by way of its pages, by so many threads."""
    return threads >= MEMORY_WRITERS and file.is_in_memory


def write_pages(file: AtomicFile, data: memoryview, offset: int) -> None:
    """Write all of ``data`` at a place in a file in memory; may be called in any thread.

    Only one thread at a time can write to a file; several can fill its pages. These are mapped for
    as long as that takes, so that no thread has to unmap a large file in the end.

    Raises:
        OutputError: the disk is full.
    """
    np.copyto(file.pages(len(data), offset), np.frombuffer(data, dtype=np.uint8))
