"""Merging on a GPU: the kernels, and what they need on the device."""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct, fields_of
from ngsgpu.errors import UnsuitableError
from ngsgpu.io.gpu.parse import THREADS, WARPS, device_classes
from ngsgpu.io.gpu.records import DeviceRecordBatch
from ngsgpu.merge.cpu import COUNTERS, DENSITIES, Counts, Tally, Wanted
from ngsgpu.merge.qualities import Tables
from ngsgpu.merge.rules import Rules
from ngsgpu.run.record_gpu import (
    RecordKernels,
    ResultBatch,
    grid_of_tiles,
    output_bytes,
    record_arguments,
)

KERNELS: Final = KernelModule("ngsgpu.merge")

RULES: Final = Struct(
    __name__, "Rules", {**fields_of(Rules), "wanted": "int32_t", "interleaved": "int32_t"}
)
"""``Rules``, and the outputs to write."""

TABLES: Final = Struct(
    __name__,
    "Tables",
    {
        **dict.fromkeys(("agree", "differ", "scores", "alone"), "const uint8_t*"),
        **dict.fromkeys(
            ("match", "mismatch", "alike", "unlike", "base", "prior", "usual"), "const int32_t*"
        ),
        "longest": "int32_t",
    },
)
"""``Tables``, and the longest fragment in ``prior`` and ``usual``."""

_PLANES: Final = 3
_MAX_BINS: Final = 2 * MAX_READ_LENGTH + 1


class MergingKernels(RecordKernels):
    """Merging on the current GPU; equal to ``ngsgpu.merge.cpu``.

    Args:
        rules: merging rules.
        tables: scores of merged bases.
        wanted: outputs to write.
        chunk_bytes: bytes per chunk of a file.
    """

    FOUND = np.int32

    def __init__(self, rules: Rules, tables: Tables, wanted: Wanted, chunk_bytes: int) -> None:
        import cupy

        self._rules = RULES.on_device(
            **rules._asdict(), wanted=wanted.unmerged, interleaved=wanted.interleaved
        )
        self._held = {name: cupy.asarray(table) for name, table in tables._asdict().items()}
        self._tables = TABLES.on_device(**self._held, longest=len(tables.prior) - 1)
        self._classes = device_classes()
        # The kernel has about a kilobyte besides the planes.
        limit = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        self._shared_bytes = int(limit) - 2048
        # A record never grows by being written again, but for a last line feed.
        one = output_bytes(chunk_bytes)
        self.sizes = [
            2 * one if not rules.correct_only else 1,
            (2 if wanted.interleaved else 1) * one if wanted.unmerged else 1,
            one if wanted.unmerged else 1,
        ]
        self._counters = cupy.zeros(len(COUNTERS), dtype=cupy.uint64)
        self._lengths = cupy.zeros((2, _MAX_BINS), dtype=cupy.uint64)
        self._inserts = cupy.zeros(_MAX_BINS, dtype=cupy.uint64)
        self._overlaps = cupy.zeros(_MAX_BINS, dtype=cupy.uint64)
        self._densities = cupy.zeros(DENSITIES, dtype=cupy.uint64)

    def launch(self, batch: ResultBatch, records: DeviceRecordBatch) -> None:
        """See ``RecordKernels``.

        Raises:
            UnsuitableError: a read is too long for the GPU's shared memory.
        """
        grid = grid_of_tiles(records.units)
        longest = max(chunk.max_length for chunk, _ in records.parts)
        words = plane_words(longest)
        if shared_bytes(words) > self._shared_bytes:
            raise UnsuitableError(
                f"reads of {longest:,} bases are too long for the GPU; use `backend='cpu'`"
            )
        common = (
            *record_arguments(records),
            self._rules,
            self._tables,
            self._classes,
        )
        found = (batch.found, batch.offsets, batch.tile_bytes)
        counts = (self._lengths, self._inserts, self._overlaps, self._densities)
        KERNELS.launch(
            "find_overlaps",
            grid,
            (THREADS,),
            (*common, np.uint32(words), *found, self._counters, *counts, np.uint32(_MAX_BINS)),
            shared_bytes=shared_bytes(words),
        )
        KERNELS.launch(
            "write_records",
            grid,
            (THREADS,),
            (*common, *found, *batch.outputs, batch.totals, self._counters),
        )

    def counts(self) -> Tally:
        """The counts."""
        tally = Tally()
        counted = (self._counters, self._lengths, self._inserts, self._overlaps, self._densities)
        tally += Counts(*(array.get().astype(np.int64) for array in counted))
        return tally


def plane_words(longest: int) -> int:
    """Words per plane of a read, plus one."""
    return -(-longest // 32) + 1


def shared_bytes(words: int) -> int:
    """Shared memory of a block of ``find_overlaps``."""
    return 4 * WARPS * 2 * _PLANES * words
