"""Where a server's socket is, and who is at its other end."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ngsgpu.errors import UsageError, output_error

_PRIVATE: Final = 0o700
_LONGEST: Final = 80
"""Bytes of a socket's name, without its folder."""

_WAITING: Final = 1024
"""Requests that the system keeps for a server; more wait until they can connect."""


def default_socket(served: str) -> Path:
    """The socket of a user's server, by what is served: in a folder that only the user can enter.

    Args:
        served: path of what the server has open.

    Raises:
        UsageError: the folder is someone else's, or others may enter it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    user = os.getuid()
    folder = Path(runtime, "ngsgpu") if runtime else Path(tempfile.gettempdir(), f"ngsgpu-{user}")
    try:
        folder.mkdir(_PRIVATE, exist_ok=True)
        state = folder.lstat()
    except OSError as error:
        raise output_error(folder, error) from error
    if (state.st_uid, stat.S_IMODE(state.st_mode)) != (user, _PRIVATE) or not folder.is_dir():
        raise UsageError(
            f"{folder} must be a folder of yours that nobody else can enter (chmod 700); or name a "
            "socket elsewhere"
        )
    name = hashlib.sha256(os.fsencode(os.path.realpath(served))).hexdigest()[:16]
    return folder / f"{name}.sock"


@contextmanager
def _address(path: Path) -> Iterator[tuple[str, int]]:
    """A short name of a socket, for the system takes 107 bytes, and its folder, open."""
    if len(os.fsencode(path.name)) > _LONGEST:
        raise UsageError(f"{path}: the name is too long; choose a shorter one")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}", folder
    finally:
        os.close(folder)


def connected(path: Path) -> socket.socket | None:
    """Connect to a server; None if there is none.

    Raises:
        UsageError: what is there cannot be used.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _address(path) as (name, _):
            connection.connect(name)
        if peer(connection)[1] != os.getuid():
            raise UsageError(f"the server at {path} is of another user")
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        connection.close()
        return None
    except BaseException as error:
        connection.close()
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be used as a socket ({error.strerror})") from error
        raise
    return connection


def listening(path: Path) -> socket.socket:
    """Listen at a path, in place of a server that has ended.

    Raises:
        OutputError: no socket can be made there.
        UsageError: a server listens there, or something else is there.
    """
    try:
        with _address(path) as (name, folder):
            with suppress(OSError):  # of two that begin together, one sees the other
                fcntl.flock(folder, fcntl.LOCK_EX)
            if (other := connected(path)) is not None:
                with other:
                    process = peer(other)[0]
                raise UsageError(f"a server (process {process}) listens at {path} already")
            if path.is_socket():
                path.unlink()
            elif path.exists():
                raise UsageError(f"{path} is there already, and is no socket; choose another name")
            listener = socket.socket(socket.AF_UNIX)
            before = os.umask(0o177)
            try:
                listener.bind(name)
                listener.listen(_WAITING)
            except BaseException:
                listener.close()
                raise
            finally:
                os.umask(before)
            return listener
    except OSError as error:
        raise output_error(path, error) from error


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a connection; of a server, who began to listen."""
    numbers = struct.Struct("3i")
    own = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, numbers.size)
    process, user, _ = numbers.unpack(own)
    return process, user
