"""Which k-mers of a unitig the samples have: its colors, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.chains import Unitigs
from ngsgpu.assemble.graph import Graph, Places
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.put import put_number
from ngsgpu.jit import njit
from ngsgpu.kmers import open_database
from ngsgpu.kmers.compare import Lookup
from ngsgpu.pool import map_all

_PART: Final = 1 << 16
_NUMBER: Final = 20
_ENDING: Final = ".kmers"


def color_names(paths: Sequence[str | Path]) -> list[str]:
    """Names of samples: those of their databases, without ``.kmers``.

    Raises:
        UsageError: two have the same name.
    """
    names = [Path(path).resolve().name.removesuffix(_ENDING) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`color`: two databases are named {name}; rename one of them")
    return names


def color_lines(
    graph: Graph, unitigs: Unitigs, paths: Sequence[str | Path], threads: int = 1
) -> Iterator[bytes]:
    """A table of unitigs: how many of its k-mers each sample has, and the sum of their counts.

    Args:
        graph: the graph.
        unitigs: its unitigs.
        paths: a k-mer database for each sample.
        threads: number of threads; does not affect the result.

    Raises:
        InputError: a database cannot be read, or has k-mers of another length.
        UsageError: two databases have the same name.
    """
    names = color_names(paths)
    columns = [unitigs.sizes]
    for path in paths:
        database = open_database(path, threads)
        if database.parameters.kmer != graph.k:
            raise InputError(
                path,
                f"has {database.parameters.kmer}-mers and the graph {graph.k}-mers",
                "count both with the same k-mer length",
            )
        columns += _sums(graph, unitigs, Lookup(database), threads)
    head = ["unitig", "kmers", *(f"{name}_{of}" for name in names for of in ("kmers", "count"))]
    yield ("\t".join(head) + "\n").encode()
    table = np.stack(columns, axis=1)
    for begin in range(0, len(table), _PART):
        part = table[begin : begin + _PART]
        text = np.empty(part.shape[0] * (part.shape[1] + 1) * (_NUMBER + 1), dtype=np.uint8)
        yield text[: _write_rows(part, begin, text)].tobytes()


def _sums(graph: Graph, unitigs: Unitigs, lookup: Lookup, threads: int) -> list[NDArray[np.int64]]:
    """K-mers of each unitig that a sample has, and their counts there."""
    counts = np.empty(len(graph), dtype=lookup.count_type)

    def look_up(begin: int) -> None:
        counts[begin : begin + _PART] = lookup.counts(graph.kmers[begin : begin + _PART])

    map_all(threads, look_up, range(0, len(graph), _PART), name="colors")
    found = np.empty((2, len(unitigs)), dtype=np.int64)

    def walk(begin: int) -> None:
        end = min(len(unitigs), begin + _PART)
        sum_along(graph.nexts, unitigs.first, unitigs.sizes, counts, begin, end, found)

    map_all(threads, walk, range(0, len(unitigs), _PART), name="walks")
    return list(found)


@njit(nogil=True, cache=True)
def sum_along(
    nexts: Places,
    first: Places,
    sizes: NDArray[np.int64],
    counts: NDArray[Any],
    begin: int,
    end: int,
    found: NDArray[np.int64],
) -> None:
    """Sum counts along the unitigs from ``begin`` to ``end``.

    Args:
        nexts: of the graph.
        first: of the unitigs.
        sizes: of the unitigs.
        counts: uint16[n] or uint32[n], of each node.
        begin: first unitig.
        end: of the unitigs.
        found: int64[2, unitigs], gets how many counts are not 0, and their sum.
    """
    for unitig in range(begin, end):
        d = np.int64(first[unitig])
        present, total = np.int64(0), np.int64(0)
        for step in range(sizes[unitig]):
            if step > 0:
                d = np.int64(nexts[d])
            count = np.int64(counts[d >> 1])
            present += count > 0
            total += count
        found[0, unitig] = present
        found[1, unitig] = total


@njit(nogil=True, cache=True)
def _write_rows(table: NDArray[np.int64], number: int, out: NDArray[np.uint8]) -> int:
    at = 0
    for row in range(table.shape[0]):
        at = put_number(out, at, number + row)
        for column in range(table.shape[1]):
            out[at] = 9
            at = put_number(out, at + 1, table[row, column])
        out[at] = 10
        at += 1
    return at
