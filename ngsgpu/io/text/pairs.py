"""Mates: two files read in step, or one file of interleaved mates."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, shown_input
from ngsgpu.io.compress.alignments import is_alignments
from ngsgpu.io.text.batch import RecordBatch, concatenate
from ngsgpu.io.text.reader import (
    CHUNK_BYTES,
    DEFAULT_LIMITS,
    PhredOffset,
    ReadLimits,
    read_batches,
    reading_pool,
)
from ngsgpu.jit import njit
from ngsgpu.pool import map_ahead

_AGREE: Final = 0
_DIFFER: Final = 1
_SAME_MATE: Final = 2


class Mates(NamedTuple):
    """Records of first or second mates as kernels take them; offsets as in ``RecordBatch``.

    Attributes:
        data: uint8[bytes].
        header_start: int64[n].
        header_end: int64[n].
        seq_start: int64[n].
        seq_len: int32[n].
        qual_start: int64[n]; empty for FASTA.
        record_end: int64[n], behind the record's last byte.
    """

    data: NDArray[np.uint8]
    header_start: NDArray[np.int64]
    header_end: NDArray[np.int64]
    seq_start: NDArray[np.int64]
    seq_len: NDArray[np.int32]
    qual_start: NDArray[np.int64]
    record_end: NDArray[np.int64]

    @classmethod
    def of_pairs(cls, batches: tuple[RecordBatch, ...]) -> tuple[Mates, Mates]:
        """First and second mates of a batch of each, or of one batch in which they alternate."""
        if len(batches) == 2:
            return cls.of(batches[0], 0, 1), cls.of(batches[1], 0, 1)
        return cls.of(batches[0], 0, 2), cls.of(batches[0], 1, 2)

    @classmethod
    def of(cls, batch: RecordBatch, first: int, step: int) -> Mates:
        """Every ``step``-th record of a batch, from ``first`` on."""
        ends = np.append(batch.header_start[1:] - 1, batch.end)
        rows = slice(first, None, step)
        qualities = batch.qual_start if batch.qual_start is not None else np.zeros(0, np.int64)
        arrays = (
            batch.header_start,
            batch.header_end,
            batch.seq_start,
            batch.seq_len,
            qualities,
            ends,
        )
        return cls(batch.data, *(np.ascontiguousarray(array[rows]) for array in arrays))

    def every_second(self, first: int) -> Mates:
        """Every second record, from ``first`` on."""
        arrays: tuple[Any, ...] = self[1:]
        return Mates(self.data, *(np.ascontiguousarray(array[first::2]) for array in arrays))


@njit(nogil=True, cache=True)
def _word_end(data, start, end):  # type: ignore[no-untyped-def]
    i = start
    while i < end and data[i] != 32 and data[i] != 9:
        i += 1
    return i


@njit(nogil=True, cache=True)
def _first_disagreement(  # type: ignore[no-untyped-def]
    data1, start1, end1, at1, data2, start2, end2, at2, step
):
    """Compare names: records ``at1``, ``at1 + step``, ... with ``at2``, ``at2 + step``, ...

    Returns:
        (number of the first mismatched pair, or -1; the kind of mismatch).
    """
    pair = 0
    while at2 < start2.size:
        a, b = start1[at1], start2[at2]
        a_end = _word_end(data1, a, end1[at1])
        b_end = _word_end(data2, b, end2[at2])
        length = a_end - a
        if length != b_end - b:
            return pair, _DIFFER
        same = 0
        while same < length and data1[a + same] == data2[b + same]:
            same += 1
        if length >= 2:
            # '/', '.' and '_' come before a mate number; '.' is what SRA tools write.
            mark = data1[a_end - 2]
            last1, last2 = data1[a_end - 1], data2[b_end - 1]
            if same == length:
                if mark == 47 and (last1 == 49 or last1 == 50):
                    return pair, _SAME_MATE
            elif (
                same < length - 1
                or not (mark == 47 or mark == 46 or mark == 95)
                or not ((last1 == 49 and last2 == 50) or (last1 == 50 and last2 == 49))
            ):
                return pair, _DIFFER
        elif same < length:
            return pair, _DIFFER
        pair += 1
        at1 += step
        at2 += step
    return -1, _AGREE


def check_mates(first: RecordBatch, second: RecordBatch) -> None:
    """Check that the names of records with the same index are those of mates.

    The first words of the headers have to be equal, or to differ only in a 1 and a 2 at their
    ends after ``/``, ``.`` or ``_``. Comments are not looked at, so Casava's ``1:N:0:ACGT`` and
    ``2:N:0:ACGT`` are fine. Two names that both end in ``/1``, or in ``/2``, are refused.

    Args:
        first: records of mates 1.
        second: as many records of mates 2.

    Raises:
        InputError: two names do not agree; record and line are those of the second file.
    """
    pair, fault = _first_disagreement(
        first.data, first.header_start, first.header_end, 0,
        second.data, second.header_start, second.header_end, 0, 1,
    )  # fmt: skip
    if fault != _AGREE:
        raise _not_mates(first, pair, second, pair, fault)


def check_interleaved(batch: RecordBatch) -> None:
    """Check that each record of even index and the one after it have names of mates.

    Args:
        batch: an even number of records.

    Raises:
        InputError: two names do not agree.
    """
    spans = batch.data, batch.header_start, batch.header_end
    pair, fault = _first_disagreement(*spans, 0, *spans, 1, 2)
    if fault != _AGREE:
        raise _not_mates(batch, 2 * pair, batch, 2 * pair + 1, fault)


def _not_mates(
    first: RecordBatch, index1: int, second: RecordBatch, index2: int, fault: int
) -> InputError:
    name1, name2 = first.name(index1), second.name(index2)
    record1, record2 = (first.first_record + index1 + 1, second.first_record + index2 + 1)
    if first is second:
        where = f"records {record1:,} and {record2:,}"
    else:
        where = f"record {record1:,} of {shown_input(first.path)} and of this file"
    if fault == _SAME_MATE:
        cause = f"the names {name1} and {name2} ({where}) have the same mate number"
        remedy = "check that mates 1 and mates 2 are not the same file"
    elif _differ_in_number(name1, name2):
        cause = f"the names {name1} and {name2} ({where}) differ in the mate's number only"
        remedy = "take the number out of the names, or end them in /1 and /2"
    else:
        cause = f"the names {name1} and {name2} ({where}) are not those of mates"
        remedy = "bring the mates into the same order, for instance with `seqkit pair`"
    if is_alignments(second.path) and "order" in remedy:
        if first is second:
            remedy = (
                "bring mates together with `samtools collate`; reads without their mates can be "
                "piped in by `samtools fastq`"
            )
        return InputError(second.path, cause, remedy, record=record2)
    line = 4 * record2 - 3 if second.qual_start is not None else None
    return InputError(second.path, cause, remedy, record=record2, line=line)


def _differ_in_number(name1: str, name2: str) -> bool:
    """Whether names are equal but for the number of the mate, as in x_R1 or x_1:N:0."""
    differing = [at for at, (a, b) in enumerate(zip(name1, name2, strict=False)) if a != b]
    if len(name1) != len(name2) or len(differing) != 1:
        return False
    (at,) = differing
    return {name1[at], name2[at]} == {"1", "2"} and bool(re.search(r"[/._-][Rr]?$", name1[:at]))


def read_pairs(
    path1: str | Path,
    path2: str | Path,
    *,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    batch_reads_hint: int | None = None,
    phred_offset: PhredOffset = "auto",
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Generator[tuple[RecordBatch, RecordBatch], None, None]:
    """Read two files in step: record ``i`` of one is the mate of record ``i`` of the other.

    Args:
        path1: file of mates 1.
        path2: file of mates 2.
        threads: threads that read and split the files, and that inflate BGZF blocks of each.
        chunk_bytes: as for ``read_batches``.
        batch_reads_hint: maximum pairs per batch; by default as many as batches of both files
            share.
        phred_offset: as for ``read_batches``.
        limits: as for ``read_batches``.

    Yields:
        Batches of equal length, with at least one pair.

    Raises:
        InputError: as ``read_batches``; or the names of mates disagree, or one file has fewer
            records than the other.
    """
    how = _How(threads, chunk_bytes, phred_offset, limits)
    with _opened([path1, path2], how) as ((batches1, batches2), pool):
        pairs = _in_step(batches1, batches2, path1, path2)
        with closing(map_ahead(pool, _checked_pair, pairs, threads + 2)) as checked:
            for first, second in checked:
                step = batch_reads_hint or len(first)
                for start in range(0, len(first), step):
                    stop = min(start + step, len(first))
                    yield first.slice(start, stop), second.slice(start, stop)


class _How(NamedTuple):
    """Arguments of ``read_batches``."""

    threads: int
    chunk_bytes: int
    phred_offset: PhredOffset
    limits: ReadLimits


@contextmanager
def _opened(
    paths: Sequence[str | Path], how: _How
) -> Iterator[tuple[list[Generator[RecordBatch, None, None]], ThreadPoolExecutor]]:
    """The batches of files, and the threads that read them all."""
    pool = reading_pool(how.threads)
    with ExitStack() as opened:
        files = [
            opened.enter_context(closing(read_batches(path, **how._asdict(), pool=pool)))
            for path in paths
        ]
        # Before the files are closed.
        opened.callback(pool.shutdown, wait=True, cancel_futures=True)
        yield files, pool


def _checked_pair(mates: tuple[RecordBatch, RecordBatch]) -> tuple[RecordBatch, RecordBatch]:
    check_mates(*mates)
    return mates


def _in_step(
    batches1: Iterator[RecordBatch],
    batches2: Iterator[RecordBatch],
    path1: str | Path,
    path2: str | Path,
) -> Iterator[tuple[RecordBatch, RecordBatch]]:
    """Cut the batches of both files to the records available from both."""
    second: RecordBatch | None = None
    pairs = at = 0
    for first in batches1:
        done = 0
        while done < len(first):
            if second is None or at == len(second):
                second, at = next(batches2, None), 0
            if second is None:
                raise _ends_early(path2, path1, pairs)
            count = min(len(first) - done, len(second) - at)
            following = second
            if done + count < len(first):  # names count only where the second file goes on
                more = next(batches2, None)
                if more is None:
                    raise _ends_early(path2, path1, pairs + count)
                following = more
            yield first.slice(done, done + count), second.slice(at, at + count)
            second, at = following, at + count if following is second else 0
            done += count
            pairs += count
    if (second is not None and at < len(second)) or next(batches2, None) is not None:
        raise _ends_early(path1, path2, pairs)


def read_interleaved(
    path: str | Path,
    *,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    phred_offset: PhredOffset = "auto",
    limits: ReadLimits = DEFAULT_LIMITS,
) -> Generator[RecordBatch, None, None]:
    """Read one file in which each read is followed by its mate.

    Args are those of ``read_batches``.

    Yields:
        Batches with an even number of records: record ``2 i + 1`` is the mate of record ``2 i``.

    Raises:
        InputError: as ``read_batches``; or the names of mates do not agree, or the number of
            records is odd.
    """
    with _opened([path], _How(threads, chunk_bytes, phred_offset, limits)) as ((batches,), pool):
        even = _even(batches, path)
        with closing(map_ahead(pool, _checked_batch, even, threads + 2)) as checked:
            yield from checked


def _checked_batch(batch: RecordBatch) -> RecordBatch:
    check_interleaved(batch)
    return batch


def _even(batches: Iterator[RecordBatch], path: str | Path) -> Iterator[RecordBatch]:
    """Cut batches between pairs; a pair split over two batches becomes a separate batch."""
    rest: RecordBatch | None = None
    for batch in batches:
        begin = 0 if rest is None else 1
        if rest is not None:
            yield concatenate([rest, batch.slice(0, 1)])
        end = begin + (len(batch) - begin) // 2 * 2
        if end > begin:
            yield batch.slice(begin, end)
        rest = batch.slice(end, len(batch)) if end < len(batch) else None
    if rest is not None:
        total = rest.first_record + 1
        raise InputError(
            path,
            f"an interleaved file must have an even number of records, but there are {total:,}",
            "the last read has no mate: the file may be truncated, or is not interleaved",
            record=total,
        )


def _ends_early(short: str | Path, other: str | Path, records: int) -> InputError:
    cause = f"ends after {records:,} records, but {shown_input(other)} has more"
    remedy = "the two files of a pair need the same records: one may be cut short or filtered"
    return InputError(short, cause, remedy, record=records + 1)
