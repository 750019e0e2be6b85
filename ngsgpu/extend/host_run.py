"""An extension on the CPU: threads take the pairs of a piece of the input, and make its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.first_reading import Contents, read_within
from ngsgpu.correct.read_again import ReadLengths
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.host import PAIRS_PER_TASK, Extender
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import Rules
from ngsgpu.extend.plan import ExtensionPlan, plan_extension
from ngsgpu.extend.run import Run
from ngsgpu.extend.sections import Section, read_sections
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.pool import map_ahead
from ngsgpu.readset import ReadSet, ReadSetBuilder


class HostRun(Run):
    """See ``Run``."""

    backend = "cpu"
    reads: ReadSet
    tables: EndTables

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set."""
        builder = ReadSetBuilder(
            paired=True,
            quality_bits=self.parameters.quality_bits,
            phred_offset=self.offset,
            threads=self.options.threads,
        )
        with self.timed("read"), self.progress.stage("reading", unit="reads") as stage:
            self.reads = read_within(
                lanes, self.batches, builder, self.plan, self.parameters, stage.advance
            )

    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already."""
        self.reads = reads
        if self.options.memory is None:  # what the reads take is taken already
            self.budget += reads.nbytes

    def build(self) -> None:
        """Build the tables of the reads' ends.

        Raises:
            UsageError: the memory does not suffice.
        """
        self._check_memory()
        hashes = self.parameters.ends.hashes
        with (
            self.timed("tables"),
            self.progress.stage("building tables", total=hashes, unit="tables") as stage,
        ):
            self.tables = build_end_tables(
                self.reads,
                self.parameters.ends,
                threads=self.options.threads,
                advance=stage.advance,
            )

    def plan(self, contents: Contents) -> ExtensionPlan:
        """What a run with some reads takes."""
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

    def _check_memory(self) -> None:
        """Refuse a run that does not fit, before its tables are built."""
        reads = self.reads
        plan = self.plan(Contents(reads.reads, reads.bases, reads.max_length, reads.nbytes))
        self.memory["planned_bytes"] = plan.total_bytes
        plan.check(self.parameters)

    @property
    def _ahead(self) -> int:
        return 2 * self.options.threads + 2

    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""
        extender = Extender(self.reads, self.tables, rules, self.options.threads)
        tasks = (
            pairs[begin : begin + PAIRS_PER_TASK] for begin in range(0, len(pairs), PAIRS_PER_TASK)
        )
        with ThreadPoolExecutor(self.options.threads) as pool:
            yield from map_ahead(pool, extender.extend, tasks, self._ahead)
        self.counters = extender.counters

    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""
        extender = Extender(self.reads, self.tables, rules, self.options.threads)

        def work(section: Section) -> Text:
            first = section.first_pair
            pairs = np.arange(first, first + section.pairs, dtype=np.int64)
            return maker.text(section, extender.extend(pairs))

        sections = read_sections(lanes, ReadLengths.of(self.reads), self.batches)
        with ThreadPoolExecutor(self.options.threads) as pool:
            yield from map_ahead(
                pool, work, _tasks(sections), self._ahead, in_order=maker.outputs.sort
            )
        self.counters = extender.counters


def _tasks(sections: Iterator[Section]) -> Iterator[Section]:
    for section in sections:
        for begin in range(0, section.pairs, PAIRS_PER_TASK):
            yield section.part(begin, min(section.pairs, begin + PAIRS_PER_TASK))
