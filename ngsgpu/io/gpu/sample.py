"""Takes the sample of a run (``ngsgpu.io.text.sample``) from records in GPU memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ngsgpu.io.gpu.parse import KERNELS, THREADS, ParsedChunk, blocks_for
from ngsgpu.io.gpu.records import DeviceRecordBatch
from ngsgpu.io.text.sample import MAX_SAMPLED_LENGTH, ReadSample, Wanted


def sample_batch(sample: ReadSample, batch: DeviceRecordBatch) -> None:
    """Sample the next batch, with the same result as ``ReadSample.take``.

    Args:
        sample: of the run.
        batch: still valid. What is wanted of it is copied to the host, which waits for that.
    """
    wanted = sample.wanted(batch.units)
    if wanted.pairs:
        sample.has_qualities = True
        rows = [_letters(chunk, record, batch.step, wanted) for chunk, record in batch.parts]
        sample.add(wanted, batch.units, tuple(own.get() for own in rows))


def _letters(chunk: ParsedChunk, record: int, step: int, wanted: Wanted) -> Any:
    """Letters of reads of a chunk, a row each, on the device."""
    import cupy

    width = min(chunk.max_length, MAX_SAMPLED_LENGTH)
    rows = cupy.empty((wanted.pairs, width), dtype=cupy.uint8)
    if width:
        KERNELS.launch(
            "sample_bases",
            blocks_for(wanted.pairs),
            (THREADS,),
            (
                chunk.slot.raw, chunk.slot.seq_start, chunk.slot.lengths,
                np.uint32(record + step * wanted.start), np.uint32(step * wanted.step),
                np.uint32(wanted.pairs), np.uint32(width), rows,
            ),
        )  # fmt: skip
    return rows
