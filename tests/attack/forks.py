"""Commands in forks of a warm process, each with its folder, streams, limits and signals."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.ending import SIGNALS

_HANGS: Final = 60.0
_CRASHED: Final = 70
_SIGNALS: Final = SIGNALS


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    Attributes:
        status: exit status; negative: the signal that ended it; None: it hung and was killed.
        stderr: what it wrote there.
        seconds: how long it ran.
        since_signal: seconds from the signal that was sent, if any was, to its end.
    """

    status: int | None
    stderr: str
    seconds: float
    since_signal: float | None = None


def run(
    arguments: list[str],
    *,
    tmp: Path,
    stdin: Path | None = None,
    stdout: Path | None = None,
    prepare: Callable[[], None] | None = None,
    signal_after: tuple[int, float] | None = None,
    meanwhile: tuple[float, Callable[[], None]] | None = None,
) -> Ending:
    """Run ``ngsgpu`` with these arguments in a fork.

    Args:
        arguments: as on the command line.
        tmp: folder for its temporary files. The command runs in the folder ``in`` beside it, and
            its standard error is kept there, too.
        stdin: file to read from, or nothing.
        stdout: file to write to, or nothing.
        prepare: called in the fork before the command.
        signal_after: a signal to send, and after how many seconds.
        meanwhile: after how many seconds to call something, unless it has ended.
    """
    errors = tmp.with_name("stderr")
    errors.write_bytes(b"")
    # A signal waits until the fork is ready to be interrupted.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_the_command(arguments, tmp, stdin, stdout, errors, prepare)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    sent: float | None = None
    while True:
        done, raw = os.waitpid(child, os.WNOHANG)
        now = time.monotonic()
        if done:
            break
        if signal_after is not None and sent is None and now - began >= signal_after[1]:
            os.kill(child, signal_after[0])
            sent = now
        if meanwhile is not None and now - began >= meanwhile[0]:
            meanwhile[1]()
            meanwhile = None
        if now - began > _HANGS:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Ending(None, errors.read_text(errors="replace"), now - began)
        time.sleep(0.0005 if signal_after or meanwhile else 0.003)
    return Ending(
        os.waitstatus_to_exitcode(raw),
        errors.read_text(errors="replace"),
        now - began,
        None if sent is None else now - sent,
    )


def _be_the_command(
    arguments: list[str],
    tmp: Path,
    stdin: Path | None,
    stdout: Path | None,
    errors: Path,
    prepare: Callable[[], None] | None,
) -> None:
    status = _CRASHED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, path, flags in (
            (0, stdin or Path(os.devnull), os.O_RDONLY),
            (1, stdout or Path(os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(path, flags, 0o666), number)
        os.chdir(tmp.with_name("in"))
        os.environ["TMPDIR"] = str(tmp)
        tempfile.tempdir = None
        if prepare is not None:
            prepare()
        from ngsgpu.cli import main

        status = _interruptible(main, arguments)
        # What the interpreter does when it ends: a thread that never ends is a hang.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:  # and no other call, after which a late signal could let the fork go on as its parent
        os._exit(status)


def _interruptible(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Let signals in, first as to a new interpreter: SIGINT raises, SIGTERM ends."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return main(arguments)
    except KeyboardInterrupt:
        print("ngsgpu: interrupted", file=sys.stderr)
        return 130


def warm_up(arguments: list[list[str]]) -> None:
    """Import everything and load all kernels, by running commands in this process."""
    from ngsgpu.cli import main

    for words in arguments:
        if status := main(words):
            raise RuntimeError(f"exit status {status} of ngsgpu {' '.join(words)}")
