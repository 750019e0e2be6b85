"""Calls and the lines of reads on a GPU: the counterpart of ``call.cpu`` and ``reads``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.gpu import rules_on_gpu
from ngsgpu.classify.call.posterior import Weights
from ngsgpu.classify.call.results import CalledReads, SampleTotals
from ngsgpu.classify.outputs.given import LineMaker
from ngsgpu.classify.outputs.reads import KrakenLinesWriter, ReadTableWriter
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import NULL, GpuBatch
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_of_warps
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import empty_pinned, to_device, to_host

KERNELS: Final = KernelModule("ngsgpu.classify.outputs", "reads.cu")
_TEXT_ARRAYS: Final = ("text", "text_start", "row", "target_bytes", "target_start",
                       "target_length", "taxid")  # fmt: skip
_TEXT_NUMBERS: Final = ("window", "stride", "shown")

TEXTS: Final = Struct(__name__, "Texts", {
    "text": "const uint8_t*",
    "text_start": "const int64_t*",
    "row": "const int32_t*",
    "target_bytes": "const uint8_t*",
    "target_start": "const int64_t*",
    "target_length": "const int64_t*",
    "taxid": "const int64_t*",
    **dict.fromkeys(_TEXT_NUMBERS, "int64_t"),
})  # fmt: skip
"""Parts of lines: taxid, rank and name of calls, where ``row`` is that of each node and target, and
last of no call; bits of ``shown``: taxon, score, target, range."""

KINDS: Final = 2
"""Kinds of lines: of the table of reads, and Kraken's."""


@dataclass(slots=True)
class CalledBatch:
    """Queries that are called, and how long their lines become.

    Attributes:
        batch: the queries.
        calls: int32[queries].
        best: int32[queries, 4], the candidate of the call.
        line_offsets: uint32[KINDS, queries], where lines begin in their tiles.
        tile_start: uint32[KINDS, tiles], where tiles begin.
        totals: uint32[KINDS] on the host, in pinned memory: bytes of all lines.
        counted: CUDA event after which ``totals`` is there.
    """

    batch: GpuBatch
    calls: Any
    best: Any
    line_offsets: Any
    tile_start: Any
    totals: NDArray[np.uint32]
    counted: Any

    def to_host(self, taxon_of_target: NDArray[np.int32]) -> CalledReads:
        """Copy queries and calls to the host.

        Args:
            taxon_of_target: see ``Engine``.
        """
        target, score, begin, end = np.ascontiguousarray(self.best.get().T)
        queries = self.batch.to_host(taxon_of_target)
        return CalledReads(queries, self.calls.get(), score, target, begin, end)


class GpuCaller:
    """Calls queries of a sample and makes their lines.

    Args:
        engine: the database, and how to classify with it.
        makers: what makes lines, each of its class.
        kept: uint8[targets], 0 for those that do not count; None: all do.
        weights: the fit of the sample; None: calls are by MetaCache's rule.
        window_reads: whether to count queries by window.
    """

    def __init__(
        self,
        engine: Engine,
        makers: Iterable[LineMaker],
        *,
        kept: NDArray[np.uint8] | None,
        weights: Weights | None,
        window_reads: bool,
    ) -> None:
        import cupy

        self._engine = engine
        table = kraken = None
        for maker in makers:
            if isinstance(maker, ReadTableWriter):
                table = maker
            elif isinstance(maker, KrakenLinesWriter):
                kraken = maker
        self._wanted = np.int32((table is not None) + 2 * (kraken is not None))
        self._kept = NULL if kept is None else cupy.asarray(kept)
        targets = engine.target_node
        self._counts = cupy.zeros(len(engine.taxonomy) + len(targets) + 1, dtype=cupy.uint64)
        self._bases = cupy.zeros(1, dtype=cupy.uint64)
        self._window_reads, self._first_window = NULL, NULL
        if window_reads:
            windows = engine.database.windows
            self._first_window = cupy.asarray(np.cumsum(windows) - windows)
            self._window_reads = cupy.zeros(int(windows.sum()), dtype=cupy.int32)
        self._paired = False
        self._rules, self._rule_arrays = rules_on_gpu(engine, weights)
        self._texts, self._text_arrays = _texts_on_gpu(table, kraken)

    def call(self, batch: GpuBatch) -> CalledBatch:
        """Call queries; does not wait."""
        import cupy

        queries = len(batch)
        tiles = -(-queries // THREADS)
        self._paired |= batch.paired
        called = CalledBatch(
            batch=batch,
            calls=cupy.empty(queries, dtype=cupy.int32),
            best=cupy.empty((queries, 4), dtype=cupy.int32),
            line_offsets=cupy.empty((KINDS, queries), dtype=cupy.uint32),
            tile_start=cupy.empty((KINDS, tiles), dtype=cupy.uint32),
            totals=empty_pinned((KINDS,), np.uint32),
            counted=cupy.cuda.Event(disable_timing=True),
        )
        KERNELS.launch(
            "call_queries",
            (tiles,),
            (THREADS,),
            (
                batch.candidates, batch.sizes, np.uint32(queries),
                np.int32(batch.candidates.shape[1]), self._rules, self._texts, self._kept,
                batch.names.length, np.int32(batch.paired), self._first_window,
                self._window_reads, called.calls, called.best, self._counts, self._bases,
                self._wanted, called.line_offsets, called.tile_start,
            ),
        )  # fmt: skip
        totals = cupy.empty(KINDS, dtype=cupy.uint32)
        KERNELS.launch(
            "sum_tiles", (KINDS,), (THREADS,), (called.tile_start, np.uint32(tiles), totals)
        )
        totals.get(out=called.totals, blocking=False)
        called.counted.record(cupy.cuda.get_current_stream())
        return called

    def lines(self, called: CalledBatch, maker: LineMaker) -> Any:
        """Lines as ``maker`` makes them, uint8 on the device; waits until their number is known.

        Kernels make the table of reads and Kraken's lines; others are made of the calls on the
        host.
        """
        import cupy

        if not isinstance(maker, ReadTableWriter | KrakenLinesWriter):
            return cupy.asarray(maker.text(called.to_host(self._engine.taxon_of_target)))
        kind = int(isinstance(maker, KrakenLinesWriter))
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
        """Add the counts to the totals of a sample."""
        counts = to_host(self._counts).astype(np.int64)
        totals.counts += counts[:-1]
        totals.unclassified += int(counts[-1])
        totals.queries += int(counts.sum())
        totals.bases += int(self._bases[0])
        totals.paired |= self._paired
        if self._window_reads is not NULL:
            totals.window_reads = np.array(to_host(self._window_reads))


def _texts_on_gpu(
    table: ReadTableWriter | None, kraken: KrakenLinesWriter | None
) -> tuple[Any, list[Any]]:
    """The struct ``TEXTS``, and the arrays that it points to."""
    arrays: dict[str, Any] = {}
    values: dict[str, Any] = dict.fromkeys(_TEXT_ARRAYS) | dict.fromkeys(_TEXT_NUMBERS, 0)
    if table is not None:
        labels = table.labels
        arrays = dict(zip(_TEXT_ARRAYS[:3], table.texts, strict=True))
        arrays |= {name: getattr(labels, name) for name in _TEXT_ARRAYS[3:6]}
        shown = int((table.shown << np.arange(len(table.shown))).sum())
        values |= {"window": labels.sketch.window, "stride": labels.sketch.stride, "shown": shown}
    if kraken is not None:
        arrays["taxid"] = kraken.taxid
    arrays = {name: to_device(array) for name, array in arrays.items()}
    return TEXTS.on_device(**values | arrays), list(arrays.values())
