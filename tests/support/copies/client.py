"""``ngsgpu`` or ``snakemake`` in a copy of the server's process, as if it were this one.

Arguments: the server's socket, the program, and its arguments. It imports little: it is what each
command still waits for.
"""

import contextlib
import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def open_files() -> list[int]:
    numbers = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):  # the folder itself
            os.fstat(int(name))
            numbers.append(int(name))
    return numbers


def main() -> None:
    files = open_files()
    request = {
        "program": sys.argv[2],
        "arguments": sys.argv[3:],
        "files": files,
        "folder": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
    }
    message = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connection.sendall(len(message).to_bytes(4))
    sent = socket.send_fds(connection, [message], files)
    connection.sendall(message[sent:])
    answers = connection.makefile()
    command = int(answers.readline())
    for number in FORWARDED:
        signal.signal(number, lambda number, frame: os.kill(command, number))
    status = int(answers.readline() or -signal.SIGKILL)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
