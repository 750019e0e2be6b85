"""What the functions of the interface share: how they run, and what they take as reads."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from io import IOBase
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypedDict

from ngsgpu.api.files import Reads, Writer
from ngsgpu.api.record import Record, RecordLike
from ngsgpu.declared.values import as_options
from ngsgpu.device.backend import choose_backend
from ngsgpu.device.memory import parse_size, usable_cpus
from ngsgpu.errors import InputError, NgsgpuError, UsageError, output_error
from ngsgpu.io.inputs import holds_pairs
from ngsgpu.io.output.temporary import keep_private
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

_NAMES: Final = {"in1": "`reads`", "in2": "`mates`", "interleaved_in": "`interleaved=True`"}
"""What parameters of the functions on files are called here."""


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
    memory: float | str | None
    gpu_memory: float | str | None
    progress: bool


def run_options(how: How) -> RunOptions:
    """Options of a run.

    GPUs are not leased: those that ``CUDA_VISIBLE_DEVICES`` shows are this program's.

    Raises:
        UsageError: a value is out of its range, or ``cuda`` is not possible.
        TypeError: there is no such keyword.
    """
    if unknown := how.keys() - How.__annotations__.keys():
        which = f"unexpected keyword argument {min(unknown)!r}"
        raise TypeError(f"{which}; options of a stage are in its `parameters`")
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


def _bytes(size: float | str | None) -> int | None:
    if size is None:
        return None
    return parse_size(size) if isinstance(size, str) else int(size)


def check_kind(name: str, value: object, *kinds: type) -> None:
    """Check that a value is of one of some kinds, or None.

    Raises:
        UsageError: it is not.
    """
    if value is not None and not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise UsageError(f"`{name}` must be {names}, not {type(value).__name__}")


class Folder:
    """A temporary folder, in ``$TMPDIR``, that goes when nothing refers to this object any more.

    As a context manager it goes at once if the block fails, and otherwise ``inputs`` alone does.
    Errors of the block name the parameters of the functions of ``ngsgpu``.

    Attributes:
        inputs: a folder in it.

    Raises:
        OutputError: it cannot be made.
    """

    def __init__(self) -> None:
        place = temporary_place()
        try:
            self._path = Path(tempfile.mkdtemp(prefix="ngsgpu-", dir=place))
            self.inputs = self._path / "inputs"
            self.inputs.mkdir()
            keep_private(self._path)
        except OSError as error:
            raise output_error(place, error) from error
        self.remove = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The folder.

        Raises:
            UsageError: it is gone.
        """
        if not self.remove.alive:
            raise UsageError("this result is closed, and its files are gone; use it before")
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is not None:
            self.remove()
        if isinstance(error, InputError) and Path(error.path).parent == self.inputs:
            error.path = Path(error.path).name
        if isinstance(error, NgsgpuError):
            error.reword(partial(as_options, names=_NAMES))
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


def _files_of(reads: Any, folder: Folder, name: str) -> Inputs:
    if isinstance(reads, str | Path):
        return Inputs([reads], [], False)
    if not isinstance(reads, Iterable) or isinstance(reads, bytes | dict | IOBase | Record):
        raise UsageError(_not_reads(name, reads))
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
        raise UsageError(_not_reads(name, example))
    path = folder.inputs / name
    with Writer([path]) as writer:
        for own in items:
            both = own if isinstance(own, tuple) else (own,)
            if len(both) != 1 + paired:
                raise UsageError(f"{name} must be all records, or all pairs: (first, second)")
            writer.write(*both)
    return Inputs([path], [], paired)


def _not_reads(name: str, given: object) -> str:
    kinds = "a path, or a list or other iterable of paths, records, pairs of records or batches"
    return f"`{name}` must be {kinds}, not {type(given).__name__}"


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
