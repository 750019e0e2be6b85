"""Building the index of a host from its sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.index import HostIndex, groups_for
from ngsgpu.deplete.kmers import GROUP, insert, sample
from ngsgpu.deplete.params import IndexParameters
from ngsgpu.deplete.stats import HostStatistics
from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import ABOUT, AT_LEAST, Allocation, HostPlan
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import read_batches
from ngsgpu.pool import working
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.plan import reading_bytes
from ngsgpu.run.progress import Progress, say_if_compiling
from ngsgpu.sequence.kmers import distinct

_STRETCH: Final = 1 << 22
"""Letters that a task takes."""

_PARTS: Final = 64
_PIECE: Final = 1 << 17
_PART_SHIFT: Final = np.uint64(58)
_SORTERS: Final = 8
"""Parts that are sorted at a time: with their copies, less than the table takes afterwards."""

_MAX_GROUPS: Final = (1 << 32) - 1


def parts_of(hashes: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
    """Sorted hashes by their highest bits."""
    starts = np.arange(_PARTS, dtype=np.uint64) << _PART_SHIFT
    bounds = [*np.searchsorted(hashes, starts).tolist(), len(hashes)]
    return [hashes[begin:end] for begin, end in pairwise(bounds)]


class _Stretches(NamedTuple):
    """Stretches of the sequences of a text: where they begin and stop, and their sequences end."""

    data: NDArray[np.uint8]
    bounds: list[tuple[int, int, int]]

    @property
    def letters(self) -> int:
        """Letters of the pieces, line ends included."""
        return sum(stop - begin for begin, stop, _ in self.bounds)


@dataclass(slots=True)
class _Part:
    """Hashes with the same highest bits, in pieces of memory that go back to the system at once.

    Attributes:
        pieces: uint64[_PIECE] each.
        used: how many hashes the last piece has.
    """

    pieces: list[NDArray[np.uint64]] = field(default_factory=list)
    used: int = _PIECE

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Append hashes."""
        while len(hashes):
            if self.used == _PIECE:
                self.pieces.append(np.frombuffer(mmap(-1, 8 * _PIECE), dtype=np.uint64))
                self.used = 0
            end = min(_PIECE, self.used + len(hashes))
            taken = end - self.used
            self.pieces[-1][self.used : end] = hashes[:taken]
            self.used, hashes = end, hashes[taken:]

    def distinct(self) -> NDArray[np.uint64]:
        """The hashes, sorted and distinct."""
        if not self.pieces:
            return np.empty(0, dtype=np.uint64)
        return distinct(np.concatenate([*self.pieces[:-1], self.pieces[-1][: self.used]]))


@dataclass(slots=True)
class _Found:
    """Hashes of k-mers, by their highest bits.

    Attributes:
        parts: hashes with the same ones.
        sequences: they are from.
        bases: letters of these.
        size: number of hashes.
    """

    parts: list[_Part] = field(default_factory=lambda: [_Part() for _ in range(_PARTS)])
    sequences: int = 0
    bases: int = 0
    size: int = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add sorted hashes."""
        for part, own in zip(self.parts, parts_of(hashes), strict=True):
            part.add(own)
        self.size += len(hashes)

    def take(self, number: int) -> NDArray[np.uint64]:
        """Take the hashes of a part, sorted and distinct."""
        part, self.parts[number] = self.parts[number], _Part()
        return part.distinct()


def plan_index(
    paths: Paths,
    parameters: IndexParameters,
    options: RunOptions,
    *,
    exclude: Paths = (),
    keep_kmers: bool = False,
) -> HostPlan:
    """Plan the memory of ``build_index`` from the sizes of the files.

    Args:
        paths: files of sequences.
        parameters: which k-mers are kept.
        options: threads and memory budget.
        exclude: files of sequences whose k-mers are left out.
        keep_kmers: whether the index also has the list of its k-mers.

    Raises:
        InputError: a file is missing.
    """
    paths = [*listed(paths), *listed(exclude)]
    # A sequence is read as a whole.
    reading = max(max(reading_bytes([own], options), unpacked_size(own)) for own in paths)
    letters = sum(map(unpacked_size, paths))
    kmers = letters // parameters.one_in
    plan = plan_kmers(kmers, parameters, options.budget)
    index = plan.bytes_of("index")
    return replace(
        plan,
        about=ABOUT,
        allocations=(
            *plan.allocations,
            Allocation("reading", reading),
            Allocation("scratch", 8 * min(letters, options.threads * _STRETCH)),
            Allocation("list of k-mers", 8 * kmers if keep_kmers else 0),
        ),
        sizes={"index_bytes": index},
        notes=(f"index    about {format_size(index)}",),
    )


def build_index(
    paths: Paths,
    parameters: IndexParameters | None = None,
    *,
    exclude: Paths = (),
    keep_kmers: bool = False,
    options: RunOptions | None = None,
) -> HostIndex:
    """Index the k-mers of a host.

    Args:
        paths: FASTA or FASTQ files of its sequences; ``-`` is standard input.
        parameters: which k-mers are kept.
        exclude: files of sequences whose k-mers are left out, such as genomes of the microbes
            that must not be lost.
        keep_kmers: whether the index also has the list of its k-mers, for ``combine_indexes``.
        options: threads, memory and progress.

    Raises:
        InputError: a file cannot be read, or has no sequence.
        UsageError: there is no file.
        HostMemoryError: the memory does not suffice.
    """
    paths, exclude = listed(paths), listed(exclude)
    parameters = parameters or IndexParameters()
    options = options or RunOptions()
    if not paths:
        raise UsageError("no sequences given; name FASTA files of the host")
    say_if_compiling()
    with Progress(options.progress) as progress:
        with progress.stage("indexing", unit="bases") as stage:
            found = _read(paths, parameters, options, stage.advance)
        other = _Found()
        if exclude:
            with progress.stage("reading what is excluded", unit="bases") as stage:
                other = _read(exclude, parameters, options, stage.advance)

        def part(number: int) -> NDArray[np.uint64]:
            own, less = found.take(number), other.take(number)
            return np.setdiff1d(own, less, assume_unique=True) if len(less) else own

        with working(min(options.threads, _SORTERS), part, range(_PARTS), name="index") as sorted_:
            parts = list(sorted_)
        names = tuple(Path(path).name for path in paths)
        return index_of(
            parts, parameters, sequences=found.sequences, bases=found.bases, sources=names,
            keep_kmers=keep_kmers,
        )  # fmt: skip


def write_index(
    index: HostIndex,
    out: str | Path,
    options: RunOptions,
    *,
    stats: str | Path | None = None,
    seconds: float = 0.0,
) -> HostStatistics:
    """Write an index, and the statistics of making it.

    Args:
        index: the index.
        out: its file.
        options: of the run.
        stats: JSON file for the statistics.
        seconds: that making the index took.

    Raises:
        OutputError: a file cannot be written; none is then.
        UsageError: the index would be a stream.
    """
    statistics = HostStatistics.begun(
        options, "cpu", index.parameters, index=index.describe(),
        time_s={"total": round(seconds, 3)},
    )  # fmt: skip
    with ExitStack() as opened:
        together = [opened.enter_context(AtomicFile(path)) for path in (stats,) if path is not None]
        for file in together:
            file.write(statistics.to_json().encode())
        index.save(out, options.threads, together)
    return statistics


def index_of(
    parts: list[NDArray[np.uint64]],
    parameters: IndexParameters,
    *,
    sequences: int,
    bases: int,
    sources: tuple[str, ...],
    keep_kmers: bool,
) -> HostIndex:
    """The index of k-mers.

    Args:
        parts: their hashes, ascending from part to part; taken out, unless they are kept.
        parameters: by which they were sampled.
        sequences: that they are from.
        bases: of these.
        sources: names of their files.
        keep_kmers: whether the index has the hashes as well.
    """
    kmers = sum(map(len, parts))
    table = np.zeros(min(_MAX_GROUPS, groups_for(kmers)) * GROUP, dtype=np.uint32)
    hashes = np.concatenate(parts) if keep_kmers else None
    for number, own in enumerate(parts):
        insert(table, own)
        parts[number] = own[:0]
    return HostIndex(parameters, table, kmers, sequences, bases, sources, keep_kmers, hashes)


def _read(
    paths: Sequence[str | Path],
    parameters: IndexParameters,
    options: RunOptions,
    advance: Callable[[int], None],
) -> _Found:
    """The hashes of the sampled k-mers of files."""
    sampling = parameters.sampling()
    found = _Found()

    def hashes(own: _Stretches) -> tuple[NDArray[np.uint64], int]:
        room = np.empty(own.letters, dtype=np.uint64)
        at = 0
        for begin, stop, end in own.bounds:
            at += sample(own.data, begin, stop, end, sampling, parameters.max_repeats, room[at:])
        return distinct(room[:at]), own.letters

    stretches = (own for path in paths for own in _stretches(path, options, found))
    with working(options.threads, hashes, stretches, name="index") as sampled:
        for own, letters in sampled:
            found.add(own)
            advance(letters)
            plan_kmers(found.size, parameters, options.budget).check()
    return found


def plan_kmers(kmers: int, parameters: IndexParameters, budget: int) -> HostPlan:
    """Plan the memory of k-mers and their table.

    Args:
        kmers: their number.
        parameters: by which they are sampled.
        budget: bytes that may be used.
    """
    return HostPlan(
        doing="indexing",
        about=AT_LEAST,
        allocations=(
            Allocation("program", INTERPRETER_BYTES),
            Allocation("k-mers", 8 * kmers),
            Allocation("index", groups_for(kmers) * GROUP * 4),
        ),
        budget=budget,
        remedies=(f"`one_in={2 * parameters.one_in}`, which samples fewer k-mers",),
    )


def _stretches(path: str | Path, options: RunOptions, found: _Found) -> Iterator[_Stretches]:
    """The sequences of a file, in stretches of about equal size."""
    sequences = 0
    for batch in read_batches(path, threads=options.threads, phred_offset=33):
        sequences += len(batch)
        found.bases += int(batch.seq_len.sum(dtype=np.int64))
        own = _Stretches(batch.data, [])
        room = _STRETCH
        for start, end in zip(batch.seq_start.tolist(), batch.seq_end.tolist(), strict=True):
            while start < end:
                stop = min(end, start + room)
                own.bounds.append((start, stop, end))
                room -= stop - start
                start = stop
                if room == 0:
                    yield own
                    own, room = _Stretches(batch.data, []), _STRETCH
        if own.bounds:
            yield own
    if sequences == 0:
        raise InputError(path, "the file contains no sequence", "download it again or remove it")
    found.sequences += sequences
