"""Asks the reads on a GPU about bases that would be changed; see ``witnesses``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.correct.rules.witnesses import AskedKmers, nothing_seen
from ngsgpu.device.arena import room
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_for
from ngsgpu.device.memory import usable_cpus
from ngsgpu.readset.qualities import exact_scores

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

KERNELS: Final = KernelModule("ngsgpu.correct.rules", "witnesses.cu")

BYTES_PER_KMER: Final = 256
"""At most, of a table, ranks and what is seen; also room for the arrays of as many bases."""

_FEWEST: Final = 1 << 10
_MOST: Final = 1 << 22
_BLOCKS_PER_MULTIPROCESSOR: Final = 16


@dataclass(frozen=True)
class DeviceAsker:
    """An ``Asker`` on the current GPU."""

    reads: DeviceReadSet

    @property
    def size(self) -> tuple[int, int, bool]:
        """See ``Asker``."""
        return self.reads.reads, self.reads.bases, self.reads.paired

    @property
    def threads(self) -> int:
        """See ``Asker``."""
        return usable_cpus()

    @property
    def kmers_at_a_time(self) -> int:
        """See ``Asker``."""
        free = room()
        if free is None:
            return _MOST
        # Which reads are asked takes a byte each.
        return min(_MOST, max(_FEWEST, (free - self.reads.reads) // BYTES_PER_KMER))

    def kmers(
        self,
        reads: NDArray[np.uint32],
        positions: NDArray[np.int32],
        bases: NDArray[np.uint8],
        k: int,
    ) -> AskedKmers:
        """See ``Asker``."""
        found = AskedKmers.allocate(len(reads))
        step = self.kmers_at_a_time
        for begin in range(0, len(reads), step):
            part = slice(begin, min(begin + step, len(reads)))
            self._find(reads[part], positions[part], bases[part], k, found.part(part))
        return found

    def _find(
        self,
        reads: NDArray[np.uint32],
        positions: NDArray[np.int32],
        bases: NDArray[np.uint8],
        k: int,
        found: AskedKmers,
    ) -> None:
        import cupy

        there = [cupy.empty(own.shape, dtype=own.dtype) for own in found]
        self._launch(
            "find_asked",
            len(reads),
            np.int64(len(reads)),
            cupy.asarray(reads),
            cupy.asarray(positions),
            cupy.asarray(bases),
            np.int32(k),
            cupy.asarray(exact_scores(self.reads.quality_bits, self.reads.levels)),
            *there,
        )
        for array, own in zip(there, found, strict=True):
            array.get(out=own)

    def count(
        self,
        k: int,
        table: NDArray[np.uint64],
        ranks: NDArray[np.uint32],
        kmers: int,
        among: NDArray[np.bool_],
    ) -> NDArray[np.uint32]:
        """See ``Asker``."""
        import cupy

        seen, ambiguous = cupy.asarray(nothing_seen(kmers)), self.reads.ambiguous_struct()
        self._launch(
            "count_witnesses",
            self.reads.reads,
            np.int64(self.reads.reads),
            np.int32(self.reads.paired),
            ambiguous,
            cupy.asarray(quality_weights(self.reads.quality_bits, self.reads.levels)),
            np.int32(k),
            cupy.asarray(table),
            np.uint64(len(table) - 1),
            cupy.asarray(ranks),
            cupy.asarray(among) if len(among) else np.uint64(0),
            seen,
        )
        return np.asarray(cupy.asnumpy(seen))

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        """Launch a kernel with a thread for each of a number of things, none of them for none."""
        if threads:
            grid = grid_for(threads, THREADS, _BLOCKS_PER_MULTIPROCESSOR)
            KERNELS.launch(kernel, grid, (THREADS,), (self.reads.struct, *arguments))
