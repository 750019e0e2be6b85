"""Signals at every moment at which Python would notice one."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from ngsgpu import ending
from ngsgpu.ending import Terminated
from ngsgpu.io.output import temporary


def interrupted_everywhere(
    place: Path, prepare: Callable[[Path], object], work: Callable[[Path], object]
) -> Iterator[Path]:
    """Folders in which work was interrupted: in each at a later moment, in the last one not at all.

    Args:
        place: where the folders are made; each has the number of its moment as its name.
        prepare: fills a folder.
        work: what is done with it.
    """
    for moment in itertools.count():
        folder = place / str(moment)
        folder.mkdir()
        prepare(folder)
        was_interrupted = _is_interrupted(functools.partial(work, folder), moment)
        yield folder
        if not was_interrupted:
            break
    gc.collect()  # so that what earlier moments left open is not closed in another test


_PURE = frozenset(
    ("codecs", "enum", "fnmatch", "functools", "json.decoder", "json.encoder", "json.scanner", "os",
     "pathlib", "posixpath", "re", "re._casefix", "re._compiler", "re._parser")
)  # fmt: skip
"""Modules that only compute: an exception leaves each moment of them, but for calls of the
operating system, as it does the first one after the same call."""

_SYSTEM = frozenset(("_io", "fcntl", "io", "posix"))


def _is_interrupted(work: Callable[[], object], moment: int) -> bool:
    """Do some work, up to a moment at which a signal raises an exception, and what is done then.

    Python looks for signals where a function begins or goes on, and after each call of C code;
    ``defer_signals`` blocks put the exception off to the first moment after them. Of moments with
    the same outcome, in such blocks and in modules that only compute, one is tried.

    Args:
        work: what is done.
        moment: its number, from 0.

    Returns:
        Whether there was such a moment.
    """
    left = moment
    last: tuple[int, int] | None = None

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left, last
        if event not in ("call", "c_return") or ending._here.blocks:
            return
        caller = frame
        while caller.f_globals.get("__name__") in _PURE and caller.f_back is not None:
            caller = caller.f_back
        here = id(caller), caller.f_lasti
        if here == last and caller is not frame and not _calls_system(event, argument):
            return
        last = here
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise Terminated

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    except BaseException:  # others may make another exception of it
        if left >= 0:
            raise
    finally:
        sys.setprofile(before)
        temporary.remove_all()  # as at the end of the process
    return left < 0


def _calls_system(event: str, function: Any) -> bool:
    """Whether it is the end of a call of the operating system, as a function or a file's method."""
    if event != "c_return":
        return False
    return (function.__module__ or type(function.__self__).__module__) in _SYSTEM


def killed_everywhere(
    place: Path, prepare: Callable[[Path], object], work: Callable[[Path], object]
) -> Iterator[Path]:
    """Folders in which work was killed: in each at a later moment, in the last one not at all.

    Arguments are those of ``interrupted_everywhere``; the work is done by a fork. Moments are those
    before each system call that changes something on the disk.
    """
    for moment in itertools.count():
        folder = place / str(moment)
        folder.mkdir()
        prepare(folder)
        child = os.fork()
        if child == 0:
            try:
                _kill_at(moment)
                work(folder)
                sys.setprofile(None)
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        yield folder
        if status == 0:
            break


_CHANGES = frozenset(
    ("open", "write", "pwrite", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "close",
     "fchmod", "flock", "ftruncate")
)  # fmt: skip


def _kill_at(moment: int) -> None:
    left = moment

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event == "c_call" and argument.__name__ in _CHANGES:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(look)
