"""Databases built on a GPU: the counterparts of ``sketching`` and ``index``.

The index of a partition is made by one sort of (key, window) words and the lengths of their runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database import Database, Partition
from ngsgpu.classify.gpu import (
    THREADS,
    code_table,
    grid_of_threads,
    grid_of_warps,
    sketch_numbers,
    to_host,
)
from ngsgpu.classify.index import Index, directory_bits
from ngsgpu.classify.params import DatabaseParameters, SketchParameters
from ngsgpu.classify.references import windows_of_lengths
from ngsgpu.classify.sketching import Unpacked
from ngsgpu.device.gpu_memory import gpu_memory
from ngsgpu.device.kernels import KernelModule

KERNELS: Final = KernelModule("ngsgpu.classify", "build.cu")
_BYTES_A_SLOT: Final = 40
"""Device memory for a feature of a reference window while an index is made."""


@dataclass(frozen=True, slots=True)
class DeviceSketches:
    """Features of consecutive reference sequences.

    Attributes:
        keys: CuPy uint32[windows * sketch], those of a window in its first places.
        counts: CuPy uint8[windows], features of each window.
        first_window: CuPy int64[n + 1], where each sequence's windows begin.
        target: int64[n], number of each one's target.
    """

    keys: Any
    counts: Any
    first_window: Any
    target: NDArray[np.int64]


def sketch_on_gpu(
    batches: Iterable[Unpacked], parameters: SketchParameters, advance: Any
) -> list[DeviceSketches]:
    """Sketch reference sequences; equal to ``sketch_batches``, but for where the result is."""
    import cupy

    codes_of = code_table(letters=False)
    done = []
    for batch in batches:
        windows = windows_of_lengths(np.diff(batch.start), parameters)
        first = np.zeros(len(windows) + 1, dtype=np.int64)
        np.cumsum(windows, out=first[1:])
        total = int(first[-1])
        keys = cupy.empty(total * parameters.sketch, dtype=cupy.uint32)
        counts = cupy.empty(total, dtype=cupy.uint8)
        first_window = cupy.asarray(first)
        if total > 0:
            KERNELS.launch(
                "sketch_sequences",
                grid_of_warps(total),
                (THREADS,),
                (
                    cupy.asarray(batch.codes),
                    cupy.asarray(batch.start),
                    first_window,
                    np.int64(len(windows)),
                    np.int64(total),
                    codes_of,
                    *sketch_numbers(parameters),
                    keys,
                    counts,
                ),
            )
        done.append(DeviceSketches(keys, counts, first_window, batch.target))
        advance(len(batch.codes))
    return done


def index_on_gpu(database: Database, number: int, sketches: list[DeviceSketches]) -> Partition:
    """Build the index of a partition; equal to ``ngsgpu.classify.build.index_partition``.

    Raises:
        DeviceError: the GPU's memory does not suffice.
    """
    import cupy

    target, first_window = database.members(number)
    shift = np.full(len(database.targets) + 1, -1, dtype=np.int64)
    shift[target] = first_window[:-1]
    own = [one for one in sketches if (shift[one.target] >= 0).any()]
    slots = sum(len(one.keys) for one in own)
    gpu_memory().require(_BYTES_A_SLOT * slots, f"sorting partition {number}")
    words = cupy.empty(slots, dtype=cupy.uint64)
    at = 0
    for one in own:
        size = len(one.keys)
        KERNELS.launch(
            "make_words",
            grid_of_threads(size),
            (THREADS,),
            (
                one.keys,
                one.counts,
                np.int64(len(one.counts)),
                np.int32(database.parameters.sketch.sketch),
                one.first_window,
                np.int64(len(one.target)),
                cupy.asarray(shift[one.target]),
                words[at : at + size],
            ),
        )
        at += size
    words.sort()
    # Places without a feature have come last.
    pairs = int(cupy.searchsorted(words, cupy.array([2**64 - 1], dtype=cupy.uint64))[0])
    index = _condense(words[:pairs], database.parameters)
    return Partition(number, target, first_window, index)


def _condense(words: Any, parameters: DatabaseParameters) -> Index:
    """Runs of equal keys as entries and locations, copied to the host."""
    import cupy

    begins = cupy.empty(len(words), dtype=cupy.uint8)
    KERNELS.launch(
        "mark_keys", grid_of_threads(len(words)), (THREADS,), (words, np.int64(len(words)), begins)
    )
    starts = cupy.flatnonzero(begins).astype(cupy.int64)
    del begins
    keys = len(starts)
    first = cupy.concatenate([starts, cupy.array([len(words)], dtype=cupy.int64)])
    kept = cupy.empty(keys, dtype=cupy.int64)
    entries_of = cupy.empty(keys, dtype=cupy.int64)
    KERNELS.launch(
        "limit_keys",
        grid_of_threads(keys),
        (THREADS,),
        (
            first,
            np.int64(keys),
            np.int64(parameters.max_locations),
            np.int32(parameters.remove_overfull),
            kept,
            entries_of,
        ),
    )
    entry_end = cupy.cumsum(entries_of)
    location_end = cupy.cumsum(kept)
    entry_count = int(entry_end[-1]) if keys else 0
    location_count = int(location_end[-1]) if keys else 0
    bits = directory_bits(entry_count)
    entries = cupy.empty(entry_count, dtype=cupy.uint32)
    locations = cupy.empty(location_count, dtype=cupy.uint32)
    directory = cupy.zeros(((1 << bits) + 1, 2), dtype=cupy.uint32)
    if keys:
        ends = (entry_end, location_end, np.int32(bits))
        head = (words, first, np.int64(keys))
        KERNELS.launch(
            "write_keys", grid_of_warps(keys), (THREADS,), (*head, kept, *ends, entries, locations)
        )
        KERNELS.launch(
            "write_directory",
            grid_of_threads(len(directory)),
            (THREADS,),
            (*head, *ends, directory),
        )
    return Index(to_host(directory), to_host(entries), to_host(locations))
