"""Samples: their input and output files, and their statistics."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ngsgpu.classify.formats import Format, formats
from ngsgpu.classify.query.queries import NO_MATES, Mates, Queries, find_name_ends
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.inputs import ReadFiles, pair_inputs
from ngsgpu.io.names import sample_of
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.lines import text_lines
from ngsgpu.run.statistics import RunStatistics

PLACEHOLDER: Final = "{sample}"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_LETTERS: Final = 1 << 26
"""Of a sheet."""


RECORD_FILES: Final = {
    True: ("classified_out", "classified_out2"),
    False: ("unclassified_out", "unclassified_out2"),
}
"""Parameters of files of records, by whether these are classified: first or all, second mates."""


class SampleOutputs:
    """Output files; ``{sample}`` is replaced by the sample name.

    Args:
        stats: run statistics, JSON.
        candidates: candidates of a partition, to be merged; then nothing else but statistics.
        files: by the names of formats, and of ``RECORD_FILES``; None: not written.

    Attributes:
        records: the names of ``RECORD_FILES`` that are wanted.

    Raises:
        UsageError: there is no such format.
    """

    def __init__(
        self, *, stats: str | None = None, candidates: str | None = None, **files: str | None
    ) -> None:
        known = formats()
        records = [name for names in RECORD_FILES.values() for name in names]
        for name in files.keys() - {*known, *records}:
            others = ", ".join([*known, *records])
            raise UsageError(f"there is no output {name!r}; choose from {others}")
        self._formats = {name: own for name, own in known.items() if files.get(name) is not None}
        self.records = [name for name in records if files.get(name) is not None]
        self._files = {name: files[name] for name in [*self._formats, *self.records]}
        self._files |= {"stats": stats, "candidates": candidates}

    @property
    def candidates(self) -> str | None:
        """File of candidates."""
        return self._files["candidates"]

    def named(self) -> dict[str, str]:
        """The files that are wanted, by format, ``stats`` or ``candidates``."""
        return {name: path for name, path in self._files.items() if path is not None}

    def formats(self, *of: str) -> list[Format]:
        """The formats that are wanted of these kinds."""
        return [own for own in self._formats.values() if own.of in of]

    @property
    def shared(self) -> dict[str, str]:
        """Files with all samples, by format; none if each sample has its file."""
        own = {format.name for format in self.formats("samples")}
        return {
            name: path
            for name, path in self.named().items()
            if name in own and PLACEHOLDER not in path
        }

    def of_sample(self, sample: str) -> SampleOutputs:
        """With the sample's name put in; without the files of all samples."""
        shared = self.shared
        return SampleOutputs(
            **{
                name: path.replace(PLACEHOLDER, sample)
                for name, path in self.named().items()
                if name not in shared
            }
        )

    def of_samples(self, samples: Iterable[str]) -> list[str]:
        """All files of a run over some samples."""
        own = [path for name in samples for path in self.of_sample(name).named().values()]
        return [*own, *self.shared.values()]

    def check(self, samples: int) -> None:
        """Refuse outputs that several samples would share, or that contradict each other."""
        named, shared = self.named(), self.shared
        if not named:
            raise UsageError("no output given; name one, for example `reads='reads.tsv'`")
        if self.candidates is not None and self.records:
            raise UsageError(f"`candidate_file` writes only candidates: omit `{self.records[0]}`")
        if self.candidates is not None and self._formats:
            other = next(iter(self._formats.values()))
            raise UsageError(
                f"`candidate_file` writes only candidates: give `{other.name}` to "
                "`ngsgpu classify-merge`"
            )
        for name, value in named.items():
            if samples > 1 and name not in shared and PLACEHOLDER not in value:
                raise UsageError(
                    f"{value}: all samples would be written to this file; put {PLACEHOLDER} into "
                    "the name"
                )


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample.

    Attributes:
        name: letters, digits, ``.``, ``_``, ``-``.
        lanes: its reads, with mates or without: merged pairs may stand beside those that stayed.
    """

    name: str
    lanes: tuple[ReadFiles, ...]


def one_sample(
    in1: Sequence[str], in2: Sequence[str], *, interleaved: bool, name: str | None
) -> Sample:
    """The sample whose reads are named on the command line.

    Args:
        in1: files of first mates, or of single-end reads.
        in2: files of second mates.
        interleaved: whether each file holds both mates in turn.
        name: name of the sample; None: that of the first file.

    Raises:
        UsageError: the numbers of files are inconsistent; the name cannot be one.
    """
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    if name is None:
        name = sample_of(in1[0])
    return Sample(_checked_name(name), tuple(lanes))


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid sample name; use letters, digits, '.', '_', '-'")
    return name


def read_samples(path: str | Path) -> list[Sample]:
    """Read a sheet of samples: columns sample, fastq_1, fastq_2, a row a lane.

    Cells are separated by tabs or commas, as in the first line. Other columns are passed over, as
    are lines that begin with ``#``. Files are looked for from the working directory.

    Raises:
        InputError: the sheet cannot be read, or a row of it is wrong.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_LETTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(path, f"cannot be read ({reason})", "check the path") from error
    if len(text) > _MOST_LETTERS:
        raise InputError(path, "is too large for a sheet of samples", "check the path")
    rows = list(sample_rows(path, text_lines(text)))
    lanes: dict[str, list[ReadFiles]] = {}
    for line, row in rows:
        name, first, second = _checked_row(path, line, row)
        lanes.setdefault(name, []).append(_lane(first, second))
    if not lanes:
        raise InputError(path, "the sheet lists no samples", "add a row for each lane")
    return [Sample(name, tuple(own)) for name, own in lanes.items()]


def sample_of_row(path: str | Path, line: int, row: dict[str, str]) -> Sample:
    """The sample of a row that has all of its lanes, separated by semicolons.

    Args:
        path: the sheet, for messages.
        line: line of the row, for messages.
        row: cells by column.

    Raises:
        InputError: the row is wrong.
    """
    name, *mates = _checked_row(path, line, row)
    firsts, seconds = ([own.strip() for own in cell.split(";")] for cell in mates)
    if not mates[1]:
        seconds = [""] * len(firsts)
    if len(firsts) != len(seconds) or "" in firsts:
        raise InputError(
            path, "fastq_1 and fastq_2 do not name equal numbers of files",
            "separate files of lanes by ';', in the same order", line=line,
        )  # fmt: skip
    return Sample(name, tuple(map(_lane, firsts, seconds)))


def _lane(first: str, second: str) -> ReadFiles:
    (lane,) = pair_inputs([first], [second] if second else [])
    return replace(lane, outputs=(0,))


def _checked_row(path: str | Path, line: int, row: dict[str, str]) -> tuple[str, str, str]:
    """Name and files in a row of a sheet."""
    name, first, second = (row.get(key, "") for key in ("sample", "fastq_1", "fastq_2"))
    if not _NAME.fullmatch(name):
        raise InputError(
            path, f"{name!r} is not a valid sample name",
            "use letters, digits, '.', '_', '-'", line=line,
        )  # fmt: skip
    if not first:
        raise InputError(path, "fastq_1 is empty", "name the read file", line=line)
    if "\0" in first + second:
        raise InputError(path, "a name has a NUL character", "name the read file", line=line)
    return name, first, second


def sample_rows(
    path: str | Path, lines: Iterable[str], refuse: Callable[[InputError], None] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells of each row of a sheet, as soon as its line is there.

    Args:
        path: the sheet, for messages.
        lines: of it.
        refuse: is called with what is wrong with a row, which is left out; None: it is raised.

    Raises:
        InputError: the first line does not name the columns needed, or a row has other ones.
    """
    columns: list[str] = []
    mark = ","
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if not columns:
            mark = "\t" if "\t" in line else ","
            columns = _cells(path, number, line, mark)
            _check_columns(path, number, columns)
            continue
        try:
            cells = _cells(path, number, line, mark)
            if any(cells[len(columns) :]):
                raise InputError(
                    path, f"there are {len(cells)} cells, but {len(columns)} columns",
                    "put cells with commas into quotes", line=number,
                )  # fmt: skip
        except InputError as error:
            if refuse is None:
                raise
            refuse(error)
            continue
        yield number, dict(zip(columns, cells, strict=False))
    if not columns:
        _check_columns(path, None, columns)


def _cells(path: str | Path, number: int, line: str, mark: str) -> list[str]:
    quoting: Any = csv.QUOTE_NONE if mark == "\t" else csv.QUOTE_MINIMAL
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=mark, quoting=quoting))]
    except csv.Error as error:
        raise InputError(path, str(error), "correct the line", line=number) from error


def _check_columns(path: str | Path, line: int | None, columns: list[str]) -> None:
    if not {"sample", "fastq_1"} <= {*columns}:
        raise InputError(
            path, "the first line must name the columns sample and fastq_1",
            "write a table with these columns (and fastq_2 for mates)",
        )  # fmt: skip
    for name in ("sample", "fastq_1", "fastq_2"):
        if columns.count(name) > 1:
            raise InputError(path, f"there are two columns {name!r}", "leave one out", line=line)


def queries_of(mates: tuple[RecordBatch, ...], lane: ReadFiles) -> Queries:
    """The records of a batch as queries."""
    first = mates[0]
    if lane.interleaved:
        return _queries(_mates(first, 0, 2), _mates(first, 1, 2), first, 2)
    second = _mates(mates[1]) if len(mates) == 2 else NO_MATES
    return _queries(_mates(first), second, first, 1)


def cuts_of(queries: Queries, most: int, max_bases: int) -> Iterator[tuple[int, int]]:
    """Split queries into parts, by number and by bases, since a query may be long.

    Args:
        queries: the queries.
        most: maximum number of queries per part.
        max_bases: maximum number of bases per part, if it has several queries.
    """
    lengths = queries.first.length.astype(np.int64)
    if queries.paired:
        lengths += queries.second.length
    bases = np.cumsum(lengths)
    begin = 0
    while begin < len(queries):
        before = int(bases[begin - 1]) if begin > 0 else 0
        by_bases = int(np.searchsorted(bases, before + max_bases, side="right"))
        end = min(begin + most, max(begin + 1, by_bases), len(queries))
        yield begin, end
        begin = end


def _queries(first: Mates, second: Mates, batch: RecordBatch, step: int) -> Queries:
    start = np.ascontiguousarray(batch.header_start[::step])
    end = np.ascontiguousarray(batch.header_end[::step])
    name_end = np.empty_like(end)
    find_name_ends(batch.data, start, end, int(second is not NO_MATES), name_end)
    return Queries(first, second, start, name_end)


def _mates(batch: RecordBatch, begin: int = 0, step: int = 1) -> Mates:
    cut = slice(begin, None, step)
    return Mates(
        batch.data,
        np.ascontiguousarray(batch.seq_start[cut]),
        np.ascontiguousarray(batch.seq_end[cut]),
        np.ascontiguousarray(batch.seq_len[cut]),
    )


@dataclass(slots=True, kw_only=True)
class ClassificationStatistics(RunStatistics):
    """Counts and resources of classifying a sample; see also ``RunStatistics``.

    Attributes:
        sample: its name.
        database: path, digest, targets, taxa of the taxonomy (0: there is none), targets
            without a taxon, partitions, parameters.
        queries: reads or pairs, bases, classified, unclassified.
        calls_by_rank: queries called at each rank.
        dropped_targets: reference sequences that the coverage filter dropped.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``; empty
            where candidates were merged.
        gpu_memory: bytes planned per GPU, for the partitions; empty on the CPU.
    """

    SCHEMA = "ngsgpu.classify"
    sample: str
    database: dict[str, Any]
    queries: dict[str, Any] = field(default_factory=dict)
    calls_by_rank: dict[str, int] = field(default_factory=dict)
    dropped_targets: int = 0
    adapters: dict[str, Any] = field(default_factory=dict)
    gpu_memory: dict[str, int] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """A short text summary."""
        total, classified = self.queries["total"], self.queries["classified"]
        unit = "pairs" if self.queries["paired"] else "reads"
        ranks = ", ".join(f"{rank} {count:,}" for rank, count in self.calls_by_rank.items())
        share = 100 * classified / max(1, total)
        return [
            f"{self.sample}: {total:,} {unit}, {classified:,} classified ({share:.1f} %) "
            f"in {self.time_s['total']:.1f} s",
            *([f"{self.sample}: called at {ranks}"] if ranks else []),
        ]
