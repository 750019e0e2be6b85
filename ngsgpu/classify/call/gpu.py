"""Calls and lines on a GPU: the counterpart of ``calls``, ``evidence`` and ``outputs.reads``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.coverage import CoverageCounter
from ngsgpu.classify.call.evidence import SpeciesEvidence
from ngsgpu.classify.call.results import SampleTotals
from ngsgpu.classify.gpu import THREADS, grid_of_threads, grid_of_warps, to_device, to_host
from ngsgpu.classify.outputs.reads import KrakenLinesWriter, ReadTableWriter
from ngsgpu.classify.params import PER_MILLION
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import NULL, DeviceBatch
from ngsgpu.device.kernels import KernelModule

KERNELS: Final = KernelModule("ngsgpu.classify.call", "calls.cu")
KINDS: Final = 2
"""Kinds of lines: of the table of reads, and Kraken's."""

_DEVICE_TO_HOST: Final = 2


class DeviceFirstPass:
    """What all reads together say, before the first is called.

    Args:
        engine: the database.
        counter: collects coverage, or None.
        evidence: collects the evidence for species, or None.
    """

    def __init__(
        self, engine: Engine, counter: CoverageCounter | None, evidence: SpeciesEvidence | None
    ) -> None:
        import cupy

        self._min_hits = np.int32(engine.rules.min_hits)
        self._counter = counter
        self._evidence = evidence
        if counter is not None:
            self._first = cupy.asarray(counter.first_window)
            self._covered = cupy.asarray(counter.marks)
        if evidence is not None:
            self._species = cupy.asarray(evidence.species)
            self._bins = cupy.asarray(evidence.counts)

    def add(self, batch: DeviceBatch) -> None:
        """Look at queries."""
        queries, most = np.uint32(len(batch)), np.int32(batch.candidates.shape[1])
        grid = grid_of_threads(len(batch))
        if self._counter is not None:
            KERNELS.launch(
                "mark_covered",
                grid,
                (THREADS,),
                (batch.candidates, queries, most, self._min_hits, self._first, self._covered),
            )
        if self._evidence is not None:
            KERNELS.launch(
                "count_evidence",
                grid,
                (THREADS,),
                (
                    batch.candidates, batch.sizes, queries, most, self._species, self._min_hits,
                    self._bins,
                ),
            )  # fmt: skip

    def finish(self) -> None:
        """Hand over what was collected."""
        if self._counter is not None:
            self._counter.marks[...] = self._covered.get()
        if self._evidence is not None:
            self._evidence.counts[...] = self._bins.get()


@dataclass(slots=True)
class CalledBatch:
    """Queries that are called, and how long their lines become.

    Attributes:
        batch: the queries.
        calls: int32[queries].
        best: int32[queries, 4], the candidate of the call.
        line_offsets: uint32[KINDS, queries], where lines begin in their tiles.
        tile_start: uint32[KINDS, tiles], where tiles begin.
        totals: uint32[KINDS] on the host, in page-locked memory: bytes of all lines.
        counted: CUDA event after which ``totals`` is there.
    """

    batch: DeviceBatch
    calls: Any
    best: Any
    line_offsets: Any
    tile_start: Any
    totals: NDArray[np.uint32]
    counted: Any


class DeviceCaller:
    """Calls queries of a sample and makes their lines.

    Args:
        engine: the database, and how to classify with it.
        table: what makes the table of reads, or None.
        kraken: what makes Kraken's lines, or None.
        kept: uint8[targets], 0 for those that do not count; None: all do.
        accepted: uint8[targets], see ``ngsgpu.classify.call.evidence``; None: all are.
        doubtful_confidence: see there.
        window_reads: whether to count queries by window.
    """

    def __init__(
        self,
        engine: Engine,
        table: ReadTableWriter | None,
        kraken: KrakenLinesWriter | None,
        *,
        kept: NDArray[np.uint8] | None,
        accepted: NDArray[np.uint8] | None,
        doubtful_confidence: float,
        window_reads: bool,
    ) -> None:
        import cupy

        self._engine = engine
        self._wanted = np.int32((table is not None) + 2 * (kraken is not None))
        self._kept = NULL if kept is None else cupy.asarray(kept)
        self._believed = NULL if accepted is None else cupy.asarray(accepted)
        targets = engine.target_node
        self._counts = cupy.zeros(len(engine.taxonomy) + len(targets) + 1, dtype=cupy.uint64)
        self._bases = cupy.zeros(1, dtype=cupy.uint64)
        self._window_reads, self._first_window = NULL, NULL
        if window_reads:
            windows = engine.database.windows
            self._first_window = cupy.asarray(np.cumsum(windows) - windows)
            self._window_reads = cupy.zeros(int(windows.sum()), dtype=cupy.int32)
        self._paired = False
        self._rules, self._rule_arrays = _rules_on_device(engine, doubtful_confidence)
        self._texts, self._text_arrays = _texts_on_device(table, kraken)

    def call(self, batch: DeviceBatch) -> CalledBatch:
        """Call queries; does not wait."""
        import cupy
        import cupyx

        queries = len(batch)
        tiles = -(-queries // THREADS)
        self._paired = batch.paired
        called = CalledBatch(
            batch=batch,
            calls=cupy.empty(queries, dtype=cupy.int32),
            best=cupy.empty((queries, 4), dtype=cupy.int32),
            line_offsets=cupy.empty((KINDS, queries), dtype=cupy.uint32),
            tile_start=cupy.empty((KINDS, tiles), dtype=cupy.uint32),
            totals=cupyx.empty_pinned(KINDS, dtype=np.uint32),
            counted=cupy.cuda.Event(disable_timing=True),
        )
        KERNELS.launch(
            "call_queries",
            (tiles,),
            (THREADS,),
            (
                batch.candidates, batch.sizes, np.uint32(queries),
                np.int32(batch.candidates.shape[1]), self._rules, self._texts, self._kept,
                self._believed, batch.names.length, np.int32(batch.paired), self._first_window,
                self._window_reads, called.calls, called.best, self._counts, self._bases,
                self._wanted, called.line_offsets, called.tile_start,
            ),
        )  # fmt: skip
        totals = cupy.empty(KINDS, dtype=cupy.uint32)
        KERNELS.launch(
            "sum_tiles", (KINDS,), (THREADS,), (called.tile_start, np.uint32(tiles), totals)
        )
        stream = cupy.cuda.get_current_stream()
        cupy.cuda.runtime.memcpyAsync(
            called.totals.ctypes.data, totals.data.ptr, 4 * KINDS, _DEVICE_TO_HOST, stream.ptr
        )
        called.counted.record(stream)
        return called

    def lines(self, called: CalledBatch, kind: int) -> Any:
        """Lines of a kind, uint8 on the device; waits until their number is known."""
        import cupy

        called.counted.synchronize()
        batch = called.batch
        text = cupy.empty(int(called.totals[kind]), dtype=cupy.uint8)
        common = (
            np.uint32(len(batch)), called.calls, called.best, self._rules, self._texts,
            batch.names.text, batch.names.start, batch.names.length, called.line_offsets[kind],
            called.tile_start[kind],
        )  # fmt: skip
        more = (batch.sizes, np.int32(batch.paired)) if kind == 1 else ()
        KERNELS.launch(
            "write_kraken" if kind == 1 else "write_table",
            grid_of_warps(len(batch)),
            (THREADS,),
            (*common, *more, text),
        )
        return text

    def add_to(self, totals: SampleTotals) -> None:
        """Put what was counted into the sums of a sample."""
        counts = to_host(self._counts).astype(np.int64)
        totals.counts += counts[:-1]
        totals.unclassified += int(counts[-1])
        totals.queries += int(counts.sum())
        totals.bases += int(self._bases[0])
        totals.paired = self._paired
        if self._window_reads is not NULL:
            totals.window_reads = np.array(to_host(self._window_reads))


def _rules_on_device(engine: Engine, doubtful_confidence: float) -> tuple[Any, list[Any]]:
    """The struct ``Rules``, int64[15], and the arrays that it points to."""
    import cupy

    rules = engine.rules
    taxa = engine.taxon_of_target
    arrays = [
        to_device(array) for array in (engine.lineages, engine.node_rank, engine.target_node, taxa)
    ]
    pointers = [array.data.ptr for array in arrays]
    if len(taxa) == 0:
        pointers[-1] = 0
    numbers = [
        len(engine.taxonomy), len(engine.target_node), engine.lineages.shape[1], rules.min_hits,
        rules.difference, rules.confidence, rules.species_confidence, rules.lowest, rules.highest,
        round(doubtful_confidence * PER_MILLION), rules.best_alone,
    ]  # fmt: skip
    return cupy.asarray(np.array([*pointers, *numbers], dtype=np.int64)), arrays


def _texts_on_device(
    table: ReadTableWriter | None, kraken: KrakenLinesWriter | None
) -> tuple[Any, list[Any]]:
    """The struct ``Texts``, int64[10], and the arrays that it points to."""
    import cupy

    arrays: list[Any] = [None] * 7
    numbers = [0, 0, 0]
    if table is not None:
        labels = table.labels
        arrays[:6] = [
            *table.texts, labels.target_bytes, labels.target_start, labels.target_length
        ]  # fmt: skip
        shown = int((table.shown << np.arange(len(table.shown))).sum())
        numbers = [labels.sketch.window, labels.sketch.stride, shown]
    if kraken is not None:
        arrays[6] = kraken.taxid
    there = [None if array is None else to_device(array) for array in arrays]
    pointers = [0 if array is None else array.data.ptr for array in there]
    return cupy.asarray(np.array([*pointers, *numbers], dtype=np.int64)), there
