"""How a run ends on Ctrl-C, SIGTERM and every other signal that asks to: without leftovers.

Each of them raises an exception in the main thread, which unwinds and removes unfinished files.
Python does so only between its own instructions, so a long-running kernel would delay it. A second
thread therefore learns of the signal as it arrives; if the run has not ended after ``GRACE``
seconds, that thread cleans up and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

GRACE: Final = 1.0
"""Seconds that a run has for ending by itself."""

SIGNALS: Final = frozenset(
    int(getattr(signal, name))
    for name in (
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGSTKFLT",
        "SIGXCPU", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR",
    )
    if hasattr(signal, name)
) | frozenset(range(signal.SIGRTMIN, signal.SIGRTMAX + 1))  # fmt: skip
"""Signals that end a process unless it handles them, and do not report a fault of the program.

Sent by terminals, batch systems (a warning before the time is over) and limits of CPU time.
"""

_CTRL_C: Final = int(signal.SIGINT)
_WORDS: Final = {
    _CTRL_C: "interrupted",
    int(signal.SIGTERM): "terminated",
    int(signal.SIGXCPU): "ended by SIGXCPU: the limit of CPU time (ulimit -t) is reached",
}
_CANCEL: Final = signal.SIGURG
"""Wakes the main thread; one that comes too late is ignored."""

_SHOW_CURSOR: Final = "\n\x1b[?25h"


def status_of(number: int) -> int:
    """The exit status of a run that a signal ended, as in shells: 130 for Ctrl-C."""
    return 128 + number


def message_of(number: int) -> str:
    """The last line of a run that a signal ended."""
    if number in _WORDS:
        return f"ngsgpu: {_WORDS[number]}"
    named = number < signal.SIGRTMIN
    return f"ngsgpu: ended by {signal.Signals(number).name if named else f'signal {number}'}"


class Terminated(BaseException):
    """The process was asked to end by a signal other than that of Ctrl-C.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(number)
        self.number = int(number)


class _Here(threading.local):
    """The signals that the main thread has received.

    Attributes:
        told: the signal that has raised an exception, or will after the blocks; 0: none.
        blocks: how many ``defer_signals`` ones it is in.
        is_cancelled: whether ``told`` is the wish of another thread (``cancellable``).
    """

    told: int = 0
    blocks: int = 0
    is_cancelled: bool = False


_here = _Here()
_last_things: list[Callable[[], None]] = []


def before_ending(clean_up: Callable[[], None]) -> None:
    """Have a function called, in any thread, before a process ends that a signal asked to.

    Args:
        clean_up: removes what must not outlive the process; does not fail.
    """
    _last_things.append(clean_up)


@contextlib.contextmanager
def cleaned_up(clean_up: Callable[[], None]) -> Iterator[None]:
    """Have a function called after a block, or before the process ends that a signal asked to.

    Args:
        clean_up: removes what must not outlive the block; called again if a signal interrupts it.
    """
    _last_things.append(clean_up)
    try:
        yield
    finally:
        try:
            clean_up()
        except BaseException:
            clean_up()
            raise
        finally:
            _last_things.remove(clean_up)


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Have a signal raise its exception after the block, not within: for code that cannot stand it.

    The process ends ``GRACE`` seconds after the signal all the same.
    """
    before = _told()
    _here.blocks += 1
    try:
        yield
    finally:
        _here.blocks -= 1
        if not _here.blocks and (told := _told()) != before:
            raise _exception(told)


def _clean_up() -> None:
    for clean_up in reversed(_last_things):
        clean_up()


@contextlib.contextmanager
def handle_termination() -> Iterator[None]:
    """Let signals raise ``Terminated`` or ``KeyboardInterrupt``, or end the process.

    Batch schedulers and ``timeout`` send SIGTERM. Only the first signal raises an exception. Where
    someone else handles or ignores a signal (``nohup``), or outside of the main thread, where
    Python forbids to, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = dict.fromkeys(SIGNALS, signal.SIG_DFL) | {_CTRL_C: signal.default_int_handler}
    free = {number: own for number, own in usual.items() if signal.getsignal(number) is own}
    for number in free:
        signal.signal(number, _raise)
    unraisable = sys.unraisablehook
    sys.unraisablehook = _without_signals(unraisable)
    _here.told = 0
    try:
        with _watched():
            yield
    except BaseException as error:
        # Whatever became of it on its way, in an import or a lock that was half taken.
        if (told := _told()) and not isinstance(error, type(_exception(told))):
            raise _exception(told) from error
        raise
    finally:
        sys.unraisablehook = unraisable
        for number, own in free.items():
            signal.signal(number, own)


def _told() -> int:
    return _here.told


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == _CTRL_C else Terminated(number)


def _raise(number: int, frame: FrameType | None) -> None:
    del frame
    # A second signal, or the other one (workflow managers send both), must not interrupt clean-up.
    for other in SIGNALS:
        if signal.getsignal(other) is _raise:
            signal.signal(other, signal.SIG_IGN)
    _here.told, _here.is_cancelled = number, False
    if not _here.blocks:
        raise _exception(number)


@contextlib.contextmanager
def cancellable() -> Iterator[Callable[[int], None]]:
    """Let another thread end what a block does as a signal would, without ending the process.

    Yields:
        What that thread calls with the number of the signal, while the block lasts.

    Raises:
        KeyboardInterrupt, Terminated: of that signal, as ``was_cancelled`` tells, or of one that
            the process got in the block, whatever became of it there.
    """
    thread = threading.get_ident()
    wanted = 0

    def cancel(number: int) -> None:
        nonlocal wanted
        wanted = number
        signal.pthread_kill(thread, _CANCEL)

    def arrive(number: int, frame: FrameType | None) -> None:
        del number, frame
        if wanted and not _here.told:
            _here.told, _here.is_cancelled = wanted, True
            if not _here.blocks:
                raise _exception(wanted)

    before = signal.signal(_CANCEL, arrive)
    try:
        yield cancel
    finally:
        signal.signal(_CANCEL, before)
        told, _here.told = _here.told, 0
        if told and not _here.is_cancelled:
            raise _exception(told)


def was_cancelled() -> bool:
    """Whether the last signal was another thread's wish (``cancellable``)."""
    return _here.is_cancelled


def begin_again() -> None:
    """Let a copy (fork) of a process handle signals as one that begins."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is _raise:
            signal.signal(
                number, signal.default_int_handler if number == _CTRL_C else signal.SIG_DFL
            )
    _here.told = _here.blocks = 0


def _without_signals(report: Callable[[Any], object]) -> Callable[[Any], object]:
    """Report uncatchable exceptions, except for the arrival of a signal.

    Such an exception is lost where C code calls Python (a compiler's callback); the watcher thread
    handles the signal.
    """

    def without_signals(lost: Any) -> None:
        if not isinstance(lost.exc_value, Terminated | KeyboardInterrupt):
            report(lost)

    return without_signals


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """Have a thread end the process where an exception does not."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    before = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    if before != -1:  # someone else's, who handles signals
        signal.set_wakeup_fd(before)
        os.close(receiver)
        os.close(sender)
        yield
        return
    ended = threading.Event()
    threading.Thread(
        target=_watch, args=(receiver, ended), name="ngsgpu-ending", daemon=True
    ).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(-1)
        os.close(sender)


def _watch(receiver: int, ended: threading.Event) -> None:
    """Wait for a signal that ends runs, and see that it does."""
    with open(receiver, "rb", buffering=0) as signals:  # a descriptor
        while received := signals.read(1):
            number = received[0]
            if number in SIGNALS and signal.getsignal(number) in (_raise, signal.SIG_IGN):
                if not ended.wait(GRACE):
                    end(number)
                return


def end(number: int) -> None:
    """End the process here and now, as a signal asks to; may be called by any thread."""
    _clean_up()
    with contextlib.suppress(OSError):
        text = (_SHOW_CURSOR if os.isatty(2) else "") + message_of(number) + "\n"
        os.write(2, text.encode())
    os._exit(status_of(number))


def leave(status: int) -> None:
    """End the process with an exit status; after a signal without waiting for other threads."""
    # All is done and said: a signal on the last metres changes nothing.
    for number in SIGNALS:
        with contextlib.suppress(ValueError):
            signal.signal(number, signal.SIG_IGN)
    if status - 128 in SIGNALS:
        _clean_up()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)
