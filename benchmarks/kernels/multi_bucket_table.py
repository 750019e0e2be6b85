"""The multi-bucket hash table beside sorting: memory, load and speed.

    python -m benchmarks.kernels.multi_bucket_table --database DB -o benchmarks/results/NAME.json

Pairs of a key and a window go into tables of several sizes, batch by batch, and are sorted at once.
Keys are drawn so that each has one window (``distinct``), or as many as those of bacteria in RefSeq
(``refseq``: R. Kobus, dissertation, Mainz 2023, table 8.4), or they are those of a database. Needs
a GPU; measure on one that nobody else uses.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.index.gpu_pairs import KERNELS
from ngsgpu.classify.index.index import keys_of_locations
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.device.cuda.kernels import THREADS, TILE, grid_of_warps
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.pinned import to_device
from ngsgpu.hashtable.gpu import BUCKETS, HashTable, slots_taken

LOADS: Final = (0.5, 0.7, 0.85, 0.95)
MOST: Final = 254
BATCH: Final = 1 << 23
_RUNS: Final = 3
_MEAN: Final = 7.48
_DEVIATION: Final = 19.94
_CHECKED: Final = 1 << 24


def mixed(keys: Any) -> NDArray[np.uint32]:
    """Other keys, one for each, that look drawn by chance."""
    keys = (keys ^ (keys >> 16)) * np.uint32(0x85EBCA6B)
    keys = (keys ^ (keys >> 13)) * np.uint32(0xC2B2AE35)
    return np.asarray(keys ^ (keys >> 16), dtype=np.uint32)


def made_up_keys(kind: str, pairs: int) -> NDArray[np.uint32]:
    """Keys of a number of pairs, a power of two, in pseudorandom order."""
    if kind == "distinct":
        return mixed(np.arange(pairs, dtype=np.uint32))
    spread = math.log(1 + (_DEVIATION / _MEAN) ** 2)
    source = np.random.default_rng(pairs)
    drawn = source.lognormal(math.log(_MEAN) - spread / 2, math.sqrt(spread), int(pairs / _MEAN))
    own = np.repeat(np.arange(len(drawn), dtype=np.uint32), np.maximum(1, drawn.astype(np.int64)))
    own = np.resize(own, pairs)
    place = np.arange(pairs, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed(own[place & np.uint64(pairs - 1)])


def words_of(keys: NDArray[np.uint32], windows: NDArray[Any]) -> NDArray[np.uint64]:
    """Key and window in one word."""
    return np.asarray(keys.astype(np.uint64) << np.uint64(32) | windows, dtype=np.uint64)


def database_words(path: Path) -> NDArray[np.uint64]:
    """The pairs of a database's first partition, in the order of the windows."""
    index = open_database(path).load_partition(0).index
    words = words_of(keys_of_locations(index), index.locations)
    return words[np.argsort(index.locations, kind="stable")]


def timed(work: Callable[..., Any], *values: Any) -> tuple[float, Any]:
    """Milliseconds that the GPU takes, and the result."""
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    result = work(*values)
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)), result


def measure_sort(words: Any) -> dict[str, Any]:
    """Sort all words, and count the entries and locations of each tile of them."""
    import cupy

    pool = cupy.get_default_memory_pool()
    own = words.copy()
    pool.free_all_blocks()
    before = pool.total_bytes() - own.nbytes
    tiles = -(-len(words) // TILE)
    sums = [cupy.empty(tiles + 1, dtype=cupy.uint32) for _ in range(2)]
    none = cupy.empty(0, dtype=cupy.uint64)

    def count() -> None:
        KERNELS.launch(
            "count_entries", grid_of_warps(tiles), (THREADS,),
            (own, np.int64(len(own)), np.int64(MOST), np.int32(0), none, np.int64(0), *sums),
        )  # fmt: skip

    sorting, counting = [], []
    for _ in range(_RUNS + 1):
        own[:] = words
        sorting.append(timed(radix_sort, own)[0])
        counting.append(timed(count)[0])
    locations = int(sums[1][:tiles].get().sum(dtype=np.int64))
    return {
        "bytes": pool.total_bytes() - before, "locations": locations,
        "sort_ms": median(sorting[1:]), "count_ms": median(counting[1:]),
    }  # fmt: skip


def measure_table(words: Any, slots: int, bucket: int) -> dict[str, Any]:
    """Fill tables of one size, and get the words back."""
    inserting, sorting, choosing = [], [], []
    for _ in range(_RUNS + 1):
        table = HashTable(slots, bucket, MOST)
        insert = sort = 0.0
        for begin in range(0, len(words), BATCH):
            batch = words[begin : begin + BATCH].copy()
            sort += timed(radix_sort, batch)[0]
            insert += timed(table.insert, batch)[0]
        inserting.append(insert)
        sorting.append(sort)
        elapsed, back = timed(table.retrieve)
        choosing.append(elapsed)
    used, spilled = table.used()
    if len(words) <= _CHECKED:
        check_words(words, back)
    return {
        "bucket": bucket, "slots": table.slots, "used": used, "spilled": spilled,
        "load": used / table.slots, "bytes": table.nbytes, "locations": len(back),
        "insert_ms": median(inserting[1:]), "sort_ms": median(sorting[1:]),
        "words_ms": median(choosing[1:]),
    }  # fmt: skip


def check_words(words: Any, back: Any) -> None:
    """Check that the first ``MOST`` locations of each key are there, and nothing else."""
    words = np.sort(words.get())
    keys = words >> np.uint64(32)
    kept = np.ones(len(words), dtype=bool)
    kept[MOST:] = keys[MOST:] != keys[:-MOST]
    if not np.array_equal(words[kept], np.sort(back.get())):
        raise RuntimeError("the table does not hold what it should")


def measure(kind: str, words: NDArray[np.uint64]) -> dict[str, Any]:
    """All ways for the same words."""
    from ngsgpu.device.team import free_unused

    free_unused()
    there = to_device(words)
    line: dict[str, Any] = {"kind": kind, "pairs": len(words), "sorting": measure_sort(there)}
    ordered = there.copy()
    radix_sort(ordered)
    needed = slots_taken(ordered, MOST).tolist()
    del ordered
    line["tables"] = []
    for bucket, slots in zip(BUCKETS, needed, strict=True):
        line["slots_needed"] = needed
        for load in LOADS:
            free_unused()
            line["tables"].append(measure_table(there, int(slots / load), bucket))
    return line


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The measurements as a Markdown table."""
    rows = [
        ["keys", "pairs", "way", "load", "bytes a location", "million pairs/s",
         "with sorted batches", "given back, million/s"]
    ]  # fmt: skip
    for line in lines:
        pairs, sort = line["pairs"], line["sorting"]
        rows.append(
            [
                line["kind"], f"{pairs:,}", "sort", "-", f"{sort['bytes'] / sort['locations']:.1f}",
                f"{pairs / 1000 / (sort['sort_ms'] + sort['count_ms']):,.0f}", "-", "-",
            ]
        )  # fmt: skip
        rows += [
            [
                line["kind"], f"{pairs:,}", f"buckets of {own['bucket']}", f"{own['load']:.2f}",
                f"{own['bytes'] / own['locations']:.1f}", f"{pairs / 1000 / own['insert_ms']:,.0f}",
                f"{pairs / 1000 / (own['insert_ms'] + own['sort_ms']):,.0f}",
                f"{own['locations'] / 1000 / own['words_ms']:,.0f}",
            ]
            for own in line["tables"]
        ]  # fmt: skip
    return markdown(rows, names=3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(
        prog="multi_bucket_table", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--bits", type=int, nargs="+", default=[24, 26], help="2^BITS pairs")
    parser.add_argument("--database", type=Path, help="database whose first partition is taken")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda():
        print(f"multi_bucket_table: error: {problem}", file=sys.stderr)
        return 2
    lines = [
        measure(
            kind,
            words_of(
                made_up_keys(kind, 1 << bits),
                np.arange(1 << bits, dtype=np.uint32) // np.uint32(16),
            ),
        )
        for bits in settings.bits
        for kind in ("distinct", "refseq")
    ]
    if settings.database is not None:
        lines.append(measure("database", database_words(settings.database)))
    document = {**head(), "lines": lines}
    write_document(document, settings.output)
    print(table(lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
