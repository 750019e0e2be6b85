"""Kraken-style reports of several samples, read back as counts on one tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from ngsgpu.classify.outputs.tree import MAIN_CODES, CountedTree, count_tree
from ngsgpu.declared.numbers import whole_number
from ngsgpu.errors import InputError, UsageError, unreadable
from ngsgpu.io.text.lines import text_lines
from ngsgpu.taxonomy.ranks import NO_RANK, RANK_CODES, ROOT, kraken_code
from ngsgpu.taxonomy.tree import Taxonomy, root_only

_RANK_OF_CODE: Final = {code: RANK_CODES[rank] for rank, code in MAIN_CODES.items()}
_ENDINGS: Final = re.compile(r"(\.(kraken2?|report|kreport2?|txt|tsv))+$")
_LARGEST: Final = 2**48
_REMEDY: Final = "give a report of `ngsgpu classify --report` or of Kraken"


@dataclass(frozen=True, slots=True)
class _Taxon:
    """A taxon of a report; the root is its own parent."""

    parent: int
    rank: int
    name: str


@dataclass(slots=True)
class SampleReport:
    """A report's contents.

    Attributes:
        sample: name of the sample.
        path: the file.
        taxa: by taxid, each after its parent.
        direct: reads by taxid, called as the taxon itself.
        unclassified: reads without a call; None: no line states them.
    """

    sample: str
    path: Path
    taxa: dict[int, _Taxon] = field(default_factory=dict)
    direct: dict[int, int] = field(default_factory=dict)
    unclassified: int | None = None


def sample_of_report(path: str | Path) -> str:
    """A sample's name from that of its report: ``S`` from ``S.kraken2.report.txt``."""
    return _ENDINGS.sub("", Path(path).name)


def read_report(path: str | Path) -> SampleReport:
    """Read a report of six columns, or of eight with Kraken 2's counts of minimizers.

    Raises:
        InputError: it cannot be read or is not a report.
    """
    report = SampleReport(sample_of_report(path), Path(path))
    above: list[int] = []
    for number, (direct, code, taxid, name) in _lines(report.path):
        if code == "U":
            report.unclassified = (report.unclassified or 0) + direct
            continue
        depth = (len(name) - len(name.lstrip(" "))) // 2
        if depth > len(above) or (depth == 0) != (not report.taxa) or taxid in report.taxa:
            raise InputError(path, "its lines form no tree", _REMEDY, line=number)
        del above[depth:]
        rank = _RANK_OF_CODE.get(kraken_code(code, taxid), NO_RANK) if above else ROOT
        report.taxa[taxid] = _Taxon(above[-1] if above else taxid, rank, name.strip(" "))
        report.direct[taxid] = direct
        above.append(taxid)
    return report


def _lines(path: Path) -> Iterator[tuple[int, tuple[int, str, int, str]]]:
    """Line numbers, with the reads of the taxon itself, its rank code, taxid and indented name."""
    try:
        lines = text_lines(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise InputError(path, "it is not UTF-8 text", _REMEDY) from error
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        try:
            if len(fields) not in (6, 8):
                raise ValueError
            direct, taxid = whole_number(fields[2]), whole_number(fields[-2])
            if not (0 <= direct <= _LARGEST and 0 <= taxid <= _LARGEST):
                raise ValueError
        except ValueError:
            raise InputError(
                path, "it is not a line of a Kraken report", _REMEDY, line=number
            ) from None
        yield number, (direct, fields[-3].strip(), taxid, fields[-1])


def read_trees(paths: Sequence[str | Path]) -> list[tuple[str, CountedTree]]:
    """Read reports of one taxonomy; samples' names and counts, all on the same tree.

    The tree has the taxa of all reports. Only the main ranks are known; others are no ranks.

    Raises:
        InputError: a report cannot be read, or two of them place a taxon differently.
        UsageError: two reports are of samples with one name.
    """
    reports = [read_report(path) for path in paths]
    by_name: dict[str, Path] = {}
    for report in reports:
        other = by_name.setdefault(report.sample, report.path)
        if other is not report.path:
            raise UsageError(
                f"{other} and {report.path} both belong to sample '{report.sample}'; samples are "
                "named after their files: rename one"
            )
    taxonomy = _taxonomy(reports)
    return [(report.sample, _counted(taxonomy, report)) for report in reports]


def _counted(taxonomy: Taxonomy, report: SampleReport) -> CountedTree:
    direct = np.zeros(len(taxonomy), dtype=np.int64)
    nodes = taxonomy.indices_of(list(report.direct))
    direct[nodes] = list(report.direct.values())
    tree = count_tree(taxonomy, direct, report.unclassified or 0)
    return replace(tree, states_unclassified=report.unclassified is not None)


def _taxonomy(reports: Sequence[SampleReport]) -> Taxonomy:
    """The tree of all reports' taxa."""
    taxa: dict[int, _Taxon] = {}
    for report in reports:
        for taxid, taxon in report.taxa.items():
            known = taxa.setdefault(taxid, taxon)
            if (known.parent, known.rank) != (taxon.parent, taxon.rank):
                raise InputError(
                    report.path,
                    f"taxon {taxid} ({taxon.name}) has another place in the tree than in the "
                    "reports before",
                    "merge reports that were made with one taxonomy",
                )
    roots = [taxid for taxid, taxon in taxa.items() if taxon.parent == taxid]
    if not roots:
        return root_only()
    if len(roots) > 1:
        raise InputError(
            reports[-1].path,
            f"the reports have different roots ({', '.join(map(str, roots))})",
            "merge reports that were made with one taxonomy",
        )
    taxids = sorted(taxa)
    number = {taxid: node for node, taxid in enumerate(taxids)}
    names = [taxa[taxid].name.encode() for taxid in taxids]
    return Taxonomy(
        taxid=np.array(taxids, dtype=np.int64),
        parent=np.array([number[taxa[taxid].parent] for taxid in taxids], dtype=np.int32),
        rank=np.array([taxa[taxid].rank for taxid in taxids], dtype=np.uint8),
        name_bytes=np.frombuffer(b"".join(names), dtype=np.uint8),
        name_start=np.cumsum([0, *map(len, names)]).astype(np.int64),
        merged_taxid=np.zeros(0, dtype=np.int64),
        merged_index=np.zeros(0, dtype=np.int32),
    )
