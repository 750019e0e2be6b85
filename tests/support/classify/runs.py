"""Runs of classification in the small world, and what plain Python says of them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.params import METACACHE_CALLS, OutputRules, QueryParameters
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import Sample, SampleOutputs, one_sample
from ngsgpu.run.options import RunOptions
from tests.support.classify.world import SKETCH, World

ALL = {
    "reads": "reads.tsv",
    "kraken_reads": "kraken.txt",
    "report": "report.txt",
    "krona": "krona.txt",
    "cami": "own.profile",
    "biom": "own.biom",
    "abundance": "abundance.tsv",
    "coverage": "coverage.tsv",
}


def outputs_in(folder: Path) -> SampleOutputs:
    folder.mkdir(exist_ok=True)
    return SampleOutputs(**{name: str(folder / file) for name, file in ALL.items()})


def contents(folder: Path) -> dict[str, bytes]:
    return {file: (folder / file).read_bytes() for file in ALL.values()}


def single(path: Path) -> Sample:
    return one_sample([str(path)], [], interleaved=False, name="own")


def run(
    database: Database,
    sample: Sample,
    folder: Path,
    parameters: QueryParameters | None = None,
    options: RunOptions | None = None,
    rules: OutputRules | None = None,
) -> dict[str, bytes]:
    classifier = Classifier(database, parameters, options=options, rules=rules)
    classifier.classify([sample], outputs_in(folder))
    return contents(folder)


def rows(table: bytes) -> list[list[str]]:
    return [line.split("\t") for line in table.decode().splitlines()[1:]]


def expected_rows(
    world: World, queries: list[list[str]], parameters: QueryParameters
) -> list[list[str]]:
    found = []
    for i, mates in enumerate(queries):
        call = world.oracle.call(mates, parameters)
        best = world.oracle.candidates(mates, parameters)
        taxid, rank = "0", "no rank"
        if call is not None:
            rank, number = call
            taxid = str(number)
            if rank == "sequence":
                own = world.oracle.lineages[number]
                taxid = ""
                taxid = str(next(iter(own.values()))) if own else "1"
        row = [f"r{i}", taxid, rank]
        if best:
            target, hits, begin, end = best[0]
            length = len(world.sequences[target])
            row += [
                str(hits),
                world.names[target],
                str(begin * SKETCH.stride + 1),
                str(min(end * SKETCH.stride + SKETCH.window, length)),
            ]
        else:
            row += ["0", "-", "0", "0"]
        found.append(row)
    return found


def misread(sequence: str, errors: float, source: random.Random) -> str:
    """With as many substitutions as insertions and deletions together."""
    found = []
    for base in sequence:
        drawn = source.random() / errors
        if drawn < 0.5:
            found.append(source.choice("ACGT"))
        elif not 0.5 <= drawn < 0.75:
            found.append(base + source.choice("ACGT") * (drawn < 1))
    return "".join(found)


def shown(table: bytes, *, strains: bool = False) -> list[list[str]]:
    """Rows without the name; taxa without rank stand for what is above, as in the oracle."""
    found = []
    for read, taxid, rank, _, *rest in rows(table):
        found.append([read, "31" if taxid == "32" and not strains else taxid, rank, *rest])
    return found


QUERY = [
    QueryParameters(),
    METACACHE_CALLS,
    replace(METACACHE_CALLS, min_hits=1, candidates=5),
    replace(METACACHE_CALLS, lowest="species", candidates=3),
    QueryParameters(min_hits=3, candidates=4, hit_difference=0.5, highest="genus"),
    QueryParameters(hit_difference=0.2, candidates=3),
    QueryParameters(lowest="genus", highest="phylum", min_hits=1),
    QueryParameters(insert_size=500, min_hits=1),
]
