"""Invariants of a database's arrays that keep look-ups within bounds; checked on every opening.

Checksums detect damage; this is about arrays that index into each other, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.targets import PlannedPartition, TargetTable
from ngsgpu.classify.index.index import KEY_BITS, MAX_LOCATIONS, MIN_BITS, Index
from ngsgpu.errors import InputError
from ngsgpu.io.output.store import REMEDY, starts_are_valid


def check_targets(
    folder: Path,
    targets: TargetTable,
    windows: NDArray[np.int64],
    partitions: Sequence[PlannedPartition],
    nodes: int,
) -> None:
    """Refuse targets that are inconsistent with each other, the taxonomy or the partitions.

    Args:
        folder: directory of the target arrays.
        targets: the reference sequences.
        windows: int64[targets], of each.
        partitions: as planned in the manifest.
        nodes: of the taxonomy.

    Raises:
        InputError: names the inconsistent file.
    """
    n, starts = len(targets), targets.name_start
    fits = {
        "length": n > 0 and int(targets.length.min(initial=0)) >= 0,
        "name_start": len(starts) == n + 1 and starts_are_valid(starts, len(targets.name_bytes)),
        "node": len(targets.node) == n and _within(targets.node, -1, nodes),
        "partition": len(targets.partition) == n and _within(targets.partition, 0, len(partitions)),
        "file": len(targets.file) == n and _within(targets.file, 0, len(targets.files)),
    }
    for name, fitting in fits.items():
        if not fitting:
            raise InputError(folder / f"{name}.npy", "does not match the rest", REMEDY)
    number = len(partitions)
    counts = np.bincount(targets.partition, minlength=number)
    sums = np.bincount(targets.partition, weights=windows, minlength=number)
    for planned, own, sum_of_windows in zip(partitions, counts, sums, strict=True):
        whole = planned.targets == own and planned.windows == sum_of_windows
        if not whole or planned.windows > MAX_LOCATIONS:
            raise InputError(
                folder, f"the targets are not those of {planned.folder} in the manifest", REMEDY
            )


def check_index(folder: Path, index: Index, values: dict[str, Any], windows: int) -> None:
    """Refuse an index whose size differs from its manifest, or that is not an index.

    Args:
        folder: of the partition.
        index: its index.
        values: its manifest.
        windows: of all of its targets.

    Raises:
        InputError: it is inconsistent.
    """
    ends = [len(index.entries), len(index.locations)]
    fits = (
        MIN_BITS <= index.bits <= KEY_BITS
        and len(index.directory) == (1 << index.bits) + 1
        and ends == [values["entries"], values["locations"]]
        and index.directory[0].tolist() == [0, 0]
        and index.directory[-1].tolist() == ends
        and (windows > 0 or len(index.locations) == 0)
    )
    if not fits:
        raise InputError(folder, "the arrays of the index are inconsistent", REMEDY)


def _within(array: NDArray[np.int32], least: int, end: int) -> bool:
    return int(array.min(initial=least)) >= least and int(array.max(initial=least)) < end
