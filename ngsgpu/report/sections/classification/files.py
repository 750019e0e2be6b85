"""Reading what classification wrote of a sample: Kraken's report, abundances, coverage, species."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.numbers import decimal_number, whole_number
from ngsgpu.errors import InputError
from ngsgpu.evaluate.classification.result import SCHEMA, SCHEMA_VERSION
from ngsgpu.report.absent import is_present
from ngsgpu.report.files import numbered_lines, read_json
from ngsgpu.taxonomy.ranks import kraken_code

FILES = ("report", "abundance", "coverage", "evidence", "stats", "evaluation")
"""Kraken's report, tables of abundances, coverage and species, statistics, evaluation."""

_STATISTICS = ("ngsgpu.classify", 1)
_REMEDY = "make the file again with ngsgpu classify"
_DEEPEST: Final = 200
"""Ranks of a taxonomy below each other at most; NCBI's has fewer than 50."""


@dataclass(eq=False)
class Taxon:
    """A line of Kraken's report, and those below it.

    Attributes:
        name: scientific name.
        code: letter of the rank, with the steps below it (``S1``).
        clade: reads of the taxon and all below.
        direct: reads of the taxon itself.
        children: the taxa below, as in the report.
    """

    name: str
    code: str
    clade: int
    direct: int
    children: list[Taxon] = field(default_factory=list)

    def walk(self) -> Iterator[Taxon]:
        """Iterate over this taxon and all below it, in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class Composition:
    """A sample's report: the tree of classified reads, and the number of others."""

    root: Taxon
    unclassified: int

    @property
    def total(self) -> int:
        """All reads."""
        return self.root.clade + self.unclassified

    @property
    def species(self) -> list[Taxon]:
        """The species with reads, most reads first."""
        found = (taxon for taxon in self.root.walk() if taxon.code == "S" and taxon.clade)
        return sorted(found, key=lambda taxon: (-taxon.clade, taxon.name))


@dataclass(frozen=True)
class Share:
    """A line of the table of abundances."""

    taxid: int
    rank: str
    name: str
    reads: int


@dataclass(frozen=True, eq=False)
class TargetCoverage:
    """Where reads were mapped on a reference sequence.

    Attributes:
        target: name of the sequence.
        name: name of its species.
        length: bases.
        windows: all windows.
        covered: windows with reads.
        bin_bases: bases of a bin.
        bins: int64[n], reads of the windows of each bin, added up.
    """

    target: str
    name: str
    length: int
    windows: int
    covered: int
    bin_bases: int
    bins: NDArray[np.int64]


@dataclass(frozen=True)
class SpeciesEvidence:
    """A line of the table of species that reads look like.

    Attributes:
        name: of the species.
        called: rank that its reads are called at.
        note: why it is not present; empty if it is.
        reads: of it, as fitted.
        own: reads that only it explains.
        places: of 1,000 bases that these are in.
        identity: to the reference sequences.
        low: lower end of the interval of the identity.
        high: its upper end.
        ratio: logarithm, to base 10, of the likelihood with it by that without.
    """

    name: str
    called: str
    note: str
    reads: float
    own: int
    places: int
    identity: float
    low: float
    high: float
    ratio: float

    @property
    def is_finding(self) -> bool:
        """Whether it is present, or its sequence is, but in few places."""
        return not self.note or self.note in ("few places", "strays")


def read_composition(path: Path) -> Composition:
    """Read a report in Kraken's format, with or without minimiser columns.

    Raises:
        InputError: the file cannot be read or has an invalid line.
    """
    root = Taxon("root", "R", 0, 0)
    unclassified = 0
    above: list[Taxon] = []
    for number, line in numbered_lines(path, _REMEDY):
        fields = line.split("\t")
        try:
            clade, direct, taxid = (whole_number(fields[place]) for place in (1, 2, -2))
            code, name = kraken_code(fields[-3].strip(), taxid), fields[-1]
        except (IndexError, ValueError) as error:
            raise InputError(
                path, "this is not a line of a Kraken report", _REMEDY, line=number
            ) from error
        if code == "U":
            unclassified = clade
            continue
        depth = (len(name) - len(name.lstrip(" "))) // 2
        taxon = Taxon(name.strip(" "), code, clade, direct)
        if depth > min(len(above), _DEEPEST):
            raise InputError(path, "the name is indented too far", _REMEDY, line=number)
        del above[depth:]
        if depth == 0:
            root = taxon
        else:
            above[-1].children.append(taxon)
        above.append(taxon)
    return Composition(root, unclassified)


def read_shares(path: Path) -> list[Share]:
    """Read a table of abundances, without the unclassified reads; the first rank of several.

    Raises:
        InputError: the file cannot be read or has an invalid line.
    """
    shares = []
    rank = None
    for number, fields in _rows(path, "taxid"):
        try:
            taxid, reads = whole_number(fields[0]), whole_number(fields[3])
            share = Share(taxid, fields[1], fields[2], reads)
        except (IndexError, ValueError) as error:
            raise InputError(path, "this is not a taxon", _REMEDY, line=number) from error
        # Tables of earlier versions do not name it.
        own = fields[8] if len(fields) > 8 else ""
        rank = own if rank is None else rank
        if share.taxid != 0 and own == rank:
            shares.append(share)
    return shares


def read_coverage(path: Path) -> list[TargetCoverage]:
    """Read a table of coverage.

    Raises:
        InputError: the file cannot be read or has an invalid line.
    """
    found = []
    for number, fields in _rows(path, "target"):
        try:
            target, _, name, length, windows, covered, _, bin_bases, bins = fields
            counts = np.array([whole_number(count) for count in bins.split(",")], dtype=np.int64)
            bases, number, hit, each = map(whole_number, (length, windows, covered, bin_bases))
            found.append(TargetCoverage(target, name, bases, number, hit, each, counts))
        except (ValueError, OverflowError) as error:
            raise InputError(
                path, "this is not the coverage of a reference sequence", _REMEDY, line=number
            ) from error
    return found


def read_evidence(path: Path) -> list[SpeciesEvidence]:
    """Read a table of species that reads look like.

    Raises:
        InputError: the file cannot be read or has an invalid line.
    """
    found = []
    for number, fields in _rows(path, "taxid"):
        try:
            _, called, name, note, reads, own, places, _, *numbers = fields
            identity, low, high, ratio, _, _, _ = map(decimal_number, numbers)
            found.append(
                SpeciesEvidence(
                    name, called, note, decimal_number(reads), whole_number(own),
                    whole_number(places), identity, low, high, ratio,
                )
            )  # fmt: skip
        except ValueError as error:
            raise InputError(
                path, "this is not a species that reads look like", _REMEDY, line=number
            ) from error
    return found


def _rows(path: Path, first: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows of a table whose heading begins with a word."""
    for number, line in numbered_lines(path, _REMEDY):
        if number == 1:
            if not line.startswith(f"{first}\t"):
                raise InputError(path, f"column {first} is missing", _REMEDY, line=1)
        elif line:
            yield number, line.split("\t")


@dataclass(frozen=True, eq=False)
class Classification:
    """Results of a sample's classification with one database.

    Attributes:
        composition: counts by taxon.
        shares: abundances.
        coverage: reference sequences with reads.
        evidence: species that reads look like.
        evaluation: comparison with the truth (the JSON document).
        unit: unit of the counts, ``reads`` or ``pairs``.
    """

    composition: Composition | None = None
    shares: Sequence[Share] = ()
    coverage: Sequence[TargetCoverage] = ()
    evidence: Sequence[SpeciesEvidence] = ()
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    unit: str = "reads"


def collect_classification(
    database: str, files: Mapping[str, Path], missing: list[str]
) -> Classification:
    """Read the existing files of a sample and a database.

    Args:
        database: name of the database, empty if it has none.
        files: paths by the names of ``FILES``.
        missing: collects named files that do not exist.

    Raises:
        InputError: a file is damaged.
    """
    which = f"classification with {database}" if database else "classification"
    there = {
        name: path
        for name, path in files.items()
        if is_present(path, f"{name} of the {which}", missing)
    }
    stats = read_json(there["stats"], *_STATISTICS) if "stats" in there else {}
    queries = stats.get("queries")
    is_paired = isinstance(queries, dict) and queries.get("paired") is True
    evaluation: Mapping[str, Any] = {}
    if "evaluation" in there:
        evaluation = read_json(there["evaluation"], SCHEMA, SCHEMA_VERSION)
        check_evaluation(there["evaluation"], evaluation)
    return Classification(
        composition=read_composition(there["report"]) if "report" in there else None,
        shares=read_shares(there["abundance"]) if "abundance" in there else (),
        coverage=read_coverage(there["coverage"]) if "coverage" in there else (),
        evidence=read_evidence(there["evidence"]) if "evidence" in there else (),
        evaluation=evaluation,
        unit="pairs" if is_paired else "reads",
    )


def check_evaluation(path: Path, document: Mapping[str, Any]) -> None:
    """Check the runs of an evaluation.

    Raises:
        InputError: one is not as ``ngsgpu evaluate classification`` writes it.
    """
    runs = document.get("runs", [])
    if not isinstance(runs, list):
        raise InputError(path, "runs is not a list", "make the file again")
    for number, run in enumerate(runs):
        if not _is_run(run):
            cause = f"runs[{number}] is not the evaluation of a run"
            raise InputError(path, cause, "make the file again")


def _is_run(run: Any) -> bool:
    if not isinstance(run, dict) or not isinstance(run.get("name"), str):
        return False
    curve, abundance = run.get("curve", {"ranks": {}}), run.get("abundance")
    return (
        _have_rates(run.get("ranks"), _is_value)
        and isinstance(curve, dict)
        and _have_rates(curve.get("ranks"), _are_values)
        and ("curve" not in run or run["ranks"].keys() <= curve["ranks"].keys())
        and (not abundance or _are_shares(abundance))
    )


def _have_rates(ranks: Any, is_rate: Callable[[Any], bool]) -> bool:
    """Whether every rank has a precision and a sensitivity."""
    return isinstance(ranks, dict) and all(
        isinstance(rates, dict)
        and {"precision", "sensitivity"} <= rates.keys()
        and all(is_rate(rates.get(name)) for name in ("precision", "sensitivity"))
        and _is_value(rates.get("f1"))
        and (is_rate is _is_value or len(rates["precision"]) == len(rates["sensitivity"]))
        for rates in ranks.values()
    )


def _are_shares(abundance: Any) -> bool:
    """Whether an abundance has its sums, and taxa with shares."""
    if not isinstance(abundance, dict) or not isinstance(abundance.get("taxa"), list):
        return False
    sums = (abundance.get(name, "") for name in ("false_positives", "deviation"))
    return all(map(_is_value, sums)) and all(
        isinstance(taxon, dict)
        and isinstance(taxon.get("name"), str)
        and all(_is_number(taxon.get(name)) for name in ("expected", "observed"))
        for taxon in abundance["taxa"]
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < math.inf


def _is_value(value: Any) -> bool:
    return value is None or _is_number(value)


def _are_values(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_value, value))
