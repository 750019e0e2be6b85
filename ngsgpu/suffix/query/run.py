"""From reads to their matches in an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import read_batches
from ngsgpu.jit import njit
from ngsgpu.pool import working
from ngsgpu.run.driver import FilesDriver
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Run
from ngsgpu.sequence.codec import CODES
from ngsgpu.suffix.fm import FmIndex
from ngsgpu.suffix.params import QueryParameters
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.query.cpu import find_maximal, find_places, turn_places
from ngsgpu.suffix.query.paf import Hits, Names, lines_of
from ngsgpu.suffix.stats import QuerySummary
from ngsgpu.suffix.store import files_of_index, open_index

if TYPE_CHECKING:
    from ngsgpu.suffix.query.gpu import DeviceIndex

_DRIVER: Final = FilesDriver(QueryParameters)


@dataclass(frozen=True, slots=True)
class Found:
    """Matches of a batch of reads.

    Attributes:
        lines: uint8, PAF.
        reads: number of reads.
        with_matches: how many of them have one.
        matches: number of matches.
    """

    lines: NDArray[np.uint8]
    reads: int
    with_matches: int
    matches: int


def query_files(
    prefix: str | Path,
    paths: Paths,
    out: str | Path,
    parameters: QueryParameters | None = None,
    options: RunOptions | None = None,
    *,
    stats: str | Path | None = None,
) -> QuerySummary:
    """Write the exact matches of reads.

    Args:
        prefix: of the index.
        paths: FASTQ or FASTA files; ``-`` is standard input.
        out: PAF file.
        parameters: which matches.
        options: backend, threads, GPU memory and progress; do not affect the result.
        stats: JSON file for the statistics.

    Raises:
        InputError: the index or a file cannot be read.
        OutputError: the output cannot be written; none is then.
        UsageError: the output is an input.
        DeviceError: the GPU fails or the index does not fit there, and the CPU may not take over.
    """
    paths = listed(paths)

    def found(run: Run[QueryParameters], files: OutputSet) -> QuerySummary:
        index, places = open_index(prefix, run.options.threads)
        there = None
        if run.backend == "cuda":
            from ngsgpu.suffix.query.gpu import DeviceIndex

            there = DeviceIndex(index, run.options.gpu_memory, run.options.threads)
        search = Searcher(index, places, run.parameters, there)
        return QuerySummary.after(run, **_write_matches(search, paths, files, run))

    return _DRIVER.run_files(
        paths, [out], found, parameters=parameters, options=options, stats=stats,
        also_read=files_of_index(prefix),
    )  # fmt: skip


def _write_matches(
    search: Searcher, paths: Sequence[str | Path], files: OutputSet, run: Run[QueryParameters]
) -> dict[str, int]:
    """Write the matches of all reads; return how many reads and matches there are."""
    totals = dict.fromkeys(("reads", "with_matches", "matches"), 0)
    batches = _batches(paths, run.options)
    with (
        run.progress.stage("searching", unit="reads") as stage,
        working(run.options.threads, search.find, batches, name="search") as results,
    ):
        for found in results:
            files.write(0, found.lines)
            for name in totals:
                totals[name] += getattr(found, name)
            stage.advance(found.reads)
    return totals


def _batches(paths: Sequence[str | Path], options: RunOptions) -> Iterator[RecordBatch]:
    for path in paths:
        yield from read_batches(path, threads=options.threads, chunk_bytes=options.chunk_bytes)


@dataclass(frozen=True)
class Searcher:
    """Finds matches in one index.

    Attributes:
        index: the index.
        places: of its sequences.
        parameters: which matches.
        there: the index on the GPU; None: the CPU searches.
    """

    index: FmIndex
    places: SequencePlaces
    parameters: QueryParameters
    there: DeviceIndex | None = None
    names: Names = field(init=False)

    def __post_init__(self) -> None:
        ends = np.cumsum([len(name) for name in self.places.names], dtype=np.int64)
        text = np.frombuffer(b"".join(self.places.names), dtype=np.uint8)
        begins = np.concatenate(([0], ends[:-1]))
        object.__setattr__(self, "names", Names(text, begins, ends))

    def find(self, batch: RecordBatch) -> Found:
        """The matches of a batch."""
        codes, starts = codes_of(batch)
        found = self.matches(codes, starts)
        hits = self.hits(found)
        lines = lines_of(
            _names(batch), starts, self.names, self.places.starts, found, hits
        ) if len(hits.match) else np.empty(0, dtype=np.uint8)  # fmt: skip
        matches = np.unique(hits.match)
        with_matches = len(np.unique(found[matches, 0]))
        return Found(lines, len(batch), with_matches, len(matches))

    def matches(self, codes: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Matches of reads; see ``find_maximal``."""
        index, own = self.index, self.parameters
        reads = len(starts) - 1
        shortest = 1 if own.whole else own.min_length
        if self.there is not None:
            return self.there.matches(codes, starts, shortest, whole=own.whole)
        room = 2 * reads + 64
        while True:
            found = np.empty((room, 5), dtype=np.int64)
            count = find_maximal(
                index.words, index.primary, index.totals, codes, starts, (0, reads), shortest,
                own.whole, found,
            )  # fmt: skip
            if count < 0:
                raise index.damage()
            if count <= room:
                return found[:count]
            room = count

    def hits(self, found: NDArray[np.int64]) -> Hits:
        """Places of matches; matches only over ends of sequences have none and are left out."""
        index = self.index
        rows = found[:, 4] - found[:, 3]
        shown = np.where(rows <= self.parameters.max_places, rows, 0)
        at = np.concatenate(([0], np.cumsum(shown)))
        match = np.repeat(np.arange(len(found)), shown)
        rows_shown = found[match, 3] + np.arange(len(match)) - at[match]
        if self.there is not None:
            places = self.there.places(rows_shown)
        else:
            places = np.empty(len(match), dtype=np.int64)
            find_places(index.words, index.primary, index.totals, index.sample, rows_shown, places)
        if len(places) and int(places.min()) < 0:
            raise index.damage()
        turn_places(found, len(index), at, places)
        length = found[match, 2] - found[match, 1]
        sequence, offset, reverse = self.places.locate(places, length)
        inside = sequence >= 0
        match = match[inside]
        count = np.bincount(match, minlength=len(found))
        hidden = np.flatnonzero(shown < rows)
        order = np.argsort(np.concatenate([match, hidden]), kind="stable")
        none = np.zeros(len(hidden), dtype=np.int64)
        return Hits(
            match=np.concatenate([match, hidden])[order],
            sequence=np.concatenate([sequence[inside], none - 1])[order],
            offset=np.concatenate([offset[inside], none])[order],
            reverse=np.concatenate([reverse[inside], none > 0])[order],
            places=np.concatenate([count[match], rows[hidden]])[order],
        )


def codes_of(batch: RecordBatch) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes of a batch's bases, one read after the other, and where each begins."""
    starts = np.concatenate(([0], np.cumsum(batch.seq_len, dtype=np.int64)))
    codes = np.empty(int(starts[-1]), dtype=np.uint8)
    _copy_codes(batch.data, batch.seq_start, batch.seq_end, CODES, codes)
    return codes, starts


@njit(nogil=True, cache=True)
def _copy_codes(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    table: NDArray[np.uint8],
    codes: NDArray[np.uint8],
) -> None:
    at = 0
    for read in range(len(begin)):
        for i in range(begin[read], end[read]):
            if data[i] != 10 and data[i] != 13:
                codes[at] = table[data[i]]
                at += 1


def _names(batch: RecordBatch) -> Names:
    end = np.empty_like(batch.header_end)
    _find_ends(batch.data, batch.header_start, batch.header_end, end)
    return Names(batch.data, batch.header_start, end)


@njit(nogil=True, cache=True)
def _find_ends(
    data: NDArray[np.uint8],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Ends of the first words of headers."""
    for i in range(len(begin)):
        at = begin[i]
        while at < end[i] and data[at] != 32 and data[at] != 9:
            at += 1
        found[i] = at
