"""Runs the steps of a sample, one after the other."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ngsgpu.chains.places import Places
from ngsgpu.chains.plan import Planned, named
from ngsgpu.run.statistics import RunStatistics

logger = logging.getLogger("ngsgpu")


@dataclass(slots=True, kw_only=True)
class ChainStatistics(RunStatistics):
    """Times and files of a chain; see also ``RunStatistics``.

    Attributes:
        sample: its name.
        reads_between_steps: ``memory``, or the folder where they lay.
        steps: name, command line, seconds and outputs of each, in order; and the exit status, if
            that of the command alone would not be 0.
    """

    SCHEMA = "ngsgpu.chain"
    sample: str
    reads_between_steps: str
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """The highest of the steps."""
        return max(own.get("exit_status", 0) for own in self.steps)

    def summary(self) -> list[str]:
        """A short text summary."""
        times = ", ".join(f"{own['name']} {own['time_s']:.1f}" for own in self.steps)
        return [f"{self.sample}: {len(self.steps)} steps in {self.time_s['total']:.1f} s ({times})"]


def run_steps(planned: Sequence[Planned], places: Places) -> list[dict[str, Any]]:
    """Run planned steps.

    Args:
        planned: the steps, in order.
        places: where reads lie between them.

    Returns:
        What there is to say of each, for the statistics.

    Raises:
        NgsgpuError: a step fails; its message names the step. Outputs of earlier ones are there.
    """
    done = []
    for number, own in enumerate(planned, start=1):
        logger.info("step %d of %d: %s", number, len(planned), own.step.name)
        begin = time.monotonic()
        with named(own.step):
            own.write_sheet()
            context = own.command.prepare(own.words)
            with context:
                status = own.command.invoke(context) or 0
            places.keep(own.copies, own.level)
            places.remove(own.last_use)
        done.append(
            {
                "name": own.step.name,
                "command": ["ngsgpu", *own.command.full_name.split(), *own.words],
                "outputs": [*own.copies.values(), *own.outputs],
                "time_s": round(time.monotonic() - begin, 3),
                **({"exit_status": status} if status else {}),
            }
        )
    return done


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Within the block, also write the messages of the program to a file."""
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
