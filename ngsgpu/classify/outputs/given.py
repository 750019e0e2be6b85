"""What the makers of formats can take, by the names of their parameters; see `Format`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.abundance import Abundance, estimate_abundance, fitted_abundance
from ngsgpu.classify.call.model import SampleModel, Species
from ngsgpu.classify.call.results import CalledReads, SampleTotals
from ngsgpu.classify.database.targets import Labels
from ngsgpu.classify.outputs.tree import CountedTree, genome_sizes, tree_of
from ngsgpu.classify.params import OutputRules
from ngsgpu.classify.query.engine import Engine
from ngsgpu.taxonomy.ranks import rank_code
from ngsgpu.taxonomy.tree import Taxonomy


class LineMaker(Protocol):
    """Makes the lines of reads; threads share it."""

    def header(self) -> bytes:
        """What the file begins with."""

    def text(self, reads: CalledReads) -> NDArray[np.uint8]:
        """The lines of some reads, uint8."""


@dataclass(frozen=True, slots=True)
class ReadsGiven:
    """For formats of ``reads``.

    Attributes:
        labels: names of taxa and reference sequences.
        columns: column groups that the user chose; see ``ReadTableWriter``.
    """

    labels: Labels
    columns: tuple[str, ...]


class SampleGiven:
    """For formats of a ``sample``; what is not asked for is not computed.

    Args:
        engine: database and parameters.
        rules: rules for the outputs.
        totals: of the sample.
        model: of the sample; None: calls are not by the model.
    """

    def __init__(
        self,
        engine: Engine,
        rules: OutputRules,
        totals: SampleTotals,
        model: SampleModel | None,
    ) -> None:
        self._engine = engine
        self._rules = rules
        self._totals = totals
        self._model = model

    @property
    def sample(self) -> str:
        """The name."""
        return self._totals.name

    @property
    def labels(self) -> Labels:
        """Names of taxa and reference sequences."""
        return self._engine.labels

    @property
    def taxonomy(self) -> Taxonomy:
        """The tree of taxa."""
        return self._engine.taxonomy

    @property
    def window_reads(self) -> NDArray[np.int32]:
        """Reads by window of the reference sequences; see ``SampleTotals``."""
        return self._totals.window_reads

    @cached_property
    def tree(self) -> CountedTree:
        """Reads by taxon."""
        return tree_of(self.labels, self._totals)

    @cached_property
    def abundances(self) -> list[Abundance]:
        """Estimated abundances, at each rank that the user chose.

        By calls, reads of reference sequences without a taxon are no other taxon's: they stay
        unknown.
        """
        tree, labels, lineages = self.tree, self.labels, self._engine.lineages
        if self._model is not None:
            return [
                fitted_abundance(tree.taxonomy, self.species, rank_code(rank), tree.total, lineages,
                                 labels.node_of_target)
                for rank in dict.fromkeys(self._rules.abundance_ranks)
            ]  # fmt: skip
        others = int(self._totals.counts[labels.nodes :][labels.target_taxon < 0].sum())
        direct = tree.direct.copy()
        direct[tree.taxonomy.root] -= others
        found = [
            estimate_abundance(tree.taxonomy, direct, rank_code(rank), tree.unclassified, lineages)
            for rank in dict.fromkeys(self._rules.abundance_ranks)
        ]
        return [
            replace(own, left_over=own.left_over + others, unknown=own.unknown + others)
            for own in found
        ]

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Bases of genomes by taxon; see ``genome_sizes``."""
        return genome_sizes(self.labels, self._engine.database.targets.file)

    @cached_property
    def species(self) -> list[Species]:
        """The species that reads look like; none without the model."""
        return [] if self._model is None else self._model.species()


@dataclass(frozen=True, slots=True)
class SamplesGiven:
    """For formats of all ``samples``.

    Attributes:
        samples: names, and reads by taxon.
    """

    samples: list[tuple[str, CountedTree]]


COUNT_WINDOWS = frozenset({"window_reads"})
"""For these, reads are counted by window."""
