"""What the functions of the interface share: how they run, and what they take as reads."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypedDict

from ngsgpu.api.files import Reads, Writer
from ngsgpu.api.record import RecordLike
from ngsgpu.device.backend import choose_backend
from ngsgpu.device.memory import parse_size, usable_cpus
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.inputs import holds_pairs
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed, temporary_place
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.run.options import RunOptions

Source: TypeAlias = (
    Paths
    | Reads[Any]
    | Iterable[RecordLike]
    | Iterable[tuple[RecordLike, RecordLike]]
    | Iterable[RecordBatch]
    | Iterable[tuple[RecordBatch, ...]]
)
"""Reads: a path or several, what ``open`` or another function returned, records or pairs of them,
or arrays."""


class How(TypedDict, total=False):
    """Keywords of all functions that say how they run; none affects the result.

    Attributes:
        backend: ``auto`` uses a GPU if there is one and the CPU otherwise; ``cpu``, ``cuda``. By
            default ``NGSGPU_BACKEND`` of the environment, or ``auto``.
        gpus: number of GPUs, 1 by default; 0 for the CPU.
        threads: number of threads; 0, the default: all CPUs of this process.
        memory: of the host, in bytes or as ``"16G"``; by default what is free.
        gpu_memory: the same of each GPU.
        progress: whether to show bars or log lines; False by default.
    """

    backend: Literal["auto", "cpu", "cuda"]
    gpus: int | None
    threads: int
    memory: int | str | None
    gpu_memory: int | str | None
    progress: bool


def run_options(how: How) -> RunOptions:
    """Options of a run.

    GPUs are not leased: those that ``CUDA_VISIBLE_DEVICES`` shows are this program's.

    Raises:
        UsageError: a value is out of its range, or ``cuda`` is not possible.
        TypeError: there is no such keyword.
    """
    if unknown := how.keys() - How.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    backend: Any = how.get("backend") or os.environ.get("NGSGPU_BACKEND") or "auto"
    chosen = choose_backend(backend, how.get("gpus"))
    return RunOptions(
        threads=how.get("threads") or usable_cpus(),
        memory=_bytes(how.get("memory")),
        gpu_memory=_bytes(how.get("gpu_memory")),
        backend=chosen.name,
        may_fall_back=backend == "auto",
        gpus=max(1, len(chosen.gpus)),
        backend_note=chosen.reason,
        progress=how.get("progress", False),
    )


def _bytes(size: int | str | None) -> int | None:
    return parse_size(size) if isinstance(size, str) else size


class Folder:
    """A temporary folder, in ``$TMPDIR``, that goes when nothing refers to this object any more.

    As a context manager it goes at once if the block fails, and otherwise ``inputs`` alone does.

    Attributes:
        path: the folder.
        inputs: a folder in it.

    Raises:
        OutputError: it cannot be made.
    """

    def __init__(self) -> None:
        place = temporary_place()
        try:
            self.path = Path(tempfile.mkdtemp(prefix="ngsgpu-", dir=place))
            self.inputs = self.path / "inputs"
            self.inputs.mkdir()
        except OSError as error:
            raise output_error(place, error) from error
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            self.remove()
        shutil.rmtree(self.inputs, ignore_errors=True)


class Inputs(NamedTuple):
    """Reads as the functions on files take them.

    Attributes:
        first: files of single reads, of first mates, or of interleaved mates.
        second: files of second mates.
        interleaved: whether ``first`` holds both mates.
    """

    first: list[str | Path]
    second: list[str | Path]
    interleaved: bool


def inputs_of(
    reads: Source,
    mates: Source | None,
    interleaved: bool,
    folder: Folder,
    name: str = "reads",
) -> Inputs:
    """The files of reads, some of which are written for it.

    Args:
        reads: single reads, first mates, or pairs.
        mates: second mates.
        interleaved: whether files of ``reads`` hold both mates.
        folder: for files of reads that are in none.
        name: of ``reads``.

    Raises:
        UsageError: they are of no known form, or mates are given twice.
        OutputError: there is no room for the files.
    """
    found = _files_of(reads, folder, name)
    if mates is None:
        by_flags = not found.second and holds_pairs(found.first[0])
        return found._replace(interleaved=interleaved or found.interleaved or by_flags)
    others = _files_of(mates, folder, "mates")
    if interleaved or any(own.second or own.interleaved for own in (found, others)):
        raise UsageError("the reads are pairs already; leave out their mates")
    return Inputs(found.first, others.first, False)


def _files_of(reads: Source, folder: Folder, name: str) -> Inputs:
    if isinstance(reads, str | Path):
        return Inputs([reads], [], False)
    if isinstance(reads, Reads):
        lanes = reads.files
        seconds: list[str | Path] = [lane.inputs[1] for lane in lanes if len(lane.inputs) == 2]
        return Inputs([lane.inputs[0] for lane in lanes], seconds, lanes[0].interleaved)
    items: Iterator[Any] = iter(reads)
    first = next(items, None)
    if isinstance(first, str | Path):
        return Inputs(listed([first, *items]), [], False)
    items = items if first is None else chain([first], items)
    paired = isinstance(first, tuple)
    example = first[0] if isinstance(first, tuple) else first
    if isinstance(example, RecordBatch):
        return _written_batches((own if paired else (own,) for own in items), folder, name)
    if example is not None and not hasattr(example, "sequence"):
        raise UsageError(
            f"{name} must be paths, records, pairs of records or batches of them, not "
            f"{type(example).__name__}"
        )
    path = folder.inputs / name
    with Writer([path]) as writer:
        for own in items:
            writer.write(*(own if paired else (own,)))
    return Inputs([path], [], paired)


def _written_batches(
    batches: Iterator[tuple[RecordBatch, ...]], folder: Folder, name: str
) -> Inputs:
    """A file for each mate."""
    first = next(batches)
    paths = [folder.inputs / f"{name}_{mate}" for mate in range(len(first))]
    with OutputSet(paths) as outputs:
        for mates in chain([first], batches):
            for mate, batch in enumerate(mates):
                outputs.write(mate, batch.text)
    return Inputs([paths[0]], [*paths[1:]], False)
