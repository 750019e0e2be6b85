"""A process that has imported what ``ngsgpu`` and Snakemake need, and runs both in its copies.

Most of a short command is importing, and the tests run hundreds of them. Each is a process of its
own, with its caller's arguments, folder, environment and open files (client.py), but begins as a
copy (fork) of this one. The server ends when its standard input does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import importlib
import importlib.util
import json
import os
import pickle
import selectors
import signal
import socket
import sys
from pathlib import Path
from typing import Any, TextIO

IMPORTED = (
    "jsonschema",
    "ngsgpu.assemble.pipeline",
    "ngsgpu.cli",
    "ngsgpu.correct.stage",
    "ngsgpu.extend.stage",
    "ngsgpu.merge.stage",
    "numba",
    "pysam",
    "smart_open",
    "snakemake.cli",
    "snakemake.report.html_reporter",
    "yte",
)


def remember_parsed(folder: Path) -> None:
    """Let Snakemake's parser translate each file once, not in every copy.

    Args:
        folder: where copies find what others have made of a file; is not there yet.
    """
    from snakemake import workflow

    folder.mkdir()
    translate = workflow.parse

    def parse(path: Any, own: Any, linemap: dict[int, int], rulecount: int = 0) -> tuple[str, int]:
        with own.sourcecache.open(path) as file:
            asked = path.get_path_or_uri(secret_free=True), file.read(), rulecount
        kept = folder / hashlib.sha256(repr(asked).encode()).hexdigest()
        if kept.exists():
            code, lines, count = pickle.loads(kept.read_bytes())
        else:
            lines = {}
            code, count = translate(path, own, lines, rulecount=rulecount)
            new = kept.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps((code, lines, count)))
            new.replace(kept)
        linemap.update(lines)
        return code, count

    workflow.parse = parse


def serve(path: str) -> socket.socket | None:
    """Copy this process for every caller.

    Returns:
        In a copy the connection to its caller; in the server nothing, at its end.
    """
    # What has run is forgotten by itself.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while 0 not in [key.fd for key, _ in selector.select()]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                return connection
            connection.close()
    return None


def keep(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Start the caller's command, say how it ends, and end it when the caller is gone.

    Returns:
        In the command's process what its caller asks for and its files; else nothing.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        size = int.from_bytes(connection.recv(4))
        message, files, _, _ = socket.recv_fds(connection, size, 250)
        while len(message) < size:
            message += connection.recv(size)
        command = os.fork()
        if command == 0:
            return json.loads(message), files
        for file in files:
            os.close(file)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % command)
            _wait(command, connection)
            _, status = os.waitpid(command, 0)
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    return None


def _wait(command: int, connection: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        ended = os.pidfd_open(command)
        selector.register(ended, selectors.EVENT_READ)
        selector.register(connection, selectors.EVENT_READ)
        if ended not in [key.fd for key, _ in selector.select()]:
            os.kill(command, signal.SIGKILL)


def become(request: dict[str, Any], files: list[int]) -> None:
    """Take over the files, folder, environment and arguments of the caller."""
    numbers = request["files"]
    above = 1 + max(2, *numbers, *files)
    for place, file in enumerate(files):
        os.dup2(file, above + place)
    os.closerange(0, above)
    for place, number in enumerate(numbers):
        os.dup2(above + place, number)
    os.closerange(above, above + len(files))
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = [request["program"], *request["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stream(number: int) -> TextIO | None:
    """As Python opens it; nothing where it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    errors = "backslashreplace" if number == 2 else "strict"
    mode = "w" if number else "r"
    file = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    file.reconfigure(line_buffering=number == 2 or file.isatty())  # type: ignore[attr-defined]
    return file  # type: ignore[return-value]


def run(program: str) -> int:
    """Run it and return its exit status."""
    try:
        if program == "snakemake":
            from snakemake.cli import main

            main()
        else:
            from ngsgpu.__main__ import main_cli

            main_cli()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ended.code is not None
    return 0


if __name__ == "__main__":
    for module in IMPORTED:
        if importlib.util.find_spec(module.partition(".")[0]) is not None:
            importlib.import_module(module)
    if "snakemake.cli" in sys.modules:
        sys.modules["snakemake.cli"].get_argument_parser()  # which looks for plugins
        remember_parsed(Path(sys.argv[1]).with_name("parsed"))
    # Nothing that is shared is written to: neither by the collection of garbage nor at the end.
    gc.collect()
    gc.freeze()
    if (caller := serve(sys.argv[1])) and (asked := keep(caller)):
        become(*asked)
        status = run(asked[0]["program"])
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
