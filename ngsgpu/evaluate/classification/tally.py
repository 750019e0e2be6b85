"""Counts the calls of a file by origin, call and number of hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.classification.calls import read_calls
from ngsgpu.evaluate.truth.origins import Origins
from ngsgpu.taxonomy.tree import Taxonomy

_MAX_PARTS: Final = 16


@dataclass(frozen=True, eq=False)
class Tally:
    """How often an origin was called as a node with a score; rows int64[n, 4] with the count.

    Columns: origin (-1 without truth), node (-1 unclassified, -2 elsewhere), score, reads.
    """

    program: str
    rows: NDArray[np.int64]
    has_scores: bool


def read_tally(
    path: str | Path,
    taxonomy: Taxonomy,
    origins: Origins | None,
    references: Mapping[str, int],
) -> Tally:
    """Read calls and count equal ones.

    Args:
        path: a classifier's output.
        taxonomy: the tree.
        origins: the truth; without it all origins are -1.
        references: taxids of reference sequences by name.

    Raises:
        InputError: the file cannot be used, or none of its reads is in the truth.
    """
    parts: list[NDArray[np.int64]] = []
    program, has_scores = "", False
    for block in read_calls(path, taxonomy, references):
        program, has_scores = block.program, block.has_scores
        count = len(block.lines)
        origin = np.full(count, -1, np.int32) if origins is None else origins.of(block.lines)
        rows = np.stack([origin, block.node, block.lines.score, np.ones(count)], axis=1)
        parts.append(_merged(rows.astype(np.int64)))
        if len(parts) > _MAX_PARTS:
            parts = [_merged(np.concatenate(parts))]
    rows = _merged(np.concatenate(parts))
    if origins is not None and not (rows[:, 0] >= 0).any():
        raise InputError(path, "the truth knows none of its reads", "give the truth of these reads")
    return Tally(program, rows, has_scores)


def _merged(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows with equal origin, node and score as one, their counts added."""
    keys, which = np.unique(rows[:, :3], axis=0, return_inverse=True)
    counts = np.zeros(len(keys), dtype=np.int64)
    np.add.at(counts, which.ravel(), rows[:, 3])
    return np.concatenate([keys, counts[:, None]], axis=1)
