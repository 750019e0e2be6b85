"""NCBI's taxonomy dump (nodes.dmp, names.dmp, merged.dmp) into a checked ``Taxonomy``.

The files have fields that end with tab, bar and, but for the last, tab. Blanks around bars are
not insisted on. Whatever else follows the fields that are used here is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.formats import PACKED_ENDINGS
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.text.keys import fnv64
from ngsgpu.io.text.lines import LineBlock, read_line_blocks
from ngsgpu.jit import interpreted_if_small
from ngsgpu.taxonomy.dump_lines import gather_names, parse_merged, parse_names, parse_nodes
from ngsgpu.taxonomy.lineages import lineage_files, read_lineages
from ngsgpu.taxonomy.ranks import NO_RANK, RANK_CODES, ROOT
from ngsgpu.taxonomy.tree import Taxonomy

_SYNONYMS: Final = {
    "genome": "sequence",
    "forma": "form",
    "varietas": "variety",
    "species group": "subgenus",
    "species subgroup": "subgenus",
    "superfamily": "suborder",
    "parvorder": "suborder",
    "infraorder": "suborder",
    "superorder": "subclass",
    "infraclass": "subclass",
    "superclass": "subphylum",
    "division": "phylum",
    "superphylum": "subkingdom",
    "subdomain": "kingdom",
    "superkingdom": "domain",
    "acellular root": "domain",
}
"""Ranks that count as one of ``RANKS``: as in MetaCache, and the viruses' since 2025."""

_LF: Final = 10
_CLASS: Final = np.frombuffer(b"scientific name", dtype=np.uint8)


def load_taxonomy(directory: str | Path) -> Taxonomy:
    """Read a taxonomy from NCBI's files, or from GTDB's.

    Args:
        directory: holds ``nodes.dmp`` and ``names.dmp``, and optionally ``merged.dmp``; each may be
            compressed (``nodes.dmp.gz``). Or GTDB's taxonomy files: their directory, or one of
            them (``lineages``).

    Raises:
        InputError: a file is missing or has an invalid line; a taxid is duplicated; a parent is
            missing; there is no root or more than one; nodes form a cycle. With file and line.
    """
    folder = Path(directory)
    if tables := lineage_files(folder):
        return read_lineages(tables)
    nodes = _required(folder, "nodes.dmp")
    names = _required(folder, "names.dmp")
    merged = _optional(folder, "merged.dmp")
    files = [nodes, names, *([] if merged is None else [merged])]
    with interpreted_if_small(sum(map(unpacked_size, files))):
        taxid, parent, rank = _read_nodes(nodes)
        name_bytes, name_start = _read_names(names, taxid)
        none = np.zeros(0, np.int64), np.zeros(0, np.int32)
        taxonomy = Taxonomy(taxid, parent, rank, name_bytes, name_start, *none)
        if merged is None:
            return taxonomy
        merged_taxid, merged_index = _read_merged(merged, taxonomy)
        return Taxonomy(taxid, parent, rank, name_bytes, name_start, merged_taxid, merged_index)


def _optional(folder: Path, name: str) -> Path | None:
    candidates = [folder / f"{name}{ending}" for ending in ("", *PACKED_ENDINGS)]
    return next((path for path in candidates if path.exists()), None)


def _required(folder: Path, name: str) -> Path:
    path = _optional(folder, name)
    if path is None:
        cause = f"there is no {name}" if folder.is_dir() else "there is no such directory"
        if folder.is_file():
            cause = "is neither a directory nor one of GTDB's taxonomy files"
        remedy = "give a directory with NCBI's nodes.dmp and names.dmp, or GTDB's taxonomy files"
        raise InputError(folder, cause, remedy)
    return path


def _each_block(path: Path, parse: Callable[[LineBlock], tuple[int, int]], expected: str) -> int:
    """Parse the blocks of a file with ``parse``, which returns rows and the bad byte, or -1.

    Returns:
        Number of rows.
    """
    rows, last, is_barred = 0, None, False
    for block in read_line_blocks(path):
        if block.first_line == 0:
            is_barred = _ends_with_bar(block.data[: int(np.argmax(block.data == _LF))])
        count, bad = parse(block)
        if bad >= 0:
            raise InputError(
                path,
                f"the line does not begin with {expected}",
                "give the file as NCBI distributes it (fields end with tab, bar, tab)",
                line=block.line_number(bad),
            )
        rows += count
        last = block
    if last is not None and is_barred and not _ends_with_bar(last.data[-256:]):
        raise InputError(
            path,
            "the last line is truncated",
            "copy or download the file again",
            line=last.first_line + last.lines,
        )
    return rows


def _ends_with_bar(text: NDArray[np.uint8]) -> bool:
    return text.tobytes().rstrip().endswith(b"|")


# --- nodes ----------------------------------------------------------------------------------------


def _read_nodes(
    path: Path,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]:
    """Columns of the nodes: taxid int64[n], ascending, parent int32[n], rank uint8[n]."""
    columns: list[tuple[NDArray[Any], ...]] = []

    def parse(block: LineBlock) -> tuple[int, int]:
        taxid = np.empty(block.lines, dtype=np.int64)
        parent = np.empty(block.lines, dtype=np.int64)
        hashes = np.empty(block.lines, dtype=np.uint64)
        lines = np.empty(block.lines, dtype=np.int32)
        count, bad = parse_nodes(block.data, block.first_line, taxid, parent, hashes, lines)
        columns.append((taxid[:count], parent[:count], hashes[:count], lines[:count]))
        return count, bad

    rows = _each_block(path, parse, "a taxid, its parent's taxid and a rank")
    if rows == 0:
        raise InputError(path, "it contains no nodes", "give NCBI's nodes.dmp")
    if rows > np.iinfo(np.int32).max:
        raise InputError(path, f"{rows:,} nodes are too many", "give a smaller taxonomy")
    taxid, parent_taxid, hashes, lines = (
        np.concatenate(part) for part in zip(*columns, strict=True)
    )
    order = np.argsort(taxid, kind="stable")
    taxid, parent_taxid, lines = taxid[order], parent_taxid[order], lines[order]
    rank = _rank_codes(hashes[order])
    _refuse_duplicates(path, taxid, lines)
    parent = _parents(path, taxid, parent_taxid, lines)
    root = _only_root(path, taxid, parent, lines)
    _refuse_cycles(path, taxid, parent, lines)
    rank[root] = ROOT
    return taxid, parent, rank


def _rank_codes(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Ranks by the hashes of their names."""
    codes = {**RANK_CODES, **{name: RANK_CODES[rank] for name, rank in _SYNONYMS.items()}}
    known = {_hash(np.frombuffer(name.encode(), np.uint8)): code for name, code in codes.items()}
    keys = np.array(sorted(known), dtype=np.uint64)
    values = np.array([known[int(key)] for key in keys], dtype=np.uint8)
    at = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
    return np.where(keys[at] == hashes, values[at], np.uint8(NO_RANK)).astype(np.uint8)


def _hash(text: NDArray[np.uint8]) -> int:
    return int(fnv64(text, 0, len(text)))


def _refuse_duplicates(path: Path, taxid: NDArray[np.int64], lines: NDArray[np.int32]) -> None:
    twice = np.flatnonzero(taxid[1:] == taxid[:-1])
    if len(twice) > 0:
        row = int(twice[np.argmin(lines[twice + 1])]) + 1
        cause = f"taxid {taxid[row]} comes a second time (first in line {lines[row - 1] + 1:,})"
        raise InputError(path, cause, "remove one of the lines", line=int(lines[row]) + 1)


def _parents(
    path: Path,
    taxid: NDArray[np.int64],
    parent_taxid: NDArray[np.int64],
    lines: NDArray[np.int32],
) -> NDArray[np.int32]:
    at = np.minimum(np.searchsorted(taxid, parent_taxid), len(taxid) - 1)
    # Some taxonomies use 0, which is not a taxid, as the parent of their root.
    at = np.where(parent_taxid == 0, np.arange(len(taxid)), at)
    missing = np.flatnonzero((taxid[at] != parent_taxid) & (parent_taxid != 0))
    if len(missing) > 0:
        row = int(missing[np.argmin(lines[missing])])
        cause = f"the parent of taxid {taxid[row]}, {parent_taxid[row]}, is not there"
        raise InputError(path, cause, "add a line for the parent", line=int(lines[row]) + 1)
    return np.asarray(at, dtype=np.int32)


def _only_root(
    path: Path, taxid: NDArray[np.int64], parent: NDArray[np.int32], lines: NDArray[np.int32]
) -> int:
    roots = np.flatnonzero(parent == np.arange(len(parent)))
    if len(roots) == 0:
        cause = "there is no root: no taxid is its own parent"
        raise InputError(path, cause, "add a root, as in NCBI's first line: 1 | 1 | no rank |")
    if len(roots) > 1:
        roots = roots[np.argsort(lines[roots])]
        first, second = (int(taxid[row]) for row in roots[:2])
        raise InputError(
            path,
            f"there is more than one root: {first} and {second} are their own parents",
            f"give {second} a parent",
            line=int(lines[roots[1]]) + 1,
        )
    return int(roots[0])


def _refuse_cycles(
    path: Path, taxid: NDArray[np.int64], parent: NDArray[np.int32], lines: NDArray[np.int32]
) -> None:
    """Refuse nodes from which the root cannot be reached: they hang on a cycle."""
    # Each round doubles the steps that `above` goes up: to the root, or somewhere on a cycle, which
    # a cycle of 2, 4, 8, ... nodes may have closed.
    above = parent
    for _ in range(len(parent).bit_length() + 1):
        further = above[above]
        if np.array_equal(further, above):
            break
        above = further
    on_cycle = np.unique(above[parent[above] != above])
    if len(on_cycle) == 0:
        return
    row = int(on_cycle[np.argmin(lines[on_cycle])])
    path_up = [row]
    while (up := int(parent[path_up[-1]])) != row:
        path_up.append(up)
    shown = [str(taxid[node]) for node in [*path_up[:4], row]]
    if len(path_up) > 4:
        shown.insert(4, "...")
    raise InputError(
        path,
        f"taxid {taxid[row]} is its own ancestor ({' -> '.join(shown)})",
        "correct the parents",
        line=int(lines[row]) + 1,
    )


# --- names ----------------------------------------------------------------------------------------


def _read_names(
    path: Path, taxid: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Scientific names of the nodes; a node without one gets its taxid as a name."""
    texts: list[NDArray[np.uint8]] = []
    owners: list[NDArray[np.int64]] = []
    lengths: list[NDArray[np.int64]] = []

    def parse(block: LineBlock) -> tuple[int, int]:
        text = np.empty(len(block.data), dtype=np.uint8)
        owner = np.empty(block.lines, dtype=np.int64)
        length = np.empty(block.lines, dtype=np.int64)
        count, used, bad = parse_names(block.data, _CLASS, owner, length, text)
        texts.append(text[:used].copy())
        owners.append(owner[:count].copy())
        lengths.append(length[:count].copy())
        return count, bad

    _each_block(path, parse, "a taxid, a name, a unique name and the name's class")
    text = np.concatenate([*texts, np.zeros(0, np.uint8)])
    owner = np.concatenate([*owners, np.zeros(0, np.int64)])
    end = np.cumsum(np.concatenate([*lengths, np.zeros(0, np.int64)]))
    start = np.concatenate([np.zeros(1, np.int64), end[:-1]]) if len(end) else end
    which = np.full(len(taxid), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(taxid, owner), len(taxid) - 1)
    mine = np.flatnonzero(taxid[at] == owner)[::-1]
    which[at[mine]] = mine  # the last one set is the first in the file
    name_start = np.zeros(len(taxid) + 1, dtype=np.int64)
    known = which >= 0
    name_start[1:][known] = (end - start)[which[known]]
    name_start[1:][~known] = [len(str(number)) for number in taxid[~known]]
    np.cumsum(name_start, out=name_start)
    name_bytes = np.empty(name_start[-1], dtype=np.uint8)
    gather_names(text, start, which, taxid, name_start, name_bytes)
    return name_bytes, name_start


# --- merged identifiers ---------------------------------------------------------------------------


def _read_merged(path: Path, taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Merged taxids, int64[m] ascending, and their current nodes, int32[m]."""
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def parse(block: LineBlock) -> tuple[int, int]:
        old = np.empty(block.lines, dtype=np.int64)
        new = np.empty(block.lines, dtype=np.int64)
        count, bad = parse_merged(block.data, old, new)
        parts.append((old[:count], new[:count]))
        return count, bad

    if _each_block(path, parse, "an old and a new taxid") == 0:
        return taxonomy.merged_taxid, taxonomy.merged_index
    old, first = np.unique(np.concatenate([a for a, _ in parts]), return_index=True)
    new = np.concatenate([b for _, b in parts])[first]
    index = taxonomy.indices_of(new)
    # Taxids merged into later merged ones; chains end after a few rounds.
    for _ in range(len(old).bit_length()):
        at = np.minimum(np.searchsorted(old, new), len(old) - 1)
        chained = (index < 0) & (old[at] == new)
        if not chained.any():
            break
        new = np.where(chained, new[at], new)
        index = taxonomy.indices_of(new)
    there = index >= 0
    return old[there], index[there]
