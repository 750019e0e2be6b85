"""Servers of databases: strange requests, clients that are silent or go, and kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from ngsgpu.cli.classification.served import identity
from ngsgpu.run.serve.request import Request
from tests.attack.arena import Arena, Verdict
from tests.attack.forks import _be_the_command, run
from tests.attack.judge import difference, files_below
from tests.attack.mutations import mutate
from tests.attack.world import Command, lay_out

_READY_SECONDS: Final = 60
_MESSAGES: Final = 8
_STRANGE: Final[tuple[Any, ...]] = (
    None, True, -1, 1.5, 10**30, "", "x", "a\0b", [], [1], [[]], {}, {"a": 1}, ["x"], 1e308,
)  # fmt: skip


class _Server:
    """A server in a fork, with the folders of a case."""

    def __init__(self, arena: Arena, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "in" / "s"
        lay_out(arena.world, Command("server", "IN/db IN/r1.fq IN/r2.fq"), folder)
        words = ["db", "serve", "-d", "db", "--socket", "s", "-t", "2", "--backend", "cpu"]
        self.said = folder / "said"
        self.process = os.fork()
        if self.process == 0:
            _be_the_command(words, folder / "tmp", None, folder / "ready", self.said, None)
        end = time.monotonic() + _READY_SECONDS
        while not ((folder / "ready").exists() and (folder / "ready").read_bytes()):
            if time.monotonic() > end:
                raise RuntimeError(f"no server: {self.said.read_text()}")
            time.sleep(0.01)

    def classify(self, out: str, **how: Any) -> Any:
        """Run a client."""
        words = ["classify", "-q", "-t", "1", "-d", "db", "--server", "s", "-i", "r1.fq"]
        words += ["-I", "r2.fq", "-o", str(self.folder / "out" / out)]
        return run(words, tmp=self.folder / "tmp", **how)

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit status."""
        with suppress(ProcessLookupError):
            os.kill(self.process, number)
        for _ in range(3000):
            done, raw = os.waitpid(self.process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(raw)
            time.sleep(0.01)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        return -1000


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Send strange requests to a server, and then a good one; end it in one of the ways."""
    folder = arena.root / name
    server = _Server(arena, folder)
    number = source.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
    status = None
    try:
        with ExitStack() as held:
            for _ in range(_MESSAGES):
                _send(server, source, held)
            began = time.monotonic()
            ending = server.classify("calls.tsv")
            if ending.status != 0:
                return Verdict("requests", "wrong", f"{ending.status}: {ending.stderr[-300:]}")
            if time.monotonic() - began > 30:
                return Verdict("requests", "wrong", "a client had to wait")
        client = source.random() < 0.5
        delay = source.uniform(0, 0.3)
        if client:  # it goes, or its server does
            server.classify("second.tsv", signal_after=(number, delay))
        status = server.end(number)
        return Verdict(f"requests, signal {number}", "served", _ended(server, number, status))
    finally:
        if status is None:
            server.end(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _send(server: _Server, source: random.Random, held: ExitStack) -> None:
    """Connect, and send what nobody of ours would; then go, or stay and be silent."""
    words = source.choice((["--version"], ["classify", "--nonsense"], ["db", "info", "-d", "db"]))
    request = vars(Request(words, identity(str(server.folder / "in/db"), None), 1))
    request = {**request, "numbers": [0, 1, 2]}
    if source.random() < 0.6:
        request[source.choice([*request, "more"])] = source.choice(_STRANGE)
    message = json.dumps(request).encode()
    if source.random() < 0.5:
        message = mutate(message, source)
    size = source.choice((len(message), len(message), len(message) + 9, 0, 2**32 - 1))
    files = [os.open(os.devnull, os.O_RDWR) for _ in range(source.choice((3, 3, 3, 0, 1, 9)))]
    connection = held.enter_context(socket.socket(socket.AF_UNIX))
    connection.settimeout(30)
    with suppress(OSError):
        connection.connect(str(server.socket))
        socket.send_fds(connection, [size.to_bytes(4, "big")], files)
        connection.sendall(message[: source.choice((len(message), len(message), 10, 0))])
    for file in files:
        os.close(file)
    if source.random() < 0.5:
        connection.close()


def _ended(server: _Server, number: int, status: int) -> str:
    """What is wrong with the end of a server; empty if nothing."""
    expected = {15: 0, 2: 130, 9: -9}[number]
    if status != expected:
        return f"exit status {status}, not {expected}: {server.said.read_text()[-300:]}"
    said = server.said.read_text()
    if "Traceback" in said or "Exception" in said:
        return said[-600:]
    if number != signal.SIGKILL:
        if server.socket.exists():
            return "the socket is there"
        end = time.monotonic() + 5  # in which a cancelled run removes what it has begun
        while problem := difference({}, files_below(server.folder / "tmp")):
            if time.monotonic() > end:
                return f"left in tmp/: {problem}"
            time.sleep(0.05)
    return ""
