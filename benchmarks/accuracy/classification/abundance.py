"""Abundances of species in mixtures, beside Bracken and sylph.

The copies of genomes are lognormal (standard deviation 1.5). Judged are shares of genome copies
among the species that the database has, scaled to 1: the sum of the absolute differences (L1), and
species that are too many or missing.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.classification.genomes import Genome, deal, drawn_bases, sequences
from benchmarks.accuracy.classification.judging import distance
from benchmarks.accuracy.classification.programs import Kraken, Shares, has_sylph, scaled, sylph
from benchmarks.accuracy.classification.reads import PAIRS, Drawn, write_reads
from benchmarks.accuracy.classification.settings import Settings

SPREAD: Final = 1.5
LACKED: Final = ("species", "genus")


def run(settings: Settings) -> dict[str, Any]:
    """All programs on mixtures of all seeds and mean coverages."""
    library, mixtures = settings.library, []
    for seed in settings.seeds:
        roles, there = deal(library.genomes, seed)
        source = np.random.default_rng(2000 + seed)
        copies = source.lognormal(0.0, SPREAD, len(roles))
        folder = settings.work / "abundance" / f"seed{seed}"
        truth: Shares = defaultdict(float)
        bases = {}
        for (i, role), own in zip(roles.items(), copies.tolist(), strict=True):
            bases[i] = drawn_bases(library.genomes[i], role, source)
            if role not in LACKED:
                truth[library.genomes[i].species] += own
        for coverage in settings.coverages or [0.1, 1.0]:
            each = coverage / copies.mean() * copies / (PAIRS.length + PAIRS.mate)
            drawn = [
                Drawn(f"g{i}", own, int(source.poisson(rate * sum(map(len, own)))))
                for (i, own), rate in zip(bases.items(), each.tolist(), strict=True)
            ]
            reads = write_reads(drawn, PAIRS, seed, folder / f"{coverage:g}")
            found = {
                name: {**distance(scaled(shares), scaled(truth)), "sum": sum(shares.values())}
                for name, shares in abundances(settings, there, reads, folder).items()
            }
            mixtures.append({"seed": seed, "coverage": coverage, "programs": found})
    return {"mixtures": mixtures, "summary": summary(mixtures)}


def abundances(
    settings: Settings, there: list[Genome], reads: list[Any], folder: Any
) -> dict[str, Shares]:
    """Abundances by program."""
    found = {}
    for version in settings.versions:
        database = version.build(there, settings.library, folder)
        found[version.name] = version.classify(database, [("mixture", reads)])["mixture"][1]
    if settings.kraken and shutil.which("bracken"):
        kraken = Kraken(there, settings.library, folder)
        found["bracken"] = kraken.bracken(reads, PAIRS.length, genome_sizes(there))
    if has_sylph():
        found["sylph"] = sylph(there, reads)
    return found


def genome_sizes(there: list[Genome]) -> dict[int, int]:
    """Bases of a genome of each species, in the mean."""
    sizes = defaultdict(list)
    for own in there:
        sizes[own.species].append(sum(map(len, sequences(own.path))))
    return {species: sum(own) // len(own) for species, own in sizes.items()}


def summary(mixtures: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the mixtures of a coverage, by program."""
    rows = {}
    for coverage in {one["coverage"]: None for one in mixtures}:
        own = [one["programs"] for one in mixtures if one["coverage"] == coverage]
        for name in own[0]:
            cells = [one[name] for one in own]
            rows[f"{coverage:g} x, {name}"] = {
                "L1": round(sum(cell["l1"] for cell in cells) / len(cells), 3),
                "false": sum(cell["false"] for cell in cells),
                "missing": f"{sum(cell['missing'] for cell in cells)} of "
                f"{sum(cell['species'] for cell in cells)}",
                "mixtures": len(cells),
            }
    return rows
