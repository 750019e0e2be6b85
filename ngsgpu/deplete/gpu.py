"""Depletion on a GPU: the kernels, and what they need on the device."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.cpu import COUNTERS
from ngsgpu.deplete.index import HostIndex
from ngsgpu.deplete.kmers import GROUP
from ngsgpu.deplete.params import CENTRE, DepletionParameters
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import to_device
from ngsgpu.io.gpu.parse import THREADS, device_classes
from ngsgpu.io.gpu.records import DeviceRecordBatch
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.run.record_gpu import (
    RecordKernels,
    ResultBatch,
    grid_of_tiles,
    output_bytes,
    record_arguments,
)

KERNELS: Final = KernelModule("ngsgpu.deplete")

RULES: Final = Struct(
    __name__,
    "Rules",
    {
        "table": "const uint32_t*",
        "groups": "uint32_t",
        "limit": "uint32_t",
        "kmer": "int32_t",
        "offset": "int32_t",
        "least": "int64_t",
        "most": "int64_t",
        "millionths": "int64_t",
        "short_bases": "int64_t",
        "keep_host": "int32_t",
        "paired": "int32_t",
        "interleaved": "int32_t",
    },
)
"""The index, ``Sampling`` and ``Bounds``, what is kept, and how the reads of a lane lie."""


class DepletionKernels(RecordKernels):
    """Depletion on the current GPU; equal to ``ngsgpu.deplete.cpu``.

    Args:
        index: the host's.
        parameters: what is the host's, and what is kept.
        lane: one of those that are read, which are alike.
        chunk_bytes: bytes per chunk of a file.
    """

    FOUND = np.uint8

    def __init__(
        self, index: HostIndex, parameters: DepletionParameters, lane: ReadFiles, chunk_bytes: int
    ) -> None:
        import cupy

        sampling = index.parameters.sampling()
        self._table = to_device(index.table)
        self._rules = RULES.on_device(
            table=self._table,
            groups=len(index.table) // GROUP,
            limit=int(sampling.limit),
            kmer=sampling.kmer,
            offset=(sampling.kmer - CENTRE) // 2,
            **parameters.bounds(sampling.kmer)._asdict(),
            keep_host=parameters.keep_host,
            paired=lane.paired,
            interleaved=lane.interleaved,
        )
        self._classes = device_classes()
        self._counters = cupy.zeros(len(COUNTERS), dtype=cupy.uint64)
        # A record is copied as it is, but for a last line feed.
        self.sizes = [output_bytes(chunk_bytes)] * 2

    def launch(self, batch: ResultBatch, records: DeviceRecordBatch) -> None:
        """See ``RecordKernels``."""
        grid = grid_of_tiles(records.units)
        common = (*record_arguments(records), self._rules)
        found = (batch.found, batch.offsets, batch.tile_bytes)
        KERNELS.launch(
            "find_kept", grid, (THREADS,), (*common, self._classes, *found, self._counters)
        )
        KERNELS.launch(
            "write_kept", grid, (THREADS,), (*common, *found, *batch.outputs, batch.totals)
        )

    def counts(self) -> NDArray[np.int64]:
        """The counters, int64[len(COUNTERS)]."""
        counted: NDArray[np.int64] = self._counters.get().astype(np.int64)
        return counted
