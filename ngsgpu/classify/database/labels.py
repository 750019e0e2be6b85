"""What calls are called: taxid, rank and name of nodes and reference sequences, ready as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import SketchParameters
from ngsgpu.classify.sketch.references import windows_of_lengths
from ngsgpu.jit import interpreted_if_small, njit
from ngsgpu.taxonomy.tree import RANKS, SEQUENCE, Taxonomy, rank_name

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
