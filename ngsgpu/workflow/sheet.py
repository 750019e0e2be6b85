"""A study's sheet of samples: a new one, and lanes added to one that is there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ngsgpu.errors import InputError
from ngsgpu.io.output.atomic import write_texts
from ngsgpu.io.text.lines import text_lines
from ngsgpu.workflow.reads import Found, Lane, find_reads

SHEET: Final = Path("config", "samples.tsv")
"""Where a study has it."""
_COLUMNS: Final = ("sample", "fastq_1", "fastq_2", "reference")
RESERVED = frozenset(
    (
        "benchmarks",
        "complete",
        "databases",
        "genomes",
        "host",
        "multiqc",
        "sra",
        "tables",
        "versions",
    )
)
"""What lies under results/ beside the folders of the samples (RESERVED of the workflow)."""


def new_sheet(folder: Path, lanes: Iterable[Lane]) -> str:
    """The text of a sheet.

    Args:
        folder: of the study, from which files are named that lie in it.
        lanes: its rows.

    Raises:
        InputError: a sample or a file has a name that the workflow cannot have.
    """
    rows = [list(_COLUMNS), *([*_cells(folder, lane)] for lane in lanes)]
    return "".join("\t".join(row) + "\n" for row in rows)


@dataclass
class Added:
    """What was added to a sheet.

    Attributes:
        sheet: the file.
        found: the reads that were looked for.
        new: samples that the sheet did not have.
        longer: samples that have more lanes than before.
        lanes: number of rows that were added.
        known: number of lanes that the sheet had already.
    """

    sheet: Path
    found: Found
    new: list[str] = field(default_factory=list)
    longer: list[str] = field(default_factory=list)
    lanes: int = 0
    known: int = 0


def add_reads(
    folder: str | Path, reads: Sequence[str | Path], *, single_end: bool = False
) -> Added:
    """Add the lanes of a run to the sheet of a study; what is in it stays as it is.

    Lanes of a sample that is there get the cells of its first row in the other columns.

    Args:
        folder: of the study.
        reads: folders with the reads, see `find_reads`.
        single_end: no file has mates.

    Raises:
        InputError: the sheet or the reads cannot be used, or do not fit together.
        OutputError: the sheet cannot be written.
    """
    folder = Path(folder)
    sheet = _Sheet(folder / SHEET)
    added = Added(sheet.path, find_reads(reads, single_end=single_end))
    home = folder.resolve()
    there = {(home / cell).resolve() for row in sheet.rows for cell in row[1:3] if cell}
    rows = []
    for lane in added.found.lanes:
        if lane.first.resolve() in there:
            added.known += 1
            continue
        row = sheet.row(lane, _cells(folder, lane))
        kind = added.longer if lane.sample in sheet.first else added.new
        kind += [lane.sample] * (lane.sample not in kind)
        rows.append(row)
    added.lanes = len(rows)
    if rows:
        write_texts({sheet.path: sheet.with_rows(rows)})
    return added


class _Sheet:
    """A sheet as its user wrote it.

    Attributes:
        path: the file.
        rows: sample and files of each row.
        first: cells of the first row of each sample.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            cause = "there is no sheet of samples" if isinstance(error, OSError) else "is no text"
            remedy = "name the directory of a study that `ngsgpu workflow init` wrote"
            raise InputError(path, cause, remedy) from error
        lines = [
            line
            for line in text_lines(self._text.replace("\r\n", "\n"))
            if line.strip(" \t,;") and not line.startswith("#")
        ]
        head = lines[0] if lines else ""
        self._delimiter = next((mark for mark in "\t,;" if mark in head), "\t")
        table = [
            [cell.strip() for cell in row] for row in csv.reader(lines, delimiter=self._delimiter)
        ]
        self._columns = table[0] if table else []
        if not {"sample", "fastq_1"} <= {*self._columns}:
            cause = "the first line must name the columns sample and fastq_1"
            raise InputError(path, cause, "write such a line")
        named = [dict(zip(self._columns, row, strict=False)) for row in table[1:]]
        self.rows = [[row.get(own, "") for own in _COLUMNS[:3]] for row in named]
        self.first: dict[str, dict[str, str]] = {}
        for row in named:
            self.first.setdefault(row.get("sample", ""), row)

    def row(self, lane: Lane, cells: Sequence[str]) -> list[str]:
        """The cells of a lane in the columns of the sheet."""
        own = dict(zip(_COLUMNS, cells, strict=False))
        before = self.first.get(lane.sample)
        if before is not None and bool(before.get("fastq_2")) != (lane.second is not None):
            kinds = ("pairs", "single-end reads")
            has, is_new = kinds if before.get("fastq_2") else kinds[::-1]
            cause = f"{is_new} of sample {lane.sample}, of which {self.path} has {has}"
            raise InputError(lane.first, cause, "rename the files, or put them elsewhere")
        if "fastq_2" in own and "fastq_2" not in self._columns:
            raise InputError(self.path, "has no column fastq_2, for second mates", "add it")
        whole = (before or {}) | {"fastq_2": ""} | own
        return [whole.get(name, "") for name in self._columns]

    def with_rows(self, rows: Iterable[Sequence[str]]) -> str:
        """The text with rows behind it."""
        end = "\r\n" if "\r\n" in self._text else "\n"
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator=end).writerows(rows)
        gap = end * (not self._text.endswith(("\n", "\r")))
        return self._text + gap + text.getvalue()


def _cells(folder: Path, lane: Lane) -> list[str]:
    if lane.sample in RESERVED:
        raise InputError(
            lane.first,
            f"the workflow cannot have a sample '{lane.sample}', which it uses itself",
            "rename the files",
        )
    files = [own for own in (lane.first, lane.second) if own]
    return [lane.sample, *(_path_in(folder, own) for own in files)]


def _path_in(folder: Path, path: Path) -> str:
    """A file as the sheet names it: from the study's directory if inside, otherwise in full."""
    home = folder.resolve()
    named = str(path.relative_to(home) if path.is_relative_to(home) else path)
    if not named.isprintable() or '"' in named:
        raise InputError(
            path, "a sheet cannot hold this path, for its control character or quote", "rename it"
        )
    if "{" in named or "}" in named:
        raise InputError(
            path,
            "Snakemake takes braces in a path for wildcards",
            "rename the file or folder, or make a link to it",
        )
    return named
