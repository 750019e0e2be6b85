"""The truth for extended reads: a reference, and the positions of its simulated pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.matching import hashes_of
from ngsgpu.evaluate.truth.records import read_tables
from ngsgpu.evaluate.truth.reference import Reference
from ngsgpu.jit import njit


class TruePairs(NamedTuple):
    """True positions of simulated pairs, sorted by the hashes of their names.

    Attributes:
        hashes: uint64[n], of the names.
        sequence: int64[n], number of the reference's sequence.
        begin: int64[n, 2], first base of first and second mate.
        end: int64[n, 2], after their last bases.
        reverse: bool[n], whether the first mate is on the reverse strand.
    """

    hashes: NDArray[np.uint64]
    sequence: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    reverse: NDArray[np.bool_]


@njit(nogil=True, cache=True)
def parse_positions(
    data: NDArray[np.uint8], name_start: NDArray[np.int64], fields: NDArray[np.int64]
) -> None:
    """Reference name (begin and end) and position (from 1) of SAM lines; ``fields`` is [3, n]."""
    for i in range(len(name_start)):
        p = name_start[i]
        for column in range(4):
            begin = p
            while data[p] != ord("\t"):
                p += 1
            if column == 2:
                fields[0, i] = begin
                fields[1, i] = p
            if column == 3:
                position = 0
                for q in range(begin, p):
                    position = 10 * position + data[q] - ord("0")
                fields[2, i] = position
            p += 1


def read_true_pairs(paths: Sequence[str | Path], reference: Reference) -> TruePairs:
    """Read the places of pairs from SAM, BAM or CRAM files of error-free reads.

    Raises:
        InputError: a file cannot be read, has reads without a mate, or of another reference.
    """
    known = _hashes([name.encode() for name in reference.numbers])
    order = np.argsort(known, kind="stable")
    hashes: list[NDArray[np.uint64]] = []
    places: list[NDArray[np.int64]] = []
    for path in paths:
        for table in read_tables(path):
            fields = np.empty((3, len(table)), dtype=np.int64)
            parse_positions(table.data, np.ascontiguousarray(table.name_start), fields)
            names = hashes_of(table.data, fields[0], fields[1])
            found = order[np.searchsorted(known, names, sorter=order) % max(1, len(known))]
            strangers = np.flatnonzero((known[found] != names) | (fields[2] < 1))
            if len(strangers):
                start, end, _ = fields[:, strangers[0]].tolist()
                name = table.data[start:end].tobytes().decode("ascii", "replace")
                raise InputError(
                    path,
                    f"a read lies in {name!r}, which is not in the reference",
                    "give the reference the reads were simulated from",
                )
            hashes.append(hashes_of(table.data, table.name_start, table.name_end))
            begin = fields[2] - 1
            places.append(
                np.stack(
                    [found, begin, begin + table.seq_len, table.reverse, table.mate], axis=1
                ).astype(np.int64)
            )
    every, rows = np.concatenate(hashes), np.concatenate(places)
    mates = []
    for mate in (1, 2):
        chosen = np.flatnonzero(rows[:, 4] == mate)
        chosen = chosen[np.argsort(every[chosen], kind="stable")]
        mates.append((every[chosen], rows[chosen]))
    (first, first_rows), (second, second_rows) = mates
    if not np.array_equal(first, second):
        raise InputError(
            paths[0],
            f"there are {len(first):,} first and {len(second):,} second mates, or their names "
            "differ",
            "give the true positions of pairs",
        )
    return TruePairs(
        hashes=first,
        sequence=first_rows[:, 0].copy(),
        begin=np.stack([first_rows[:, 1], second_rows[:, 1]], axis=1),
        end=np.stack([first_rows[:, 2], second_rows[:, 2]], axis=1),
        reverse=first_rows[:, 3] != 0,
    )


def _hashes(names: list[bytes]) -> NDArray[np.uint64]:
    sizes = np.array([len(name) for name in names], dtype=np.int64)
    ends = np.cumsum(sizes)
    return hashes_of(np.frombuffer(b"".join(names), np.uint8), ends - sizes, ends)
