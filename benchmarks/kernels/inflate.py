"""Every kernel of inflating a gzip file on a GPU: launches, and measured time, beside one CPU core.

    python -m benchmarks.kernels.inflate reads.fastq.gz --name L -o out.json

The file is in memory before the time is taken; the text stays on the GPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from isal import igzip

from benchmarks.kernels.correction import command_line, describe_run, record, write_and_show
from benchmarks.kernels.models import INFLATE_MODELS, InflateLoad
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.device.pinned import pinned_empty
from ngsgpu.io.gpu.inflate import Inflater, text_room

SCHEMA = "ngsgpu.benchmark.inflate_kernels"
SCHEMA_VERSION = 1


def inflate(data: np.ndarray, batch: int) -> tuple[int, float]:
    """Inflate a file in pinned memory; the bytes of its text, and the seconds."""
    import cupy

    inflater = Inflater(batch)
    text = cupy.empty(text_room(batch) + 1, dtype=cupy.uint8)
    cupy.cuda.runtime.deviceSynchronize()
    begin = time.monotonic()
    total = 0
    for start in range(0, len(data), batch):
        piece = data[start : start + batch]
        inflater.add(piece.ctypes.data, len(piece), cupy.cuda.get_current_stream())
        more = True
        while more:
            size, more = inflater.inflate(text)
            total += size
    inflater.finish()
    cupy.cuda.runtime.deviceSynchronize()
    return total, time.monotonic() - begin


def by_one_core(path: Path) -> float:
    """Seconds in which ISA-L inflates the file."""
    begin = time.monotonic()
    buffer = bytearray(1 << 20)
    with igzip.open(path) as file:  # type: ignore[no-untyped-call]
        while file.readinto(buffer):
            pass
    return time.monotonic() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure with several sizes of batches, write the file for the fastest, print its table."""
    settings = command_line(__doc__, 1, "a gzip file").parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"kernels: error: {problem}", file=sys.stderr)
        return 2
    path: Path = settings.files[0]
    data = pinned_empty(path.stat().st_size)
    data[:] = np.fromfile(path, dtype=np.uint8)
    core = by_one_core(path)
    times = {}
    for megabytes in (4, 8, 16, 32, 64):
        batch = megabytes << 20
        total, seconds = inflate(data, batch)
        times[batch] = seconds
        print(f"batches of {megabytes} MiB: {seconds:.3f} s, {total / seconds / 1e9:.2f} GB/s")
    best = min(times, key=lambda batch: times[batch])
    (total, _), totals = record(partial(inflate, data, best))
    load = InflateLoad(len(data), total, best, round(core, 3))
    seconds_by_batch = {str(batch): round(seconds, 4) for batch, seconds in times.items()}
    run = describe_run(
        SCHEMA, SCHEMA_VERSION, settings, load, seconds_by_batch, totals, INFLATE_MODELS
    )
    write_and_show(run, settings.output)
    print(f"one core, ISA-L: {core:.2f} s, {total / core / 1e9:.2f} GB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
