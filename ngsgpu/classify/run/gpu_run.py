"""Classifying one sample on a GPU: the counterpart of ``sample_run``.

Candidates, calls and lines stay on the GPU; what comes back are the bytes of the outputs. Where
all queries are looked at before the first is called, they wait in the GPU's memory as far as there
is room, the rest on the host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from ngsgpu.classify.call.gpu import GpuFirstPass
from ngsgpu.classify.call.results import SampleTotals
from ngsgpu.classify.outputs.gpu import CalledBatch, GpuCaller
from ngsgpu.classify.outputs.reads import KrakenLinesWriter, ReadTableWriter
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import GpuBatch, batch_of_block
from ngsgpu.classify.query.queries import QueryBlock
from ngsgpu.classify.run.sample_run import OutputRules, SampleRun, TargetFilter
from ngsgpu.classify.run.samples import SampleOutputs
from ngsgpu.classify.run.two_pass import TwoPass
from ngsgpu.device.plan import gpu_memory
from ngsgpu.io.gpu.write import DeviceWriter
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.run.options import RunOptions

SHARE_OF_MEMORY: Final = 0.5
"""Of what the GPU has free, for queries that are looked at twice."""

_LINES: Final = ("reads", "kraken_reads")
_TEXTS_ON_THE_WAY: Final = 6


class GpuSampleRun(SampleRun):
    """Classifies one sample, whose queries are batches on the current GPU.

    Args:
        engine: database and parameters.
        name: the sample's.
        outputs: what to write where.
        rules: how.
        options: threads and the like.
        pool: threads for what the host does.
        room: bytes of GPU memory for queries that are looked at twice; None: half of what is free.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        outputs: SampleOutputs,
        rules: OutputRules,
        options: RunOptions,
        pool: ThreadPoolExecutor,
        room: int | None = None,
    ) -> None:
        super().__init__(engine, name, outputs, rules, options, pool)
        self._room = room

    def _classify_once(
        self,
        items: Iterator[Any],
        find: Callable[[Any], QueryBlock],
        target_filter: TargetFilter,
        outputs: OutputSet,
        place: dict[str, int],
    ) -> SampleTotals:
        table, kraken = self._writers.get("reads"), self._writers.get("kraken_reads")
        assert table is None or isinstance(table, ReadTableWriter)
        assert kraken is None or isinstance(kraken, KrakenLinesWriter)
        caller = GpuCaller(
            self._engine,
            table,
            kraken,
            kept=target_filter.kept,
            accepted=target_filter.accepted,
            doubtful_confidence=self._rules.evidence.doubtful_confidence,
            window_reads="coverage" in place,
        )
        with DeviceWriter(outputs, threads=self._options.threads) as writer:
            lines = _Lines(caller, writer, [place.get(name) for name in _LINES])
            for name, maker in self._writers.items():
                lines.put_header(place[name], maker.header())
            for batch in items:
                lines.add(caller.call(batch))
            lines.finish()
        totals = self._new_totals()
        caller.add_to(totals)
        return totals

    def _classify_twice(
        self,
        items: Iterator[Any],
        find: Callable[[Any], QueryBlock],
        outputs: OutputSet,
        place: dict[str, int],
    ) -> SampleTotals:
        counter, evidence = self._counters()
        look = GpuFirstPass(self._engine, counter, evidence)
        room = self._room
        if room is None:
            room = int(gpu_memory(self._options.gpu_memory).budget * SHARE_OF_MEMORY)
        kept: list[GpuBatch | None] = []
        taxa = self._engine.taxon_of_target
        with TwoPass(self._header()) as second:
            for batch in items:
                look.add(batch)
                room -= batch.nbytes
                if room >= 0:
                    kept.append(batch.compact())
                else:
                    kept.append(None)
                    second.keep(second.prepare(batch.to_host(taxa)))
            look.finish()
            target_filter = self._target_filter(counter, evidence)
            batches = _again(kept, second.blocks(self._engine))
            return self._classify_once(batches, find, target_filter, outputs, place)


def _again(kept: list[GpuBatch | None], blocks: Iterator[QueryBlock]) -> Iterator[GpuBatch]:
    """Batches that were kept; those that are not on the GPU are copied there."""
    for place, batch in enumerate(kept):
        kept[place] = None
        yield batch_of_block(next(blocks)) if batch is None else batch


class _Lines:
    """Sends lines to their files, a batch behind, when it is known how many bytes they are."""

    def __init__(self, caller: GpuCaller, writer: DeviceWriter, outputs: list[int | None]) -> None:
        self._caller = caller
        self._writer = writer
        self._outputs = outputs
        self._waiting: CalledBatch | None = None
        self._texts: deque[tuple[Any, Any]] = deque()

    def put_header(self, output: int, header: bytes) -> None:
        """Begin an output."""
        import cupy

        if header:
            self._put(output, cupy.asarray(np.frombuffer(header, dtype=np.uint8)))

    def add(self, called: CalledBatch) -> None:
        """Take the next batch."""
        self._send()
        self._waiting = called

    def finish(self) -> None:
        """Send the last batch."""
        self._send()

    def _send(self) -> None:
        called, self._waiting = self._waiting, None
        if called is None:
            return
        for kind, output in enumerate(self._outputs):
            if output is not None:
                self._put(output, self._caller.lines(called, kind))

    def _put(self, output: int, text: Any) -> None:
        import cupy

        stream = cupy.cuda.get_current_stream()
        made = cupy.cuda.Event(disable_timing=True)
        made.record(stream)
        self._texts.append((text, self._writer.put(output, text, text.size, made)))
        # The memory of a text is used again when it was copied.
        while len(self._texts) > _TEXTS_ON_THE_WAY:
            _, copied = self._texts[0]
            stream.wait_event(copied)
            self._texts.popleft()
