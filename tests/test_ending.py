"""SIGTERM and Ctrl-C end a process in time, also while it computes where no exception gets to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

# Kernels that never end, in the main thread or in a pool that the main thread waits for.
STUCK = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from ngsgpu import cli, ending
from ngsgpu.jit import njit

@njit(nogil=True)
def forever(counter):
    while counter[0] >= 0:
        counter[0] = (counter[0] + 1) & 1023
    return counter[0]

def work(**_):
    forever(np.array([-1]))  # compiled
    counter = np.zeros(1, dtype=np.int64)
    print("ready", flush=True)
    if sys.argv[1] == "main":
        forever(counter)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(forever, [counter] * 8))

ending.before_ending(lambda: os.unlink(sys.argv[2]))
cli.app = work
cli.main_cli()
"""


@pytest.mark.parametrize("where", ["main", "pool"])
@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGTERM, 143, b"ngsgpu: terminated\n"),
        (signal.SIGINT, 130, b"ngsgpu: interrupted\n"),
    ],
)
def test_a_kernel_does_not_keep_a_process_alive(tmp_path, where, number, status, message):
    temporary = tmp_path / "temporary"
    temporary.touch()
    command = [sys.executable, "-c", STUCK, where, str(temporary)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.2)
            begin = time.monotonic()
            process.send_signal(number)
            assert process.wait(30) == status
            assert time.monotonic() - begin < 2 + (os.getloadavg()[0] > 4)
            assert process.stderr.read() == message
        finally:
            process.kill()
    assert not temporary.exists()


SLOW_TO_LEAVE = """
import threading, time
from ngsgpu import cli

def work(**_):
    threading.Thread(target=time.sleep, args=(60,)).start()
    print("ready", flush=True)
    time.sleep(60)

cli.app = work
cli.main_cli()
"""


def test_threads_are_not_waited_for():
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_LEAVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.terminate()
            assert process.wait(10) == 143
        finally:
            process.kill()
