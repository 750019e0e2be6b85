"""A server of a database, and runs with and without it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IN_ITSELF = """
from ngsgpu.run.serve.server import Server
serve = Server.serve
Server.serve = lambda self, *given, **how: serve(self, *given, **{**how, "copies": False})
"""
"""Has a server run requests in its process, as with GPUs."""

NGSGPU = (sys.executable, "-m", "ngsgpu")
START = "from ngsgpu.__main__ import main_cli; main_cli()"
_OF_A_RUN = ("job", "command", "time_s", "memory", "device")


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    database: Path
    socket: Path

    def words(self, *words: object) -> list[str]:
        own = [*NGSGPU, "classify", "-d", self.database]
        return [*map(str, own), f"--server={self.socket}", *map(str, words)]

    def run(self, *words: object, **how: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.words(*words), capture_output=True, **how)

    def start(self, *words: object, **how: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.words(*words), **{**pipes, **how})

    def stop(self) -> tuple[int, str]:
        """End it; its status and what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@contextmanager
def served(database: Path, socket: Path, *words: object, first: str = "") -> Iterator[Served]:
    """A server of a database, ready to be asked.

    Args:
        database: the database.
        socket: where it listens.
        words: further options.
        first: Python code that its process runs first.
    """
    command = [sys.executable, "-c", first + START, "db", "serve", "-d", database]
    command += ["--socket", socket, *words]
    with subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith("ready: "), process.communicate()
            yield Served(process, database, socket)
        finally:
            if process.poll() is None:
                process.kill()


def results(folder: Path) -> dict[str, bytes]:
    """Contents of all files below a folder; of statistics without what differs between runs."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                values = json.loads(content)
                content = json.dumps(
                    {name: own for name, own in values.items() if name not in _OF_A_RUN}
                ).encode()
            found[str(path.relative_to(folder))] = content
    return found


def timeless(text: bytes) -> str:
    """Messages without times."""
    text = re.sub(rb"\t[0-9.]+\t", rb"\tN\t", text)
    return re.sub(r"[0-9.]+ s\b", "N s", text.decode())


def open_descriptor(content: bytes) -> int:
    """A pipe that has some bytes in it, and ends; with a high number, as shells give them."""
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    high = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 63)
    os.close(reader)
    return high
