"""Progress of long work, on standard error.

On a terminal each stage is a bar; elsewhere (a batch job's log) it is a few plain lines through
the logger ``ngsgpu``: one when a stage starts, one when it ends, and between them one at most
every ten seconds and every tenth of the work, but one at least every five minutes in which
something moved.

Usage::

    with Progress() as progress:
        with progress.stage("correcting reads", total=n_reads, unit="reads") as stage:
            stage.advance(1000)

Stages may run at the same time and be advanced from any thread.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from ngsgpu.compiled import has_compiled
from ngsgpu.io.mapped import check_reads
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.options import RunOptions

logger = logging.getLogger("ngsgpu")

P = TypeVar("P")


LINE_SECONDS = 10.0
LINE_SHARE = 0.1
LINE_SECONDS_AT_MOST = 300.0


class Stage:
    """One stage of a run; made by `Progress.stage`.

    Attributes:
        name: description, such as "correcting reads".
        total: total number of units; None while unknown.
        unit: what is counted, in the plural.
        count: units done.
        started: `time.monotonic` at the start.
    """

    def __init__(self, name: str, total: int | None, unit: str, view: _View) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self.count = 0
        self.started = time.monotonic()
        self._view = view
        self._lock = threading.Lock()

    def advance(self, units: int = 1) -> None:
        """Count ``units`` as done.

        Raises:
            InputError: a part of a mapped file was gone when it was read.
        """
        check_reads()
        with self._lock:
            self.count += units
            self._view.update(self)

    @property
    def seconds(self) -> float:
        """Time since the stage started."""
        return time.monotonic() - self.started


class _View(Protocol):
    """Display of stages. `update` is called with the stage's lock held."""

    def open(self) -> None: ...
    def close(self) -> None: ...
    def start(self, stage: Stage) -> None: ...
    def update(self, stage: Stage) -> None: ...
    def finish(self, stage: Stage, failed: bool) -> None: ...


class Progress:
    """Shows the stages of a run; a context manager.

    Args:
        enabled: False shows nothing at all.
        terminal: draw bars (True) or write lines (False); by default bars where standard error
            is a terminal.
    """

    def __init__(self, enabled: bool = True, *, terminal: bool | None = None) -> None:
        if terminal is None:
            terminal = sys.stderr.isatty()
        self._view: _View
        if not enabled:
            self._view = _Silence()
        elif terminal:
            self._view = _Bars()
        else:
            self._view = _Lines()

    def __enter__(self) -> Self:
        self._view.open()
        return self

    def __exit__(self, *error: object) -> None:
        self._view.close()

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "reads") -> Iterator[Stage]:
        """Start a stage, which ends with the ``with`` block.

        Args:
            name: description, such as "correcting reads".
            total: total number of units; None while unknown.
            unit: what is counted, in the plural.
        """
        stage = Stage(name, total, unit, self._view)
        self._view.start(stage)
        failed = True
        try:
            yield stage
            failed = False
        finally:
            self._view.finish(stage, failed)


class _Silence:
    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def start(self, stage: Stage) -> None:
        pass

    def update(self, stage: Stage) -> None:
        pass

    def finish(self, stage: Stage, failed: bool) -> None:
        pass


class _Lines(_Silence):
    """Plain lines for logs. Remembers when and at which count a stage last wrote one."""

    def __init__(self) -> None:
        self._last: dict[Stage, tuple[float, int]] = {}

    def start(self, stage: Stage) -> None:
        self._last[stage] = (stage.started, 0)
        size = "" if stage.total is None else f" ({stage.total:,} {stage.unit})"
        logger.info("%s%s", stage.name, size)

    def update(self, stage: Stage) -> None:
        when, count = self._last[stage]
        now = time.monotonic()
        if now - when < LINE_SECONDS:
            return
        if stage.total is not None and stage.count >= stage.total:
            return  # the closing line says it
        small_step = stage.total is not None and stage.count - count < LINE_SHARE * stage.total
        if small_step and now - when < LINE_SECONDS_AT_MOST:
            return
        self._last[stage] = (now, stage.count)
        logger.info("%s: %s", stage.name, describe(stage))

    def finish(self, stage: Stage, failed: bool) -> None:
        del self._last[stage]
        verb = "stopped after " if failed else ""
        count = f"{stage.count:,} {stage.unit} in " if stage.count else ""
        logger.info("%s: %s%s%s", stage.name, verb, count, format_seconds(stage.seconds))


class _Bars:
    """Bars for terminals, drawn by rich, which is imported only when there is one to draw."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[Stage, Any] = {}

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self._bars.start()

    def close(self) -> None:
        self._bars.stop()

    def start(self, stage: Stage) -> None:
        task = self._bars.add_task(stage.name, total=stage.total, state="")
        self._tasks[stage] = task

    def update(self, stage: Stage) -> None:
        task = self._tasks[stage]
        self._bars.update(
            task, completed=stage.count, total=stage.total, state=describe(stage, short=True)
        )

    def finish(self, stage: Stage, failed: bool) -> None:
        task = self._tasks.pop(stage)
        if not failed:
            # A stage of unknown length ends with a full bar, too.
            total = stage.total if stage.total is not None else max(stage.count, 1)
            completed = stage.count if stage.total is not None else total
            self._bars.update(task, total=total, completed=completed)
        self._bars.stop_task(task)


def describe(stage: Stage, *, short: bool = False) -> str:
    """Write how far a stage is: count, share, rate and, unless ``short``, the time left."""
    parts = [f"{stage.count:,}"]
    if stage.total is not None:
        parts[0] += f" of {stage.total:,}"
    parts[0] += f" {stage.unit}"
    if stage.total:
        parts[0] += f" ({100 * stage.count // stage.total} %)"
    seconds = stage.seconds
    if stage.count and seconds > 0:
        rate = stage.count / seconds
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if stage.total is not None and not short:
            parts.append(f"{format_seconds(max(0, stage.total - stage.count) / rate)} left")
    return ", ".join(parts)


def format_seconds(seconds: float) -> str:
    """Write a time for people.

    >>> format_seconds(3.21), format_seconds(75), format_seconds(7322)
    ('3.2 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def say_if_compiling() -> None:
    """Log if the CPU's kernels have to be compiled first."""
    if not has_compiled():
        logger.info("compiling kernels (first start only, up to half a minute)")


def say_short(short: int, sequences: int, kmer: int) -> None:
    """Log how many sequences are too short for a k-mer, if any are."""
    if short:
        logger.info(
            "%s of %s sequences are shorter than %d bases, and have no k-mer",
            f"{short:,}", f"{sequences:,}", kmer,
        )  # fmt: skip


class Run(Generic[P]):
    """One attempt to run a stage, on one backend; a context manager.

    Args:
        parameters: of the stage.
        options: of the run, with the backend of this attempt.
        phred_offset: 33, 64 or ``auto``.
        progress: shows the steps.

    Attributes:
        seconds: time of each step.
    """

    def __init__(
        self, parameters: P, options: RunOptions, phred_offset: PhredOffset, progress: Progress
    ) -> None:
        self.parameters = parameters
        self.options = options
        self.phred_offset: PhredOffset = phred_offset
        self.progress = progress
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._open = ExitStack()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @property
    def backend(self) -> str:
        """``cpu`` or ``cuda``."""
        return self.options.backend

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Note the time of a step."""
        begin = time.monotonic()
        yield
        self.seconds[step] = round(time.monotonic() - begin, 3)

    @contextmanager
    def step(
        self, step: str, words: str, total: int | None = None, unit: str = "reads"
    ) -> Iterator[Stage]:
        """Note the time of a step and show its progress."""
        with self.timed(step), self.progress.stage(words, total=total, unit=unit) as stage:
            yield stage

    def entries(self) -> dict[str, Any]:
        """What the run adds to the statistics; see ``RunStatistics.begun``."""
        return {"time_s": self.seconds}
