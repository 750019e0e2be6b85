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
import json
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
    "pandas",
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
    from snakemake import common, workflow

    folder.mkdir()
    translate = workflow.parse

    def parse(path: Any, own: Any, linemap: dict[int, int], rulecount: int = 0) -> tuple[str, int]:
        def make() -> tuple[str, dict[int, int], int]:
            lines: dict[int, int] = {}
            code, count = translate(path, own, lines, rulecount=rulecount)
            return code, lines, count

        with own.sourcecache.open(path) as file:
            asked = path.get_path_or_uri(secret_free=True), file.read(), rulecount
        code, lines, count = remember(folder, asked, make)
        linemap.update(lines)
        return code, count

    def compile_once(code: str, path: str, mode: str) -> CodeType:
        return remember(
            folder, (code, path, mode), lambda: compile(code, path, mode, dont_inherit=True)
        )

    common.get_function_params = functools.cache(common.get_function_params)
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
    if caller := serve(sys.argv[1]):
        status = 0
        if asked := keep(caller):
            become(*asked)
            status = run(asked[0]["program"])
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        os._exit(status)  # to end in order takes a quarter of a second: it writes to all modules
