"""GTDB's taxonomy files into a taxonomy: an accession and its lineage a line.

``RS_GCF_000005845.2<tab>d__Bacteria;p__Pseudomonadota;...;s__Escherichia coli``. GTDB's taxa have
no numbers. A taxid here is a 48-bit hash of rank and name (``s__Escherichia coli``): the same in
every release that has the taxon, and exact in programs that read numbers as doubles.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from ngsgpu.errors import InputError
from ngsgpu.io.text.lines import read_line_blocks
from ngsgpu.taxonomy.ranks import RANK_CODES, ROOT
from ngsgpu.taxonomy.tree import Taxonomy

_RANKS: Final = {
    b"d": "domain", b"p": "phylum", b"c": "class", b"o": "order", b"f": "family", b"g": "genus",
    b"s": "species",
}  # fmt: skip
_ROOT_TAXID: Final = 1
_TAXID_BYTES: Final = 6
_LINE: Final = re.compile(rb'([^\t]+)\t"?(d__[^\t"]*)"?\s*')
_PREFIX: Final = re.compile(rb"^(?:RS|GB)_(?=GC[AF]_)")


def lineage_files(path: str | Path) -> list[Path]:
    """GTDB's taxonomy files (``bac120_taxonomy.tsv``) at a path or in a directory.

    None in a directory with NCBI's taxonomy, which goes before.
    """
    path = Path(path)
    if any(path.glob("nodes.dmp*")):
        return []
    found = sorted(path.glob("*taxonomy*.tsv*")) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and has_lineages(file)]


def has_lineages(path: Path) -> bool:
    """Whether the first line of a file is an accession and a lineage."""
    block = next(read_line_blocks(path, block_bytes=1 << 16), None)
    return block is not None and is_lineage(block.data.tobytes())


def is_lineage(text: bytes) -> bool:
    """Whether a text begins with a line of an accession and a lineage."""
    return _LINE.fullmatch(text.partition(b"\n")[0]) is not None


def read_lineages(paths: Iterable[Path]) -> Taxonomy:
    """The tree of all lineages in GTDB's taxonomy files.

    Raises:
        InputError: a line has no lineage, or a taxon has two parents; with file and line.
    """
    above: dict[bytes, bytes] = {}
    seen: set[bytes] = set()
    for path in paths:
        for number, _, lineage in _lines(path):
            if lineage in seen:
                continue
            seen.add(lineage)
            parent = b""
            for taxon in _taxa(path, number, lineage):
                if above.setdefault(taxon, parent) != parent:
                    both = " and ".join(sorted({_shown(above[taxon]), _shown(parent)}))
                    raise InputError(
                        path, f"{_shown(taxon)} is below {both}", "give each taxon one parent",
                        line=number,
                    )  # fmt: skip
                parent = taxon
    return _taxonomy(above)


def taxids_of_accessions(path: Path) -> Iterator[tuple[bytes, int]]:
    """Accession, without GTDB's ``RS_`` or ``GB_``, and taxid of each line of a taxonomy file."""
    known: dict[bytes, int] = {}
    for number, accession, lineage in _lines(path):
        if lineage not in known:
            known[lineage] = _taxid(_taxa(path, number, lineage)[-1])
        yield _PREFIX.sub(b"", accession), known[lineage]


def _lines(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, accession and lineage of the lines of a file."""
    for block in read_line_blocks(path):
        for row, line in enumerate(block.data.tobytes().split(b"\n")):
            if not line.strip():
                continue
            number = block.first_line + row + 1
            match = _LINE.fullmatch(line)
            if match is None:
                raise _no_lineage(path, number)
            yield number, match[1], match[2].rstrip()


def _taxa(path: Path, number: int, lineage: bytes) -> list[bytes]:
    """The taxa of a lineage, the highest first; ranks without a name are left out."""
    parts = [part.strip() for part in lineage.split(b";")]
    if any(part[:1] not in _RANKS or part[1:3] != b"__" for part in parts):
        raise _no_lineage(path, number)
    taxa = [part for part in parts if len(part) > 3]
    if not taxa:
        raise _no_lineage(path, number)
    return taxa


def _no_lineage(path: Path, number: int) -> InputError:
    return InputError(
        path, "there is no accession with a lineage (d__...;p__...;...;s__...)",
        "give the file as GTDB distributes it, for example bac120_taxonomy.tsv", line=number,
    )  # fmt: skip


def _taxid(taxon: bytes) -> int:
    digest = hashlib.blake2b(taxon, digest_size=_TAXID_BYTES).digest()
    return _ROOT_TAXID + 1 + int.from_bytes(digest, "big")


def _shown(taxon: bytes) -> str:
    return taxon.decode("utf-8", "replace") or "the root"


def _taxonomy(above: dict[bytes, bytes]) -> Taxonomy:
    """The tree of taxa with their parents; ``b""`` is the root."""
    numbered = sorted(chain([(_ROOT_TAXID, b"")], ((_taxid(taxon), taxon) for taxon in above)))
    taxid = np.array([number for number, _ in numbered], dtype=np.int64)
    twice = np.flatnonzero(taxid[1:] == taxid[:-1])
    if len(twice) > 0:
        first, second = (_shown(numbered[int(twice[0]) + i][1]) for i in (0, 1))
        raise InputError(
            "the lineages", f"{first} and {second} get one taxid", "rename one of them"
        )
    place = {taxon: index for index, (_, taxon) in enumerate(numbered)}
    parents = [place[above.get(taxon, b"")] for _, taxon in numbered]
    names = [taxon[3:] or b"root" for _, taxon in numbered]
    ranks = [RANK_CODES[_RANKS[taxon[:1]]] if taxon else ROOT for _, taxon in numbered]
    return Taxonomy(
        taxid=taxid,
        parent=np.array(parents, dtype=np.int32),
        rank=np.array(ranks, dtype=np.uint8),
        name_bytes=np.frombuffer(b"".join(names), dtype=np.uint8),
        name_start=np.cumsum([0, *map(len, names)], dtype=np.int64),
        merged_taxid=np.zeros(0, dtype=np.int64),
        merged_index=np.zeros(0, dtype=np.int32),
    )
