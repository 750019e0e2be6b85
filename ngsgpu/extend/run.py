"""The steps of an extension, whichever backend computes them."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend.cpu import COUNTERS, Extensions
from ngsgpu.extend.insert import InsertSize, estimate_insert, sampled_pairs, sampling_parameters
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.extend.tasks.joining import NOT_CONNECTED
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress, Stage
from ngsgpu.run.staged import StagedRun

logger = logging.getLogger("ngsgpu")


class Run(StagedRun[ExtensionParameters]):
    """An extension: ``read`` (or ``take``), ``build``, ``insert_size``, ``texts`` (or ``results``).

    Attributes:
        counters: int64[COUNTERS], counters of the tasks with the latest rules (``cpu``).
    """

    def __init__(
        self,
        parameters: ExtensionParameters,
        options: RunOptions,
        phred_offset: PhredOffset,
        progress: Progress,
    ) -> None:
        super().__init__(parameters, options, phred_offset, progress)
        self.counters: NDArray[np.int64] = np.zeros(COUNTERS, dtype=np.int64)

    @abstractmethod
    def build(self) -> None:
        """Build the tables of the reads' ends.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            HostMemoryError: the memory does not suffice.
        """

    @abstractmethod
    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""

    @abstractmethod
    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""

    def building_tables(self) -> AbstractContextManager[Stage]:
        """The step of the tables."""
        return self.step("tables", "building tables", self.parameters.ends.hashes, "tables")

    def insert_size(self) -> InsertSize:
        """The length of fragments, given or estimated from a sample of the pairs.

        Raises:
            UsageError: too few pairs can be connected.
        """
        parameters = self.parameters
        if parameters.insert_mean is not None and parameters.insert_sd is not None:
            return InsertSize(parameters.insert_mean, parameters.insert_sd)
        if self.reads.reads == 0:
            return InsertSize(1.0, 1.0)
        rules = sampling_parameters(parameters).rules(0.0, 0.0)
        pairs = sampled_pairs(self.reads.reads // 2)
        lengths = []
        with self.step("insert_size", "estimating the insert size", len(pairs), "pairs") as stage:
            for part in self.results(rules, pairs):
                lengths.append(part.total[part.kind != NOT_CONNECTED])
                stage.advance(len(part.kind))
        insert = estimate_insert(np.concatenate(lengths), len(pairs))
        logger.info("estimated insert size: %.1f ± %.1f", insert.mean, insert.sd)
        return insert
