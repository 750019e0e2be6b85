"""Sorting location lists and picking candidates, beside CUB's segmented sort.

    python -m benchmarks.kernels.location_lists -o benchmarks/results/NAME.json

Lists of equal sizes, half of each from one range of windows and the rest from anywhere. CUB comes
with CUDA's compiler, ``nvcc``, which has to be on the PATH; without it there is nothing to compare
with. Needs a GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown
from benchmarks.kernels.models import floor_seconds
from ngsgpu.classify.query.cpu import BLOCK_BITS
from ngsgpu.classify.query.gpu import QUERY_WARPS
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.device.cuda.kernels import THREADS, KernelModule

SIZES: Final = (16, 32, 48, 64, 128, 256)
CANDIDATES: Final = 6
SPAN: Final = 3
_LOCATIONS: Final = 1 << 26
_TARGETS: Final = 1000
_WINDOWS: Final = 1000
_RUNS: Final = 7
_KERNELS: Final = KernelModule("benchmarks.kernels", "location_lists.cu")


def make_lists(size: int, count: int) -> Any:
    """uint32[count, size] on the GPU."""
    source = np.random.default_rng(size)
    lists = source.integers(0, _TARGETS * _WINDOWS, (count, size), dtype=np.uint32)
    place = source.integers(0, _TARGETS * _WINDOWS - SPAN, (count, 1), dtype=np.uint32)
    lists[:, : size // 2] = place + lists[:, : size // 2] % SPAN
    import cupy

    return cupy.asarray(lists)


def made_up_partition() -> tuple[Any, list[Any]]:
    """The struct ``Partition`` of targets without an index, and its arrays."""
    import cupy

    first = np.arange(0, (_TARGETS + 1) * _WINDOWS, _WINDOWS, dtype=np.uint32)
    blocks = np.arange(0, int(first[-1]) + 1, 1 << BLOCK_BITS)
    block_target = np.searchsorted(first, blocks, side="right") - 1
    arrays = [
        cupy.asarray(array)
        for array in (
            first,
            np.clip(block_target, 0, _TARGETS - 1).astype(np.int32),
            np.arange(_TARGETS, dtype=np.int32),
        )
    ]
    pointers = [0, 0, 0, *(array.data.ptr for array in arrays), 0, 0, 16]
    return cupy.asarray(np.array(pointers, dtype=np.int64)), arrays


def milliseconds(launch: Callable[[], None]) -> float:
    """Median time of a launch."""
    import cupy

    times: list[float] = []
    for _ in range(_RUNS + 1):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(begin, end)))
    return median(times[1:])


class Cub:
    """CUB's segmented sort, compiled now.

    Args:
        folder: where to.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "cub.so"
        source = Path(__file__).with_name("cub_segmented_sort.cu")
        subprocess.run(
            [
                "nvcc",
                "-O3",
                "-arch=native",
                "-shared",
                "-Xcompiler",
                "-fPIC",
                "-o",
                library,
                source,
            ],
            check=True,
        )
        self._library = ctypes.CDLL(str(library))

    def milliseconds(self, lists: Any) -> float:
        """Median time for sorting all lists; checks the result."""
        import cupy

        count, size = lists.shape
        sorted_lists = cupy.empty_like(lists)
        offsets = cupy.asarray(np.arange(0, (count + 1) * size, size, dtype=np.int64))
        times = (ctypes.c_float * (_RUNS + 1))()
        status = self._library.sort_segments(
            ctypes.c_void_p(lists.data.ptr), ctypes.c_void_p(sorted_lists.data.ptr),
            ctypes.c_int64(count), ctypes.c_int64(size), ctypes.c_void_p(offsets.data.ptr),
            ctypes.c_int(len(times)), times,
        )  # fmt: skip
        if status:
            raise RuntimeError(f"CUB failed with {status}")
        check_sorted(lists, sorted_lists)
        return median(times[1:])


def check_sorted(lists: Any, sorted_lists: Any) -> None:
    """Check some lists."""
    some = slice(None, None, max(1, len(lists) // 1000))
    expected = np.sort(lists[some].get(), axis=1)
    if not np.array_equal(expected, sorted_lists[some].get()):
        raise RuntimeError("the lists are not sorted")


def measure_size(size: int, cub: Cub | None) -> dict[str, Any]:
    """Times for lists of one size."""
    import cupy

    count = _LOCATIONS // size
    lists = make_lists(size, count)
    sorted_lists = cupy.empty_like(lists)
    candidates = cupy.empty((count, CANDIDATES, 4), dtype=cupy.int32)
    struct, arrays = made_up_partition()
    numbers = np.int64(count), np.int32(size)
    sort_grid = (_KERNELS.resident_blocks("sort_lists", THREADS),)
    rank_grid = (_KERNELS.resident_blocks("rank_lists", 32 * QUERY_WARPS),)
    line: dict[str, Any] = {"size": size, "lists": count}
    line["floor_ms"] = 1000 * floor_seconds(8.0 * lists.size, 0.0)
    line["sort_ms"] = milliseconds(
        lambda: _KERNELS.launch(
            "sort_lists", sort_grid, (THREADS,), (lists, *numbers, sorted_lists)
        )
    )
    check_sorted(lists, sorted_lists)
    line["rank_ms"] = milliseconds(
        lambda: _KERNELS.launch(
            "rank_lists",
            rank_grid,
            (32 * QUERY_WARPS,),
            (lists, *numbers, np.uint32(SPAN), np.int32(CANDIDATES), struct, candidates),
        )
    )
    if cub is not None:
        line["cub_ms"] = cub.milliseconds(lists)
    del arrays
    return line


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The times as a Markdown table."""
    rows = [["locations", "lists", "floor, ms", "sorted, ms", "CUB, ms", "sorted and ranked, ms"]]
    rows += [
        [
            str(line["size"]), f"{line['lists']:,}", f"{line['floor_ms']:.2f}",
            f"{line['sort_ms']:.2f}", f"{line['cub_ms']:.2f}" if "cub_ms" in line else "-",
            f"{line['rank_ms']:.2f}",
        ]
        for line in lines
    ]  # fmt: skip
    return markdown(rows, names=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="location_lists", description=__doc__.split("\n", 1)[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"location_lists: error: {problem}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        cub = Cub(Path(folder)) if shutil.which("nvcc") else None
        lines = [measure_size(size, cub) for size in SIZES]
    document = {**head(), "lists": lines}
    write_document(document, settings.output)
    print(table(lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
