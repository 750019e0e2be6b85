"""Samples of one strain whose own genome the database has: which other species are called."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from benchmarks.accuracy.classification.genomes import Genome, sequences
from benchmarks.accuracy.classification.judging import LEAST_SHARE, Judge
from benchmarks.accuracy.classification.programs import Calls, Kraken
from benchmarks.accuracy.classification.reads import PAIRS, Drawn, coverage_reads, write_reads
from benchmarks.accuracy.classification.settings import Settings
from ngsgpu.taxonomy.ranks import SPECIES

SEEDS: Final = {"choose": 10, "check": 110}


def run(settings: Settings) -> dict[str, Any]:
    """All programs on a sample of each genome."""
    library, folder = settings.library, settings.work / "pure"
    judge = Judge(library.tree)
    chosen = [own for own in library.genomes if settings.takes(own.path.name)]
    samples, of_sample = [], {}
    for number, genome in enumerate(chosen):
        for coverage in settings.coverages or [1.2]:
            bases = sequences(genome.path)
            drawn = Drawn("own", bases, coverage_reads(bases, coverage, PAIRS))
            name = f"{genome.path.name.partition('.')[0]}-{coverage:g}"
            seed = SEEDS["check" if settings.checks else "choose"] + number
            samples.append((name, write_reads([drawn], PAIRS, seed, folder / name)))
            of_sample[name] = genome
    found: dict[str, dict[str, Any]] = {name: {} for name in of_sample}
    for version in settings.versions:
        database = version.build(library.genomes, library, folder)
        for name, (calls, _) in version.classify(database, samples).items():
            found[name][version.name] = judged(calls, of_sample[name], judge)
    if settings.kraken:
        kraken = Kraken(library.genomes, library, folder)
        for confidence in settings.confidences:
            for name, reads in samples:
                calls = kraken.classify(reads, confidence)
                found[name][f"kraken2 {confidence:g}"] = judged(calls, of_sample[name], judge)
    told = {name: own for name, own in found.items() if any(one["others"] for one in own.values())}
    return {"samples with other species": told, "summary": summary(found)}


def judged(calls: Calls, genome: Genome, judge: Judge) -> dict[str, Any]:
    """Reads called as the species, as others, and the other species that are reported."""
    species = Counter(judge.taxa(calls, SPECIES))
    others = {taxid: reads for taxid, reads in species.items() if taxid not in (0, genome.species)}
    return {
        "reads": len(calls),
        "own": species[genome.species],
        "others": sum(others.values()),
        "reported": sorted(
            taxid for taxid, reads in others.items() if reads >= LEAST_SHARE * len(calls)
        ),
    }


def summary(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all samples, by program."""
    rows: dict[str, Any] = {}
    for name in next(iter(found.values())):
        own = [sample[name] for sample in found.values()]
        rows[name] = {
            "own, %": round(100 * sum(e["own"] for e in own) / sum(e["reads"] for e in own), 3),
            "others, %": round(
                100 * sum(e["others"] for e in own) / sum(e["reads"] for e in own), 4
            ),
            "most others, %": round(max(100 * e["others"] / e["reads"] for e in own), 3),
            "samples with another species": sum(bool(e["reported"]) for e in own),
            "samples": len(own),
        }
    return rows
