"""Requests that arrive at a server, piece by piece: no client keeps others waiting."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from typing import Any, Final

from ngsgpu._version import __version__
from ngsgpu.io.output.manifest import has_shape, is_count, is_text, parse_json
from ngsgpu.run.serve.request import SIZE_BYTES, STREAMS, Request, close

_SECONDS: Final = 10
"""A client has so long to send its request."""
_MOST_BYTES: Final = 16 << 20
_PIECE: Final = 1 << 18
_MOST_FILES: Final = 250
_LARGEST_NUMBER: Final = 1 << 20
_AGAIN: Final = "end the server with `ngsgpu db serve --stop` and start it again"

_SHAPE: Final[dict[str, Any]] = {
    "words": [is_text],
    "served": str,
    "threads": is_count,
    "version": str,
    "folder": is_text,
    "umask": lambda value: is_count(value) and value <= 0o777,
    "environment": {str: is_text},
    "numbers": [lambda value: is_count(value) and value < _LARGEST_NUMBER],
    "files": list,
}


class RefusedError(Exception):
    """A request that cannot be run; the text says why, and is empty if its client has gone."""


class Arriving:
    """A connection whose request has not arrived yet.

    Args:
        connection: to a client.

    Attributes:
        connection: the same.
        deadline: time at which the client is given up, of ``time.monotonic``.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.deadline = time.monotonic() + _SECONDS
        self._data = bytearray()
        self._files: list[int] = []

    def receive(self) -> Request | None:
        """Take what has arrived; the request, once that is all of it.

        Raises:
            RefusedError: it is none, or of another version.
        """
        while (missing := self._missing()) > 0:
            try:
                data, files, _, _ = socket.recv_fds(
                    self.connection, min(missing, _PIECE), _MOST_FILES
                )
            except BlockingIOError:
                return None
            except OSError as error:
                raise RefusedError from error
            self._files += files
            if not data:
                raise RefusedError
            self._data += data
        request = _request(bytes(self._data[SIZE_BYTES:]), self._files)
        self._files = []
        self.connection.setblocking(True)
        return request

    def _missing(self) -> int:
        """Bytes of the request, or of its size, that have not arrived."""
        if len(self._data) < SIZE_BYTES:
            return SIZE_BYTES - len(self._data)
        size = int.from_bytes(self._data[:SIZE_BYTES], "big")
        if size > _MOST_BYTES or len(self._files) > _MOST_FILES:
            raise RefusedError("the request is too large")
        return SIZE_BYTES + size - len(self._data)

    def refuse(self, reason: str) -> None:
        """Say why the request is not run, if there is a reason, and end the connection."""
        if reason:
            with suppress(OSError):
                self.connection.sendall(json.dumps({"refused": reason}).encode() + b"\n")
        self.close()

    def close(self) -> None:
        """End the connection, and close the files that came over it."""
        self.connection.close()
        close(self._files)


def _request(message: bytes, files: list[int]) -> Request:
    """The request in a message.

    Raises:
        RefusedError: it is none, or of another version.
    """
    try:
        values = parse_json(message)
    except ValueError as error:
        raise RefusedError("the request is no JSON") from error
    version = values.get("version") if isinstance(values, dict) else None
    if isinstance(version, str) and version != __version__:
        raise RefusedError(f"the server is ngsgpu {__version__}, this is {version}; {_AGAIN}")
    if not has_shape(values, _SHAPE):
        raise RefusedError("the request lacks a field, or has a wrong one")
    numbers = values["numbers"]
    if numbers[:STREAMS] != [*range(STREAMS)] or not len({*numbers}) == len(numbers) == len(files):
        raise RefusedError("the request comes without the files that it names")
    return Request(**{**values, "files": files})


def refusal_of(request: Request, served: str) -> str:
    """Why a server of something cannot run a request; empty if it can."""
    if request.served == served:
        return ""
    return f"the server has another database open, or an earlier state of this one; {_AGAIN}"
