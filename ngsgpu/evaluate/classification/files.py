"""Compare calls of reads with the truth, at every rank, and abundances with the composition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.numbers import decimal_number, is_digits
from ngsgpu.errors import InputError
from ngsgpu.evaluate.classification.composition import deviation, profile_distances
from ngsgpu.evaluate.classification.result import ClassificationEvaluation, RankCounts, Run
from ngsgpu.evaluate.classification.tally import Tally, read_tally
from ngsgpu.evaluate.truth.lines import cut_lines
from ngsgpu.evaluate.truth.origins import UNKNOWN, Origins, read_origins
from ngsgpu.io.text.lines import read_line_blocks
from ngsgpu.taxonomy.ranks import RANKS
from ngsgpu.taxonomy.tree import Taxonomy, stated_taxid

DEFAULT_RANKS: Final = ("species", "genus", "family", "order", "class", "phylum", "domain")
_REMEDY: Final = "give a table of two columns with a tab between"


def evaluate_classification(
    classified: Sequence[tuple[str, str | Path]],
    taxonomy: Taxonomy,
    *,
    truth: str | Path | None = None,
    references: str | Path | None = None,
    composition: str | Path | None = None,
    ranks: Sequence[str] = DEFAULT_RANKS,
    abundance_rank: str = "species",
) -> ClassificationEvaluation:
    """Compare the calls of one or more classifiers with the truth.

    Args:
        classified: name and file of each; see ``calls`` for the formats.
        taxonomy: the tree.
        truth: the true taxa of reads; see ``origins``.
        references: name and taxid of the reference sequences, in the format of ``ngsgpu db build
            --map``, or the database. Without it every taxon of the taxonomy counts as represented.
        composition: taxid and fraction of the sample's composition; without it the truth's reads
            are counted.
        ranks: ranks to evaluate.
        abundance_rank: rank of the abundances.

    Raises:
        InputError: a file cannot be used.
    """
    origins = None if truth is None else read_origins(truth, taxonomy)
    sequences = {} if references is None else read_references(references)
    ranked = taxonomy.ranked_lineages()
    represented = _represented(taxonomy, ranked, sequences if references is not None else None)
    expected = None if composition is None else read_composition(composition)
    runs = []
    for name, path in classified:
        tally = read_tally(path, taxonomy, origins, sequences)
        origin, node, _, reads = tally.rows.T
        by_rank, curve = _outcomes(tally, ranked, represented, origins, ranks)
        run = Run(
            name=name,
            program=tally.program,
            reads=int(reads.sum()),
            unclassified=int(reads[node == -1].sum()),
            without_truth=int(reads[origin < 0].sum()) if origins is not None else 0,
            ranks=by_rank,
            curve=curve,
            abundance=deviation(tally, taxonomy, ranked, origins, expected, abundance_rank),
            profile=profile_distances(tally, ranked, origins, ranks),
        )
        runs.append(run)
    return ClassificationEvaluation(tuple(runs))


def _represented(
    taxonomy: Taxonomy, ranked: NDArray[np.int32], references: Mapping[str, int] | None
) -> NDArray[np.bool_]:
    """Mask of the nodes with a reference sequence at or below them, bool[n]."""
    if references is None:
        return np.ones(len(taxonomy), dtype=np.bool_)
    found = np.zeros(len(taxonomy), dtype=np.bool_)
    nodes = taxonomy.indices_of(np.array(sorted(set(references.values())), dtype=np.int64))
    nodes = nodes[nodes >= 0]
    found[nodes] = True
    above = ranked[nodes]
    found[above[above >= 0]] = True
    return found


def _outcomes(
    tally: Tally,
    ranked: NDArray[np.int32],
    represented: NDArray[np.bool_],
    origins: Origins | None,
    ranks: Sequence[str],
) -> tuple[dict[str, RankCounts], dict[int, dict[str, RankCounts]]]:
    """Outcomes by rank, and for thresholds of the score where there are scores."""
    if origins is None:
        return {}, {}
    rows = tally.rows[tally.rows[:, 0] >= 0]
    judges = {rank: _Judge(RANKS.index(rank), rows, ranked, represented, origins) for rank in ranks}
    steps = _thresholds(rows[rows[:, 1] != -1, 2]) if tally.has_scores else []

    def counted(least: int) -> dict[str, RankCounts]:
        return {rank: judge.counts(least) for rank, judge in judges.items()}

    return counted(0), {step: counted(step) for step in steps}


_MAX_STEPS: Final = 64


def _thresholds(scores: NDArray[np.int64]) -> list[int]:
    """Numbers of hits at which the curve is drawn: all that occur, thinned out evenly."""
    steps = np.unique(scores)
    if len(steps) > _MAX_STEPS:
        steps = steps[np.linspace(0, len(steps) - 1, _MAX_STEPS).round().astype(np.int64)]
    return [int(step) for step in steps]


class _Judge:
    """Outcomes at one rank."""

    def __init__(
        self,
        rank: int,
        rows: NDArray[np.int64],
        ranked: NDArray[np.int32],
        represented: NDArray[np.bool_],
        origins: Origins,
    ) -> None:
        origin, node, self._score, self._reads = rows.T
        truth = origins.lineage[origin, rank]
        called = np.where(node >= 0, ranked[np.maximum(node, 0), rank], node)
        self._is_known = truth != UNKNOWN
        self._is_represented = (truth >= 0) & represented[np.maximum(truth, 0)]
        self._is_called = called != -1
        self._is_right = (called == truth) & (truth >= 0)

    def counts(self, least: int) -> RankCounts:
        """Outcomes if reads of fewer than ``least`` hits were not called."""
        called = self._is_called & (self._score >= least)
        known, represented = self._is_known, self._is_represented

        def number(which: NDArray[np.bool_]) -> int:
            return int(self._reads[which].sum())

        return RankCounts(
            tp=number(known & called & self._is_right),
            fp=number(known & called & ~self._is_right),
            fn=number(known & ~called & represented),
            tn=number(known & ~called & ~represented),
            represented=number(known & represented),
            unknown=number(~known),
        )


def read_references(path: str | Path) -> dict[str, int]:
    """Taxids of reference sequences by name, from a table of names and taxids, or a database.

    Raises:
        InputError: the file, or database, cannot be read; a line has no taxid.
    """
    if Path(path).is_dir():
        return _targets_of(path)
    taxids: dict[str, int] = {}
    for name, value in _pairs(path, "a name and a taxid", stated_taxid):
        if taxids.setdefault(name, int(value)) != value:
            both = f"{taxids[name]} and {int(value)}"
            raise InputError(path, f"{name} has two taxids, {both}", "remove one of the lines")
    return taxids


def _targets_of(database: str | Path) -> dict[str, int]:
    """Taxids of a database's sequences by name, of those that have a taxon."""
    from ngsgpu.classify.database.database import open_database

    opened = open_database(database)
    if opened.taxonomy is None:
        return {}
    node, taxid = opened.targets.node, opened.taxonomy.taxid
    return {
        opened.targets.name(target): int(taxid[node[target]])
        for target in np.flatnonzero(node >= 0).tolist()
    }


def read_composition(path: str | Path) -> dict[int, float]:
    """Shares by taxid, from a table of taxids and shares (parts of 1, or per cent if above it).

    Raises:
        InputError: the file cannot be read; a line has no taxid or no share.
    """
    shares: dict[int, float] = {}
    for taxid, share in _pairs(path, "a taxid and a fraction", decimal_number):
        if not is_digits(taxid) or share < 0:
            raise InputError(path, f"{taxid!r} {share:g} is not a taxid and a fraction", _REMEDY)
        shares[int(taxid)] = shares.get(int(taxid), 0.0) + share
    scale = 100.0 if sum(shares.values()) > 1.5 else 1.0
    return {taxid: share / scale for taxid, share in shares.items()}


def _pairs(
    path: str | Path, what: str, number: Callable[[str], float]
) -> Iterator[tuple[str, float]]:
    """Name and number of each line; a first line whose number is none is taken for a heading."""
    is_first = True
    for block in read_line_blocks(path):
        lines = cut_lines(block, 0, name=0, values=())
        for row in range(len(lines)):
            fields = lines.fields(row)
            try:
                yield fields[0].strip(), number(fields[1])
            except (IndexError, ValueError) as error:
                if not is_first:
                    line = block.line_number(int(lines.line[row]))
                    raise InputError(path, f"the line is not {what}", _REMEDY, line=line) from error
            is_first = False
