"""``ngsgpu`` and ``snakemake`` as programs that begin with all imports done."""

from __future__ import annotations

import atexit
import os
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.workflow import write_program

HERE = Path(__file__).parent
# What tests change is not for the server, nor is a GPU, which copies of a process cannot share.
ENVIRONMENT = os.environ | {"NGSGPU_BACKEND": "cpu"}


@cache
def programs() -> Path:
    """A folder with them, to be put on a PATH. The first call starts the server."""
    folder = tempfile.TemporaryDirectory(prefix="copies-")
    socket = Path(folder.name, "socket")
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), str(socket)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    for name in ("ngsgpu", "snakemake"):
        client = shlex.join([sys.executable, "-IS", str(HERE / "client.py"), str(socket), name])
        write_program(Path(folder.name, name), f'#!/bin/sh\nexec {client} "$@"\n')
    atexit.register(folder.cleanup)
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    return Path(folder.name)


def ngsgpu() -> str:
    return str(programs() / "ngsgpu")
