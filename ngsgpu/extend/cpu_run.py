"""An extension: its steps on any backend, the memory it needs, and how the CPU takes the steps."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.device.plan import Allocation
from ngsgpu.extend import cpu
from ngsgpu.extend.cpu import COUNTERS, Extensions
from ngsgpu.extend.insert import InsertSize, estimate_insert, sampled_pairs, sampling_parameters
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import MAX_FRAGMENT, ExtensionParameters
from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.joining import NOT_CONNECTED
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.minhash import ends
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.run.again.sections import Section, read_sections
from ngsgpu.run.options import INTERPRETER_BYTES, Contents, ReadSetPlan, RunOptions
from ngsgpu.run.progress import Progress, Stage
from ngsgpu.run.staged import CpuRun, ReadLengths, StagedRun

logger = logging.getLogger("ngsgpu")


class Run(StagedRun[ExtensionParameters]):
    """An extension.

    In this order: ``read`` or ``take``, ``fill_unknown``, ``build``, ``insert_size``, ``texts`` or
    ``results``.

    Attributes:
        counters: int64[COUNTERS], counters of the tasks with the latest rules (``cpu``).
    """

    WORK = "extension"
    LONG_READS = "long reads need none"
    HARM = "reads are extended by them"

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


PAIRS_PER_TASK = 512

TASK_BYTES_PER_BASE = 16
"""Of a task's workspace, with the hashes of its k-mers counted apart."""

_MIN_TABLES = 2


def plan_extension(
    parameters: ExtensionParameters, contents: Contents, *, threads: int, budget_bytes: int
) -> ReadSetPlan:
    """Plan the memory of an extension.

    Args:
        parameters: extension parameters.
        contents: the reads.
        threads: number of threads.
        budget_bytes: memory budget.
    """
    hashes = parameters.ends.hashes
    tables = ends.planned_bytes(contents.reads, parameters.ends, threads)
    longest = min(MAX_FRAGMENT, parameters.max_length or 2000) + contents.longest
    task_bytes = 4 * longest * (TASK_BYTES_PER_BASE + 8 * hashes)
    results = 4 * PAIRS_PER_TASK * longest * (6 if parameters.outward else 4)
    return ReadSetPlan(
        doing=f"extending {contents.count('pairs')}",
        contents=contents,
        quality_bits=parameters.quality_bits,
        tables=hashes,
        allocations=(
            Allocation("reads", contents.nbytes(parameters.quality_bits)),
            Allocation("tables", tables),
            Allocation(
                "other",
                INTERPRETER_BYTES + threads * (task_bytes + results + (1 << 20)) + (192 << 20),
            ),
        ),
        budget=budget_bytes,
        table_bytes=tables // hashes,
        least_tables=_MIN_TABLES,
        notes=(contents.line("pairs"), f"tables   {hashes}, of both ends of each read"),
    )


class Extender:
    """Extends pairs of a read set; several threads may call it at once.

    Args:
        reads: the read set.
        tables: the tables of its reads' ends.
        rules: the parameters as integers.
        threads: number of threads that may call it at once.
    """

    def __init__(self, reads: ReadSet, tables: EndTables, rules: Rules, threads: int) -> None:
        self.reads = reads
        self.tables = tables
        self.rules = rules
        self._weights = quality_weights(reads.arrays.quality_bits, reads.levels)
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


class ExtensionOnCpu(CpuRun[ExtensionParameters], Run):
    """See ``Run``."""

    PLAN = staticmethod(plan_extension)
    tables: EndTables

    def build(self) -> None:
        """Build the tables of the reads' ends.

        Raises:
            HostMemoryError: the memory does not suffice.
        """
        self.check_memory()
        with self.building_tables() as stage:
            self.tables = build_end_tables(
                self.reads,
                self.parameters.ends,
                threads=self.options.threads,
                advance=stage.advance,
            )

    @property
    def _pairs_per_task(self) -> int:
        return self.options.units_per_task or PAIRS_PER_TASK

    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[cpu.Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""
        extender = Extender(self.reads, self.tables, rules, self.options.threads)
        # A sample is cut so that all threads end at about the same time.
        size = min(self._pairs_per_task, max(1, len(pairs) // (16 * self.options.threads)))
        tasks = (pairs[begin : begin + size] for begin in range(0, len(pairs), size))
        with working(self.options.threads, extender.extend, tasks, name="extend") as results:
            yield from results
        self.counters = extender.counters

    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""
        extender = Extender(self.reads, self.tables, rules, self.options.threads)

        def work(section: Section) -> Text:
            first = section.first_pair
            pairs = np.arange(first, first + section.pairs, dtype=np.int64)
            return maker.text(section, extender.extend(pairs))

        sections = read_sections(lanes, ReadLengths.of(self.reads), self.batches)
        tasks = _tasks(sections, self._pairs_per_task)
        in_order = maker.outputs.sort
        with working(self.options.threads, work, tasks, in_order=in_order, name="extend") as texts:
            yield from texts
        self.counters = extender.counters


def _tasks(sections: Iterator[Section], pairs: int) -> Iterator[Section]:
    for section in sections:
        for begin in range(0, section.pairs, pairs):
            yield section.part(begin, min(section.pairs, begin + pairs))
