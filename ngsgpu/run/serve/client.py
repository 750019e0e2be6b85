"""A command that has a server run it, and the end of a server."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ngsgpu.ending import Terminated
from ngsgpu.errors import NgsgpuError, UsageError, without_control_characters
from ngsgpu.run.serve.place import connected, peer
from ngsgpu.run.serve.request import Request

_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 30
_LONGEST_ANSWER: Final = 1 << 16
_LARGEST_STATUS: Final = 255


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
            with suppress(OSError):  # a server that refuses does not wait for all of it
                request.send(connection)
            answer = _answer(connection)
        except (KeyboardInterrupt, Terminated) as error:
            number = error.number if isinstance(error, Terminated) else signal.SIGINT
            try:
                connection.sendall(bytes([number]))
                answer = _answer(connection)
            except (NgsgpuError, OSError):
                raise error from None
    refused, status = answer.get("refused"), answer.get("status")
    if isinstance(refused, str):
        raise UsageError(without_control_characters(refused))
    if type(status) is int and 0 <= status <= _LARGEST_STATUS:
        return status
    raise NgsgpuError(f"{path}: what listens here is no server of ngsgpu; name another socket")


def stop(path: Path) -> None:
    """End a server, as SIGTERM does, and wait until it has gone.

    Raises:
        NgsgpuError: it does not end.
        UsageError: there is none.
    """
    with _connected(path) as connection:
        process, _ = peer(connection)
    if not _is_server(process):
        raise UsageError(f"{path}: process {process}, which listens here, is no server of ngsgpu")
    with suppress(ProcessLookupError):
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


def _is_server(process: int) -> bool:
    """Whether a process is a server of ours; one of another container is not known here."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return process > 0 and any(pair == (b"db", b"serve") for pair in pairwise(words))


def _answer(connection: socket.socket) -> dict[str, Any]:
    """What the server answers; empty if that makes no sense."""
    try:
        with connection.makefile("rb") as answers:
            line = answers.readline(_LONGEST_ANSWER)
    except OSError:
        line = b""
    if not line:
        raise NgsgpuError("the server ended before this was done; see its messages")
    with suppress(ValueError, RecursionError):
        answer = json.loads(line)
        if isinstance(answer, dict):
            return answer
    return {}
