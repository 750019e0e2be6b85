"""The reference sequences of a database, and the partitions that they are dealt out to."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import MAX_LOCATIONS
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.errors import InputError
from ngsgpu.io.output.store import REMEDY, starts_are_valid


@dataclass(frozen=True)
class TargetTable:
    """The reference sequences of a database.

    Attributes:
        name_bytes: uint8, their names, concatenated.
        name_start: int64[n + 1], where each name begins.
        length: int64[n], bases.
        node: int32[n], node of the taxonomy, or -1.
        partition: int32[n].
        file: int32[n], index into ``files``.
        files: the files they came from.
    """

    name_bytes: NDArray[np.uint8]
    name_start: NDArray[np.int64]
    length: NDArray[np.int64]
    node: NDArray[np.int32]
    partition: NDArray[np.int32]
    file: NDArray[np.int32]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.length)

    def names(self) -> list[bytes]:
        """All names."""
        text, starts = self.name_bytes.tobytes(), self.name_start.tolist()
        return [text[a:b] for a, b in itertools.pairwise(starts)]

    def name(self, target: int) -> str:
        """A target's name."""
        span = self.name_bytes[self.name_start[target] : self.name_start[target + 1]]
        return span.tobytes().decode("ascii", "backslashreplace")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The stored arrays."""
        return {name: getattr(self, name) for name in TARGET_ARRAYS}


TARGET_ARRAYS: Final[dict[str, type[np.generic]]] = {
    "name_bytes": np.uint8,
    "name_start": np.int64,
    "length": np.int64,
    "node": np.int32,
    "partition": np.int32,
    "file": np.int32,
}


def join_names(names: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as one array of bytes, and where each begins."""
    start = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in names], out=start[1:])
    return np.frombuffer(b"".join(names), dtype=np.uint8), start


@dataclass(frozen=True)
class PlannedPartition:
    """A partition in the manifest.

    Attributes:
        folder: name of its directory.
        targets: reference sequences.
        windows: of all of them.
        digest: of the parameters and targets.
    """

    folder: str
    targets: int
    windows: int
    digest: str


def partition_folder(number: int, generation: int) -> str:
    """Name of the folder of a partition."""
    return f"partition-{number:04d}-{generation:04d}"


def partition_digest(
    parameters: DatabaseParameters,
    names: Sequence[bytes],
    length: NDArray[np.int64],
    ranked: NDArray[np.int32] | None = None,
) -> str:
    """Digest of everything that determines a partition's index except the sequences themselves.

    Args:
        parameters: of the database.
        names: of the partition's targets.
        length: their bases.
        ranked: their taxa at the rank used for ambiguous features, if any.
    """
    state = hashlib.sha256(json.dumps(parameters.to_json(), sort_keys=True).encode())
    state.update(b"\n".join(names))
    state.update(np.ascontiguousarray(length).data)
    if ranked is not None:
        state.update(np.ascontiguousarray(ranked).data)
    return state.hexdigest()


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


def _within(array: NDArray[np.int32], least: int, end: int) -> bool:
    return int(array.min(initial=least)) >= least and int(array.max(initial=least)) < end
