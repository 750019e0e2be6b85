"""Merging batches of pairs on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.merge.cpu import Counts, Outputs, Tally, Wanted, merge_records, new_counts
from ngsgpu.merge.params import Rules
from ngsgpu.merge.qualities import Tables
from ngsgpu.pool import working

PAIRS_PER_TASK = 65536

_SLACK = 64
"""Bytes by which an output may exceed its input: a final line feed missing from the input."""

Pieces = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]
"""Bytes for the merged, the first and the second output."""


def merge_on_cpu(
    batches: Iterator[tuple[Mates, Mates]],
    rules: Rules,
    tables: Tables,
    wanted: Wanted,
    write: Callable[[Pieces], None],
    *,
    threads: int = 1,
    pairs_per_task: int = PAIRS_PER_TASK,
    advance: Callable[[int], None] = lambda pairs: None,
) -> Tally:
    """Merge all pairs.

    Args:
        batches: of pairs.
        rules: merging rules.
        tables: scores of merged bases.
        wanted: outputs to write.
        write: gets the bytes of each output, in order.
        threads: number of threads; does not affect the result.
        pairs_per_task: pairs per task; nor does this.
        advance: called with the number of pairs merged since the last call.
    """

    def tasks() -> Iterator[tuple[Mates, Mates, int, int]]:
        for mates1, mates2 in batches:
            total = len(mates1.seq_len)
            for begin in range(0, total, pairs_per_task):
                yield mates1, mates2, begin, min(begin + pairs_per_task, total)

    def merge(task: tuple[Mates, Mates, int, int]) -> tuple[Pieces, Counts, int]:
        _, _, begin, end = task
        return *merge_some(rules, tables, *task, wanted), end - begin

    tally = Tally()
    with working(threads, merge, tasks(), name="merge") as merged:
        for pieces, counts, pairs in merged:
            tally.add(counts)
            write(pieces)
            advance(pairs)
    return tally


def merge_some(
    rules: Rules,
    tables: Tables,
    mates1: Mates,
    mates2: Mates,
    begin: int,
    end: int,
    wanted: Wanted,
) -> tuple[Pieces, Counts]:
    """Merge the pairs ``begin`` up to ``end`` of a batch."""
    rooms = [_output_bytes(mates, begin, end) for mates in (mates1, mates2)]
    merged = 0 if rules.correct_only else sum(rooms)
    first, second = rooms if wanted.unmerged else (0, 0)
    if wanted.interleaved:
        first, second = first + second, 0
    outputs = Outputs(
        np.empty(merged, dtype=np.uint8),
        np.empty(first, dtype=np.uint8),
        np.empty(second, dtype=np.uint8),
        wanted.unmerged,
        wanted.interleaved,
    )
    longest = sum(int(mates.seq_len[begin:end].max()) for mates in (mates1, mates2))
    counts = new_counts(longest)
    sizes = merge_records(rules, tables, mates1, mates2, begin, end, outputs, counts)
    pieces = (outputs.merged[: sizes[0]], outputs.first[: sizes[1]], outputs.second[: sizes[2]])
    return pieces, counts


def _output_bytes(mates: Mates, begin: int, end: int) -> int:
    """Maximum size of rewritten records: header, two lines, six other bytes."""
    headers = mates.header_end[begin:end] - mates.header_start[begin:end]
    bases = mates.seq_len[begin:end].sum(dtype=np.int64)
    return int(headers.sum() + 2 * bases) + 6 * (end - begin) + _SLACK
