"""Runs the steps of a sample, one after the other."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ngsgpu.chains.places import Places
from ngsgpu.chains.plan import Planned, named
from ngsgpu.errors import InputError, NgsgpuError, UsageError, output_error
from ngsgpu.run.statistics import RunStatistics

LOG: Final = "ngsgpu.log"
STATISTICS: Final = "chain.stats.json"
_LONGEST_LINE: Final = 1000

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


def check_unused(out: Path, sample: str) -> None:
    """Refuse a folder with outputs of another sample, which would stay beside the new ones.

    Args:
        out: the folder.
        sample: whose outputs are to be written.

    Raises:
        UsageError: names the sample.
    """
    try:
        with (out / LOG).open("rb") as file:
            found = re.fullmatch(rb"[-0-9]+ [:0-9]+ sample (\S+)\n", file.readline(_LONGEST_LINE))
    except OSError:
        return
    if found and (other := found[1].decode(errors="replace")) != sample:
        raise UsageError(
            f"{out} has the outputs of sample {other}; choose another folder for {sample}, or "
            "remove it"
        )


@contextmanager
def called(planned: Sequence[Planned]) -> Iterator[None]:
    """Within the block, and in errors that leave it, messages name reads, not their files."""
    names = {path: name for own in planned for path, name in own.called.items()}
    paths = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)")

    def reworded(text: str) -> str:
        return paths.sub(lambda found: names[found[0]], text)

    def reword(record: logging.LogRecord) -> bool:
        record.msg, record.args = reworded(record.getMessage()), ()
        return True

    logger.addFilter(reword)
    try:
        yield
    except InputError as error:
        error.path = reworded(error.path)
        error.reword(reworded)
        raise
    except NgsgpuError as error:
        error.reword(reworded)
        raise
    finally:
        logger.removeFilter(reword)


@contextmanager
def logged(path: Path, sample: str) -> Iterator[None]:
    """Within the block, also write the messages of the program to a file.

    Args:
        path: the file.
        sample: its name, which the first line gives.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        handler = logging.FileHandler(path, "w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise output_error(path, error) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    handler.handle(logging.makeLogRecord({"msg": f"sample {sample}"}))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
