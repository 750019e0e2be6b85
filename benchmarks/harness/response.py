"""How soon ngsgpu answers: to ``--help``, and to a signal while kernels run.

    python -m benchmarks.harness.response

prints medians and bounds, and exits with 1 where a bound is missed. CPU time is taken of
``--help``, since it hardly depends on what else runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.measuring import ROOT, BenchmarkError, import_path, measure

HELP_CPU_S = 0.3
ENDING_S = 2.0


def help_seconds(folder: Path) -> float:
    """CPU seconds of ``ngsgpu --help``."""
    taken = measure(["ngsgpu", "--help"], folder)
    return taken.user_s + taken.system_s


def ending_seconds(folder: Path, where: str, number: signal.Signals) -> float:
    """Seconds from a signal to the end of a process whose kernels go on for ever.

    Raises:
        BenchmarkError: it did not start.
    """
    file = folder / "temporary"
    file.touch()
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.harness.stuck", where, str(file)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": import_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise BenchmarkError("the run that never ends did not start")
            time.sleep(0.2)
            begin = time.perf_counter()
            process.send_signal(number)
            process.wait()
            return time.perf_counter() - begin
        finally:
            process.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args(arguments).repeats
    late = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases: list[tuple[str, float, Callable[[], float]]] = [
            ("--help, CPU", HELP_CPU_S, lambda: help_seconds(folder))
        ]
        for where in ("main", "pool"):
            for number in (signal.SIGTERM, signal.SIGINT):
                title = f"{number.name}, kernel in {where}"
                cases.append(
                    (title, ENDING_S, lambda w=where, n=number: ending_seconds(folder, w, n))  # type: ignore[misc]
                )
        for title, bound, seconds in cases:
            try:
                median = statistics.median(seconds() for _ in range(repeats))
            except BenchmarkError as error:
                print(f"response: error: {error}", file=sys.stderr)
                return 1
            late |= median > bound
            print(f"{title:<26} {median:6.3f} s  at most {bound:.1f} s")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
