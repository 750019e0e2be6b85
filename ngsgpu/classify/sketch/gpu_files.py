"""Sketches of the reference sequences in files, on GPUs.

The text of files is copied to a GPU in batches (``gpu_references``), each processed in two steps:
the letters are compacted and counted, and as soon as the host has the counts, which determine the
sequences and their windows, windows are sketched while the next batch is copied. Several GPUs take
turns, each some records at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.sketch.gpu import KERNELS, PAD, GpuSketches, LetterPieces, sketch_letters
from ngsgpu.classify.sketch.gpu_references import Piece, PieceReader, RecordFinder, TextBatch
from ngsgpu.classify.sketch.references import TargetSink, windows_of_lengths
from ngsgpu.device.cuda.kernels import THREADS, grid_of, grid_of_warps
from ngsgpu.device.pinned import PinnedPool, mapped_copy, pinned_empty
from ngsgpu.device.team import Team
from ngsgpu.io.gpu.feed import IrregularInputError
from ngsgpu.io.text.scan import FASTA_BASES

BATCH_BYTES: Final = 64 << 20
"""Text per batch of a GPU."""

_TILE: Final = 4096
"""Bytes of text that a block looks at; as in ``build.cu``."""

_SLOTS: Final = 2
_SWITCH_BYTES: Final = 32 << 20
"""Text after which another GPU takes over at the next record."""


def sketch_files(
    files: Sequence[str],
    sink: TargetSink,
    parameters: SketchParameters,
    *,
    team: Team,
    pool: ThreadPoolExecutor,
    pinned: PinnedPool,
    threads: int,
    batch_bytes: int = BATCH_BYTES,
    switch_bytes: int = _SWITCH_BYTES,
    key_room: int | None = None,
    advance: Callable[[int], None] = lambda bases: None,
) -> list[GpuSketches]:
    """Read files of reference sequences and sketch them on GPUs.

    Args:
        files: FASTA, plain or compressed.
        sink: receives the records.
        parameters: windows and sketches.
        team: the participating GPUs.
        pool: reading threads.
        pinned: pinned buffers.
        threads: size of ``pool``.
        batch_bytes: text per batch, at least a buffer; affects only how the result is divided.
        switch_bytes: text after which another GPU takes over, at the next record.
        key_room: memory per GPU for keys in bytes; the rest goes to pinned host memory. None: no
            limit.
        advance: called with the number of bases sketched since the last call.

    Raises:
        InputError: a file cannot be read, or the sink refuses a record.
        IrregularInputError: the CPU reader must read the files.
        DeviceError: the memory of a GPU does not suffice, or CUDA fails.
    """
    reader = PieceReader(files, pool, pinned, threads)
    run = _Run(reader, sink, parameters, team, batch_bytes, switch_bytes, key_room, advance)
    try:
        with closing(reader.pieces()) as pieces:
            for piece in pieces:
                run.add(piece)
        run.finish()
    finally:
        reader.close()
    return run.done


class _GpuState:
    """The current GPU: its arrays, and the record that continues in its next batch."""

    def __init__(self, batch_bytes: int, parameters: SketchParameters) -> None:
        import cupy

        self.device = cupy.cuda.Device()
        self.head = -(-parameters.window // PAD) * PAD
        self.batch = TextBatch()
        self.batches = 0
        self.since_switch = 0
        self.key_bytes = 0
        # The continuing record: its target, bases, windows sketched, letters carried.
        self.target: list[int] | None = None
        self.bases = 0
        self.window = 0
        self.carried = 0
        self.stream = cupy.cuda.Stream(non_blocking=True)
        # Sketching is waited for, but not the text of the next batch, which is on its way.
        self.sketching = cupy.cuda.Stream(non_blocking=True)
        self.text = [cupy.empty(batch_bytes + PAD, cupy.uint8) for _ in range(_SLOTS)]
        self.letters = [
            cupy.empty(self.head + batch_bytes + PAD, cupy.uint8) for _ in range(_SLOTS)
        ]
        self.used = [cupy.cuda.Event(disable_timing=True) for _ in range(_SLOTS)]
        tiles = batch_bytes // _TILE + 2
        self.tiles = cupy.empty(tiles, cupy.uint32)
        self.classes = cupy.asarray(_byte_classes())
        self.found = [np.empty(0, np.uint32) for _ in range(_SLOTS)]


@dataclass(frozen=True, slots=True)
class _Started:
    """A batch whose letters are being counted.

    Attributes:
        lane: where.
        slot: of the lane.
        batch: the text.
        found: uint32[records + 2] in pinned memory, filled when ``counted`` is over.
        counted: CUDA event.
    """

    lane: _GpuState
    slot: int
    batch: TextBatch
    found: NDArray[np.uint32]
    counted: Any


class _Run:
    """Processes pieces into sketches."""

    def __init__(
        self,
        reader: PieceReader,
        sink: TargetSink,
        parameters: SketchParameters,
        team: Team,
        batch_bytes: int,
        switch_bytes: int,
        key_room: int | None,
        advance: Callable[[int], None],
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._parameters = parameters
        self._batch_bytes = batch_bytes
        self._switch_bytes = switch_bytes
        self._key_room = key_room
        self._advance = advance
        self._finder = RecordFinder(sink)
        self._lanes = team.each(lambda member: _GpuState(batch_bytes, parameters))
        self._turns = cycle(self._lanes)
        self._lane = next(self._turns)
        self._started: list[_Started] = []
        self.done: list[GpuSketches] = []

    def add(self, piece: Piece) -> None:
        """Submit a piece."""
        import cupy

        if self._lane.batch.size + len(piece.data) > self._batch_bytes:
            self._start()
        at = 0

        def batch(place: int, begins: bool) -> tuple[TextBatch, int]:
            nonlocal at
            lane = self._lane
            if begins and lane.since_switch + place - at >= self._switch_bytes and self._others:
                self._copy(piece, at, place)
                at = place
                lane.batch.ends = True
                self._start()
                lane.since_switch = 0
                lane = self._lane = next(self._turns)
            return lane.batch, lane.batch.size - at

        self._finder.add(piece, batch)
        self._copy(piece, at, len(piece.data))
        with self._lane.device:  # an event belongs to the GPU it was made on
            copied = cupy.cuda.Event(disable_timing=True)
            copied.record(self._lane.stream)
        self._reader.release(piece, copied)

    @property
    def _others(self) -> bool:
        return len(self._lanes) > 1

    def _copy(self, piece: Piece, begin: int, end: int) -> None:
        """Copy bytes of a piece behind those of the batch."""
        lane = self._lane
        slot = lane.batches % _SLOTS
        with lane.device:
            if lane.batch.size == 0 and lane.batches >= _SLOTS:
                lane.stream.wait_event(lane.used[slot])
            if end > begin:
                lane.text[slot][lane.batch.size :].data.copy_from_host_async(
                    piece.data.ctypes.data + begin, end - begin, lane.stream
                )
            if end < len(piece.data):  # the rest goes to another GPU, and one event is for all
                lane.stream.synchronize()
        lane.batch.size += end - begin
        lane.since_switch += end - begin

    def finish(self) -> None:
        """Process the rest."""
        self._lane.batch.ends = True
        self._start()
        while self._started:
            self._sketch()

    def _start(self) -> None:
        """Begin with the batch of the current GPU, and go on with the one before."""
        import cupy

        lane = self._lane
        batch, lane.batch = lane.batch, TextBatch()
        slot = lane.batches % _SLOTS
        lane.batches += 1
        while any(one.lane is lane and one.slot == slot for one in self._started):
            self._sketch()
        with lane.device:
            copied = cupy.cuda.Event(disable_timing=True)
            copied.record(lane.stream)
            cupy.cuda.Stream.null.wait_event(copied)
            self._started.append(self._count(lane, slot, batch))
            lane.used[slot].record(cupy.cuda.Stream.null)
        while len(self._started) > len(self._lanes):
            self._sketch()

    def _count(self, lane: _GpuState, slot: int, batch: TextBatch) -> _Started:
        """Count letters and put them side by side."""
        import cupy

        text, letters = lane.text[slot], lane.letters[slot][lane.head :]
        size, records = np.uint32(batch.size), np.int32(len(batch.records))
        blanks = np.array(batch.blanks, dtype=np.uint32).reshape(-1, 2)
        places = cupy.asarray(
            np.concatenate([blanks[:, 0], blanks[:, 1], np.array(batch.records, dtype=np.uint32)])
        )
        begin, end, record = (
            places[: len(blanks)], places[len(blanks) : 2 * len(blanks)], places[2 * len(blanks) :],
        )  # fmt: skip
        wrong = cupy.zeros(1, dtype=cupy.int32)
        found = cupy.empty(len(batch.records) + 2, dtype=cupy.uint32)
        tiles = -(-batch.size // _TILE)
        grid = grid_of(tiles, 1)
        if len(blanks) > 0:
            KERNELS.launch(
                "blank_headers", grid_of_warps(len(blanks)), (THREADS,),
                (text, begin, end, np.int32(len(blanks))),
            )  # fmt: skip
        KERNELS.launch(
            "count_letters", grid, (THREADS,), (text, size, lane.classes, lane.tiles, wrong)
        )
        KERNELS.launch("sum_up", (1,), (THREADS,), (lane.tiles, np.uint32(tiles)))
        KERNELS.launch(
            "place_headers", grid_of_warps(max(1, len(batch.records))), (THREADS,),
            (text, size, lane.classes, lane.tiles, record, records, wrong, found),
        )  # fmt: skip
        KERNELS.launch(
            "gather_letters", grid, (THREADS,), (text, size, lane.classes, lane.tiles, letters)
        )
        if len(lane.found[slot]) < len(found):
            lane.found[slot] = pinned_empty(4 * max(1024, 2 * len(found))).view(np.uint32)
        here = lane.found[slot][: len(found)]
        stream = cupy.cuda.Stream.null
        found.get(stream, out=here, blocking=False)
        counted = cupy.cuda.Event(disable_timing=True)
        counted.record(stream)
        return _Started(lane, slot, batch, here, counted)

    def _sketch(self) -> None:
        """Sketch the windows of the oldest batch that was begun with."""
        import cupy

        own = self._started.pop(0)
        lane = own.lane
        own.counted.synchronize()
        if own.found[-1] != 0:
            raise IrregularInputError("a sequence contains other characters than nucleotides")
        places = own.found[:-1].astype(np.int64)
        with lane.device:
            pieces, begin = self._pieces(lane, own.batch, places)
            letters = lane.letters[own.slot]
            with lane.sketching:
                sketches = sketch_letters(letters, pieces, self._parameters)
                if sketches is not None:
                    self.done.append(self._placed(lane, sketches))
                if lane.carried > 0:
                    other = lane.letters[(own.slot + 1) % _SLOTS]
                    other[lane.head - lane.carried :].data.copy_from_device_async(
                        letters[begin:].data, lane.carried, lane.sketching
                    )
                sketched = cupy.cuda.Event(disable_timing=True)
                sketched.record(lane.sketching)
            cupy.cuda.Stream.null.wait_event(sketched)
        self._advance(int(places[-1]))

    def _pieces(
        self, lane: _GpuState, batch: TextBatch, places: NDArray[np.int64]
    ) -> tuple[LetterPieces, int]:
        """The pieces to sketch in a batch, and the first letter that the next one needs."""
        bounds = places + lane.head
        goes_on = lane.target is not None
        start = np.concatenate([[lane.head - lane.carried], bounds[:-1]])[0 if goes_on else 1 :]
        length = np.concatenate([bounds[:1], bounds[1:]])[0 if goes_on else 1 :] - start
        targets = [*([lane.target] if goes_on else []), *batch.targets]
        bias = np.zeros(len(start), dtype=np.int64)
        whole = length.copy()
        if goes_on:
            bias[0] = lane.window
            whole[0] += lane.window * self._parameters.stride
        elif int(places[0]) != 0:
            raise IrregularInputError("a sequence has no header")
        windows = windows_of_lengths(whole, self._parameters) - bias
        finished = len(start) if batch.ends else len(start) - 1
        if (whole[:finished] == 0).any():
            raise IrregularInputError("a sequence has no bases")
        for bases in whole[:finished].tolist():
            self._sink.finish(bases)
        lane.target, lane.window, lane.carried = None, 0, 0
        begin = 0
        if finished < len(start):
            window, stride = self._parameters.window, self._parameters.stride
            full = max(0, (int(length[-1]) - window) // stride + 1)
            windows[-1] = full
            lane.target = targets[-1]
            lane.window = int(bias[-1]) + full
            lane.carried = int(length[-1]) - full * stride
            begin = int(start[-1]) + full * stride
        target = np.array([one[0] if one else -1 for one in targets], dtype=np.int64)
        return LetterPieces(start, length, windows, bias, target), begin

    def _placed(self, lane: _GpuState, sketches: GpuSketches) -> GpuSketches:
        """The sketches, in the memory of the host if the GPU's is for something else."""
        size = sketches.keys.nbytes
        if self._key_room is None or lane.key_bytes + size <= self._key_room:
            lane.key_bytes += size
            return sketches
        return replace(sketches, keys=mapped_copy(sketches.keys), on_host=True)


def _byte_classes() -> NDArray[np.uint8]:
    """Class of each byte, as ``sketch.cu`` has them: base, line feed, carriage return, others."""
    classes = np.full(256, 255, dtype=np.uint8)
    classes[np.frombuffer(FASTA_BASES, dtype=np.uint8)] = 0
    classes[ord("\n")] = 1
    classes[ord("\r")] = 2
    return classes
