"""Statistics of a run, as JSON and as lines for people: what those of all stages have."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from ngsgpu._version import __version__
from ngsgpu.device.leases import lease_entry, utc
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.io.output.folder import FolderKind
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.run.options import RunOptions
from ngsgpu.run.rehearsal import end_rehearsal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ngsgpu.readset import ReadSet
    from ngsgpu.readset.gpu import DeviceReadSet
    from ngsgpu.run.progress import Run

_FIRST: Final = ("sample", "backend", "device", "job", "command", "parameters")
_LAST: Final = ("time_s", "memory", "gpu_memory")


S = TypeVar("S", bound="RunStatistics")


def _job(seconds: float, lease: Mapping[str, Any]) -> dict[str, Any]:
    """Host, time and GPUs of a run of some seconds that ends now."""
    now = time.time()
    return {
        "host": socket.gethostname(),
        "started": utc(now - seconds),
        "ended": utc(now),
        **lease,
    }


def write_program_statistics(
    path: str, command: Sequence[str], status: int, seconds: float, lease: Mapping[str, Any]
) -> None:
    """Write statistics of a program that was run on leased GPUs, now that it has ended.

    Args:
        path: the file to write.
        command: the program and its arguments.
        status: its exit status.
        seconds: since it was started, waiting for the GPUs included.
        lease: see ``LeaseRecord.entry``.

    Raises:
        OutputError: the file cannot be written.
    """
    document = {
        "schema": "ngsgpu.gpu_run",
        "schema_version": 1,
        "version": __version__,
        "job": _job(seconds, lease),
        "command": list(command),
        "exit_status": status,
        "time_s": {"total": round(seconds, 3)},
    }
    write_text_atomically(path, json.dumps(document, indent=1) + "\n")


def with_statistics(
    outputs: Sequence[str],
    stats: str | Path | None,
    options: RunOptions,
    run: Callable[[OutputSet], S],
    *,
    folder: tuple[str | Path, FolderKind] | None = None,
    packs: bool = True,
    begin: float | None = None,
) -> S:
    """Run with outputs that appear together with the statistics, which get the time of the run.

    Args:
        outputs: the files.
        stats: JSON file for the statistics; None: there is none.
        options: threads, and level of compression.
        run: writes all outputs.
        folder: see ``OutputSet``.
        packs: likewise.
        begin: of the run, as ``time.monotonic`` gave it; None: now.

    Raises:
        OutputError: an output cannot be written; none was.
    """
    begin = time.monotonic() if begin is None else begin
    paths = [*outputs, *([] if stats is None else [str(stats)])]
    end_rehearsal(paths, folder)
    with OutputSet(
        paths, threads=options.threads, compression_level=options.compress_level, packs=packs,
        folder=folder,
    ) as files:  # fmt: skip
        statistics = run(files)
        statistics.time_s["total"] = round(time.monotonic() - begin, 3)
        if stats is not None:
            files.write(len(outputs), statistics.to_json().encode())
    return statistics


def totals_of(reads: ReadSet | DeviceReadSet, **more: int) -> dict[str, int]:
    """Totals of a read set, for the statistics.

    Args:
        reads: the read set.
        more: entries behind the number of reads.
    """
    return {
        "total": reads.reads,
        **more,
        "bases": reads.bases,
        "min_length": reads.min_length,
        "max_length": reads.max_length,
        "with_unknown": len(reads.ambiguous.reads),
    }


@dataclass(slots=True, kw_only=True)
class RunStatistics:
    """Counts and resources of a run; written by ``--stats``.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        device: name of the device.
        command: the command line, empty for the Python API.
        parameters: name and value of every parameter.
        time_s: seconds by step.
        memory: planned and peak bytes.
    """

    SCHEMA: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1
    backend: str
    device: str
    command: list[str]
    parameters: dict[str, Any]
    time_s: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)

    @classmethod
    def begun(
        cls,
        options: RunOptions,
        backend: str,
        parameters: DataclassInstance | None,
        /,
        **entries: Any,
    ) -> Self:
        """The statistics of a run on a backend, with the memory it has used so far.

        Args:
            options: of the run.
            backend: ``cpu`` or ``cuda``.
            parameters: of the stage; None without any but those of the entries.
            entries: the stage's own, and entries that are added to ``parameters`` and ``memory``.
        """
        own = {} if parameters is None else asdict(parameters)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        head = {
            "backend": backend,
            "device": options.device(backend),
            "command": list(options.command),
        }
        added = {
            "parameters": own | entries.get("parameters", {}),
            "memory": {"peak_rss_bytes": peak} | entries.get("memory", {}),
        }
        return cls(**head | entries | added)

    @classmethod
    def after(cls, run: Run[Any], **entries: Any) -> Self:
        """The statistics of a run that has written its outputs.

        Args:
            run: the run.
            entries: the stage's own.
        """
        return cls.begun(run.options, run.backend, run.parameters, **run.entries(), **entries)

    def to_json(self) -> str:
        """The statistics as JSON text."""
        entries = asdict(self) | {"job": _job(self.time_s.get("total", 0.0), lease_entry())}
        rest = [name for name in entries if name not in (*_FIRST, *_LAST)]
        ordered = {name: entries[name] for name in (*_FIRST, *rest, *_LAST) if name in entries}
        head = {"schema": self.SCHEMA, "schema_version": self.SCHEMA_VERSION}
        return json.dumps(head | {"version": __version__} | ordered, indent=1) + "\n"

    def resources(self) -> str:
        """Time, memory and device as a line for people."""
        return (
            f"{self.time_s['total']:.1f} s, at most "
            f"{self.memory['peak_rss_bytes'] / 2**30:.2f} GiB of memory, {self.device}"
        )
