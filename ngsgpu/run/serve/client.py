"""A command that has a server run it, and the end of a server."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Final

from ngsgpu.ending import Terminated
from ngsgpu.errors import NgsgpuError, UsageError
from ngsgpu.run.serve.place import connected, peer
from ngsgpu.run.serve.request import Request

_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 30


def ask(path: Path, request: Request) -> int:
    """Have a server run a command, and return the exit status; waits until the server is ready.

    A signal that this process gets goes on to the server's.

    Args:
        path: the server's socket.
        request: the command.

    Raises:
        NgsgpuError: the server ended before the command did.
        UsageError: there is no server, or it refuses the command.
    """
    connection = _connected(path)
    with connection:
        try:
            request.send(connection)
            answer = _answer(connection)
        except (KeyboardInterrupt, Terminated) as error:
            number = error.number if isinstance(error, Terminated) else signal.SIGINT
            try:
                connection.sendall(bytes([number]))
                answer = _answer(connection)
            except (NgsgpuError, OSError):
                raise error from None
    if "refused" in answer:
        raise UsageError(answer["refused"])
    return int(answer["status"])


def stop(path: Path) -> None:
    """End a server, as SIGTERM does, and wait until it has gone.

    Raises:
        NgsgpuError: it does not end.
        UsageError: there is none.
    """
    with _connected(path) as connection:
        process, _ = peer(connection)
    os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _END_SECONDS
    while (left := connected(path)) is not None:
        left.close()
        if time.monotonic() > end:
            raise NgsgpuError(f"the server (process {process}) does not end; kill it")
        time.sleep(_POLL_SECONDS)


def _connected(path: Path) -> socket.socket:
    connection = connected(path)
    if connection is None:
        raise UsageError(f"no server listens at {path}; start one with `ngsgpu db serve`")
    return connection


def _answer(connection: socket.socket) -> dict[str, str]:
    try:
        with connection.makefile("rb") as answers:
            line = answers.readline()
    except ConnectionError:
        line = b""
    if not line:
        raise NgsgpuError("the server ended before this was done; see its messages")
    answer: dict[str, str] = json.loads(line)
    return answer
