"""Indexes made of others: the k-mers of any, of the first alone, or of all of them.

Tables do not tell their k-mers, so the indexes must have the lists of them as well. Each list is
sorted by hashes, so a part at a time of all suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.build import index_of, plan_kmers, write_index
from ngsgpu.deplete.index import HostIndex, open_index
from ngsgpu.deplete.parts import InMemory, parts_of
from ngsgpu.deplete.stats import HostStatistics
from ngsgpu.errors import UsageError
from ngsgpu.run.options import RunOptions
from ngsgpu.sequence.kmers import distinct

Operation = Literal["union", "diff", "intersect"]

_OPERATIONS: Final[dict[Operation, Callable[..., NDArray[np.uint64]]]] = {
    "union": lambda one, other: distinct(np.concatenate([one, other])),
    "diff": partial(np.setdiff1d, assume_unique=True),
    "intersect": partial(np.intersect1d, assume_unique=True),
}


def combine_indexes(
    operation: Operation,
    paths: Sequence[str | Path],
    *,
    keep_kmers: bool = False,
    options: RunOptions | None = None,
) -> HostIndex:
    """The index of k-mers that are in any index (``union``), in the first alone, or in all.

    It is what ``build_index`` makes of the same sequences. Of ``diff`` and ``intersect`` it says
    that it is of the sequences of the first index.

    Args:
        operation: which k-mers.
        paths: the indexes, which have lists of their k-mers.
        keep_kmers: whether the result has such a list, too.
        options: threads and memory.

    Raises:
        InputError: an index cannot be read, or has no list.
        UsageError: there are fewer than two, or their parameters differ.
        HostMemoryError: the memory does not suffice.
    """
    options = options or RunOptions()
    if len(paths) < 2:
        raise UsageError("give two indexes or more")
    indexes = [open_index(path, options.threads, with_kmers=True) for path in paths]
    first = indexes[0]
    for path, own in zip(paths, indexes, strict=True):
        if own.parameters != first.parameters:
            raise UsageError(
                f"{path} has other parameters ({own.parameters}) than {paths[0]} "
                f"({first.parameters}); build both with the same ones"
            )
    sums = indexes if operation == "union" else [first]
    plan_kmers(sum(own.kmers for own in sums), first.parameters, options.budget).check()
    return index_of(
        InMemory(list(_parts(operation, indexes))),
        first.parameters,
        sequences=sum(own.sequences for own in sums),
        bases=sum(own.bases for own in sums),
        sources=tuple(name for own in sums for name in own.sources),
        keep_kmers=keep_kmers,
    )


def combine_files(
    operation: Operation,
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    keep_kmers: bool = False,
    options: RunOptions | None = None,
) -> HostStatistics:
    """Write the index of ``combine_indexes``, whose arguments and errors are the same.

    Raises:
        OutputError: the file ``out`` cannot be written.
    """
    return write_index(
        paths, out,
        lambda run: combine_indexes(operation, paths, keep_kmers=keep_kmers, options=run.options),
        options=options,
    )  # fmt: skip


def _parts(operation: Operation, indexes: Sequence[HostIndex]) -> Iterator[NDArray[np.uint64]]:
    """The hashes of each part, sorted and distinct."""
    lists = [own.hashes for own in indexes if own.hashes is not None]
    for parts in zip(*map(parts_of, lists), strict=True):
        yield np.asarray(reduce(_OPERATIONS[operation], parts))
