"""What all backends' runs of an extension share, and the stages that each must have."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.run import RunOptions, StagedRun
from ngsgpu.extend.cpu import COUNTERS, Extensions
from ngsgpu.extend.insert import InsertSize, estimate_insert, sampled_pairs, sampling_parameters
from ngsgpu.extend.joining import NOT_CONNECTED
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.progress import Progress

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet

logger = logging.getLogger("ngsgpu")


class Run(StagedRun[ExtensionParameters]):
    """The stages of one run, called in the order in which they stand here.

    Attributes:
        reads: the reads, from ``read`` or ``take`` on.
        gpu: bytes of memory of GPUs, and how they were used; empty on the CPU.
        counters: int64[COUNTERS], what the last rules' tasks did (``cpu``).
    """

    reads: ReadSet | DeviceReadSet

    def __init__(
        self,
        parameters: ExtensionParameters,
        options: RunOptions,
        phred_offset: PhredOffset,
        progress: Progress,
    ) -> None:
        super().__init__(parameters, options, phred_offset, progress)
        self.gpu: dict[str, Any] = {}
        self.counters: NDArray[np.int64] = np.zeros(COUNTERS, dtype=np.int64)

    @abstractmethod
    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes."""

    @abstractmethod
    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already, instead of reading."""

    @abstractmethod
    def build(self) -> None:
        """Build the tables of the reads' ends.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UsageError: the memory does not suffice.
        """

    @abstractmethod
    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""

    @abstractmethod
    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""

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
        with (
            self.timed("insert_size"),
            self.progress.stage("estimating the insert size", len(pairs), "pairs") as stage,
        ):
            for part in self.results(rules, pairs):
                lengths.append(part.total[part.kind != NOT_CONNECTED])
                stage.advance(len(part.kind))
        insert = estimate_insert(np.concatenate(lengths), len(pairs))
        logger.info("estimated insert size: %.1f ± %.1f", insert.mean, insert.sd)
        return insert

    def batches(self, lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]]:
        """The records of a lane, by the CPU's reader."""
        return lane.batches(
            threads=self.options.threads,
            phred_offset=self.phred_offset,
            chunk_bytes=self.chunk_bytes,
        )

    @property
    def offset(self) -> int:
        """What a quality character's code exceeds its score by."""
        return 33 if self.phred_offset == "auto" else self.phred_offset
