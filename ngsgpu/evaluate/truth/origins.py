"""The true taxon of each read.

A tab-separated table whose first line names its columns:

- ``read``: the read's name, or ``label``, a prefix of read names (``NC_000913.3`` for
  ``NC_000913.3-17``); the longest match wins, provided no letter or digit follows in the name.
- ``taxid``: the taxon.
- ``genus_taxid`` and so on, for any rank: the taxon at that rank, for taxa missing from the
  taxonomy; ``NA`` if the taxonomy has no such taxon.

Without such a line: the read's name and the taxid. CAMI's mappings (``@@SEQUENCEID``) are also
accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.lines import TableLines, cut_lines
from ngsgpu.io.text.keys import KeyTable
from ngsgpu.io.text.lines import LineBlock, read_line_blocks
from ngsgpu.taxonomy.ranks import RANKS
from ngsgpu.taxonomy.tree import Taxonomy, stated_taxid

UNKNOWN: Final = -1
"""The truth at a rank is not known: reads are not judged there."""
NOWHERE: Final = -2
"""The truth is a taxon that the taxonomy does not have: every call there is wrong."""

_ENDING: Final = "_taxid"


@dataclass(frozen=True, eq=False)
class Origins:
    """Where reads come from.

    Attributes:
        taxid: int64[c], the taxids that occur (``c`` origins).
        lineage: int32[c, len(RANKS)], node at each rank, ``UNKNOWN`` or ``NOWHERE``.
        by_label: whether keys are beginnings of names.
    """

    taxid: NDArray[np.int64]
    lineage: NDArray[np.int32]
    by_label: bool
    _keys: KeyTable
    _origin: NDArray[np.int32]

    def of(self, lines: TableLines) -> NDArray[np.int32]:
        """Origin of each line's read, int32; -1 where the truth does not have it."""
        look_up = self._keys.find_beginnings if self.by_label else self._keys.find
        key = look_up(lines.data, lines.name_start, lines.name_end)
        return np.where(key < 0, np.int32(-1), self._origin[np.maximum(key, 0)])


@dataclass(frozen=True, slots=True)
class _Columns:
    name: int
    by_label: bool
    taxid: int
    ranks: dict[int, int]
    """Column of each rank's taxid."""


def read_origins(path: str | Path, taxonomy: Taxonomy) -> Origins:
    """Read a truth.

    Raises:
        InputError: the file cannot be read or understood; with the line.
    """
    columns: _Columns | None = None
    known: dict[int, int] = {}
    taxids: list[int] = []
    lineages: list[NDArray[np.int32]] = []
    texts, starts, ends, origins = [], [], [], []
    ranked = taxonomy.ranked_lineages()
    shift = 0
    for block in read_line_blocks(path):
        start = 0
        if columns is None:
            columns, start = _columns(block)
        lines = cut_lines(
            block, start, name=columns.name, values=(columns.taxid, *columns.ranks.values())
        )
        values, first, which = np.unique(lines.value, return_index=True, return_inverse=True)
        by_line = np.argsort(first)
        for value, row in zip(values[by_line].tolist(), first[by_line].tolist(), strict=True):
            if value not in known:
                known[value] = len(taxids)
                taxid, lineage = _origin(block, lines, row, columns, taxonomy, ranked)
                taxids.append(taxid)
                lineages.append(lineage)
        origins.append(np.array([known[v] for v in values.tolist()], dtype=np.int32)[which])
        texts.append(lines.data)
        starts.append(lines.name_start + shift)
        ends.append(lines.name_end + shift)
        shift += len(lines.data)
    if columns is None or not taxids:
        raise InputError(path, "it contains no reads", "give a table of reads and taxids")
    keys = KeyTable(np.concatenate(texts), np.concatenate(starts), np.concatenate(ends))
    return Origins(
        np.array(taxids, dtype=np.int64),
        np.array(lineages, dtype=np.int32).reshape(len(taxids), len(RANKS)),
        columns.by_label,
        keys,
        np.concatenate(origins),
    )


def _columns(block: LineBlock) -> tuple[_Columns, int]:
    """The columns by the first line, and where the rows begin."""
    text = block.data.tobytes()
    at = 0
    while text[at : at + 1] == b"@" and text[at : at + 2] != b"@@":
        at = text.index(b"\n", at) + 1
        if at == len(text):
            raise InputError(block.path, "it contains no reads", "give CAMI's whole mapping")
    end = text.index(b"\n", at)
    line = text[at:end].decode("utf-8", "replace").rstrip("\r")
    fields = [field.strip().lower() for field in line.lstrip("#@ ").split("\t")]
    if "taxid" not in fields:
        if len(fields) < 2:
            raise InputError(
                block.path,
                "there are no columns",
                "give a table with tabs and the columns read (or label) and taxid",
                line=block.line_number(at),
            )
        return _Columns(0, by_label=False, taxid=1, ranks={}), at
    by_label = "label" in fields
    name = next((fields.index(word) for word in ("label", "read") if word in fields), 0)
    ranks = {
        RANKS.index(field.removesuffix(_ENDING)): column
        for column, field in enumerate(fields)
        if field.endswith(_ENDING) and field.removesuffix(_ENDING) in RANKS
    }
    return _Columns(name, by_label, fields.index("taxid"), ranks), end + 1


def _origin(
    block: LineBlock,
    lines: TableLines,
    row: int,
    columns: _Columns,
    taxonomy: Taxonomy,
    ranked: NDArray[np.int32],
) -> tuple[int, NDArray[np.int32]]:
    """Taxid and lineage of one line's truth."""
    fields = lines.fields(row)
    try:
        taxid = stated_taxid(fields[columns.taxid])
        stated = {rank: fields[column].strip() for rank, column in columns.ranks.items()}
        nodes = {
            rank: -1 if text.upper() in ("NA", "") else taxonomy.index_of(stated_taxid(text))
            for rank, text in stated.items()
        }
    except (IndexError, ValueError) as error:
        raise InputError(
            block.path,
            "a taxid is missing or not a number",
            "give taxids as numbers, or NA at a rank that is not in the taxonomy",
            line=block.line_number(int(lines.line[row])),
        ) from error
    node = taxonomy.index_of(taxid)
    lineage = ranked[node].copy() if node >= 0 else np.full(len(RANKS), UNKNOWN, dtype=np.int32)
    if node < 0:
        # A taxon missing from the taxonomy is none of its species.
        lineage[: RANKS.index("species") + 1] = NOWHERE
    for rank, at in sorted(nodes.items()):
        if at < 0:
            lineage[rank] = NOWHERE
        else:
            there = ranked[at] >= 0
            lineage[there] = ranked[at][there]
    return taxid, lineage
