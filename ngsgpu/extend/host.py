"""The CPU kernels as what several threads call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.weights import quality_weights
from ngsgpu.extend import cpu
from ngsgpu.extend.params import Rules
from ngsgpu.minhash.ends import EndTables
from ngsgpu.pool import Shared
from ngsgpu.readset import ReadSet

PAIRS_PER_TASK = 512


class Extender:
    """Extends pairs of a read set; several threads may call it at once.

    Args:
        reads: the read set.
        tables: the tables of its reads' ends.
        rules: the parameters as integers.
        threads: how many threads may call it at once.
    """

    def __init__(self, reads: ReadSet, tables: EndTables, rules: Rules, threads: int) -> None:
        self.reads = reads
        self.tables = tables
        self.rules = rules
        self._weights = quality_weights(reads.arrays.quality_bits)
        self._spaces = Shared(
            cpu.Workspace.allocate(rules, reads.max_length, len(tables.cells))
            for _ in range(threads)
        )

    def extend(self, pairs: NDArray[np.int64]) -> cpu.Extensions:
        """Extend the pairs with the given numbers."""
        results = cpu.Extensions.allocate(len(pairs), self.rules)
        with self._spaces.borrowed() as space:
            cpu.extend_pairs(
                self.reads.arrays, self.tables, self._weights, self.rules, pairs, space, results
            )
        return results

    @property
    def counters(self) -> NDArray[np.int64]:
        """Sum of all threads' counters."""
        counters = [space.counters for space in self._spaces.things]
        return np.stack(counters).sum(axis=0, dtype=np.int64)
