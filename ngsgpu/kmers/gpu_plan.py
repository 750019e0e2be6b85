"""The memory of counting k-mers on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.device.plan import Allocation, MemoryPlan, first_fitting
from ngsgpu.io.gpu.parse import SLOTS, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK
from ngsgpu.kmers.gpu import MOST_ROWS, row_bytes

_CHUNK_SHARE: Final = 64
SMALL_BYTES: Final = 8 << 20
"""Memory for what takes little."""

_LEAST_ROWS: Final = 2 * MAX_READ_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan(MemoryPlan):
    """Memory of a run on the GPU.

    Attributes:
        rows: k-mers that there is room for.
        chunk_bytes: of a file.
    """

    rows: int
    chunk_bytes: int


def plan_counting(
    letters: int | None, words: int, budget: int, gpus: int = 1, count_bytes: int = 2
) -> CountPlan:
    """Divide the memory of a GPU.

    Args:
        letters: most letters that the files have; None if that is unknown.
        words: of a k-mer.
        budget: GPU memory that may be used, in bytes.
        gpus: that divide the files' letters between them, chunk by chunk.
        count_bytes: bytes of a count.

    Raises:
        DeviceMemoryError: it is too little.
    """
    chunk_bytes = max(MIN_CHUNK, min(CHUNK_BYTES, budget // _CHUNK_SHARE))
    reading = SLOTS * slot_bytes(chunk_bytes + 1) + SMALL_BYTES
    row = row_bytes(words, count_bytes)
    rows = min(MOST_ROWS, (budget - reading) // row)
    if letters is not None:
        share = letters if gpus == 1 else letters // gpus + chunk_bytes
        rows = min(rows, max(share, _LEAST_ROWS))
    rows = max(rows, _LEAST_ROWS)
    plan = CountPlan(
        doing="counting k-mers",
        allocations=(Allocation("reading", reading), Allocation("k-mers", rows * row)),
        budget=budget,
        rows=rows,
        chunk_bytes=chunk_bytes,
    )
    return first_fitting([plan])
