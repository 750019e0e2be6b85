"""Precision and sensitivity of calls by their parameters, at species and genus.

    python -m benchmarks.accuracy.classification_curves --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --reads reads.fa --labels labels.tsv -o out.json \
        --peer "kraken2 --confidence 0.2=calls.txt"

``labels.tsv`` (columns ``label``, ``taxid``, ``genus_taxid``, ``species_genome_here``,
``genus_genome_here``) says what the label that a read's name begins with stands for. Sensitivity
is of the reads whose species (genus) has a genome among the references; a call of any other read
counts against precision. ``--peer`` adds what other programs called the same reads, against the
same references; ``--peers-of`` takes that from an earlier result.
``benchmarks.accuracy.classification_picture`` draws the result.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.document import describe_commit, write_document

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database
    from ngsgpu.classify.params import EvidenceParameters, QueryParameters

SEPARATOR = "_HiSeq"
RANKS = ("species", "genus")


def settings() -> Iterator[tuple[int, str, QueryParameters, EvidenceParameters]]:
    """Size of sketches, name, parameters and evidence of each."""
    from ngsgpu.classify.params import (
        CALLS_BY_EVIDENCE,
        METACACHE_CALLS,
        NO_EVIDENCE,
        EvidenceParameters,
        QueryParameters,
    )

    own, by_species = QueryParameters(), CALLS_BY_EVIDENCE
    none, usual = NO_EVIDENCE, EvidenceParameters()
    yield 16, "MetaCache's", METACACHE_CALLS, none
    for sketch in (16, 21, 32):
        yield sketch, "defaults", by_species, usual
        yield sketch, "--species-identity 0", own, none
        for hits in (2, 4, 5, 6):
            yield sketch, f"--min-hits {hits}", replace(by_species, min_hits=hits), usual
        for share in (0.22, 0.3, 0.4):
            name = f"--species-confidence {share}"
            yield sketch, name, replace(by_species, species_confidence=share), usual
            name = f"--species-identity 0 --species-confidence {share}"
            yield sketch, name, replace(own, species_confidence=share), none
        for share in (0.0, 0.1, 0.2, 0.3):
            name = f"--confidence {share}"
            yield sketch, name, replace(by_species, confidence=share), usual
        for identity in (0.9, 0.92, 0.93, 0.95, 0.96, 0.97):
            evidence = replace(usual, species_identity=identity)
            yield sketch, f"--species-identity {identity}", by_species, evidence
        for identity in (0.0, 0.88, 0.92):
            evidence = replace(usual, genus_identity=identity)
            yield sketch, f"--genus-identity {identity}", by_species, evidence
        for share in (0.0, 0.2, 0.3):
            evidence = replace(usual, doubtful_confidence=share)
            yield sketch, f"--doubtful-confidence {share}", by_species, evidence


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "reads", "labels", "out"):
        parser.add_argument(f"--{name}", *(["-o"] if name == "out" else []), type=Path)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument(
        "--peers-of", type=Path, help="an earlier result with those of other programs"
    )
    wanted = parser.parse_args()
    with wanted.labels.open(newline="") as file:
        labels = {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}
    others = peers(wanted)
    found = []
    databases: dict[int, Database] = {}
    for sketch, name, parameters, evidence in settings():
        if sketch not in databases:
            databases = {sketch: build(wanted, sketch)}
        tally = call(databases[sketch], wanted.reads, labels, parameters, evidence)
        row = {
            "sketch": sketch,
            "name": name,
            "parameters": asdict(parameters) | asdict(evidence),
        }
        for rank, (right, calls, reads) in zip(RANKS, tally.tolist(), strict=True):
            row[rank] = {"precision": right / max(calls, 1), "sensitivity": right / max(reads, 1)}
        found.append(row)
        show(f"{sketch} | `{name}`", row)
    result = {
        **describe_commit(),
        "reads": wanted.reads.name,
        "settings": found,
        "peers": others,
    }
    if wanted.peers_of is not None:
        result["peers_from"] = wanted.peers_of.name
    write_document(result, wanted.out)
    return 0


def show(name: str, row: dict[str, Any]) -> None:
    """Print a line of a table."""
    shares = [f"{row[rank][what]:.3f}" for rank in RANKS for what in ("precision", "sensitivity")]
    print(f"| {name} | {shares[0]}, {shares[1]} | {shares[2]}, {shares[3]} |")


def build(wanted: argparse.Namespace, sketch: int) -> Database:
    """A database in memory with sketches of a size."""
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.params import DatabaseParameters, SketchParameters
    from ngsgpu.run.options import RunOptions

    return build_database(
        [wanted.references],
        None,
        parameters=DatabaseParameters(SketchParameters(sketch=sketch)),
        taxonomy=wanted.taxonomy,
        maps=[wanted.map],
        options=RunOptions(threads=2),
    )


def call(
    database: Database,
    reads: Path,
    labels: dict[str, dict[str, str]],
    parameters: QueryParameters,
    evidence: EvidenceParameters,
) -> Any:
    """Call all reads and judge them: int64[2, 3], see ``judge``."""
    from ngsgpu.classify.call.cpu import call_block
    from ngsgpu.classify.call.evidence import SpeciesEvidence
    from ngsgpu.classify.query.engine import Engine
    from ngsgpu.classify.run.samples import one_sample, queries_of

    engine = Engine(database, parameters)
    lane = one_sample([str(reads)], [], interleaved=False, name="reads").lanes[0]
    blocks, names = [], []
    for mates in lane.batches(threads=2, phred_offset="auto", chunk_bytes=32 << 20):
        blocks.append(engine.find_candidates(queries_of(mates, lane)))
        names.append([read.decode().split(SEPARATOR)[0] for read in mates[0].names()])
    accepted = None
    if evidence.species_identity > 0:
        seen = SpeciesEvidence(engine.target_node, engine.lineages, engine.rules)
        for block in blocks:
            seen.add(block.candidates, engine.expected_hits(block), block.features)
        accepted = seen.accepted(evidence, engine.sketch.kmer)
    tally = np.zeros((2, 3), dtype=np.int64)
    for block, own_names in zip(blocks, names, strict=True):
        called = call_block(engine, block, None, accepted, evidence.doubtful_confidence)
        tally += judge(engine, called.call, [labels[label] for label in own_names])
    return tally


def judge(engine: Any, call: Any, truth: list[dict[str, str]]) -> Any:
    """Right calls, calls and reads to be found, at species and genus: int64[2, 3]."""
    from ngsgpu.taxonomy.ranks import GENUS, SPECIES

    nodes = len(engine.taxonomy)
    node = np.where(call >= nodes, engine.target_node[np.maximum(call - nodes, 0)], call)
    tally = np.zeros((2, 3), dtype=np.int64)
    columns = (("taxid", "species_genome_here"), ("genus_taxid", "genus_genome_here"))
    for row, (rank, (column, here)) in enumerate(zip((SPECIES, GENUS), columns, strict=True)):
        at_rank = np.where(node >= 0, engine.lineages[np.maximum(node, 0), rank], -1)
        taxid = np.where(at_rank >= 0, engine.taxonomy.taxid[np.maximum(at_rank, 0)], -1)
        wanted = np.array([int(own[column]) if own[column].isdigit() else -2 for own in truth])
        tally[row] = (
            int((taxid == wanted).sum()),
            int((taxid >= 0).sum()),
            sum(own[here] == "True" for own in truth),
        )
    return tally


def peers(wanted: argparse.Namespace) -> list[dict[str, Any]]:
    """Precision and sensitivity of other programs' calls."""
    from ngsgpu.evaluate.classification import evaluate_classification
    from ngsgpu.taxonomy.dump import load_taxonomy

    if wanted.peers_of is not None:
        earlier = json.loads(wanted.peers_of.read_text())
        if earlier["reads"].removesuffix(".gz") != wanted.reads.name.removesuffix(".gz"):
            raise SystemExit(f"{wanted.peers_of} is of other reads")
        return list(earlier["peers"])
    if not wanted.peer:
        return []
    named = [entry.rpartition("=")[::2] for entry in wanted.peer]
    evaluation = evaluate_classification(
        named, load_taxonomy(wanted.taxonomy), truth=wanted.labels, references=wanted.map,
        ranks=RANKS,
    )  # fmt: skip
    found = []
    for run in evaluation.document()["runs"]:
        rates = {
            rank: {what: run["ranks"][rank][what] for what in ("precision", "sensitivity")}
            for rank in RANKS
        }
        found.append({"name": run["name"], **rates})
        show(f"`{run['name']}`", found[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
