"""An extension on the CPU: threads extend the pairs of an input section and format them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.extend import cpu
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import ExtensionParameters, Rules
from ngsgpu.extend.plan import PAIRS_PER_TASK, ExtensionPlan, plan_extension
from ngsgpu.extend.run import Run
from ngsgpu.extend.sections import Section, read_sections
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.run.staged import Contents, CpuRun, ReadLengths


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


class ExtensionOnCpu(CpuRun[ExtensionParameters], Run):
    """See ``Run``."""

    tables: EndTables

    def plan(self, contents: Contents, *, paired: bool) -> ExtensionPlan:
        """Memory that the run needs for some reads."""
        assert paired
        return plan_extension(
            self.parameters,
            pairs=contents.reads // 2,
            bases=contents.bases,
            max_length=contents.longest,
            threads=self.options.threads,
            budget_bytes=self.budget,
            read_bytes=contents.read_bytes,
            estimated=contents.estimated,
        )

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
