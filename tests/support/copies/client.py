"""``ngsgpu`` or ``snakemake`` in a copy of the server's process, as if it were this one.

Arguments: the server's socket, the program, and its arguments. It is what each command still waits
for, and imports only modules that are part of the interpreter.
"""

import _signal
import _socket
import marshal
import posix
import sys

FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)


def open_files() -> list[int]:
    numbers = []
    for name in posix.listdir("/proc/self/fd"):
        try:
            posix.fstat(int(name))
        except OSError:  # the folder itself
            continue
        numbers.append(int(name))
    return numbers


def answer(connection: _socket.socket) -> int | None:
    """The next number that the server sends; none if it is gone."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := connection.recv(1)):
            return None
        line += byte
    return int(line)


def main() -> None:
    files = open_files()
    request = sys.argv[2], sys.argv[3:], files, posix.getcwd(), posix.environ
    message = marshal.dumps(request)
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.sendall(len(message).to_bytes(4))
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in files)
    sent = connection.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    connection.sendall(message[sent:])
    command = answer(connection)
    assert command is not None
    for number in FORWARDED:
        _signal.signal(number, lambda number, frame: posix.kill(command, number))
    status = answer(connection)
    if status is None:
        status = -_signal.SIGKILL
    if status < 0:
        _signal.signal(-status, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -status)
    posix._exit(status)


main()
