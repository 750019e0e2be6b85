"""SIGTERM and Ctrl-C end a process in time, also while it computes where no exception gets to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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
    command = [sys.executable, "-m", "benchmarks.harness.stuck", where, str(temporary)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.2)
            process.send_signal(number)
            assert process.wait(30) == status
            assert process.stderr.read() == message
        finally:
            process.kill()
    assert not temporary.exists()


SLOW_TO_LEAVE = """
import threading, time
from ngsgpu import cli

def work(_):
    threading.Thread(target=time.sleep, args=(60,)).start()
    print("ready", flush=True)
    time.sleep(60)

cli._run = work
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
