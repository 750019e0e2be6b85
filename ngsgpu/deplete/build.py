"""Building the index of a host from its sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from ngsgpu.deplete.index import HostIndex, groups_for
from ngsgpu.deplete.kmers import sample
from ngsgpu.deplete.params import IndexParameters
from ngsgpu.deplete.parts import (
    PARTS,
    PIECE,
    STARTS,
    Hashes,
    InFile,
    InMemory,
    Parts,
    SortedParts,
    Spill,
)
from ngsgpu.deplete.stats import HostStatistics
from ngsgpu.deplete.table import GROUP, fill
from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import ABOUT, AT_LEAST, Allocation, HostPlan
from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.batch import RecordBatch, Stretches, cut_sequences
from ngsgpu.io.text.reader import read_batches
from ngsgpu.pool import working
from ngsgpu.run.driver import FilesDriver
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.plan import reading_bytes
from ngsgpu.run.progress import Progress, Run, say_if_compiling, say_short
from ngsgpu.sequence.kmers import distinct

_STRETCH: Final = 1 << 20
"""Letters that a task takes."""

_SCRATCH: Final = 3 * 8 * _STRETCH
"""Bytes of a task: room for all k-mers, those that are different, and results that wait."""

_ONE_SEQUENCE: Final = 256 << 20
_LONGEST: Final = 4
"""A text of up to ``_ONE_SEQUENCE`` may be a single one; a large genome has chromosomes, none of
them longer than a quarter of it."""

_SORTERS: Final = 8
"""Parts that are sorted at a time: with their copies, less than the table takes afterwards."""

_COPIES: Final = 3
"""Of a part that is sorted: itself, its different hashes, and which of them are."""

_MAX_GROUPS: Final = (1 << 32) - 1

_DRIVER: Final = FilesDriver(
    IndexParameters, no_input="no sequences given; name FASTA files of the host"
)


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
    own, other = listed(paths), listed(exclude)
    reading = max(
        max(reading_bytes([one], options), _longest(unpacked_size(one))) for one in (*own, *other)
    )
    letters, excluded = (sum(map(unpacked_size, some)) for some in (own, other))
    kmers, less = letters // parameters.one_in, excluded // parameters.one_in
    beside = (
        Allocation("reading", reading),
        Allocation("scratch", options.threads * _SCRATCH),
    )
    plan = plan_kmers(kmers + less, parameters, options.budget)
    index = plan.bytes_of("index")
    listing = Allocation("list of k-mers", 8 * kmers if keep_kmers else 0)
    plan = replace(plan, about=ABOUT, allocations=(*plan.allocations, *beside, listing))
    notes = [f"index    about {format_size(index)}"]
    if not plan.fits:
        largest = [-(-some // PARTS) for some in (kmers, less)]
        plan, at_a_time = plan_passes(largest, parameters, options)
        size = format_size(8 * (kmers + less))
        notes.append(f"passes   {-(-PARTS // at_a_time)}, over k-mers in a file of {size}")
        plan = replace(plan, about=ABOUT, allocations=(*plan.allocations, *beside))
    return replace(plan, sizes={"index_bytes": index}, notes=tuple(notes))


def _longest(text: int) -> int:
    """The longest sequence of a text, which is read as a whole, as far as its size tells."""
    return min(text, max(_ONE_SEQUENCE, text // _LONGEST))


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
    paths, options = _DRIVER.given(paths), options or RunOptions()
    say_if_compiling()
    with Progress(options.progress) as progress:
        run = Run(parameters or IndexParameters(), options, 33, progress)
        index = _built(run, paths, listed(exclude), keep_kmers)
        _check_kmers(index, paths[0])
        return index


def _check_kmers(index: HostIndex, path: str | Path) -> None:
    """Refuse an index without k-mers, with which no read would be the host's.

    Raises:
        InputError: names the first of its files.
    """
    if index.kmers == 0:
        raise InputError(
            path,
            f"no k-mer of {index.parameters.kmer} bases is left of {index.bases:,} bases in "
            f"{index.sequences:,} sequences",
            "give the sequences of the host, or other parameters",
        )


def index_files(
    paths: Paths,
    out: str | Path,
    parameters: IndexParameters | None = None,
    *,
    exclude: Paths = (),
    keep_kmers: bool = False,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> HostStatistics:
    """Index the k-mers of a host into a file; see ``build_index``, and ``write_index`` for errors.

    Args:
        paths: see ``build_index``.
        out: file of the index.
        parameters: see ``build_index``.
        exclude: likewise.
        keep_kmers: likewise.
        stats: JSON file for the statistics.
        options: threads, memory and progress.
    """
    own, other = _DRIVER.given(paths), listed(exclude)
    make = partial(_built, paths=own, exclude=other, keep_kmers=keep_kmers)
    return write_index([*own, *other], out, make, parameters, stats=stats, options=options)


def write_index(
    inputs: Paths,
    out: str | Path,
    make: Callable[[Run[IndexParameters]], HostIndex],
    parameters: IndexParameters | None = None,
    *,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> HostStatistics:
    """Make an index and write it, with the statistics.

    Args:
        inputs: files that are read.
        out: file of the index.
        make: makes it.
        parameters: for ``make``.
        stats: JSON file for the statistics.
        options: threads, memory and progress.

    Raises:
        OutputError: a file cannot be written; none is then.
        UsageError: the index would be a stream.
    """

    def written(run: Run[IndexParameters], files: OutputSet) -> HostStatistics:
        index = make(run)
        _check_kmers(index, listed(inputs)[0])
        index.write(files.files[0], run.options.threads)
        return HostStatistics.begun(
            run.options, "cpu", index.parameters, index=index.describe(), **run.entries()
        )

    return _DRIVER.run_files(
        inputs, [out], written, parameters=parameters, options=options, stats=stats
    )


def _built(
    run: Run[IndexParameters],
    paths: Sequence[str | Path],
    exclude: Sequence[str | Path],
    keep_kmers: bool,
) -> HostIndex:
    parameters, options = run.parameters, run.options
    found, other = Parts(), Parts()
    names = tuple(Path(path).name for path in paths)
    with found, other:
        with run.progress.stage("indexing", unit="bases") as stage:
            _read(paths, found, (found, other), parameters, options, stage.advance)
        say_short(found.short, found.sequences, parameters.kmer)
        if exclude:
            with run.progress.stage("reading what is excluded", unit="bases") as stage:
                _read(exclude, other, (found, other), parameters, options, stage.advance)
        return index_of(
            _sort(found, other, parameters, options), parameters, sequences=found.sequences,
            bases=found.bases, sources=names, keep_kmers=keep_kmers,
        )  # fmt: skip


def index_of(
    parts: SortedParts,
    parameters: IndexParameters,
    *,
    sequences: int,
    bases: int,
    sources: tuple[str, ...],
    keep_kmers: bool,
) -> HostIndex:
    """The index of k-mers.

    Args:
        parts: their hashes, which are taken out.
        parameters: by which they were sampled.
        sequences: that they are from.
        bases: of these.
        sources: names of their files.
        keep_kmers: whether the index has the hashes as well.
    """
    kmers = parts.size
    end = min(_MAX_GROUPS, groups_for(kmers)) * GROUP * 4
    room, pages = parts.room(end + 8 * kmers * keep_kmers)
    table, hashes, at = room[:end].view(np.uint32), room[end:].view(np.uint64), 0

    def hashes_of(number: int) -> Hashes:
        nonlocal at
        own = parts.take(number)
        if keep_kmers:
            hashes[at : at + len(own)] = own
            at += len(own)
        return own

    fill(table, STARTS, hashes_of, pages.release if pages else lambda: None)
    listed = hashes if keep_kmers else None
    return HostIndex(parameters, table, kmers, sequences, bases, sources, keep_kmers, listed, pages)


def _read(
    paths: Sequence[str | Path],
    found: Parts,
    others: Sequence[Parts],
    parameters: IndexParameters,
    options: RunOptions,
    advance: Callable[[int], None],
) -> None:
    """Add the hashes of the sampled k-mers of files.

    Args:
        paths: the files.
        found: to which they are added.
        others: all that are in memory at the same time, this one as well.
        parameters: how k-mers are sampled.
        options: threads and memory.
        advance: called with numbers of letters.
    """
    sampling = parameters.sampling()

    def hashes(task: tuple[RecordBatch, Stretches]) -> tuple[Hashes, int, int]:
        batch, own = task
        letters, at = int((own.stop - own.begin).sum()), 0
        room = np.empty(letters, dtype=np.uint64)
        bounds = (own.begin.tolist(), own.stop.tolist(), batch.seq_end[own.record].tolist())
        for begin, stop, end in zip(*bounds, strict=True):
            at += sample(batch.data, begin, stop, end, sampling, parameters.max_repeats, room[at:])
        return distinct(room[:at]), letters, len(batch.data)

    stretches = (own for path in paths for own in _stretches(path, options, found, parameters.kmer))
    text = 0
    with working(options.threads, hashes, stretches, name="index") as sampled:
        for own, letters, of in sampled:
            found.add(own)
            advance(letters)
            text = max(text, of)
            beside = 2 * text + options.threads * _SCRATCH
            size = sum(some.size for some in others)
            if found.spill is None and plan_kmers(size, parameters, options.budget - beside).fits:
                continue
            largest = [some.largest for some in others]
            plan_passes(largest, parameters, options)[0].check()
            if found.spill is None:
                spill = Spill()
                for some in others:
                    some.move_to(spill)


def _sort(
    found: Parts, other: Parts, parameters: IndexParameters, options: RunOptions
) -> SortedParts:
    """The hashes that are not in others, sorted and distinct; both are taken out."""

    def part(number: int) -> Hashes:
        own, less = found.parts[number].take(), other.parts[number].take()
        left = np.setdiff1d(own, less, assume_unique=True) if len(less) else own
        if found.spill is None:
            return left
        found.parts[number].put(left)
        return np.empty(0, dtype=np.uint64)

    at_a_time = min(options.threads, _SORTERS)
    if found.spill is not None:
        largest = [found.largest, other.largest]
        at_a_time = plan_passes(largest, parameters, options)[1]
    with working(at_a_time, part, range(PARTS), ahead=at_a_time, name="index") as sorted_:
        parts = list(sorted_)
    return InMemory(parts) if found.spill is None else InFile(found)


def plan_kmers(kmers: int, parameters: IndexParameters, budget: int) -> HostPlan:
    """Plan the memory of k-mers and their table.

    Args:
        kmers: their number.
        parameters: by which they are sampled.
        budget: bytes that may be used.
    """
    return _plan(
        parameters,
        budget,
        Allocation("k-mers", 8 * kmers),
        Allocation("index", groups_for(kmers) * GROUP * 4),
    )


def plan_passes(
    largest: Sequence[int], parameters: IndexParameters, options: RunOptions
) -> tuple[HostPlan, int]:
    """Plan the memory of k-mers in a file, whose parts are sorted in several passes.

    Args:
        largest: k-mers of the largest part, of the host and of what is excluded.
        parameters: by which they are sampled.
        options: threads and memory.

    Returns:
        The plan, and the number of parts that are sorted at a time.
    """
    pieces = 8 * PIECE * PARTS * sum(some > 0 for some in largest)
    part = 8 * _COPIES * sum(largest)
    left = options.budget - INTERPRETER_BYTES - pieces
    at_a_time = max(1, min(options.threads, _SORTERS, left // max(1, part)))
    plan = _plan(
        parameters,
        options.budget,
        Allocation("pieces of k-mers", pieces),
        Allocation("parts of k-mers", part * at_a_time),
    )
    return plan, at_a_time


def _plan(parameters: IndexParameters, budget: int, *allocations: Allocation) -> HostPlan:
    return HostPlan(
        doing="indexing",
        about=AT_LEAST,
        allocations=(Allocation("program", INTERPRETER_BYTES), *allocations),
        budget=budget,
        remedies=(f"`one_in={2 * parameters.one_in}`, which samples fewer k-mers",),
    )


def _stretches(
    path: str | Path, options: RunOptions, found: Parts, kmer: int
) -> Iterator[tuple[RecordBatch, Stretches]]:
    """The sequences of a file, in stretches."""
    sequences = 0
    for batch in read_batches(path, threads=options.threads, phred_offset=33):
        sequences += len(batch)
        found.short += int(np.count_nonzero(batch.seq_len < kmer))
        found.bases += int(batch.seq_len.sum(dtype=np.int64))
        yield from ((batch, own) for own in cut_sequences(batch, _STRETCH))
    if sequences == 0:
        raise InputError(path, "the file contains no sequence", "download it again or remove it")
    found.sequences += sequences
