"""What every benchmark needs: a process measured as a whole, and where it was measured.

This module and those that use it stay small in memory and import nothing heavy: Linux counts
what a program had before it started another one towards the other one's peak.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

from benchmarks.harness.device_memory import DeviceMemory, find_driver

ROOT = Path(__file__).parents[2]
OUTPUT = "output.txt"
_SAID = 1500
"""Letters of the messages of a failed command that are kept, of either end."""

P = ParamSpec("P")
T = TypeVar("T")


class BenchmarkError(Exception):
    """A benchmark cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a process and its children took, from start to end.

    Attributes:
        wall_s: seconds on the clock.
        user_s: CPU seconds of the programs.
        system_s: CPU seconds of the kernel on their behalf.
        peak_rss_bytes: largest resident memory of one of them.
        other_cpu_s: CPU seconds that everything else on the machine took meanwhile.
        peak_device_bytes: most memory of the GPUs that was taken; None without a GPU.
    """

    wall_s: float
    user_s: float
    system_s: float
    peak_rss_bytes: int
    other_cpu_s: float
    peak_device_bytes: int | None = None


def measure(
    command: Sequence[str],
    directory: Path,
    *,
    output: Path | None = None,
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> Measurement:
    """Run a command and measure it.

    Args:
        command: program and arguments.
        directory: where it runs.
        output: where its standard output goes; ``output.txt`` in the directory by default.
        environment: added to this process's.
        limit_s: seconds after which it gets SIGTERM, and ten later SIGKILL.

    Raises:
        BenchmarkError: it fails or takes too long; the message ends with what it said.
    """
    with (
        (output or directory / OUTPUT).open("wb") as standard_output,
        (directory / "messages.txt").open("wb") as messages,
        DeviceMemory(driver()) as device,
    ):
        busy = busy_seconds()
        begin = time.perf_counter()
        process = subprocess.Popen(
            [*find_program(command[0]), *command[1:]],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=standard_output,
            stderr=messages,
            env=os.environ | {"PYTHONPATH": import_path()} | dict(environment or {}),
        )
        timers = [
            threading.Timer(limit_s + grace, process.send_signal, [number])
            for grace, number in ((0, signal.SIGTERM), (10, signal.SIGKILL))
            if limit_s is not None
        ]
        for timer in timers:
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        for timer in timers:
            timer.cancel()
        wall = time.perf_counter() - begin
        busy = busy_seconds() - busy
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        said = (directory / "messages.txt").read_text(errors="replace").strip()
        if len(said) > 2 * _SAID:
            said = f"{said[:_SAID]}\n[...]\n{said[-_SAID:]}"
        late = f", stopped after {wall:.0f} s" if limit_s is not None and wall >= limit_s else ""
        raise BenchmarkError(f"{' '.join(command)}: status {process.returncode}{late}\n{said}")
    return Measurement(
        wall_s=round(wall, 3),
        user_s=round(usage.ru_utime, 3),
        system_s=round(usage.ru_stime, 3),
        peak_rss_bytes=usage.ru_maxrss * 1024,
        other_cpu_s=round(max(0.0, busy - usage.ru_utime - usage.ru_stime), 2),
        peak_device_bytes=device.peak_bytes,
    )


def apart(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call what needs memory in a separate process, and return what it returns."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


driver = cache(find_driver)


def import_path() -> str:
    """``PYTHONPATH`` with this checkout in it, for where ngsgpu is not installed."""
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))


def busy_seconds(stat: Path = Path("/proc/stat")) -> float:
    """CPU seconds that all processes of the machine have taken since it started."""
    ticks = [int(field) for field in stat.read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = ticks
    busy = user + nice + system + interrupts + soft_interrupts + stolen
    return busy / os.sysconf("SC_CLK_TCK")


def find_program(name: str) -> list[str]:
    """How to start a program that is on the PATH, or beside this Python; ngsgpu also without.

    Raises:
        BenchmarkError: there is none.
    """
    beside = Path(sys.executable).parent
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), str(beside)]))
    if path is not None:
        return [path]
    if name == "ngsgpu":
        return [sys.executable, "-m", "ngsgpu"]
    raise BenchmarkError(f"{name} was not found on the PATH")


def answer(*command: str, directory: Path = ROOT) -> str:
    """What a command prints, both outputs together; its status does not matter."""
    done = subprocess.run(
        [*find_program(command[0]), *command[1:]],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": import_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout.strip()


def version_in(text: str) -> str:
    """The first thing that looks like a version, such as 1.1.2 or r181, in a program's answer."""
    match = re.search(r"(?<![\w.])(?:v?(\d+\.\d+(?:\.\d+)*)|(r\d+))", text)
    return match[1] or match[2] if match else "unknown"
