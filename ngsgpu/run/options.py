"""How a run goes: its options, the memory it needs on the host, and what it does without GPUs.

A GPU fails if its memory is too small, CUDA reports an error, or its kernels do not support the
input (``UnsuitableError``: reads too long, an odd record, a pipe). Then

- with ``backend='auto'`` the CPU repeats everything, unless output was written that cannot be
  withdrawn. One line says so and why, and the GPUs are released;
- with ``backend='cuda'`` the run fails with the reason.

Reading is separate: with any backend, the CPU reads what the GPU reader does not support, and the
GPU continues with the result (``ngsgpu.io.gpu.feed.say_read_by_cpu``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

from ngsgpu.declared.options import value
from ngsgpu.declared.values import parameters
from ngsgpu.device.leases import keep_gpus
from ngsgpu.device.memory import available_memory
from ngsgpu.device.plan import ABOUT, HostPlan
from ngsgpu.device.team import Team, free_unused
from ngsgpu.errors import DeviceError, HostMemoryError
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL, MAX_LEVEL
from ngsgpu.io.text.reader import CHUNK_BYTES
from ngsgpu.sequence.codec import words_for

_KEPT_SHARE: Final = 4
"""Part of the memory for inflated data, which then need not be inflated again: 1 / this."""


@parameters
class RunOptions:
    """How to run a stage; none of these affects the content of the output."""

    threads: int = value(1, "Number of threads.", least=1)
    memory: int | None = value(None, "Memory budget in bytes; None: free memory.", least=1)
    units_per_task: int | None = value(
        None, "Reads, pairs or queries per task; None: the stage's default.", least=1
    )
    chunk_bytes: int = value(CHUNK_BYTES, "Bytes per chunk of a file.", least=1)
    progress: bool = value(False, "Whether to show progress.")
    backend: Literal["cpu", "cuda"] = value("cpu", "Where to compute.")
    may_fall_back: bool = value(False, "Whether the CPU may take over from the GPU.")
    gpu_memory: int | None = value(
        None, "Memory budget per GPU in bytes; None: free memory.", least=1
    )
    gpus: int = value(1, "Number of GPUs.", least=1)
    backend_note: str = value("", "Why the backend was chosen, for the statistics.")
    command: tuple[str, ...] = value((), "The command line, for the statistics.")
    compress_level: int = value(
        DEFAULT_LEVEL,
        "Level of outputs of reads that are compressed, from 1 (fast) to 12 (small).",
        least=1,
        most=MAX_LEVEL,
    )

    @property
    def budget(self) -> int:
        """Memory budget in bytes."""
        return self.memory if self.memory is not None else available_memory()

    @property
    def kept_bytes(self) -> int:
        """Of the budget, bytes for inflated data that is read a second time."""
        return self.budget // _KEPT_SHARE

    def device(self, backend: str) -> str:
        """Name of the device of this run, for the statistics."""
        where = f"{self.threads} CPU threads"
        if backend == "cuda":
            where = "GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        return f"{where} ({self.backend_note})" if self.backend_note else where


INTERPRETER_BYTES: Final = 200 << 20
"""Memory of Python and its libraries."""

_MIN_CHUNK: Final = 256 << 10
_CHUNK_SHARE: Final = 32


def chunk_bytes_within(budget_bytes: int, chunk_bytes: int) -> int:
    """Bytes of a file per chunk, of which about a dozen are in memory at a time.

    Args:
        budget_bytes: memory budget.
        chunk_bytes: chunk size if there is enough memory.
    """
    room = max(0, budget_bytes - INTERPRETER_BYTES)
    return min(chunk_bytes, max(_MIN_CHUNK, room // _CHUNK_SHARE))


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a read set, actual or estimated.

    Attributes:
        reads: number of reads.
        bases: number of bases.
        longest: longest read, in bases.
        paired: whether reads have mates.
        read_bytes: size of the read set; None if it is not known yet.
        estimated: whether the numbers are estimates.
        inflated: bytes of text in compressed inputs; 0 if it is not known.
        quality_bits: bits that a quality takes if nothing is to be lost.
    """

    reads: int
    bases: int
    longest: int
    paired: bool
    read_bytes: int | None = None
    estimated: bool = False
    inflated: int = 0
    quality_bits: int = 8

    def times(self, factor: float) -> Contents:
        """The approximate contents of the same reads, repeated."""
        reads, bases = round(factor * self.reads), round(factor * self.bases)
        read_bytes = None if self.read_bytes is None else round(factor * self.read_bytes)
        estimated = self.estimated or factor > 1
        return replace(
            self, reads=reads, bases=bases, read_bytes=read_bytes, estimated=estimated, inflated=0
        )

    def number(self, unit: str) -> int:
        """The number of ``reads`` or ``pairs``."""
        return self.reads // (2 if unit == "pairs" else 1)

    def count(self, unit: str = "reads") -> str:
        """The number of reads or pairs, for people."""
        return f"{'about ' if self.estimated else ''}{self.number(unit):,} {unit}"

    def line(self, unit: str = "reads") -> str:
        """The reads or pairs, for people."""
        longest = "the longest read" if unit == "pairs" else "the longest"
        about = "about " if self.estimated else ""
        return (
            f"{unit:8} {about}{self.number(unit):,} with {self.bases:,} bases, "
            f"{longest} {self.longest:,}"
        )

    def nbytes(self, quality_bits: int) -> int:
        """Size of the read set in bytes, estimated if it is not known."""
        if self.read_bytes is not None:
            return self.read_bytes
        planes = self.reads * 2 * words_for(self.longest) * 8
        return planes + -(-self.bases * min(quality_bits, self.quality_bits) // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSetPlan(HostPlan):
    """Memory of a run on the CPU whose reads and tables are all in memory.

    Attributes:
        contents: the reads.
        quality_bits: stored per quality.
        tables: number of tables.
        table_bytes: bytes that one table less saves.
        least_tables: number of tables that a run should have at least.
    """

    contents: Contents
    quality_bits: int
    tables: int = 0
    table_bytes: int = 0
    least_tables: int = 0
    holds_on_gpu: bool = False

    def refusal(self) -> HostMemoryError:
        """See ``Plan``."""
        surplus = self.total - self.budget
        remedies = []
        if self.table_bytes and self.tables - -(-surplus // self.table_bytes) >= self.least_tables:
            remedies.append(f"`hashes={self.tables - -(-surplus // self.table_bytes)}`")
        bits = min(self.quality_bits, self.contents.quality_bits)
        if bits == 8 and self.contents.bases * 3 // 4 >= surplus:
            remedies.append("`quality_bits=2`")
        about = ABOUT if self.contents.estimated else ""
        return HostPlan.refusal(replace(self, about=about, remedies=tuple(remedies)))

    def document(self) -> dict[str, Any]:
        """See ``Plan``."""
        found = self.contents
        sizes = {"reads": found.reads, "bases": found.bases, "longest": found.longest}
        return {**sizes, **HostPlan.document(self)}


_LOG = logging.getLogger("ngsgpu")
_Result = TypeVar("_Result")


def on_backend(
    options: RunOptions,
    on_gpu: Callable[[], _Result],
    on_cpu: Callable[[], _Result],
    *,
    may_begin_again: Callable[[], bool] = lambda: True,
    gives_back: bool = True,
) -> _Result:
    """Run on the backend of the options, or on the CPU if it may take over.

    Args:
        options: of the run.
        on_gpu: runs on GPUs. A failed attempt leaves nothing behind.
        on_cpu: runs on the CPU, from the beginning.
        may_begin_again: whether the inputs can be read again and no output has been published.
        gives_back: whether nothing later in the run uses the GPUs.

    Raises:
        DeviceError: the GPU failed, and the CPU may not take over.
    """
    if options.backend == "cpu":
        return on_cpu()
    try:
        return on_gpu()
    except DeviceError as error:
        if not (options.may_fall_back and may_begin_again()):
            raise
        cause = str(error).partition(";")[0]
    # Only now are the frames of the failed attempt gone, and its arrays with them.
    _LOG.warning("%s; continuing on the CPU", cause)
    if gives_back:
        leave_gpus(options.gpus)
    return on_cpu()


def leave_gpus(count: int) -> None:
    """Let others have the GPUs, and what CuPy keeps of their memory."""
    # CUDA may be of no use any more, nor CuPy.
    with contextlib.suppress(Exception):
        Team(count).each(lambda member: free_unused())
    keep_gpus(0)
