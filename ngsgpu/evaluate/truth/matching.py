"""Finding the true record of each read: in step where the orders agree, by name where not.

Simulators write truth and reads in the same order, so both are streamed side by side and the
names only checked. At the first name that differs the whole truth is read into memory and looked
up by name from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.records import RecordTable, name_end, read_tables
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.jit import njit

_MISSING = -1
_AMBIGUOUS = -2


class Names(NamedTuple):
    """Names of reads to look up, as passed to kernels.

    Attributes:
        data: uint8, text.
        start: int64[n], first byte of each name.
        end: int64[n], after its last byte.
        mate: uint8[n], 1 or 2; 0: unknown.
    """

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    mate: NDArray[np.uint8]

    def text(self, row: int) -> str:
        """One name, for messages."""
        return self.data[self.start[row] : self.end[row]].tobytes().decode("ascii", "replace")


def names_of(batch: RecordBatch, mates: NDArray[np.uint8]) -> Names:
    """Names of a batch of reads.

    Args:
        batch: the reads.
        mates: uint8 [n], the mate number of each read by position; 0 if the name may contain it.
    """
    start = np.ascontiguousarray(batch.header_start)
    names = Names(batch.data, start, np.empty(len(batch), dtype=np.int64), mates.copy())
    _name_ends(names, np.ascontiguousarray(batch.header_end))
    return names


def names_in(table: RecordTable) -> Names:
    """Names of records."""
    # Strided views (every second record) would make the kernels compile once more.
    columns = (table.name_start, table.name_end, table.mate)
    return Names(table.data, *map(np.ascontiguousarray, columns))


@njit(nogil=True, cache=True)
def _name_ends(names: Names, header_end: NDArray[np.int64]) -> None:
    for i in range(names.start.size):
        names.end[i], said = name_end(names.data, names.start[i], header_end[i])
        if names.mate[i] == 0:
            names.mate[i] = said


@njit(nogil=True, cache=True)
def same_name(a: Names, i: int, b: Names, j: int) -> bool:
    """Whether two names are equal, whatever their mates."""
    length = a.end[i] - a.start[i]
    if length != b.end[j] - b.start[j]:
        return False
    p = 0
    while p < length and a.data[a.start[i] + p] == b.data[b.start[j] + p]:
        p += 1
    return p == length


@njit(nogil=True, cache=True)
def _same_read(a: Names, i: int, b: Names, j: int) -> bool:
    if a.mate[i] != b.mate[j] and a.mate[i] != 0 and b.mate[j] != 0:
        return False
    return same_name(a, i, b, j)


@njit(nogil=True, cache=True)
def first_difference(names: Names, other: Names) -> int:
    """Index of the first row whose name or mate is not the other's; the number of rows if none."""
    for i in range(names.start.size):
        if not _same_read(names, i, other, i):
            return i
    return names.start.size


def hashes_of(
    data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Hashes of names, uint64[n]: FNV-1a, 64 bits; arguments as in ``Names``.

    Args:
        data: bytes that contain the names.
        start: first byte of each name, int64[n].
        end: byte after the last one of each name, int64[n].
    """
    hashes = np.empty(len(start), dtype=np.uint64)
    _hash(data, np.ascontiguousarray(start), np.ascontiguousarray(end), hashes)
    return hashes


@njit(nogil=True, cache=True)
def _hash(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> None:
    for i in range(start.size):
        value = np.uint64(0xCBF29CE484222325)
        for p in range(start[i], end[i]):
            value = (value ^ np.uint64(data[p])) * np.uint64(0x100000001B3)
        hashes[i] = value


@njit(nogil=True, cache=True)
def _look_up(
    wanted: Names,
    wanted_hashes: NDArray[np.uint64],
    names: Names,
    hashes: NDArray[np.uint64],
    order: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Rows of the wanted names among others, whose hashes are sorted; ``order`` are their rows."""
    for i in range(found.size):
        found[i] = _MISSING
        low = np.searchsorted(hashes, wanted_hashes[i])
        while low < hashes.size and hashes[low] == wanted_hashes[i]:
            j = order[low]
            low += 1
            if _same_read(wanted, i, names, j):
                found[i] = j if found[i] == _MISSING else _AMBIGUOUS


@njit(nogil=True, cache=True)
def _copy_ranges(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    target: NDArray[np.uint8],
    to: NDArray[np.int64],
) -> None:
    for i in range(start.size):
        for p in range(length[i]):
            target[to[i] + p] = source[start[i] + p]


def _compact(table: RecordTable) -> RecordTable:
    """The same records with only their names and bases as text."""
    name_len = table.name_end - table.name_start
    size = name_len + table.seq_len
    at = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(size)])
    data = np.empty(int(at[-1]), dtype=np.uint8)
    name_start = at[:-1]
    seq_start = name_start + name_len
    _copy_ranges(table.data, table.name_start, name_len, data, name_start)
    _copy_ranges(table.data, table.seq_start, table.seq_len, data, seq_start)
    return RecordTable(
        data, name_start, seq_start, table.mate, table.reverse, seq_start, table.seq_len,
        table.claim, table.span,
    )  # fmt: skip


def _join(tables: Sequence[RecordTable]) -> RecordTable:
    sizes = [len(table.data) for table in tables]
    shifts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    offsets = ("name_start", "name_end", "seq_start")

    def concatenate(name: str) -> NDArray[Any]:
        parts: list[NDArray[Any]] = [getattr(table, name) for table in tables]
        if name in offsets:
            parts = [part + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
        return np.concatenate(parts)

    return RecordTable(*(concatenate(column.name) for column in fields(RecordTable)))


class Counterparts:
    """Finds the alignment records of reads, in the order of the reads.

    Args:
        paths: the files, read in turn.
        group: records that belong together in the files' order: 2 for pairs, 1 otherwise.
        what: contents of the files, for messages.
        read: reads a file.

    Attributes:
        records: records returned so far.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        group: int,
        what: str,
        read: Callable[[str | Path], Iterator[RecordTable]] = read_tables,
    ) -> None:
        self._paths = list(paths)
        self._read = read
        self._group = group
        self._what = what
        self._tables = self._stream()
        self._table: RecordTable | None = None
        self._at = 0
        self._index: tuple[RecordTable, NDArray[np.uint64], NDArray[np.int64]] | None = None
        self.records = 0

    @property
    def in_step(self) -> bool:
        """Whether the orders have agreed so far."""
        return self._index is None

    def _stream(self) -> Iterator[RecordTable]:
        for path in self._paths:
            yield from self._read(path)

    def available(self, most: int) -> int:
        """How many groups can be taken at once, at most ``most``, at least 1."""
        if self._index is not None:
            return most
        while self._table is None or self._at >= len(self._table):
            self._table, self._at = next(self._tables, None), 0
            if self._table is None:
                break
        left = 0 if self._table is None else (len(self._table) - self._at) // self._group
        return max(1, min(most, left))

    def take(self, names: Sequence[Names], paths: Sequence[str], first: int) -> list[RecordTable]:
        """Records of reads.

        Args:
            names: names of as many reads for each member of a group (one for single reads, two
                for pairs), no more than `available` said.
            paths: the reads' file for each member, for messages.
            first: number of the first read in it, from 0.

        Returns:
            A table for each member, in the order of the reads.

        Raises:
            InputError: a read has no record, or several.
        """
        count = len(names[0].start)
        self.records += count * self._group
        if self._index is None:
            end = self._at + count * self._group
            if self._table is not None and end <= len(self._table):
                parts = [
                    self._table.part(self._at + member, end, self._group)
                    for member in range(self._group)
                ]
                pairs = zip(names, map(names_in, parts), strict=True)
                if all(first_difference(a, b) == count for a, b in pairs):
                    self._at = end
                    return parts
            self._index = self._make_index()
        return [self._find(n, path, first) for n, path in zip(names, paths, strict=True)]

    def _make_index(self) -> tuple[RecordTable, NDArray[np.uint64], NDArray[np.int64]]:
        self._table = None
        table = _join([_compact(table) for table in self._stream()])
        hashes = hashes_of(table.data, table.name_start, table.name_end)
        order = np.argsort(hashes, kind="stable")
        return table, hashes[order], order

    def _find(self, names: Names, path: str, first: int) -> RecordTable:
        assert self._index is not None
        table, hashes, order = self._index
        wanted = hashes_of(names.data, names.start, names.end)
        found = np.empty(len(wanted), dtype=np.int64)
        _look_up(names, wanted, names_in(table), hashes, order, found)
        bad = np.flatnonzero(found < 0)
        if bad.size:
            row = int(bad[0])
            files = ", ".join(str(p) for p in self._paths)
            several = found[row] == _AMBIGUOUS
            raise InputError(
                path,
                f"read {names.text(row)!r} has {'several records' if several else 'no record'} "
                f"among the {self._what} in {files}",
                "make the names of the reads unique"
                if several
                else f"give the {self._what} of these reads",
                record=first + row + 1,
            )
        return table.take(found)
