"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from ngsgpu.declared.options import INPUT, OUTPUT, RUN, flag, option
from ngsgpu.declared.roles import Reads, Text, Written

WORDS: Final = "ngsgpu.words"
"""Key of a click context's ``meta`` for the words of a command that another command runs."""

PhredOffset = Literal["auto", "33", "64"]

BackendOption = Annotated[
    Literal["auto", "cpu", "cuda"],
    option(
        ...,
        "auto|cpu|cuda",
        "Compute backend; the output is identical.",
        environment="NGSGPU_BACKEND",
        group=RUN,
    ),
]
FirstMates = Annotated[
    list[Reads] | None, option(..., "FILE", "First mates; repeat for each lane.", "-i", "--in1")
]
ReadsOrFirstMates = Annotated[
    list[Reads] | None,
    option(..., "FILE", "Reads or first mates; repeat for each lane.", "-i", "--in1"),
]
SecondMates = Annotated[
    list[Reads] | None, option(..., "FILE", "Second mates, one file for each -i.", "-I", "--in2")
]
FirstOutputs = Annotated[
    list[Written] | None,
    option(..., "FILE", "Output for -i: one per lane or one for all.", "-o", "--out1"),
]
SecondOutputs = Annotated[
    list[Written] | None,
    option(..., "FILE", "Output for -I: one per lane or one for all.", "-O", "--out2"),
]
InterleavedInput = Annotated[
    bool, flag("-i holds interleaved pairs.", "--interleaved", default=..., group=INPUT)
]
PhredOffsetOption = Annotated[
    PhredOffset,
    option(
        ...,
        "auto|33|64",
        "Offset of the quality characters; auto assumes 33 and rejects input that looks like 64.",
        group=INPUT,
    ),
]
CompressLevel = Annotated[
    int,
    option(
        ...,
        "N",
        "Level of compressed outputs (names ending in .gz or .zst), from 1 (fast) to 12 (small).",
        "--compress-level",
        group=OUTPUT,
    ),
]
StatsFile = Annotated[Written | None, option(..., "FILE", "Write run statistics here (JSON).")]
Threads = Annotated[
    int, option(..., "N", "Worker threads; 0: all CPUs.", "-t", "--threads", group=RUN)
]
Memory = Annotated[
    Text | None,
    option(..., "SIZE", "Memory budget, for example 16G.", shown_default="free memory", group=RUN),
]
Gpus = Annotated[
    int | None, option(..., "N", "GPUs to use; 0: none.", shown_default="1 if available", group=RUN)
]
OneGpu = Annotated[
    int | None,
    option(..., "N", "GPUs to use, at most 1; 0: none.", shown_default="1 if available", group=RUN),
]
GpuMemory = Annotated[
    Text | None,
    option(
        ...,
        "SIZE",
        "Memory budget per GPU; data that do not fit stay on the host.",
        shown_default="free memory",
        group=RUN,
    ),
]
EachGpuMemory = Annotated[
    Text | None,
    option(..., "SIZE", "Memory budget per GPU.", shown_default="free memory", group=RUN),
]
OneGpuMemory = Annotated[
    Text | None,
    option(..., "SIZE", "Memory budget for the GPU.", shown_default="free memory", group=RUN),
]
DryRun = Annotated[
    bool,
    flag(
        "Print the plan of the memory, which --stats gets as JSON; write nothing else.",
        "--dry-run",
        default=...,
        group=RUN,
    ),
]
Quiet = Annotated[bool, flag("Print only errors.", "-q", "--quiet", default=..., group=RUN)]


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Where a command runs.

    ``memory``, ``compress_level`` and ``dry_run`` are options of the commands that declare them
    below.
    """

    MAX_GPUS: ClassVar[int | None] = None
    """GPUs that a run can use at most; None: no limit."""
    threads: Threads = 0
    backend: BackendOption = "auto"
    gpus: Gpus = None
    memory: str | None = None
    gpu_memory: EachGpuMemory = None
    compress_level: int = 1
    dry_run: bool = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class OneGpuRun(Compute):
    """A run that uses one GPU at most."""

    MAX_GPUS = 1
    gpus: OneGpu = None
    gpu_memory: OneGpuMemory = None


@dataclass(frozen=True, kw_only=True)
class CountRun(OneGpuRun):
    """A run that counts k-mers."""

    phred_offset: PhredOffsetOption = "auto"
    memory: Memory = None
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class RecordRun(OneGpuRun):
    """A run of a stage that decides record by record."""

    stats: StatsFile = None
    compress_level: CompressLevel = 1
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class StageRun(Compute):
    """A run of a stage that builds tables of its reads."""

    phred_offset: PhredOffsetOption = "auto"
    memory: Memory = None
    gpu_memory: GpuMemory = None
    stats: StatsFile = None
    compress_level: CompressLevel = 1
    dry_run: DryRun = False


@dataclass(frozen=True, kw_only=True)
class ThreadsRun:
    """A run on CPUs alone; ``memory`` is an option of `HostRun`."""

    threads: Threads = 0
    memory: str | None = None
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class HostRun(ThreadsRun):
    """A run on CPUs alone, in memory that is planned."""

    memory: Memory = None


def obey_quiet(quiet: bool) -> None:
    """Log only warnings under ``--quiet``; call this before leasing a GPU."""
    import logging

    if quiet:
        logging.getLogger("ngsgpu").setLevel(logging.WARNING)
