"""A run of a stage: its parameters and options, and steps that are timed and shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, Self, TypeVar

from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress, Stage

P = TypeVar("P")


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
