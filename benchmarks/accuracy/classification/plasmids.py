"""Two species share a plasmid whose records begin at different bases; the sample is of one."""

from __future__ import annotations

import gzip
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.classification.genomes import ACGT, Bases, Genome, Library, records_of
from benchmarks.accuracy.classification.judging import Judge
from benchmarks.accuracy.classification.programs import Calls, Kraken
from benchmarks.accuracy.classification.reads import PAIRS, Drawn, write_reads
from benchmarks.accuracy.classification.settings import Settings
from ngsgpu.taxonomy.ranks import SPECIES

PLASMID: Final = 6000
OWN: Final = "escherichia_coli__K_12"
OTHER: Final = "salmonella_enterica"
PAIRS_OF_PLASMID: Final = 300
PAIRS_OF_GENOME: Final = 3000
STEP: Final = 9
"""Bases from a phase to the next; windows begin 112 apart."""


def run(settings: Settings) -> dict[str, Any]:
    """All programs, at every phase of the other record."""
    library = settings.library
    own, other = (
        next(one for one in library.genomes if one.path.name.startswith(name))
        for name in (OWN, OTHER)
    )
    seed = 120 if settings.checks else 20
    source = np.random.default_rng(seed)
    plasmid = ACGT[source.integers(0, 4, PLASMID)]
    reads = write_reads(
        [
            Drawn("genome", [bases for _, bases in records_of(own.path)], PAIRS_OF_GENOME),
            Drawn("plasmid", [np.concatenate([plasmid, plasmid[:400]])], PAIRS_OF_PLASMID),
        ],
        PAIRS, seed, settings.work / "plasmids" / f"reads{seed}",
    )  # fmt: skip
    judge = Judge(library.tree)
    phases: dict[int, dict[str, Any]] = {}
    for phase in range(0, 112, settings.step or STEP):
        folder = settings.work / "plasmids" / f"{seed}-{phase}"
        folder.mkdir(parents=True, exist_ok=True)
        records = {own: plasmid, other: np.roll(plasmid, phase)}
        genomes, here = with_plasmid(library, records, folder)
        found = phases[phase] = {}
        for version in settings.versions:
            database = version.build(genomes, here, folder)
            calls, _ = version.classify(database, [("sample", reads)])["sample"]
            found[version.name] = judged(calls, own.species, judge)
        if settings.kraken and phase == 0:
            kraken = Kraken(genomes, here, folder)
            for confidence in settings.confidences:
                calls = kraken.classify(reads, confidence)
                found[f"kraken2 {confidence:g}"] = judged(calls, own.species, judge)
    return {"phases": phases, "summary": summary(phases)}


def with_plasmid(
    library: Library, plasmids: dict[Genome, Bases], folder: Any
) -> tuple[list[Genome], Library]:
    """Genomes with a record more, and their map of taxa."""
    rows = [library.map.read_text().rstrip("\n")]
    genomes = []
    for genome, plasmid in plasmids.items():
        name = f"plasmid{genome.species}"
        path = folder / f"{genome.species}.fna.gz"
        records = [*records_of(genome.path), (name, plasmid)]
        lines = [b">%b\n%b\n" % (own.encode(), bases.tobytes()) for own, bases in records]
        path.write_bytes(gzip.compress(b"".join(lines), 1))
        genomes.append(Genome(path, (*genome.names, name), genome.species, genome.genus))
        rows.append(f"{name}\t{genome.species}")
    table = folder / "map.tsv"
    table.write_text("\n".join(rows) + "\n")
    return genomes, Library(tuple(genomes), library.taxonomy, table, library.tree)


def judged(calls: Calls, species: int, judge: Judge) -> dict[str, int]:
    """Pairs of the plasmid called as the species, as another one, above it, and not."""
    own = [call for call in calls if call[0].startswith("plasmid")]
    taxa = judge.taxa(own, SPECIES)
    called = sum(taxid > 0 for _, taxid in own)
    elsewhere = judge.taxa([call for call in calls if call not in own], SPECIES)
    return {
        "own": taxa.count(species),
        "other": sum(taxon not in (0, species) for taxon in taxa),
        "above": called - sum(taxon > 0 for taxon in taxa),
        "none": len(own) - called,
        "other of the genome": sum(taxon not in (0, species) for taxon in elsewhere),
    }


def summary(phases: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Over all phases, by program."""
    rows = {}
    for name in phases[0]:
        own = [found[name] for found in phases.values() if name in found]
        sums = {key: sum(one[key] for one in own) for key in own[0]}
        rows[name] = {**sums, "most other at a phase": max(one["other"] for one in own)}
    return rows
