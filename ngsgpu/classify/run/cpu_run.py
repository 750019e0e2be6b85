"""Classifies one sample: from its queries, or candidates, to its files.

Tasks of a few thousand queries find their candidates, call them and format the output lines on a
pool of threads; the results are written in input order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.classes import Rows
from ngsgpu.classify.call.coverage import CoverageCounter
from ngsgpu.classify.call.cpu import call_block
from ngsgpu.classify.call.model import SampleModel
from ngsgpu.classify.call.results import CalledReads, SampleTotals, count_windows
from ngsgpu.classify.outputs.given import (
    COUNT_WINDOWS,
    LineMaker,
    ReadsGiven,
    SampleGiven,
    SamplesGiven,
)
from ngsgpu.classify.params import OutputRules
from ngsgpu.classify.query.candidate_file import END_BLOCK, CandidateHeader, encode_block
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import QueryBlock, concatenate
from ngsgpu.classify.run.errors import Estimate, ReadErrors, with_errors
from ngsgpu.classify.run.samples import ClassificationStatistics, SampleOutputs
from ngsgpu.classify.run.sorted_reads import SortedReads
from ngsgpu.classify.run.two_pass import FirstPass, TwoPass
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputGroup
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.pool import working
from ngsgpu.run.options import RunOptions
from ngsgpu.run.record import Task
from ngsgpu.run.trimming import warn_of_adapters
from ngsgpu.taxonomy.ranks import NO_RANK, rank_name

QUERIES_PER_TASK = 4096

logger = logging.getLogger("ngsgpu")

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Called:
    """Result of a task: the lines and records of some queries by output, and their counts."""

    texts: list[NDArray[np.uint8]]
    copies: list[tuple[str, NDArray[np.uint8]]]
    reads: CalledReads
    bases: int


class SampleRun:
    """Classifies one sample.

    Args:
        engine: database and parameters.
        name: sample name.
        outputs: output files.
        rules: rules for the outputs.
        options: threads and so on.
        lanes: the reads; none where candidates are merged.

    Attributes:
        sampled: the sample of the reads, which those who read them take.
        errors: the first reads, which they take, too.
        sorted_reads: has the records of reads that are written; None if none are.
        given: results of the sample; None if only candidates were written.
        gpu_memory: for the statistics.
        WRITING: share of the threads that compress beside those that look up features.
        READS_ONCE: whether records go with their queries where these are looked at once.
    """

    WRITING: ClassVar[float] = 0.5
    READS_ONCE: ClassVar[bool] = True

    def __init__(
        self,
        engine: Engine,
        name: str,
        outputs: SampleOutputs,
        rules: OutputRules,
        options: RunOptions,
        lanes: Sequence[ReadFiles] = (),
    ) -> None:
        self._engine = engine
        self._lanes = lanes
        self.sampled = ReadSample()
        self.errors = ReadErrors()
        self.sorted_reads: SortedReads | None = None
        if outputs.records:
            again = rules.is_two_pass or not self.READS_ONCE
            self.sorted_reads = SortedReads(lanes, outputs.records, options, again=again)
        self._name = name
        self._paths = outputs.named()
        self._rules = rules
        self._options = options
        given = ReadsGiven(engine.labels, rules.columns)
        self._lines: dict[str, LineMaker] = {
            own.name: own.make(given) for own in outputs.formats("reads")
        }
        self._formats = outputs.formats("sample", "samples")
        needs = {own.name: own.needs(SampleGiven) for own in outputs.formats("sample")}
        self._counts_windows = any(COUNT_WINDOWS.intersection(own) for own in needs.values())
        self.given: SampleGiven | None = None
        self.gpu_memory: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._dropped = 0
        self._model: SampleModel | None = None
        for name, own in needs.items():
            if "species" in own and not rules.evidence.by_model:
                logger.warning(
                    "`%s` lists no species, since none is judged without the model "
                    "(`species_identity=0`, or `metacache`)",
                    name,
                )

    def run(
        self, items: Iterator[_Item], find: Callable[[_Item], QueryBlock], group: OutputGroup
    ) -> ClassificationStatistics:
        """Classify the queries of ``items``, whose candidates ``find`` finds.

        The outputs are complete then, and get their names with those of the group.
        """
        self._begin = time.monotonic()
        names = list(self._paths)
        # Features are looked up before anything is written.
        share = 1.0 if self._rules.is_two_pass else self.WRITING
        with group.outputs(
            [self._paths[name] for name in names],
            threads=max(1, int(self._options.threads * share)),
            compression_level=self._options.compress_level,
        ) as outputs:
            self._outputs = outputs
            self._index = {name: index for index, name in enumerate(names)}
            if "candidates" in self._paths:
                totals = self._write_candidates(items, find)
            else:
                if self._rules.is_two_pass:
                    totals = self._classify_twice(items, find)
                else:
                    totals = self._classify_once(items, find, FirstPass())
                self.given = SampleGiven(self._engine, self._rules, totals, self._model)
                self._write_reports(self.given)
            statistics = self._statistics(totals)
            if "stats" in self._paths:
                self._write("stats", statistics.to_json().encode())
            return statistics

    def _working(
        self, work: Callable[[_Item], _Result], items: Iterator[_Item]
    ) -> AbstractContextManager[Iterator[_Result]]:
        """Results of ``work`` on all items, by the threads of the run."""
        return working(self._options.threads, work, items, name="classify")

    def _write(self, name: str, data: bytes | NDArray[np.uint8]) -> None:
        """Write to an output."""
        self._outputs.write(self._index[name], data)

    def _write_candidates(
        self, items: Iterator[_Item], find: Callable[[_Item], QueryBlock]
    ) -> SampleTotals:
        if len(self._engine.numbers) != 1:
            raise UsageError("`candidate_file` is for one partition: give `only_partition`")
        counted = self._new_totals()

        def work(item: _Item) -> tuple[bytes, QueryBlock]:
            block = find(item)
            return encode_block(block), block

        def encoded(done: Iterator[tuple[bytes, QueryBlock]]) -> Iterator[bytes]:
            for data, block in done:
                counted.queries += len(block)
                counted.bases += block.bases
                counted.paired |= block.paired
                yield data

        with self._working(work, items) as done:
            for data in self._behind_header(encoded(done)):
                self._write("candidates", data)
        self._write("candidates", END_BLOCK)
        return counted

    def _behind_header(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The header, which waits until the first reads have said how many errors they have."""
        waiting = []
        while not self.errors.is_full and (block := next(blocks, None)) is not None:
            waiting.append(block)
        yield self._header(self.errors.estimate()).line()
        yield from waiting
        yield from blocks

    def _header(self, estimate: Estimate | None = None) -> CandidateHeader:
        parameters = self._engine.parameters
        return CandidateHeader(
            sample=self._name,
            database=self._engine.database.digest,
            partition=self._engine.numbers[0] if self._engine.numbers else 0,
            partitions=len(self._engine.database.partitions),
            candidates=parameters.candidates,
            insert_size=parameters.insert_size,
            lowest=parameters.lowest,
            by_model=self._engine.by_model,
            read_errors=0.0 if estimate is None else estimate.errors or 0.0,
        )

    def _counters(self) -> tuple[CoverageCounter | None, SampleModel | None]:
        """The collectors of statistics over all reads that the rules need."""
        engine, rules = self._engine, self._rules
        counter = model = None
        if rules.coverage_share > 0:
            counter = CoverageCounter(engine.database.windows, engine.rules.min_hits)
        if rules.evidence.by_model:
            model = SampleModel(engine, rules.evidence)
        return counter, model

    def _decide(self, counter: CoverageCounter | None, model: SampleModel | None) -> FirstPass:
        """What calls depend on; the first pass is over."""
        self._seconds["first_pass"] = round(time.monotonic() - self._begin, 3)
        self.allow_for(self.errors.estimate())
        kept = weights = None
        if counter is not None:
            dropped = counter.dropped(self._rules.coverage_share)
            self._dropped = int(dropped.sum())
            kept = (~dropped).astype(np.uint8)
        self._model = model
        if model is not None:
            begin = time.monotonic()
            weights = model.fit(self._rules.evidence)
            self._seconds["fit"] = round(time.monotonic() - begin, 3)
        return FirstPass(kept, weights)

    def _classify_twice(
        self, items: Iterator[Any], find: Callable[[Any], QueryBlock]
    ) -> SampleTotals:
        """Scan all queries, then call them with the result."""
        counter, model = self._counters()
        with TwoPass(self._header()) as second:

            def work(item: Any) -> tuple[QueryBlock | bytes, QueryBlock, Rows | None]:
                block = find(item)
                rows = None if model is None else model.rows(block)
                return second.prepare(block), block, rows

            with self._working(work, items) as done:
                for prepared, block, rows in done:
                    second.keep(prepared)
                    if counter is not None:
                        counter.add(block.candidates)
                    if model is not None and rows is not None:
                        model.add(block, rows)
            return self._classify_once(
                second.groups(self._engine), concatenate, self._decide(counter, model)
            )

    def _new_totals(self) -> SampleTotals:
        calls = len(self._engine.taxonomy) + len(self._engine.target_node)
        return SampleTotals(self._name, np.zeros(calls, dtype=np.int64))

    def _classify_once(
        self, items: Iterator[Any], find: Callable[[Any], QueryBlock], first: FirstPass
    ) -> SampleTotals:
        """Call queries and write their lines."""
        totals = self._new_totals()
        first_window = np.zeros(0, dtype=np.int64)
        if self._counts_windows:
            windows = self._engine.database.windows
            first_window = np.cumsum(windows) - windows
            totals.window_reads = np.zeros(int(windows.sum()), dtype=np.int32)
        for name, maker in self._lines.items():
            self._write(name, maker.header())

        def work(item: tuple[Any, list[Task]]) -> _Called:
            queries, tasks = item
            block = find(queries)
            reads = call_block(self._engine, block, first.kept, first.weights)
            texts = [maker.text(reads) for maker in self._lines.values()]
            copies = []
            if self.sorted_reads is not None:
                copies = self.sorted_reads.copies(tasks, reads.call >= 0)
            return _Called(texts, copies, reads, block.bases)

        with self._working(work, self._with_records(items)) as done:
            for called in done:
                for name, text in (*zip(self._lines, called.texts, strict=True), *called.copies):
                    if len(text):
                        self._write(name, text)
                totals.add(called.reads.call, called.bases)
                totals.paired |= called.reads.queries.paired
                if len(first_window) > 0:
                    count_windows(
                        called.reads.call, called.reads.target, called.reads.window_begin,
                        called.reads.window_end, first_window, totals.window_reads,
                    )  # fmt: skip
        if self.sorted_reads is not None:
            self.sorted_reads.check_end()
        return totals

    def _with_records(self, items: Iterator[Any]) -> Iterator[tuple[Any, list[Task]]]:
        """Items, with their records if these are written."""
        for item in items:
            records = self.sorted_reads
            queries = sum(map(len, item)) if isinstance(item, list) else len(item)
            yield item, [] if records is None else list(records.take(queries))

    def _write_reports(self, given: SampleGiven) -> None:
        for own in self._formats:
            alone = own.of == "samples"
            what = SamplesGiven([(given.sample, given.tree)]) if alone else given
            self._write(own.name, own.make(what).encode())

    def _statistics(self, totals: SampleTotals) -> ClassificationStatistics:
        engine, options = self._engine, self._options
        database = engine.database
        return ClassificationStatistics.begun(
            options,
            options.backend,
            engine.parameters,
            sample=self._name,
            parameters={
                "min_hits": engine.rules.min_hits,
                "coverage_filter": self._rules.coverage_share,
            }
            | asdict(self._rules.evidence),
            database={
                "path": str(database.path),
                "digest": database.digest,
                "targets": len(database.targets),
                "taxa": 0 if database.taxonomy is None else len(database.taxonomy),
                "without_taxon": database.without_taxon,
                "partitions": len(database.partitions),
                "parameters": database.parameters.to_json(),
            },
            queries={"total": totals.queries, "paired": totals.paired, "bases": totals.bases}
            | self._decided(totals),
            calls_by_rank=self._by_rank(totals),
            dropped_targets=self._dropped,
            adapters=self._adapters(),
            gpu_memory=self.gpu_memory,
            time_s=self._seconds | {"total": round(time.monotonic() - self._begin, 3)},
        )

    def allow_for(self, estimate: Estimate) -> None:
        """Have the model allow for the errors of long reads, if the user states none."""
        evidence = with_errors(self._rules.evidence, estimate, self._name)
        self._rules = replace(self._rules, evidence=evidence)

    def _adapters(self) -> dict[str, Any]:
        if not self._lanes:
            return {}
        return warn_of_adapters(self.sampled, self._lanes, "no reference has them")

    def _decided(self, totals: SampleTotals) -> dict[str, int]:
        """Numbers of classified and other queries; empty if candidates are written."""
        if "candidates" in self._paths:
            return {}
        return {"classified": totals.classified, "unclassified": totals.unclassified}

    def _by_rank(self, totals: SampleTotals) -> dict[str, int]:
        nodes = len(self._engine.taxonomy)
        ranks = np.bincount(
            self._engine.node_rank, weights=totals.counts[:nodes], minlength=NO_RANK + 1
        ).astype(np.int64)
        ranks[0] += int(totals.counts[nodes:].sum())
        return {rank_name(rank): int(ranks[rank]) for rank in np.flatnonzero(ranks).tolist()}
