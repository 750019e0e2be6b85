"""Communities of strains, relatives and absent species, by kind of reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.classification.genomes import Genome, deal, drawn_bases, sequences
from benchmarks.accuracy.classification.judging import Judge, Truth, rates
from benchmarks.accuracy.classification.programs import Calls, Kraken
from benchmarks.accuracy.classification.reads import KINDS, Drawn, write_reads
from benchmarks.accuracy.classification.settings import Settings

READS: Final = 400
"""Of each genome; shares of a community are equal, so that each role counts alike."""
STRAINS: Final = {
    "DH1.fasta.gz": (562, 561),
    "COL.fasta.gz": (1280, 1279),
    "JKD6008.fasta.gz": (1280, 1279),
    "N315.fasta.gz": (1280, 1279),
    "RF122.fasta.gz": (1280, 1279),
    "Klebs_HS11286.fna.xz": (573, 570),
    "Klebs_Kp1084.fna.xz": (573, 570),
    "MGH78578.fna.xz": (573, 570),
    "G27.fasta.gz": (210, 209),
    "ELS37.fasta.gz": (210, 209),
    "O395.fasta.gz": (666, 662),
    "H1.fasta.gz": (666, 662),
}
"""Taxids of species and genus of genomes of Debian's ``ragout-examples`` and
``kleborate-examples`` by file: other genomes than those of the library."""
LACKED: Final = (frozenset[int](), frozenset((1280, 573)))
"""Species that databases for these lack."""


class Community(NamedTuple):
    """A name, what reads are drawn from, the truth by label, and the genomes of the database."""

    name: str
    drawn: list[Drawn]
    truth: dict[str, Truth]
    there: list[Genome]


def run(settings: Settings) -> dict[str, Any]:
    """All programs on all communities and kinds of reads."""
    judge = Judge(settings.library.tree)
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for community in communities(settings):
        folder = settings.work / "communities" / community.name
        samples = [
            (kind.replace(" ", ""), write_reads(community.drawn, KINDS[kind], 1, folder / kind))
            for kind in settings.kinds or KINDS
        ]
        for program, calls in all_calls(settings, community, samples, folder):
            own = results.setdefault(program, {}).setdefault(community.name, {})
            for kind, found in calls.items():
                own[kind] = {
                    "tally": judge.tally(found, community.truth),
                    **judge.species(found, community.truth),
                }
    return {"results": results, "summary": summary(results)}


def communities(settings: Settings) -> Iterator[Community]:
    """Make those of the seeds, and those of strains from elsewhere."""
    genomes = settings.library.genomes
    for seed in settings.seeds:
        roles, there = deal(genomes, seed)
        source = np.random.default_rng(1000 + seed)
        drawn = [
            (genomes[i].species, genomes[i].genus, drawn_bases(genomes[i], role, source))
            for i, role in roles.items()
        ]
        yield community(f"seed{seed}", drawn, there)
    if settings.strains is not None:
        for number, lacked in enumerate(LACKED):
            drawn = [
                (*taxa, sequences(next(settings.strains.rglob(file))))
                for file, taxa in STRAINS.items()
            ]
            there = [own for own in genomes if own.species not in lacked]
            yield community(f"strains{number}", drawn, there)


def community(name: str, drawn: Sequence[tuple[int, int, Any]], there: list[Genome]) -> Community:
    """Reads of each genome, and what the database has of it."""
    species, genera = {own.species for own in there}, {own.genus for own in there}
    truth = {
        f"g{i}": Truth(own, genus, own in species, genus in genera)
        for i, (own, genus, _) in enumerate(drawn)
    }
    return Community(name, [Drawn(f"g{i}", own[2], READS) for i, own in enumerate(drawn)],
                     truth, there)  # fmt: skip


def all_calls(
    settings: Settings,
    community: Community,
    samples: Sequence[tuple[str, list[Path]]],
    folder: Path,
) -> Iterator[tuple[str, dict[str, Calls]]]:
    """Calls by kind of reads, of each program."""
    library = settings.library
    for version in settings.versions:
        database = version.build(community.there, library, folder)
        found = version.classify(database, samples)
        yield version.name, {kind: calls for kind, (calls, _) in found.items()}
    if settings.kraken:
        kraken = Kraken(community.there, library, folder)
        for confidence in settings.confidences:
            yield (
                f"kraken2 {confidence:g}",
                {kind: kraken.classify(reads, confidence) for kind, reads in samples},
            )


def summary(results: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Rates over all communities, and species: by program and kind of reads."""
    rows = {}
    for program, by_community in results.items():
        own = list(by_community.values())
        for kind in own[0]:
            cells = [one[kind] for one in own]
            found = rates([cell["tally"] for cell in cells])
            missing, expected = (
                sum(len(cell[name]) for cell in cells) for name in ("missing", "expected")
            )
            rows[f"{kind}, {program}"] = {
                "species P, S": " ".join(f"{value:.3f}" for value in found["species"]),
                "genus P, S": " ".join(f"{value:.3f}" for value in found["genus"]),
                "species found": f"{expected - missing} of {expected}",
                "false species": sum(len(cell["false"]) for cell in cells),
            }
    return dict(sorted(rows.items(), key=lambda row: [*KINDS].index(spaced(row[0]))))


def spaced(name: str) -> str:
    """The kind of reads of a row."""
    return name.partition(",")[0].replace("x", " x ")
