"""What calls are called: taxid, rank and name of nodes and reference sequences, ready as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.taxonomy import RANKS, SEQUENCE, Taxonomy, rank_name


@dataclass(frozen=True, eq=False)
class Labels:
    """A taxonomy and the reference sequences below it.

    Attributes:
        taxonomy: the tree.
        target_taxon: int32[t], node that each reference sequence belongs to; -1 without one, then
            it counts as belonging to the root.
        target_bytes: uint8, names of the sequences, one after the other.
        target_start: int64[t + 1], where each begins, and the end of the last.
        target_length: int64[t], bases.
        sketch: how the sequences were cut into windows.
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

    def node_of_call(self, call: int) -> int:
        """The node of a call, for a reference sequence that above it; -1 for no call."""
        return call if call < self.nodes else int(self.node_of_target[call - self.nodes])

    def counts_of_nodes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts by call, int64[nodes + targets], as counts by node, int64[nodes]."""
        by_node = counts[: self.nodes].copy()
        np.add.at(by_node, self.node_of_target, counts[self.nodes :])
        return by_node

    def windows(self) -> NDArray[np.int64]:
        """Windows of each reference sequence, int64[t]."""
        windows = [self.sketch.windows(length) for length in self.target_length.tolist()]
        return np.array(windows, dtype=np.int64)

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

    def rank_of_call(self, call: int) -> int:
        """Rank of a call, an index into ``RANKS`` or ``NO_RANK``."""
        return SEQUENCE if call >= self.nodes else int(self.taxonomy.rank[call])


def texts(labels: Labels) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
    r"""Taxid, rank and name, with tabs between, of every call that can occur.

    Returns:
        The text uint8; starts int64[rows + 1]; the row of each call int32[nodes + targets + 1].
        The last row, and row of call -1, says that there is no call; so does that of a call which
        cannot occur.
    """
    parts = []
    taxids = labels.taxonomy.taxid
    sequence = RANKS[SEQUENCE]
    for call in labels.used_calls.tolist():
        if call < labels.nodes:
            rank, name = rank_name(int(labels.taxonomy.rank[call])), labels.taxonomy.name(call)
        else:
            rank, name = sequence, labels.target_name(call - labels.nodes)
        parts.append(f"{taxids[labels.node_of_call(call)]}\t{rank}\t{name}".encode())
    parts.append(b"0\tno rank\tunclassified")
    rows = np.full(labels.nodes + labels.targets + 1, len(parts) - 1, dtype=np.int32)
    rows[labels.used_calls] = np.arange(len(parts) - 1)
    starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return np.frombuffer(b"".join(parts), dtype=np.uint8), starts, rows
