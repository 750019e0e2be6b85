"""Which taxon each reference sequence belongs to: from headers and from files of accessions.

In order of preference:

1. ``taxid|562`` in the header (also ``kraken:taxid|562``, ``taxid=562``, ``taxid:562``);
2. the files given, in their order; in a file the first line that fits counts, and another taxid in
   a later one is reported. A file is one of

   - NCBI's accession2taxid: accession, accession.version, taxid, gi, with or without that header;
   - NCBI's assembly_summary.txt, whose accessions (``GCF_000005845.2``) are looked for in the name
     of the reference file, of its folder, and in the header;
   - the report of NCBI datasets (``assembly_data_report.jsonl``, for viruses ``data_report.jsonl``)
     and GTDB's taxonomy files (``lineages``), by the same accessions;
   - any table with a column ``taxid`` in its first line, or without one: name, taxid.

A sequence is looked up by the first word of its header, by the accessions in it
(``gi|556503834|ref|NC_000913.3|``), by the same without version, and by the path of its file, whole
or without leading folders.

The files are streamed; memory grows with the reference sequences only.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.numbers import is_digits
from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.io.text.batch import printable
from ngsgpu.io.text.keys import KeyTable, find_key
from ngsgpu.io.text.lines import LineBlock, read_line_blocks
from ngsgpu.jit import Integer, interpreted_if_small, njit
from ngsgpu.taxonomy.lineages import is_lineage, taxids_of_accessions
from ngsgpu.taxonomy.tree import Taxonomy, stated_taxid

logger = logging.getLogger("ngsgpu")

NO_TAXON: Final = -1

_IN_HEADER: Final = re.compile(
    rb"(?<![A-Za-z0-9])taxid[|=:] ?([0-9]{1,18})(?![0-9])", re.IGNORECASE
)
_ASSEMBLY: Final = re.compile(rb"GC[AF]_[0-9]{9}(?:\.[0-9]+)?")
_VERSION: Final = re.compile(rb"\.[0-9]+$")
_DATABASES: Final = frozenset(
    (b"gi", b"ref", b"gb", b"emb", b"dbj", b"tpg", b"tpe", b"tpd", b"lcl", b"gnl", b"kraken:taxid",
     b"taxid")
)  # fmt: skip
"""Words between the bars of a header that are not accessions."""

_KEY_COLUMNS: Final = ("accession.version", "accession", "assembly_accession", "file", "path")
_HEADER_LINES: Final = 10

_LF: Final = 10
_CR: Final = 13
_TAB: Final = 9
_HASH: Final = 35
_DOT: Final = 46


def map_targets(
    names: Sequence[bytes],
    headers: Sequence[bytes],
    taxonomy: Taxonomy,
    maps: Sequence[str | Path] = (),
    *,
    files: Sequence[str] | None = None,
) -> NDArray[np.int32]:
    """Find the taxon of each reference sequence.

    Args:
        names: first words of the headers.
        headers: whole headers.
        taxonomy: taxids missing from it count as no taxon.
        maps: tables of accessions and taxids, see above.
        files: file of each sequence, for tables of assemblies and of files.

    Returns:
        int32[targets], node of the taxonomy; ``NO_TAXON`` if none is found.

    Raises:
        InputError: a table cannot be read or parsed; with the line.
    """
    taxids = _from_headers(headers)
    if maps and (taxids == 0).any():
        size = sum(map(len, names)) + sum(map(unpacked_size, maps))
        with interpreted_if_small(size):
            keys = _Keys(names, files or [""] * len(names), np.flatnonzero(taxids == 0))
            for path in maps:
                keys.fill(taxids, _taxids_of_keys(Path(path), keys))
                if keys.is_complete:
                    break
    nodes = taxonomy.indices_of(taxids)
    nodes[taxids == 0] = NO_TAXON
    unknown = np.flatnonzero((nodes < 0) & (taxids > 0))
    if len(unknown) > 0:
        first = int(unknown[0])
        logger.warning(
            "%s of %s reference sequences have taxids that are not in the taxonomy, first %s (%d)",
            f"{len(unknown):,}", f"{len(names):,}", printable(names[first]), taxids[first],
        )  # fmt: skip
    return nodes


def _from_headers(headers: Sequence[bytes]) -> NDArray[np.int64]:
    """Taxids that headers state; 0 where they do not."""
    found = (_IN_HEADER.search(header) for header in headers)
    return np.fromiter(
        (0 if match is None else int(match[1]) for match in found), np.int64, len(headers)
    )


def keys_of(name: bytes, file: str) -> Iterator[bytes]:
    """Possible keys of a sequence in a table, most specific first; may contain duplicates."""
    yield from _keys_of_name(name)
    yield from _keys_of_file(file)


def _keys_of_name(name: bytes) -> Iterator[bytes]:
    parts = [part for part in name.split(b"|") if part and part.lower() not in _DATABASES]
    exact = [name, *reversed(parts), *_ASSEMBLY.findall(name)[:1]]
    yield from exact
    for key in exact:
        yield _VERSION.sub(b"", key)


def _keys_of_file(file: str) -> Iterator[bytes]:
    """Accessions in the names of a file and its folder, and the file's path in several forms."""
    path = PurePath(file)
    places = [place.encode(errors="replace") for place in (path.name, path.parent.name)]
    exact = [match[0] for place in places if (match := _ASSEMBLY.search(place))]
    yield from exact
    for key in exact:
        yield _VERSION.sub(b"", key)
    for first in range(len(path.parts)):
        ending = str(PurePath(*path.parts[first:])).encode(errors="replace")
        yield from (ending, b"./" + ending)


class _Keys:
    """The keys of all sequences that are looked for.

    Attributes:
        table: the keys.
        numbers: the same, of each.
    """

    def __init__(
        self, names: Sequence[bytes], files: Sequence[str], targets: NDArray[np.int64]
    ) -> None:
        numbers: dict[bytes, int] = {}

        def numbered(keys: Iterable[bytes]) -> list[int]:
            return [numbers.setdefault(key, len(numbers)) for key in dict.fromkeys(keys)]

        rows: list[list[int]] = []
        self._of_file: dict[str, list[int]] = {}
        self._file = [files[target] for target in targets.tolist()]
        for target, file in zip(targets.tolist(), self._file, strict=True):
            rows.append(numbered(_keys_of_name(names[target])))
            if file not in self._of_file:
                self._of_file[file] = numbered(_keys_of_file(file))
        self._targets = targets
        self._of_target = np.array([key for row in rows for key in row], dtype=np.int32)
        self._first = np.cumsum([0, *map(len, rows)])
        self._open = np.ones(len(targets), dtype=np.bool_)
        self.numbers = numbers
        self.table = KeyTable.of(numbers)

    @property
    def is_complete(self) -> bool:
        """Whether every sequence was found."""
        return not self._open.any()

    def fill(self, taxids: NDArray[np.int64], of_keys: NDArray[np.int64]) -> None:
        """Give sequences without a taxid that of the first of their keys that has one."""
        by_file = {
            file: next((taxid for taxid in of_keys[keys].tolist() if taxid > 0), 0)
            for file, keys in self._of_file.items()
            if keys
        }
        for row in np.flatnonzero(self._open).tolist():
            found = of_keys[self._of_target[self._first[row] : self._first[row + 1]]]
            there = np.flatnonzero(found > 0)
            taxid = found[there[0]] if len(there) > 0 else by_file.get(self._file[row], 0)
            if taxid > 0:
                taxids[self._targets[row]] = taxid
                self._open[row] = False


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a table: keys (at most two) and the taxid.

    Attributes:
        first_key: the column of keys.
        second_key: another one, or the same.
        taxid: the column of taxids.
        of_assemblies: whether keys are accessions of assemblies, which count without their
            version, too, as these tables list but the newest.
    """

    first_key: int
    second_key: int
    taxid: int
    of_assemblies: bool = False


def _taxids_of_keys(path: Path, keys: _Keys) -> NDArray[np.int64]:
    """Taxids that one table gives to the keys, int64[keys]; 0 where none."""
    found, others = np.zeros((2, len(keys.table)), dtype=np.int64)
    table = keys.table
    columns: _Columns | None = None
    for block in read_line_blocks(path):
        start = 0
        if columns is None:
            if (rows := _rows_of(path, block)) is not None:
                _look_up_rows(rows, keys.numbers, found, others)
                break
            columns, start = _columns(block)
        bad = _look_up_lines(
            block.data[start:], columns.first_key, columns.second_key, columns.taxid,
            columns.of_assemblies, table.text, table.start, table.end, table.slots, found, others,
        )  # fmt: skip
        if bad >= 0:
            raise InputError(
                path,
                f"no taxid in column {columns.taxid + 1}",
                "give a table with tabs: name and taxid, or NCBI's accession2taxid or "
                "assembly_summary.txt",
                line=block.line_number(start + bad),
            )
    _warn_of_others(path, keys, found, others)
    return found


def _warn_of_others(
    path: Path, keys: _Keys, found: NDArray[np.int64], others: NDArray[np.int64]
) -> None:
    if len(twice := np.flatnonzero(others)) > 0:
        name = next(name for name, number in keys.numbers.items() if number == twice[0])
        logger.warning(
            "%s: %s names have several taxids, first %s (%d and %d); the first of each counts",
            path, f"{len(twice):,}", printable(name), found[twice[0]], others[twice[0]],
        )  # fmt: skip


def _rows_of(path: Path, block: LineBlock) -> Iterable[tuple[bytes, int]] | None:
    """Accessions of assemblies and taxids, where a file (its first block) is no table of taxids."""
    text = block.data[: 1 << 20].tobytes()
    if text.lstrip().startswith(b"{"):
        return _rows_of_report(path)
    return taxids_of_accessions(path) if is_lineage(text) else None


def _rows_of_report(path: Path) -> Iterator[tuple[bytes, int]]:
    """Accession and taxid of the lines of a report of NCBI datasets."""
    for block in read_line_blocks(path):
        for row, line in enumerate(block.data.tobytes().split(b"\n")):
            if not line.strip():
                continue
            try:
                values = parse_json(line)
                organism = values.get("organism") or values["virus"]
                taxid = organism["taxId"] if "taxId" in organism else organism["tax_id"]
                yield str(values["accession"]).encode(), stated_taxid(taxid)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise InputError(
                    path,
                    "there is no accession with the taxid of an organism",
                    "give assembly_data_report.jsonl as NCBI datasets writes it",
                    line=block.first_line + row + 1,
                ) from None


def _look_up_rows(
    rows: Iterable[tuple[bytes, int]],
    numbers: dict[bytes, int],
    found: NDArray[np.int64],
    others: NDArray[np.int64],
) -> None:
    """Enter the taxids of accessions, with or without their version; the first that fits counts."""
    for accession, taxid in rows:
        exact = numbers.get(accession, -1)
        if exact >= 0 and found[exact] not in (0, taxid):
            others[exact] = taxid
        for key in (accession, _VERSION.sub(b"", accession)):
            number = numbers.get(key)
            if number is not None and found[number] == 0:
                found[number] = taxid


def _columns(block: LineBlock) -> tuple[_Columns, int]:
    """The columns of a table by its first lines, and where its rows begin."""
    text = block.data[: 1 << 20].tobytes()
    at = 0
    for _ in range(_HEADER_LINES):
        end = text.find(b"\n", at)
        if end < 0:
            break
        line = text[at:end].decode("utf-8", "replace").strip()
        fields = [field.strip().lower() for field in line.lstrip("# ").split("\t")]
        if "taxid" in fields:
            known = [fields.index(name) for name in _KEY_COLUMNS if name in fields]
            known = (known or [0])[:2]
            of_assemblies = fields[known[0]] == "assembly_accession"
            return _Columns(known[0], known[-1], fields.index("taxid"), of_assemblies), end + 1
        if line and not line.startswith("#"):
            return _without_header(fields), at
        at = end + 1
    return _Columns(0, 0, 1), at


def _without_header(fields: list[str]) -> _Columns:
    """Accession2taxid is known by its four columns; otherwise the name and the taxid come first."""
    if len(fields) == 4 and fields[1].startswith(fields[0]) and is_digits(fields[2]):
        return _Columns(1, 0, 2)
    return _Columns(0, 0, 1)


@njit(nogil=True, cache=True)
def _look_up_lines(  # type: ignore[no-untyped-def]
    data, first_key, second_key, taxid, of_assemblies, text, start, stop, slots, found, others
):
    """Enter the taxids of the lines whose key columns hold a key that has none yet.

    ``others`` gets other taxids of keys in the first key column.

    Returns:
        First byte of a line without a number in the taxid column; -1 if there is none.
    """
    at = 0
    while at < data.size:
        line = at
        if data[at] == _HASH or data[at] == _LF or data[at] == _CR:
            while data[at] != _LF:
                at += 1
            at += 1
            continue
        key_a = -1
        key_b = -1
        number: Integer = -1
        column = 0
        while True:
            begin = at
            while data[at] != _TAB and data[at] != _LF:
                at += 1
            end = at - 1 if data[at] == _LF and at > begin and data[at - 1] == _CR else at
            if column == first_key:
                key_a, _ = find_key(data, begin, end, text, start, stop, slots)
                if of_assemblies:
                    stem = end
                    while stem > begin and data[stem - 1] != _DOT:
                        stem -= 1
                    key_b, _ = find_key(data, begin, max(stem - 1, begin), text, start, stop, slots)
            elif column == second_key:
                key_b, _ = find_key(data, begin, end, text, start, stop, slots)
            if column == taxid and 0 < end - begin <= 18:
                number = np.int64(0)
                for i in range(begin, end):
                    if data[i] < 48 or data[i] > 57:
                        number = -1
                        break
                    number = number * 10 + np.int64(data[i]) - 48
            at += 1
            if data[at - 1] == _LF:
                break
            column += 1
        if number < 0:
            return line
        if key_a >= 0 and found[key_a] == 0:
            found[key_a] = number
        elif key_a >= 0 and found[key_a] != number:
            others[key_a] = number
        if key_b >= 0 and found[key_b] == 0:
            found[key_b] = number
    return -1
