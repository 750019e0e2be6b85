"""The tree of taxa: nodes as arrays, look-up of identifiers, lineages by rank.

Nodes are numbered by their taxid, ascending; parents, calls and lineages name nodes by that
number. ``dump`` reads NCBI's files into this form.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ngsgpu.declared.limits import MAX_TAXID
from ngsgpu.declared.numbers import whole_number
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import REMEDY
from ngsgpu.io.output.store import FileList, open_array, save_arrays, starts_are_valid
from ngsgpu.jit import interpreted_if_small, njit
from ngsgpu.taxonomy.ranks import RANKS, ROOT


def stated_taxid(value: str | int) -> int:
    """A taxid as a file states it.

    Raises:
        ValueError: it is no whole number, or larger than a taxid can be (int64).
    """
    taxid = whole_number(str(value))
    if abs(taxid) > MAX_TAXID:
        raise ValueError(f"{value} is too large for a taxid")
    return taxid


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A rooted tree of taxa, validated when read (``dump.load_taxonomy``).

    Attributes:
        taxid: int64[n], ascending.
        parent: int32[n], the parent's number; the root is its own parent.
        rank: uint8[n], index into ``RANKS`` or ``NO_RANK``.
        name_bytes: uint8, all names concatenated (UTF-8), in the order of the nodes.
        name_start: int64[n + 1], where each name begins, and the end of the last.
        merged_taxid: int64[m], ascending: taxids merged into others.
        merged_index: int32[m], their current nodes.
    """

    taxid: NDArray[np.int64]
    parent: NDArray[np.int32]
    rank: NDArray[np.uint8]
    name_bytes: NDArray[np.uint8]
    name_start: NDArray[np.int64]
    merged_taxid: NDArray[np.int64]
    merged_index: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.taxid)

    @cached_property
    def root(self) -> int:
        """Number of the root."""
        return int(np.flatnonzero(self.parent == np.arange(len(self), dtype=np.int32))[0])

    def index_of(self, taxid: int) -> int:
        """Number of a taxid's node, also of a merged one; -1 if there is none."""
        if abs(taxid) > MAX_TAXID:
            return -1
        return int(self.indices_of(np.array([taxid], dtype=np.int64))[0])

    def indices_of(self, taxids: ArrayLike) -> NDArray[np.int32]:
        """Numbers of taxids' nodes, int32 in the shape given; -1 where there is none."""
        wanted = np.asarray(taxids, dtype=np.int64)
        found = _look_up(self.taxid, wanted)
        if len(self.merged_taxid) > 0:
            old = _look_up(self.merged_taxid, wanted)
            replaced = (found < 0) & (old >= 0)
            found = np.where(replaced, self.merged_index[np.maximum(old, 0)], found)
        return np.asarray(found, dtype=np.int32)

    def name(self, index: int) -> str:
        """Scientific name of a node."""
        start, end = self.name_start[index], self.name_start[index + 1]
        return self.name_bytes[start:end].tobytes().decode("utf-8", "replace")

    def lineage(self, index: int) -> list[int]:
        """The nodes from this one up to the root, inclusive.

        Raises:
            InputError: the path never reaches the root.
        """
        path = [int(index)]
        while (above := int(self.parent[path[-1]])) != path[-1]:
            if len(path) == len(self):
                raise _no_tree()
            path.append(above)
        return path

    def top_down(self) -> NDArray[np.int32]:
        """All nodes, int32[n], such that each comes after its parent."""
        return np.argsort(self.depth, kind="stable").astype(np.int32)

    def below(self, nodes: ArrayLike) -> NDArray[np.bool_]:
        """Which nodes, bool[n], are among some (by their numbers) or below one of them."""
        inside = np.zeros(len(self), dtype=np.bool_)
        inside[np.asarray(nodes, dtype=np.int64)] = True
        for _ in range(int(self.depth.max(initial=0))):
            inside |= inside[self.parent]
        return inside

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """int32[n], number of nodes above each node; 0 for the root.

        Raises:
            InputError: nodes are above themselves.
        """
        with interpreted_if_small(self._bytes):
            depth = np.asarray(_depths(self.parent))
        if len(depth) == 0:
            raise _no_tree()
        return depth

    def ranked_lineages(self) -> NDArray[np.int32]:
        """Ancestors of all nodes at all ranks, themselves included.

        Two nodes on a lineage may share a rank, such as a species group and a subgroup in it; the
        higher one is used.

        Returns:
            int32[n, len(RANKS)], number of the ancestor at that rank; -1 if there is none.
        """
        with interpreted_if_small(self._bytes):
            return np.asarray(_ranked_lineages(self.parent, self.rank, self.top_down(), len(RANKS)))

    @property
    def _bytes(self) -> int:
        return len(self) * len(RANKS) * 4

    def digest(self) -> str:
        """Hexadecimal SHA-256 of the content: equal for equal taxonomies only."""
        state = hashlib.sha256()
        for name, array in self._arrays():
            state.update(f"{name} {array.dtype.str} {len(array)}\n".encode())
            state.update(np.ascontiguousarray(array).data)
        return state.hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for _, array in self._arrays())

    def save(self, directory: str | Path) -> FileList:
        """Write one ``.npy`` file an attribute into an existing directory.

        Returns:
            Size and CRC-32 of the files.

        Raises:
            OutputError: a file cannot be written.
        """
        return save_arrays(Path(directory), dict(self._arrays()))

    @classmethod
    def load(cls, directory: str | Path) -> Taxonomy:
        """Open what ``save`` wrote, memory-mapped.

        Raises:
            InputError: a file is missing or damaged, or they do not belong together.
        """
        folder = Path(directory)
        arrays = {name: open_array(folder, name, dtype) for name, dtype in _DTYPES.items()}
        taxonomy = cls(**arrays)
        _check_loaded(folder, taxonomy)
        return taxonomy

    def _arrays(self) -> list[tuple[str, NDArray[Any]]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def root_only() -> Taxonomy:
    """A taxonomy with a root and no other taxa."""
    return Taxonomy(
        taxid=np.ones(1, dtype=np.int64),
        parent=np.zeros(1, dtype=np.int32),
        rank=np.array([ROOT], dtype=np.uint8),
        name_bytes=np.frombuffer(b"root", dtype=np.uint8),
        name_start=np.array([0, 4], dtype=np.int64),
        merged_taxid=np.zeros(0, dtype=np.int64),
        merged_index=np.zeros(0, dtype=np.int32),
    )


_DTYPES: Final[dict[str, type[np.generic]]] = {
    "taxid": np.int64,
    "parent": np.int32,
    "rank": np.uint8,
    "name_bytes": np.uint8,
    "name_start": np.int64,
    "merged_taxid": np.int64,
    "merged_index": np.int32,
}


def _check_loaded(directory: Path, taxonomy: Taxonomy) -> None:
    """Refuse arrays that would lead kernels out of their bounds."""
    n, starts = len(taxonomy.taxid), taxonomy.name_start
    fits = (
        n > 0
        and len(taxonomy.parent) == n
        and len(taxonomy.rank) == n
        and len(starts) == n + 1
        and len(taxonomy.merged_taxid) == len(taxonomy.merged_index)
        and starts_are_valid(starts, len(taxonomy.name_bytes))
        and bool((taxonomy.taxid[1:] > taxonomy.taxid[:-1]).all())
        and int(taxonomy.parent.min()) >= 0
        and int(taxonomy.parent.max()) < n
        and np.count_nonzero(taxonomy.parent == np.arange(n, dtype=np.int32)) == 1
        and int(taxonomy.merged_index.min(initial=0)) >= 0
        and int(taxonomy.merged_index.max(initial=0)) < n
    )
    if not fits:
        raise InputError(directory, "the arrays of the taxonomy are inconsistent", REMEDY)


def _no_tree() -> InputError:
    return InputError("the taxonomy", "it is not a tree: a taxon is its own ancestor", REMEDY)


def _look_up(known: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of values in an ascending array; -1 where there is none."""
    if len(known) == 0:
        return np.full(wanted.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


@njit(nogil=True, cache=True)
def _depths(parent):  # type: ignore[no-untyped-def]
    """Number of nodes above each node; empty if a path never reaches the root."""
    n = parent.size
    depth = np.full(n, -1, np.int32)
    path = np.empty(n, np.int32)
    for node in range(n):
        length = 0
        at = node
        while depth[at] < 0 and parent[at] != at:
            if length == n:
                return depth[:0]
            path[length] = at
            length += 1
            at = parent[at]
        if depth[at] < 0:
            depth[at] = 0
        above = depth[at]
        while length > 0:
            length -= 1
            above += 1
            depth[path[length]] = above
    return depth


@njit(nogil=True, cache=True)
def _ranked_lineages(parent, rank, order, ranks):  # type: ignore[no-untyped-def]
    """See ``Taxonomy.ranked_lineages``; ``order`` has parents before children."""
    lineages = np.full((parent.size, ranks), -1, np.int32)
    for i in range(order.size):
        node = order[i]
        above = parent[node]
        if above != node:
            for j in range(ranks):
                lineages[node, j] = lineages[above, j]
        if rank[node] < ranks and lineages[node, rank[node]] < 0:
            lineages[node, rank[node]] = node
    return lineages
