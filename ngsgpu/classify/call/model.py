"""The model of a sample: collects its reads, fits them, and says what was found."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.classes import ReadClasses, Rows, Sources
from ngsgpu.classify.call.fit import Fit, fit
from ngsgpu.classify.call.likelihood import STRAINS, Likelihoods, likelihoods
from ngsgpu.classify.call.posterior import Weights, genus_components, weights_of
from ngsgpu.classify.call.presence import PLACE, Genomes
from ngsgpu.classify.params import EvidenceParameters
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import QueryBlock
from ngsgpu.taxonomy.ranks import GENUS

_HALF: Final = 0.5


class Species(NamedTuple):
    """What was found of a source.

    Attributes:
        taxon: its call, see ``ngsgpu.classify.call.results``.
        note: why it is not present, empty if it is; see ``Presence.note``.
        reads: of its strains, as fitted.
        own: reads that only it explains.
        places: that these are in, of 1,000 bases.
        possible: places of a genome.
        identity: mean of its strains, or of relatives where there are none, to the references.
        low: lower end of the interval that holds it in 19 of 20 samples.
        high: its upper end.
        gain: logarithm (base 10) of the likelihood with it by that without.
        scatter: probability of so few places.
        relatives: reads of its genus, as fitted.
        distant: reads of its family, as fitted.
    """

    taxon: int
    note: str
    reads: float
    own: int
    places: int
    possible: float
    identity: float
    low: float
    high: float
    gain: float
    scatter: float
    relatives: float
    distant: float


class SampleModel:
    """Collects the reads of a sample, then fits them.

    Args:
        engine: the database.
        parameters: what counts as evidence.

    Attributes:
        classes: of the reads.
        ambiguous: reads whose list of candidates was cut off amid equals.
        fitted: after `fit`; None before.
    """

    def __init__(self, engine: Engine, parameters: EvidenceParameters) -> None:
        self._engine = engine
        taxon = engine.taxon_of_target
        self._taxa, numbers = np.unique(taxon, return_inverse=True)
        windows = engine.database.windows
        per_place = max(1, round(PLACE / engine.sketch.stride))
        places = -(-windows // per_place)
        first = np.concatenate([[0], np.cumsum(places)]).astype(np.int64)
        self.sources = Sources(numbers.reshape(-1).astype(np.int32), first, per_place)
        self.classes = ReadClasses(self.sources, self._likelihoods(parameters))
        self.ambiguous = 0
        self.fitted: Fit | None = None
        self._parameters = parameters

    def _likelihoods(self, parameters: EvidenceParameters) -> Likelihoods:
        sketch = self._engine.sketch
        return likelihoods(
            sketch.kmer, sketch.density, parameters.species_identity, parameters.errors
        )

    def rows(self, block: QueryBlock) -> Rows:
        """The classes of some reads; threads may do so at the same time."""
        return self.classes.rows(block.candidates, block.features)

    def add(self, block: QueryBlock, rows: Rows) -> None:
        """Add reads; threads may not add at the same time."""
        best = block.candidates
        self.ambiguous += int(((best.hits[:, 0] >= 2) & (rows.hashes == 0)).sum())
        self.classes.add(best, rows)

    def fit(self, parameters: EvidenceParameters) -> Weights:
        """Fit the reads.

        Args:
            parameters: as before, but that the errors of the reads may be known now.
        """
        self._parameters = parameters
        rows = self.classes.sorted()
        self.fitted = fit(rows, self._genomes(), self._likelihoods(parameters), parameters)
        return weights_of(self.fitted, self.sources, self._genus(), parameters)

    def _genomes(self) -> Genomes:
        engine, count = self._engine, len(self._taxa)
        source, length = self.sources.of_target, engine.database.targets.length
        sizes = _genome_bases(source, engine.database.targets.file, length, count)
        first = self.sources.first_place
        sums = np.concatenate([[0], np.cumsum(self.classes.marks, dtype=np.int64)])
        marked = np.bincount(source, sums[first[1:]] - sums[first[:-1]], count).astype(np.int64)
        return Genomes(
            sizes / (self.sources.per_place * engine.sketch.stride),
            self.classes.own,
            marked,
        )

    def _genus(self) -> NDArray[np.int32]:
        """Taxon of each source's genus, int32[sources]; -1 without one."""
        nodes = len(self._engine.taxonomy)
        known = np.where(self._taxa < nodes, self._taxa, 0)
        genus = self._engine.lineages[known, GENUS]
        return np.where(self._taxa < nodes, genus, np.int32(-1)).astype(np.int32)

    def species(self) -> list[Species]:
        """What was found of each source with reads, most reads first."""
        fitted = self.fitted
        assert fitted is not None
        judged, table = fitted.judged, fitted.likelihoods
        scale, genus = fitted.reads + self.ambiguous, genus_components(fitted, self._genus())
        places = self._genomes().places
        found = []
        for at, source in enumerate(fitted.sources.tolist()):
            shares = fitted.shares[at]
            kinds = [
                float(part.sum()) * scale
                for part in np.split(shares, [STRAINS, STRAINS + genus[at]])
            ]
            part = slice(None, STRAINS) if kinds[0] > _HALF else slice(STRAINS, None)
            weight = max(float(shares[part].sum()), 1e-300)
            mean = float(shares[part] @ table.divergence[part]) / weight
            spread = float(shares[part] @ (table.divergence[part] - mean) ** 2) / weight
            reads = max(weight * scale, 1.0)
            # Divergence varies along a genome as much as it is.
            error = 2 * ((spread + mean * mean / 2 + 1e-6) / reads) ** 0.5
            found.append(
                Species(
                    taxon=int(self._taxa[source]), note=judged.note(at), reads=kinds[0],
                    own=int(judged.own[at]), places=int(judged.places[at]),
                    possible=float(places[source]), identity=1 - mean,
                    low=max(1 - mean - error, 0.0), high=min(1 - mean + error, 1.0),
                    gain=float(judged.gain[at]) / float(np.log(10)),
                    scatter=float(judged.scatter[at]), relatives=kinds[1], distant=kinds[2],
                )
            )  # fmt: skip
        return sorted(found, key=lambda own: (-own.reads, -own.relatives - own.distant, own.taxon))


def _genome_bases(
    source: NDArray[np.int32], file: NDArray[np.int32], length: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Mean bases of a genome of each source, float64[sources].

    What one file has of a source are as many genomes as it has sequences at least half as long as
    the longest.
    """
    key = source.astype(np.int64) * (int(file.max(initial=0)) + 1) + file
    groups, of_target = np.unique(key, return_inverse=True)
    longest = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(longest, of_target, length)
    genomes = np.bincount(of_target, 2 * length >= longest[of_target], len(groups))
    bases = np.bincount(of_target, length, len(groups)) / np.maximum(genomes, 1)
    of_source = groups // (int(file.max(initial=0)) + 1)
    total = np.bincount(of_source, minlength=count)
    return np.asarray(np.bincount(of_source, bases, count) / np.maximum(total, 1))
