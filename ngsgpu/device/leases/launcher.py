"""Running another program on leased GPUs, as if it had been started directly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from ngsgpu.device.leases.lease import lease_gpus
from ngsgpu.device.leases.record import NO_LEASE
from ngsgpu.ending import SIGNALS
from ngsgpu.errors import UsageError


class _NotStartedError(UsageError):
    """The program is not there or cannot be run; exit statuses as of shells."""

    def __init__(self, program: str, error: OSError) -> None:
        self.exit_status = 127 if isinstance(error, FileNotFoundError) else 126
        super().__init__(f"{program} cannot be run: {error.strerror}; check its name and the PATH")


def run_on_gpus(
    command: Sequence[str],
    count: int,
    wait: float | None = None,
    on_end: Callable[[int, dict[str, Any]], None] = lambda status, lease: None,
) -> int:
    """Run a program on ``count`` leased GPUs and wait for it.

    Signals are forwarded. The program inherits the locks, so that it keeps its GPUs even if this
    process is killed.

    Args:
        command: the program and its arguments.
        count: number of GPUs; 0 hides them all.
        wait: seconds to wait for them; None: no limit.
        on_end: called with the exit status and the lease (see ``LeaseRecord.entry``) before the
            lease ends.

    Returns:
        Its exit status; 128 plus the signal that ended it, as in shells.

    Raises:
        UsageError: there are not enough GPUs, or the program cannot be run.
        DeviceError: the GPUs did not become free in time.
    """
    if count < 0 or (wait is not None and wait < 0):
        raise UsageError("the number of GPUs and the seconds to wait must be 0 or more")
    if count == 0:
        status = _run(command, {"CUDA_VISIBLE_DEVICES": ""}, ())
        on_end(status, NO_LEASE)
        return status
    lease = lease_gpus(count, wait, command=command)
    try:
        status = _run(command, lease.environment(), lease.files)
        on_end(status, lease.record.entry())
        return status
    finally:
        lease.release()


def _run(command: Sequence[str], variables: dict[str, str], files: Sequence[int]) -> int:
    with _signals() as child:
        try:
            process = subprocess.Popen(command, env={**os.environ, **variables}, pass_fds=files)
        except OSError as error:
            raise _NotStartedError(command[0], error) from error
        child.start(process)
        status = process.wait()
    return 128 - status if status < 0 else status


class _Child:
    """Gets the signals that this process gets, also those from before it was started."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[Any] | None = None
        self.early: list[int] = []

    def start(self, process: subprocess.Popen[Any]) -> None:
        self.process = process
        for number in self.early:
            process.send_signal(number)

    def pass_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number in (signal.SIGINT, signal.SIGQUIT) and _at_terminal():
            return  # the terminal sends them to both
        if self.process is None:
            self.early.append(number)
        else:
            self.process.send_signal(number)


@contextlib.contextmanager
def _signals() -> Iterator[_Child]:
    child = _Child()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    # Ignored signals (nohup) stay ignored, since the child inherits that.
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, child.pass_on)
    try:
        yield child
    finally:
        for number, handler in before.items():
            if handler is not None:  # another library's, which Python cannot put back
                signal.signal(number, handler)


def _at_terminal() -> bool:
    """Whether this process group is the one that the keyboard's signals go to."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
