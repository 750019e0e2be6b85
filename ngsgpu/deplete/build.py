"""Building the index of a host from its sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.index import HostIndex, groups_for
from ngsgpu.deplete.kmers import GROUP, distinct, insert, sample
from ngsgpu.deplete.params import IndexParameters
from ngsgpu.device.memory import format_size
from ngsgpu.errors import HostMemoryError, InputError, UsageError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import read_batches
from ngsgpu.pool import working
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.progress import Progress, say_if_compiling

_STRETCH: Final = 1 << 22
"""Letters that a task takes."""

_PARTS: Final = 64
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
class _Found:
    """Hashes of k-mers, by their highest bits.

    Attributes:
        parts: sorted arrays of uint64.
        sequences: they are from.
        bases: letters of these.
        size: number of hashes.
    """

    parts: list[list[NDArray[np.uint64]]] = field(
        default_factory=lambda: [[] for _ in range(_PARTS)]
    )
    sequences: int = 0
    bases: int = 0
    size: int = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add sorted hashes."""
        for part, own in zip(self.parts, parts_of(hashes), strict=True):
            if len(own):
                part.append(own.copy())
        self.size += len(hashes)

    def take(self, number: int) -> NDArray[np.uint64]:
        """Take the hashes of a part, sorted and distinct."""
        part, self.parts[number] = self.parts[number], []
        return distinct(np.concatenate(part)) if part else np.empty(0, dtype=np.uint64)


def plan_index(paths: Paths, parameters: IndexParameters) -> tuple[int, int]:
    """Memory that building takes and size of the index, in bytes, estimated from file sizes.

    Raises:
        InputError: a file is missing.
    """
    paths = listed(paths)
    for path in paths:
        if not Path(path).exists():
            raise InputError(path, "there is no such file", "check the path")
    letters = sum(map(unpacked_size, paths))
    kmers = letters // parameters.one_in
    table = groups_for(kmers) * GROUP * 4
    longest = max(map(unpacked_size, paths), default=0) // 8
    return INTERPRETER_BYTES + 8 * kmers + table + longest, table


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
            check_memory(found.size, parameters, options.budget)
    return found


def check_memory(kmers: int, parameters: IndexParameters, budget: int) -> None:
    """Check that k-mers and their table fit into memory.

    Args:
        kmers: their number.
        parameters: by which they are sampled.
        budget: bytes that may be used.

    Raises:
        HostMemoryError: they do not.
    """
    needed = INTERPRETER_BYTES + 8 * kmers + groups_for(kmers) * GROUP * 4
    if needed > budget:
        raise HostMemoryError(
            f"indexing takes more than {format_size(needed)} of memory and {format_size(budget)} "
            f"may be used; sample fewer k-mers (`one_in={2 * parameters.one_in}`), or build the "
            "index on a machine with more memory"
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
