"""Sketches of reference sequences on GPUs: the counterpart of ``cpu``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.sketch.references import windows_of_lengths
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_of_warps

KERNELS: Final = KernelModule("ngsgpu.classify.sketch", "sketch.cu")
NULL: Final = np.uint64(0)
"""For kernels: no array."""
PAD: Final = 64
"""Bytes after texts and letters that kernels may read."""


@dataclass(frozen=True, slots=True)
class GpuSketches:
    """Features of the windows of pieces of reference sequences.

    Attributes:
        keys: CuPy uint32[features].
        key_start: CuPy uint32[windows + 1], where those of each window begin.
        piece: CuPy uint32[windows], each one's piece.
        first_window: int64[pieces], its first window here.
        bias: int64[pieces], number of that window in the target.
        target: int64[pieces], number of the target, or -1.
        on_host: whether ``keys`` are in pinned host memory.
    """

    keys: Any
    key_start: Any
    piece: Any
    first_window: NDArray[np.int64]
    bias: NDArray[np.int64]
    target: NDArray[np.int64]
    on_host: bool = False

    @property
    def device(self) -> Any:
        """The GPU that has the arrays, as CuPy's device."""
        return self.piece.device

    @property
    def windows(self) -> int:
        """Number of windows."""
        return len(self.piece)


@dataclass(frozen=True, slots=True)
class LetterPieces:
    """Pieces of sequences with their letters in one array of a GPU.

    Attributes:
        start: int64[n], first letter.
        length: int64[n], letters.
        windows: int64[n], windows to sketch, from the first letter on.
        bias: int64[n], number of the first window in the target.
        target: int64[n], number of the target, or -1.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    windows: NDArray[np.int64]
    bias: NDArray[np.int64]
    target: NDArray[np.int64]


def sketch_numbers(parameters: SketchParameters) -> tuple[np.int32, ...]:
    """``SketchRules`` in the kernels' form."""
    return tuple(map(np.int32, parameters.rules))


def sketch_letters(
    letters: Any, pieces: LetterPieces, parameters: SketchParameters
) -> GpuSketches | None:
    """Sketch pieces on the current GPU; None if there is no feature. Waits for the stream.

    Args:
        letters: CuPy array of the text, uint8.
        pieces: places and targets of the pieces in the text.
        parameters: k-mer, sketch and window sizes.
    """
    import cupy

    windows = np.where(pieces.target >= 0, pieces.windows, 0)
    ends = np.cumsum(windows)
    total = int(ends[-1]) if len(ends) > 0 else 0
    if total == 0:
        return None
    first = ends - windows
    piece = cupy.empty(total, dtype=cupy.uint32)
    key_start = cupy.zeros(total + 1, dtype=cupy.uint32)
    start, length, first_window = cupy.asarray(np.stack([pieces.start, pieces.length, first]))
    blocks = KERNELS.resident_blocks("sketch_sequences", THREADS)

    def launch(*results: Any) -> None:
        KERNELS.launch(
            "sketch_sequences",
            (min(blocks, *grid_of_warps(total)),),
            (THREADS,),
            (
                letters, start, length, first_window, np.int64(len(windows)), np.int64(total),
                *sketch_numbers(parameters), *results,
            ),
        )  # fmt: skip

    counts = cupy.empty(total, dtype=cupy.uint32)
    launch(NULL, NULL, counts, piece)
    key_start[1:] = cupy.cumsum(counts, dtype=cupy.uint32)
    features = int(key_start[-1])
    if features == 0:
        return None
    keys = cupy.empty(features, dtype=cupy.uint32)
    launch(key_start, keys, NULL, NULL)
    return GpuSketches(keys, key_start, piece, first, pieces.bias, pieces.target)


def sketch_unpacked(
    batches: Iterable[Any], parameters: SketchParameters, advance: Callable[[int], None]
) -> list[GpuSketches]:
    """Sketch sequences that the host has read (``cpu_build.Unpacked``) on the current GPU.

    Args:
        batches: unpacked sequences.
        parameters: k-mer, sketch and window sizes.
        advance: called with the number of bases done.
    """
    import cupy

    table = np.frombuffer(b"ACGTN", dtype=np.uint8)
    done = []
    for batch in batches:
        letters = cupy.empty(len(batch.codes) + PAD, dtype=cupy.uint8)
        letters[: len(batch.codes)].set(table[batch.codes])
        length = np.diff(batch.start)
        windows = windows_of_lengths(length, parameters)
        pieces = LetterPieces(
            batch.start[:-1], length, windows, np.zeros(len(length), np.int64), batch.target
        )
        if (sketches := sketch_letters(letters, pieces, parameters)) is not None:
            done.append(sketches)
        advance(len(batch.codes))
    return done
