"""All-to-all, scatter, gather and shuffle between GPUs of a host, each way beside NCCL.

    python -m benchmarks.kernels.collectives --gpus 2 -o benchmarks/results/NAME.json

Each GPU has 2^BITS values of 8 bytes, the same number for each GPU. Times are of the host, from a
call to the end of its work on all GPUs, the median of several calls; bandwidth is of what crosses
links, in all. Needs GPUs; measure on ones that nobody else uses.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown
from ngsgpu.collectives import Exchange, Way, by_ranges, shuffle, sorted_shuffle
from ngsgpu.device.backend import missing_for_cuda
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceError

SCHEMA: Final = "ngsgpu.benchmark.collectives"
SCHEMA_VERSION: Final = 1

BITS: Final = (10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
WAYS: Final[tuple[Way, ...]] = ("auto", "pull", "copies", "nccl", "host")
_FEW: Final = 5
_MANY: Final = 50
_SMALL_BITS: Final = 22
_SHUFFLE_BITS: Final = 24


def seconds_of(team: Team, work: Callable[[], Any], runs: int) -> float:
    """Median time of a call, to the end of its work on all GPUs, after one that is not counted."""
    times = []
    for _ in range(runs + 1):
        wait_for(team)
        begin = time.perf_counter()
        work()
        wait_for(team)
        times.append(time.perf_counter() - begin)
    return median(times[1:])


def seconds_in_a_row(team: Team, work: Callable[[], Any], runs: int) -> float:
    """Time of a call among many, issued one after the other without waiting."""
    work()
    wait_for(team)
    begin = time.perf_counter()
    for _ in range(runs):
        work()
    wait_for(team)
    return (time.perf_counter() - begin) / runs


def wait_for(team: Team) -> None:
    """Wait for the work on all GPUs."""
    for device in team.devices:
        device.synchronize()


def measure_exchange(team: Team, bits: int, ways: dict[Way, Exchange]) -> list[dict[str, Any]]:
    """A line for each operation and way."""
    import cupy

    gpus, size = len(team), 1 << bits
    arrays = team.each(lambda gpu: cupy.arange(size, dtype=cupy.int64) + (gpu << 40))
    counts = np.full((gpus, gpus), size // gpus)
    counts[:, -1] += size - counts.sum(axis=1)
    out = team.each(lambda gpu: cupy.empty(int(counts[:, gpu].sum()), dtype=cupy.int64))
    whole = team.each(lambda gpu: cupy.empty(size if gpu == 0 else 0, dtype=cupy.int64))[0]
    parts = [array[: int(count)] for array, count in zip(out, counts[0], strict=True)]
    moved = 8 * int(counts.sum() - np.trace(counts))
    one_way = 8 * int(counts[0, 1:].sum())
    expected = None
    runs = _MANY if bits <= _SMALL_BITS else _FEW
    lines = []
    for way, exchange in ways.items():
        own_counts = counts[0].tolist()
        works: dict[str, tuple[Callable[[], Any], int]] = {
            "all2all": (partial(exchange.all_to_all, arrays, counts, out), moved),
            "scatter": (partial(exchange.scatter, arrays[0], own_counts, out=parts), one_way),
            "gather": (partial(exchange.gather, parts, out=whole), one_way),
        }
        for name, (work, crossing) in works.items():
            seconds = seconds_of(team, work, runs)
            lines.append(
                {
                    "operation": name,
                    "way": way,
                    "bits": bits,
                    "seconds": seconds,
                    "seconds_in_a_row": seconds_in_a_row(team, work, runs),
                    "gb_per_s": crossing / seconds / 1e9,
                }
            )
        exchange.all_to_all(arrays, counts, out)
        results = [own.get().tobytes() for own in out] if bits <= _SMALL_BITS else None
        if expected is not None and results != expected:
            raise RuntimeError(f"{way}: the values are not those of the other ways")
        expected = results
    return lines


def measure_shuffle(team: Team, bits: int, exchange: Exchange) -> list[dict[str, Any]]:
    """Rows of a key of 8 bytes and a value of 4 to their owners, and sorted there."""
    import cupy

    gpus, size = len(team), 1 << bits

    def rows(gpu: int) -> tuple[Any, ...]:
        drawn = cupy.random.default_rng(gpu).integers(0, 1 << 62, size, dtype=cupy.int64)
        return drawn.view(cupy.uint64), cupy.arange(size, dtype=cupy.uint32)

    tables = team.each(rows)
    owner = by_ranges([(1 << 62) * gpu // gpus for gpu in range(1, gpus)])
    lines = []
    calls: dict[str, Callable[..., Any]] = {"shuffle": shuffle, "sorted_shuffle": sorted_shuffle}
    for name, call in calls.items():
        seconds = seconds_of(team, partial(call, exchange, tables, owner), _FEW)
        row = {"operation": name, "way": "auto", "bits": bits, "seconds": seconds}
        lines.append({**row, "million_rows_per_s": gpus * size / seconds / 1e6})
    return lines


def table(lines: Sequence[dict[str, Any]]) -> str:
    """All-to-all by size as a Markdown table, then the other rates."""
    ways = list(dict.fromkeys(own["way"] for own in lines if own["operation"] == "all2all"))
    rows = [["operation", "values a GPU", *(f"{way}, GB/s (µs)" for way in ways)]]
    found = {(own["operation"], own["bits"], own["way"]): own for own in lines}
    keys = dict.fromkeys((own["operation"], own["bits"]) for own in lines if "gb_per_s" in own)
    for name, bits in sorted(keys):
        shown = [found.get((name, bits, way)) for way in ways]
        cells = [f"{o['gb_per_s']:.1f} ({o['seconds'] * 1e6:.0f})" if o else "-" for o in shown]
        rows.append([name, f"2^{bits}", *cells])
    rates = [
        f"{own['operation']} of 2^{own['bits']} rows a GPU: "
        f"{own['million_rows_per_s']:,.0f} million rows/s\n"
        for own in lines
        if "million_rows_per_s" in own
    ]
    return markdown(rows, names=2) + "\n" + "".join(rates)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(
        prog="collectives", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--bits", type=int, nargs="+", default=BITS, help="2^BITS values a GPU")
    settings = parser.parse_args(arguments)
    if problem := missing_for_cuda(settings.gpus):
        print(f"collectives: error: {problem}", file=sys.stderr)
        return 2
    team = Team(settings.gpus)
    ways: dict[Way, Exchange] = {}
    missing = {}
    for way in WAYS:
        try:
            ways[way] = Exchange(team, way=way)
        except DeviceError as error:
            missing[way] = str(error)
    lines = [line for bits in settings.bits for line in measure_exchange(team, bits, ways)]
    for bits in settings.bits:
        if bits >= _SHUFFLE_BITS or bits == max(settings.bits):
            lines += measure_shuffle(team, bits, ways["auto"])
    document = {
        **head(SCHEMA, SCHEMA_VERSION), "gpus": settings.gpus, "missing": missing, "lines": lines,
    }  # fmt: skip
    write_document(document, settings.output)
    print(table(lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
