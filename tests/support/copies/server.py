"""A process that has imported what ``ngsgpu`` and Snakemake need, and runs both in its copies.

Most of a short command is importing, and the tests run hundreds of them. Each is a process of its
own, with its caller's arguments, folder, environment and open files (client.py), but begins as a
copy (fork) of this one. The server ends when its standard input does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import gzip
import hashlib
import importlib
import importlib.util
import itertools
import marshal
import os
import selectors
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

IMPORTED = (
    "jsonschema",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "ngsgpu.report.render",
    "numba",
    "numpy.ma",
    "pysam",
    "smart_open",
    "snakemake.cli",
    "snakemake.report.html_reporter",
    "yte",
)
"""Modules, of which some may not be installed."""

PAIRS = ("-i", "R1.fq", "-I", "R2.fq", "--threads", "1")
COMMANDS = (
    ("adapters", *PAIRS),
    ("trim", *PAIRS, "-o", "t1.fq.gz", "-O", "t2.fq.gz"),
    ("correct", *PAIRS, "-o", "c1.fq.gz", "-O", "c2.fq.gz"),
    ("correct", "--method", "spectrum", *PAIRS, "-o", "s1.fq", "-O", "s2.fq"),
    ("merge", *PAIRS, "-o", "m.fq.gz"),
    ("extend", *PAIRS, "-o", "e.fq.gz"),
    ("kmers", "count", *PAIRS, "-o", "kmers"),
    ("deplete-index", "host.fa", "-o", "host.idx"),
    ("deplete", *PAIRS, "-d", "host.idx", "-o", "d1.fq", "-O", "d2.fq"),
    ("db", "build", "-d", "host.db", "host.fa"),
    ("classify", *PAIRS, "-d", "host.db", "-o", "calls.tsv"),
)
"""Commands that have to load compiled kernels."""

Request = tuple[str, list[str], list[int], str, dict[bytes, bytes]]
"""What a caller sends: a program, its arguments, the numbers of open files, which follow, a folder
and an environment."""

EMPTY_FIGURES = "TESTS_EMPTY_FIGURES"
"""A variable that is set where figures of reports need not be drawn."""


def remember(folder: Path, asked: object, make: Callable[[], Any]) -> Any:
    """What a copy has made before, or what ``make`` returns now.

    Args:
        folder: where copies find what others have made.
        asked: all that it depends on.
        make: returns something that `marshal` can write.
    """
    kept = folder / hashlib.sha256(repr(asked).encode()).hexdigest()
    if kept.exists():
        return marshal.loads(kept.read_bytes())
    made = make()
    new = kept.with_suffix(f".{os.getpid()}")
    new.write_bytes(marshal.dumps(made))
    new.replace(kept)
    return made


def quicken_snakemake(folder: Path) -> None:
    """Let Snakemake translate and compile each file once, not in every copy, and read YAML by C.

    And look once at which parameters a function has, not for each file and resource of each job.

    Args:
        folder: where copies find what others have made of a file; is not there yet.
    """
    import yaml
    from snakemake import common, jobs, rules, workflow
    from snakemake.sourcecache import LocalSourceFile

    folder.mkdir()
    translate = workflow.parse

    def parse(path: Any, own: Any, linemap: dict[int, int], rulecount: int = 0) -> tuple[str, int]:
        def make() -> tuple[str, dict[int, int], int]:
            lines: dict[int, int] = {}
            code, count = translate(path, own, lines, rulecount=rulecount)
            return code, lines, count

        place = path.get_path_or_uri(secret_free=True)
        is_file = isinstance(path, LocalSourceFile)
        with Path(place).open() if is_file else own.sourcecache.open(path) as file:
            asked = place, file.read(), rulecount
        code, lines, count = remember(folder, asked, make)
        linemap.update(lines)
        return code, count

    def compile_once(code: str, path: str, mode: str) -> CodeType:
        return remember(
            folder, (code, path, mode), lambda: compile(code, path, mode, dont_inherit=True)
        )

    looked = functools.cache(common.get_function_params)
    common.get_function_params = rules.get_function_params = jobs.get_function_params = looked
    workflow.parse = parse
    workflow.compile = compile_once
    if yaml.__with_libyaml__:
        yaml.SafeLoader, yaml.FullLoader = yaml.CSafeLoader, yaml.CFullLoader


def run_commands(reads: Path) -> None:
    """Run ``COMMANDS`` in this process, which then has what they load.

    Args:
        reads: folder with the reads that they get some of.
    """
    from ngsgpu.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for mate in (1, 2):
            with gzip.open(reads / f"ecoli_mg1655_1kb_R{mate}.fastq.gz") as file:
                Path(f"R{mate}.fq").write_bytes(b"".join(itertools.islice(file, 400)))
        bases = Path("R1.fq").read_text().splitlines()[1::4]
        Path("host.fa").write_text(f">host\n{''.join(bases)}\n")
        for command in COMMANDS:
            status = main([*command, "--quiet"])
            assert status == 0, command


def leave_figures_empty() -> None:
    """Most of a report's time is drawing, of which few tests look at what it draws."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return

    def save(figure: Figure, file: TextIO, **options: object) -> None:
        file.write("<svg></svg>")

    Figure.savefig = save


class Server:
    """Copies this process for every caller.

    Args:
        path: of the socket that it listens on.
    """

    def __init__(self, path: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(0, selectors.EVENT_READ)

    def serve(self) -> tuple[Request, list[int]] | None:
        """Start commands, say how they end, and end those whose callers are gone.

        Returns:
            In a copy what its caller asks for and its files; in the server nothing, at its end.
        """
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return None
                if (asked := key.data()) is not None:
                    return asked

    def _accept(self) -> tuple[Request, list[int]] | None:
        connection, _ = self._listener.accept()
        size = int.from_bytes(connection.recv(4))
        message, files, _, _ = socket.recv_fds(connection, size, 250)
        while len(message) < size and (part := connection.recv(size)):
            message += part
        is_whole = size > 0 and len(message) == size  # else the caller is gone
        command = os.fork() if is_whole else None
        if command == 0:
            return marshal.loads(message), files
        for file in files:
            os.close(file)
        if command is None:
            connection.close()
            return None
        ended = os.pidfd_open(command)
        end = functools.partial(self._end, command, ended, connection)
        kill = functools.partial(self._kill, command, connection)
        self._selector.register(ended, selectors.EVENT_READ, end)
        self._selector.register(connection, selectors.EVENT_READ, kill)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % command)
        return None

    def _end(self, command: int, ended: int, connection: socket.socket) -> None:
        _, status = os.waitpid(command, 0)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        self._selector.unregister(ended)
        os.close(ended)
        self._forget(connection)

    def _kill(self, command: int, connection: socket.socket) -> None:
        if connection.fileno() >= 0:  # it has not just ended
            os.kill(command, signal.SIGKILL)
        self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        if connection.fileno() >= 0:
            self._selector.unregister(connection)
            connection.close()


def become(request: Request, files: list[int]) -> None:
    """Take over the files, folder, environment and arguments of the caller."""
    program, arguments, numbers, folder, environment = request
    above = 1 + max(2, *numbers, *files)
    for place, file in enumerate(files):
        os.dup2(file, above + place)
    os.closerange(0, above)
    for place, number in enumerate(numbers):
        os.dup2(above + place, number)
    os.closerange(above, 1 + max(map(int, os.listdir("/proc/self/fd"))))  # noqa: PTH208
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    os.environb.clear()
    os.environb.update(environment)
    os.chdir(folder)
    sys.argv = [program, *arguments]
    if os.environ.get(EMPTY_FIGURES):
        leave_figures_empty()
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

            gc.disable()  # there is no garbage worth the time in a short run
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
        quicken_snakemake(Path(sys.argv[1]).with_name("parsed"))
    run_commands(Path(__file__).parents[2] / "data" / "reads")
    # Nothing that is shared is written to: neither by the collection of garbage nor at the end.
    gc.collect()
    gc.freeze()
    server = Server(sys.argv[1])
    print("ready", flush=True)
    if asked := server.serve():
        become(*asked)
        status = run(sys.argv[0])
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
