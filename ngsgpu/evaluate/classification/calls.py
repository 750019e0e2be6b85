"""Reads the outputs of classifiers: our table of reads, Kraken's lines, MetaCache's output.

The file's first line identifies the program. In any format, a read is called as a node of the
taxonomy, or unclassified; names of reference sequences and of taxa are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.numbers import is_digits
from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.lines import TableLines, cut_lines
from ngsgpu.io.text.keys import KeyTable
from ngsgpu.io.text.lines import LineBlock, read_line_blocks
from ngsgpu.taxonomy.ranks import rank_name
from ngsgpu.taxonomy.tree import Taxonomy, stated_taxid

UNCLASSIFIED: Final = -1
ELSEWHERE: Final = -2
"""Called as a taxon that the taxonomy does not have: wrong at every rank."""

_IN_BRACKETS: Final = re.compile(r"\((?:taxid )?(-?[0-9]+)\)$")
_METACACHE: Final = "\t|\t"


@dataclass(frozen=True, eq=False)
class CallBlock:
    """Calls of consecutive reads of a file.

    Attributes:
        lines: the lines, with the reads' names and the scores.
        node: int32[n], ``UNCLASSIFIED``, ``ELSEWHERE`` or a node of the taxonomy.
        program: the classifier, ``ngsgpu``, ``kraken`` or ``metacache``.
        has_scores: whether the lines have scores.
    """

    lines: TableLines
    node: NDArray[np.int32]
    program: str
    has_scores: bool


@dataclass(frozen=True, slots=True)
class _Format:
    """The columns of a format (0: any number), and how to get the node of a line."""

    program: str
    columns: int
    name: int
    values: tuple[int, ...]
    score: int
    resolve: Callable[[list[str]], int]


def read_calls(
    path: str | Path, taxonomy: Taxonomy, references: Mapping[str, int] | None = None
) -> Iterator[CallBlock]:
    """Read calls of reads.

    Args:
        path: the classifier's output, compressed or not.
        taxonomy: the tree.
        references: taxids of reference sequences by name, for MetaCache's calls of rank sequence.

    Raises:
        InputError: the file cannot be read or has an unknown format; with the line.
    """
    found: _Format | None = None
    nodes: dict[int, int] = {}
    for block in read_line_blocks(path):
        start = 0
        if found is None:
            found, start = _recognise(block, taxonomy, references or {})
            if found is None:
                continue
        lines = cut_lines(
            block, start, name=found.name, values=found.values, score=found.score,
            comments=b"#" if found.program == "metacache" else b"",
        )  # fmt: skip
        node = _nodes(block, lines, found, nodes)
        yield CallBlock(lines, node, found.program, found.score >= 0)
    if found is None:
        raise InputError(path, "it contains no calls", "give the output of a classifier")


def _nodes(
    block: LineBlock, lines: TableLines, form: _Format, known: dict[int, int]
) -> NDArray[np.int32]:
    """Nodes of the lines; ``known`` has those of calls seen before, by hash, and grows."""
    other = np.flatnonzero((lines.columns != form.columns) & (form.columns > 0))
    if len(other) > 0:
        cause = f"the line has {lines.columns[other[0]]} columns, the first one {form.columns}"
        line = block.line_number(int(lines.line[other[0]]))
        raise InputError(block.path, cause, "give the classifier's whole output", line=line)
    values, first, which = np.unique(lines.value, return_index=True, return_inverse=True)
    for value, row in zip(values.tolist(), first.tolist(), strict=True):
        if value in known:
            continue
        fields = lines.fields(row)
        try:
            known[value] = form.resolve(fields)
        except (IndexError, ValueError) as error:
            raise InputError(
                block.path,
                f"the line is not one of {form.program}'s calls",
                "give the classifier's whole output",
                line=block.line_number(int(lines.line[row])),
            ) from error
    return np.array([known[value] for value in values.tolist()], dtype=np.int32)[which]


def _recognise(
    block: LineBlock, taxonomy: Taxonomy, references: Mapping[str, int]
) -> tuple[_Format | None, int]:
    """The format, from the first line that is not a comment, and where calls begin."""
    text = block.data.tobytes()
    at = 0
    while at < len(text) and (text[at : at + 1] in b"#\r\n"):
        at = text.index(b"\n", at) + 1
    if at == len(text):
        return None, at
    end = text.index(b"\n", at)
    line = text[at:end].decode("utf-8", "replace").rstrip("\r")
    fields = line.split("\t")
    if _METACACHE in line:
        return _metacache(fields, taxonomy, references), at
    n = len(fields)
    if fields[0] in ("C", "U") and n >= 3:
        return _Format("kraken", n, 1, (2,), -1, lambda row: _of_taxid(row[2], taxonomy)), at
    if fields[0] == "read" and "taxid" in fields:
        own = fields.index("taxid")
        score = fields.index("score") if "score" in fields else -1
        form = _Format("ngsgpu", n, 0, (own,), score, lambda row: _of_taxid(row[own], taxonomy))
        return form, end + 1
    raise InputError(
        block.path,
        "this is not the output of a known classifier",
        "give the table of reads of ngsgpu classify, Kraken's or MetaCache's output",
        line=block.line_number(at),
    )


def _of_taxid(field: str, taxonomy: Taxonomy) -> int:
    """Node of ``562`` or ``Escherichia coli (taxid 562)``; 0 means no call."""
    match = _IN_BRACKETS.search(field)
    taxid = stated_taxid(match[1] if match else field)
    if taxid == 0:
        return UNCLASSIFIED
    node = taxonomy.index_of(taxid)
    return node if node >= 0 else ELSEWHERE


def _metacache(fields: list[str], taxonomy: Taxonomy, references: Mapping[str, int]) -> _Format:
    """MetaCache's lines: columns between bars, the call in one or (-separate-cols) in several."""
    values = tuple(range(2, len(fields), 2))

    def resolve(row: list[str]) -> int:
        parts = [row[column] for column in values]
        if all(part in ("--", "") for part in parts) or parts[0] == "--":
            return UNCLASSIFIED
        text = parts[0] if len(parts) == 1 else ":".join(parts[:2])
        taxid = next((part for part in reversed(parts) if is_digits(part)), None)
        match = _IN_BRACKETS.search(text)
        if match is not None:
            text = text[: match.start()]
            taxid = match[1] if int(match[1]) > 0 else None
        if taxid is not None:
            return _of_taxid(taxid, taxonomy)
        rank, colon, name = text.partition(":")
        if not colon:
            raise ValueError(text)
        if rank == "sequence":
            return _of_taxid(str(references[name]), taxonomy) if name in references else ELSEWHERE
        return _node_of_name(taxonomy, name, rank)

    return _Format("metacache", 0, 0, values, -1, resolve)


def _node_of_name(taxonomy: Taxonomy, name: str, rank: str) -> int:
    """The node of a name, that of the rank if several have it; a call names few different ones."""
    start = np.ascontiguousarray(taxonomy.name_start[:-1])
    end = np.ascontiguousarray(taxonomy.name_start[1:])
    found = KeyTable.of([name.encode()]).find(taxonomy.name_bytes, start, end)
    nodes = np.flatnonzero(found == 0).tolist()
    if not nodes:
        return ELSEWHERE
    ranked = [node for node in nodes if rank_name(int(taxonomy.rank[node])) == rank]
    return int((ranked or nodes)[0])
