"""Sausages of synthetic genomes of related species (Kobus 2022, chapter 7), scaled down.

31 species of several families, 1 to 10 % from their relatives, have genomes of ``--genome-bases``
bases with repeats. A sausage has some of them at 0.5 to 70 % of the reads, by their bases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.classification.genomes import Genome, Library, sequences
from benchmarks.accuracy.classification.judging import Judge
from benchmarks.accuracy.classification.programs import Kraken
from benchmarks.accuracy.classification.reads import Drawn, Kind, write_reads
from benchmarks.accuracy.classification.settings import Settings
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.ranks import SPECIES
from scripts.synthetic_genome import Family, build_genome, diverge, write_fasta

FAMILIES: Final = (4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 1, 1)
"""Species of each."""
RANGE: Final = (0.01, 0.10)
"""Divergence of a species from the ancestor of its family."""
REPEATS: Final = ((300, 0.1, 0.1), (6000, 0.1, 0.05))
"""Of a genome: length, share of the bases, divergence."""
SHARES: Final = (
    {0: 0.70, 4: 0.25, 8: 0.04, 11: 0.005, 1: 0.005},
    {4: 0.60, 5: 0.30, 20: 0.09, 28: 0.01},
    {2: 0.505, 15: 0.47, 18: 0.02, 23: 0.005},
)
"""Of the species in each sausage."""
READS: Final = 20_000
KIND: Final = Kind(100, 0, 0.003)


def run(settings: Settings) -> dict[str, Any]:
    """All programs on all sausages."""
    seed = 130 if settings.checks else 30
    folder = settings.work / "food" / f"{seed}-{settings.genome_bases}"
    library = make_library(settings.genome_bases, seed, folder)
    judge = Judge(library.tree)
    samples = []
    for number, shares in enumerate(SHARES):
        drawn = [
            Drawn(f"s{i}", sequences(library.genomes[i].path), round(share * READS))
            for i, share in shares.items()
        ]
        samples.append(
            (f"sausage{number}", write_reads(drawn, KIND, seed + number, folder / f"r{number}"))
        )
    calls: dict[str, Any] = {}
    for version in settings.versions:
        database = version.build(library.genomes, library, folder)
        found = version.classify(database, samples)
        calls[version.name] = {name: own for name, (own, _) in found.items()}
    if settings.kraken:
        kraken = Kraken(library.genomes, library, folder)
        for confidence in settings.confidences:
            calls[f"kraken2 {confidence:g}"] = {
                name: kraken.classify(reads, confidence) for name, reads in samples
            }
    results = {
        name: [
            judged(judge.taxa(own, SPECIES), library, shares)
            for own, shares in zip(by_sample.values(), SHARES, strict=True)
        ]
        for name, by_sample in calls.items()
    }
    return {"results": results, "summary": summary(results)}


def make_library(bases: int, seed: int, folder: Path) -> Library:
    """The genomes, a file each, and their taxonomy."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    nodes = ["1\t|\t1\t|\tno rank\t|", "2\t|\t1\t|\tdomain\t|"]
    rows: list[str] = []
    genomes: list[Genome] = []
    repeats = [
        Family(length, max(1, int(bases * share / length)), divergence)
        for length, share, divergence in REPEATS
        if length < bases // 20
    ]
    for family, count in enumerate(FAMILIES):
        genus = 100 + family
        nodes.append(f"{genus}\t|\t2\t|\tgenus\t|")
        ancestor, _ = build_genome(bases, seed * 1000 + family, 0.41, repeats)
        for _ in range(count):
            species = 1000 + len(genomes)
            nodes.append(f"{species}\t|\t{genus}\t|\tspecies\t|")
            path, name = folder / f"s{species}.fna", f"chr{species}"
            write_fasta(path, name, diverge(rng, ancestor, rng.uniform(*RANGE)))
            rows.append(f"{name}\t{species}")
            genomes.append(Genome(path, (name,), species, genus))
    taxonomy = folder / "taxonomy"
    taxonomy.mkdir(exist_ok=True)
    (taxonomy / "nodes.dmp").write_text("\n".join(nodes) + "\n")
    names = [
        f"{own.split()[0]}\t|\ttaxon {own.split()[0]}\t|\t\t|\tscientific name\t|" for own in nodes
    ]
    (taxonomy / "names.dmp").write_text("\n".join(names) + "\n")
    (folder / "map.tsv").write_text("\n".join(rows) + "\n")
    return Library(tuple(genomes), taxonomy, folder / "map.tsv", load_taxonomy(taxonomy))


def judged(taxa: list[int], library: Library, shares: dict[int, float]) -> dict[str, Any]:
    """Deviations of the shares of reads called at species, and species that are not in it."""
    called = max(1, sum(taxon > 0 for taxon in taxa))
    expected = {library.genomes[i].species: share for i, share in shares.items()}
    found = {taxon: taxa.count(taxon) / called for taxon in sorted(set(taxa) - {0})}
    return {
        "called": called / len(taxa),
        "deviation": {
            f"{share:g}": round(abs(found.get(one, 0.0) - share) / share, 4)
            for one, share in expected.items()
        },
        "false": {one: round(own, 5) for one, own in found.items() if one not in expected},
    }


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """The largest deviations, by program."""
    rows = {}
    for name, sausages in results.items():
        small = [own["deviation"][key] for own in sausages for key in own["deviation"]
                 if float(key) <= 0.01]  # fmt: skip
        every = [value for own in sausages for value in own["deviation"].values()]
        rows[name] = {
            "called at species, %": round(100 * float(np.mean([e["called"] for e in sausages])), 1),
            "deviation at up to 1 %, at most": f"{100 * max(small):.1f} %",
            "at any share": f"{100 * max(every):.1f} %",
            "false species of 0.1 %": sum(
                share >= 0.001 for own in sausages for share in own["false"].values()
            ),
            "largest false, %": round(
                100 * max([s for own in sausages for s in own["false"].values()], default=0.0), 3
            ),
        }
    return rows
