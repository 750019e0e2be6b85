"""Reading the files that a report is made from; each says clearly when one is damaged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A k-mer histogram.

    Attributes:
        k: length of the k-mers; 0 when the file does not say.
        sampled: share of the k-mers that was counted, 1 for all.
        multiplicity: int64 [n], ascending.
        count: int64 [n], distinct k-mers that occur so often.
    """

    k: int
    sampled: float
    multiplicity: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def once(self) -> int:
        """Distinct k-mers that occur once; errors, nearly all of them, where coverage is high."""
        return int(self.count[self.multiplicity == 1].sum())


@dataclass(frozen=True)
class Quast:
    """QUAST's metrics of one or several assemblies.

    Attributes:
        metrics: metric to assembly (``raw``, ``corrected``) to the text in QUAST's table.
    """

    metrics: dict[str, dict[str, str]]

    def number(self, metric: str, assembly: str) -> float | None:
        """A metric as a number; ``None`` where it is missing or not one."""
        text = self.metrics.get(metric, {}).get(assembly, "-")
        try:
            value = float(text.split(" ")[0])
        except ValueError:
            return None
        return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Benchmark:
    """What a rule took, over all its jobs for a sample.

    Attributes:
        jobs: number of jobs.
        seconds: wall time, summed over jobs; ``None`` if no file has it.
        cpu_seconds: CPU time, summed.
        max_rss_mib: largest resident memory of any job, in MiB.
    """

    jobs: int
    seconds: float | None
    cpu_seconds: float | None
    max_rss_mib: float | None


def numbered_lines(path: Path, remedy: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, read at once."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(path, error.strerror or str(error), "check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(path, "it is not UTF-8 text", remedy) from error
    return iter(enumerate(text.splitlines(), 1))


def read_spectrum(path: Path) -> Spectrum:
    """Read a histogram as ``ngsgpu kmers`` writes it: ``# k=21 sampled=1/16``, header, two columns.

    Raises:
        InputError: the file cannot be read or a line is not what it should be.
    """
    remedy = "make the histogram again with ngsgpu kmers"
    k, sampled = 0, 1.0
    rows: list[tuple[int, int]] = []
    for number, line in numbered_lines(path, remedy):
        if line.startswith("#"):
            words = dict(word.split("=", 1) for word in line[1:].split() if "=" in word)
            try:
                k = int(words.get("k", k))
                part, _, whole = words.get("sampled", "1").partition("/")
                sampled = int(part) / int(whole or 1)
            except (ValueError, ZeroDivisionError) as error:
                raise InputError(path, "the comment is damaged", remedy, line=number) from error
        elif line and line != "multiplicity\tcount":
            try:
                multiplicity, count = (int(cell) for cell in line.split("\t"))
            except ValueError as error:
                cause = "this is not a multiplicity and a count"
                raise InputError(path, cause, remedy, line=number) from error
            if multiplicity < 1 or count < 0 or (rows and multiplicity <= rows[-1][0]):
                raise InputError(path, "multiplicities have to ascend", remedy, line=number)
            rows.append((multiplicity, count))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Spectrum(k, sampled, table[:, 0], table[:, 1])


def read_contig_lengths(path: Path) -> NDArray[np.int64]:
    """Lengths of the sequences of a FASTA file, longest first.

    Raises:
        InputError: the file cannot be read or does not start with a header.
    """
    lengths: list[int] = []
    for number, line in numbered_lines(path, "run the assembly again"):
        if line.startswith(">"):
            lengths.append(0)
        elif lengths:
            lengths[-1] += len(line.strip())
        elif line.strip():
            raise InputError(path, "this is not FASTA", "run the assembly again", line=number)
    return np.sort(np.array(lengths, dtype=np.int64))[::-1]


def read_quast(path: Path) -> Quast:
    """Read QUAST's ``report.tsv``, or the transposed one: one column or one row an assembly.

    Assemblies are told apart by ``raw`` and ``corrected`` in their names.

    Raises:
        InputError: the file cannot be read or is not such a table.
    """
    remedy = "run QUAST again"
    rows = [line.split("\t") for _, line in numbered_lines(path, remedy) if line]
    if not rows or rows[0][0] != "Assembly":
        raise InputError(path, "it is not a report.tsv of QUAST", remedy, line=1)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(path, f"the line has {len(row)} cells", remedy, line=number)
    if any(name.startswith("# contigs") for name in rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    names = [_assembly(name) for name in rows[0][1:]]
    if len(set(names)) != len(names):
        cause = "its assemblies cannot be told apart by 'raw' and 'corrected' in their names"
        raise InputError(path, cause, "label them so (quast.py --labels raw,corrected)")
    return Quast({row[0]: dict(zip(names, row[1:], strict=True)) for row in rows[1:]})


def _assembly(name: str) -> str:
    lowered = name.lower()
    if "uncorrected" in lowered or "raw" in lowered:
        return "raw"
    return "corrected" if "corrected" in lowered else name


def join_quast(reports: dict[str, Quast]) -> Quast:
    """One table from reports of one assembly each, whatever QUAST called them.

    Args:
        reports: assembly (``raw``, ``corrected``) to its report.
    """
    metrics: dict[str, dict[str, str]] = {}
    for assembly, report in reports.items():
        for metric, values in report.metrics.items():
            metrics.setdefault(metric, {})[assembly] = next(iter(values.values()), "-")
    return Quast(metrics)


def read_benchmarks(paths: tuple[Path, ...]) -> Benchmark:
    """Read Snakemake's benchmark files of the jobs of one rule and add them up.

    Of repeated measurements (``repeat``) the first counts. Values that Snakemake could not take
    (``-``, ``NA``) count as missing.

    Raises:
        InputError: a file cannot be read or is not such a table.
    """
    rows = [_read_benchmark(path) for path in paths]

    def values(name: str) -> list[float]:
        return [row[name] for row in rows if name in row]

    seconds, cpu, rss = values("s"), values("cpu_time"), values("max_rss")
    return Benchmark(
        jobs=len(rows),
        seconds=sum(seconds) if seconds else None,
        cpu_seconds=sum(cpu) if cpu else None,
        max_rss_mib=max(rss) if rss else None,
    )


def _read_benchmark(path: Path) -> dict[str, float]:
    remedy = "run the rule again"
    rows = [line.split("\t") for _, line in numbered_lines(path, remedy) if line]
    if len(rows) < 2 or rows[0][0] != "s" or len(rows[0]) != len(rows[1]):
        raise InputError(path, "it is not a benchmark file of Snakemake", remedy, line=1)
    found = {}
    for name, cell in zip(rows[0], rows[1], strict=True):
        if name not in ("s", "max_rss", "cpu_time") or cell in ("-", "NA", ""):
            continue
        try:
            found[name] = float(cell)
        except ValueError as error:
            raise InputError(path, f"{name} is not a number: {cell}", remedy, line=2) from error
    return found
