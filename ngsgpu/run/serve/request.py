"""What a command sends to a server, and how the server takes its place."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

from ngsgpu._version import __version__

SIZE_BYTES: Final = 4
STREAMS: Final = 3
_OPEN_FILE: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_OF_THE_SERVER: Final = ("CUDA_", "NGSGPU_LEASE")
"""Variables that begin so say which GPUs the server has leased."""


@dataclass
class Request:
    """A command that a server is to run.

    Attributes:
        words: of the command, without the program's name.
        served: identity of what the command believes the server to have open.
        threads: that the command will use.
        version: of the program.
        folder: where the command was started.
        umask: of its process.
        environment: of its process.
        numbers: of its open files that it hands over: the standard streams, and those that words
            name, as ``/dev/fd/63``.
        files: the same files, as open here.
    """

    words: list[str]
    served: str
    threads: int
    version: str = __version__
    folder: str = field(default_factory=os.getcwd)
    umask: int = field(default_factory=lambda: _umask())
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    numbers: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def send(self, connection: socket.socket) -> None:
        """Send it, with the open files.

        Raises:
            OSError: the other end has gone.
        """
        named = {int(number) for word in self.words for number in _OPEN_FILE.findall(word)}
        self.numbers = [*range(STREAMS), *sorted(named - {*range(STREAMS)})]
        message = json.dumps(asdict(self)).encode()
        socket.send_fds(connection, [len(message).to_bytes(SIZE_BYTES, "big")], self.numbers)
        connection.sendall(message)

    @contextmanager
    def taken_over(self) -> Iterator[list[str]]:
        """Within the block, this process has the streams, folder and environment of the command.

        Yields:
            The words, with the names that further open files have in this process.

        Raises:
            OSError: the folder cannot be entered, or a file does not open.
            ValueError: the environment is none.
        """
        here: dict[int, int] = {}

        def name(found: re.Match[str]) -> str:
            return found[0].replace(found[1], str(here.get(int(found[1]), found[1])))

        streams = [os.dup(number) for number in range(STREAMS)]
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        environment, umask = dict(os.environ), os.umask(self.umask)
        try:
            _set_environment(
                {name: own for name, own in self.environment.items() if not _is_kept(name)}
                | {name: own for name, own in environment.items() if _is_kept(name)}
            )
            for number, file in enumerate(self.files[:STREAMS]):
                os.dup2(file, number)
            for number, file in zip(self.numbers[STREAMS:], self.files[STREAMS:], strict=True):
                here[number] = os.dup(file) if _is_open(number) else os.dup2(file, number)
            os.chdir(self.folder)
            yield [_OPEN_FILE.sub(name, word) for word in self.words]
        finally:
            os.umask(umask)
            _set_environment(environment)
            os.fchdir(folder)
            for number, file in enumerate(streams):
                os.dup2(file, number)
            close([*here.values(), *streams, folder])


def close(files: Sequence[int]) -> None:
    """Close open files."""
    for file in files:
        os.close(file)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_kept(variable: str) -> bool:
    return variable.startswith(_OF_THE_SERVER)


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None  # which depends on them


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
