"""The reference sequences of a database, and the partitions that they are dealt out to."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import DatabaseParameters


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
