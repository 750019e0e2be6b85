"""The reference sequences of a database, the partitions they are dealt out to, and their labels.

Labels are what calls are called: taxid, rank and name of nodes and reference sequences, as bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.index.index import MAX_LOCATIONS
from ngsgpu.classify.params import DatabaseParameters, SketchParameters
from ngsgpu.classify.sketch.references import windows_of_lengths
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import REMEDY
from ngsgpu.io.output.store import starts_are_valid
from ngsgpu.jit import interpreted_if_small, njit
from ngsgpu.taxonomy.ranks import RANKS, SEQUENCE, rank_name
from ngsgpu.taxonomy.tree import Taxonomy


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


_TAB: Final = 9


@dataclass(frozen=True, eq=False)
class Labels:
    """A taxonomy and the reference sequences below it.

    Attributes:
        taxonomy: the tree.
        target_taxon: int32[t], node of each reference sequence; -1 without one, which counts as the
            root.
        target_bytes: uint8, names of the sequences, concatenated.
        target_start: int64[t + 1], where each begins, and the end of the last.
        target_length: int64[t], bases.
        sketch: window parameters of the sequences.
    """

    taxonomy: Taxonomy
    target_taxon: NDArray[np.int32]
    target_bytes: NDArray[np.uint8]
    target_start: NDArray[np.int64]
    target_length: NDArray[np.int64]
    sketch: SketchParameters

    @property
    def nodes(self) -> int:
        """Nodes of the taxonomy: calls from here on are reference sequences."""
        return len(self.taxonomy)

    @property
    def targets(self) -> int:
        """Number of reference sequences."""
        return len(self.target_taxon)

    @cached_property
    def node_of_target(self) -> NDArray[np.int32]:
        """int32[t], node of each reference sequence; the root for those without a taxon."""
        root = np.int32(self.taxonomy.root)
        return np.where(self.target_taxon < 0, root, self.target_taxon).astype(np.int32)

    def target_name(self, target: int) -> str:
        """Name of a reference sequence."""
        start, end = self.target_start[target], self.target_start[target + 1]
        return self.target_bytes[start:end].tobytes().decode("utf-8", "replace")

    def counts_of_nodes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts by call, int64[nodes + targets], as counts by node, int64[nodes]."""
        by_node = counts[: self.nodes].copy()
        np.add.at(by_node, self.node_of_target, counts[self.nodes :])
        return by_node

    def windows(self) -> NDArray[np.int64]:
        """Windows of each reference sequence, int64[t]."""
        return windows_of_lengths(self.target_length, self.sketch)

    @cached_property
    def used_calls(self) -> NDArray[np.int64]:
        """All calls that can occur: the sequences, their taxa and whatever is above; ascending."""
        used = np.zeros(self.nodes, dtype=np.bool_)
        at = np.unique(self.node_of_target)
        while len(at) > 0:
            used[at] = True
            above = np.unique(self.taxonomy.parent[at])
            at = above[~used[above]]
        return np.concatenate([np.flatnonzero(used), self.nodes + np.arange(self.targets)])


def texts(labels: Labels) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
    """Taxid, rank and name, separated by tabs, of every possible call.

    Returns:
        The text uint8; starts int64[rows + 1]; the row of each call int32[nodes + targets + 1].
        The last row, also that of call -1 and of impossible calls, means no call.
    """
    calls = labels.used_calls
    taxonomy = labels.taxonomy
    names = [rank_name(rank).encode() for rank in range(len(RANKS) + 1)]
    rank_text = np.frombuffer(b"".join(names), dtype=np.uint8)
    widths = np.array([len(name) for name in names], dtype=np.int64)
    rank_end = np.cumsum(widths)
    rank = np.minimum(taxonomy.rank, len(RANKS))
    nodes = np.concatenate([calls[: len(calls) - labels.targets], labels.node_of_target])
    name_start = np.concatenate([taxonomy.name_start[:-1], labels.target_start[:-1]])
    name_end = np.concatenate([taxonomy.name_start[1:], labels.target_start[1:]])
    rank_of_call = np.where(calls < labels.nodes, rank[nodes], SEQUENCE)
    lengths = (
        _digits(taxonomy.taxid[nodes]) + widths[rank_of_call] + (name_end - name_start)[calls] + 2
    )
    none = np.frombuffer(b"0\tno rank\tunclassified", dtype=np.uint8)
    start = np.concatenate([[0], np.cumsum(lengths), [int(lengths.sum()) + len(none)]])
    start = start.astype(np.int64)
    text = np.empty(int(start[-1]), dtype=np.uint8)
    with interpreted_if_small(8 * len(text)):
        _write_texts(
            calls, labels.nodes, taxonomy.taxid[nodes], rank_of_call, rank_text, rank_end - widths,
            rank_end, taxonomy.name_bytes, labels.target_bytes, name_start, name_end, start, text,
        )  # fmt: skip
    text[start[-2] :] = none
    rows = np.full(labels.nodes + labels.targets + 1, len(calls), dtype=np.int32)
    rows[calls] = np.arange(len(calls))
    return text, start, rows


def _digits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Decimal digits of numbers above 0."""
    powers = np.array([10**exponent for exponent in range(1, 19)], dtype=np.int64)
    return np.asarray(np.searchsorted(powers, numbers, side="right") + 1, dtype=np.int64)


@njit(nogil=True, cache=True)
def _write_texts(  # type: ignore[no-untyped-def]
    calls, nodes, taxid, rank, rank_text, rank_start, rank_end,
    node_names, target_names, name_start, name_end, start, text,
):  # fmt: skip
    """Write the texts of calls, each from its start on."""
    for i in range(calls.size):
        at = start[i]
        value = taxid[i]
        end = start[i + 1]
        begin = name_start[calls[i]]
        length = name_end[calls[i]] - begin
        source = node_names if calls[i] < nodes else target_names
        for j in range(length):
            text[end - length + j] = source[begin + j]
        width = rank_end[rank[i]] - rank_start[rank[i]]
        tab = end - length - 1
        text[tab] = _TAB
        for j in range(width):
            text[tab - width + j] = rank_text[rank_start[rank[i]] + j]
        tab -= width + 1
        text[tab] = _TAB
        while tab > at:
            tab -= 1
            text[tab] = 48 + value % 10
            value //= 10
