"""Precision and sensitivity of calls by their parameters, at species and genus.

    python -m benchmarks.classification_curves --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --reads reads.fa --labels labels.tsv -o out.json

``labels.tsv`` (columns ``label``, ``taxid``, ``genus_taxid``, ``species_genome_here``,
``genus_genome_here``) says what the label that a read's name begins with stands for. Sensitivity
is of the reads whose species (genus) has a genome among the references; a call of any other read
counts against precision.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import describe_commit

SEPARATOR = "_HiSeq"


def main() -> int:
    from ngsgpu.classify.build import build_database
    from ngsgpu.classify.engine import Engine
    from ngsgpu.classify.evidence import EvidenceParameters, SpeciesEvidence
    from ngsgpu.classify.params import (
        CALLS_BY_EVIDENCE,
        METACACHE_CALLS,
        DatabaseParameters,
        QueryParameters,
        SketchParameters,
    )
    from ngsgpu.classify.plan import BuildOptions
    from ngsgpu.classify.samples import one_sample, queries_of

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "reads", "labels", "out"):
        parser.add_argument(f"--{name}", *(["-o"] if name == "out" else []), type=Path)
    wanted = parser.parse_args()
    with wanted.labels.open(newline="") as file:
        labels = {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}
    own = QueryParameters()
    plain = replace(own, confidence=0.0, species_confidence=0.0)
    none, usual = EvidenceParameters(), EvidenceParameters(species_evidence=0.4)
    settings: list[tuple[int, str, QueryParameters, EvidenceParameters]] = [
        (16, "MetaCache's", METACACHE_CALLS, none)
    ]
    for sketch in (16, 24):
        for hits in (2, 3, 4, 5, 6, 8):
            settings.append((sketch, f"--min-hits {hits}", replace(plain, min_hits=hits), none))
        for share in (0.15, 0.2, 0.25, 0.3, 0.4):
            name = f"--species-confidence {share}"
            settings.append((sketch, name, replace(own, species_confidence=share), none))
        for share in (0.1, 0.2, 0.3):
            settings.append((sketch, f"--confidence {share}", replace(own, confidence=share), none))
        settings.append((sketch, "--species-evidence 0", own, none))
        settings.append((sketch, "defaults", CALLS_BY_EVIDENCE, usual))
        for share in (0.2, 0.3, 0.5, 0.6):
            name, evidence = f"--species-evidence {share}", replace(usual, species_evidence=share)
            settings.append((sketch, name, CALLS_BY_EVIDENCE, evidence))
        for share in (0.0, 0.1, 0.3, 0.4):
            name, evidence = f"--genus-evidence {share}", replace(usual, genus_evidence=share)
            settings.append((sketch, name, CALLS_BY_EVIDENCE, evidence))
        for share in (0.0, 0.1, 0.3, 0.4):
            name = f"--species-confidence {share}, with evidence"
            by_evidence = replace(CALLS_BY_EVIDENCE, species_confidence=share)
            settings.append((sketch, name, by_evidence, usual))
    found = []
    databases: dict[int, Any] = {}
    for sketch, name, parameters, evidence in settings:
        if sketch not in databases:
            databases = {
                sketch: build_database(
                    [wanted.references],
                    None,
                    parameters=DatabaseParameters(SketchParameters(sketch=sketch)),
                    taxonomy=wanted.taxonomy,
                    maps=[wanted.map],
                    options=BuildOptions(threads=2),
                )
            }
        engine = Engine(databases[sketch], parameters)
        lane = one_sample([str(wanted.reads)], [], interleaved=False, name="reads").lanes[0]
        blocks, names = [], []
        for mates in lane.batches(threads=2, phred_offset="auto", chunk_bytes=32 << 20):
            blocks.append(engine.find_candidates(queries_of(mates, lane)))
            names.append([read.decode().split(SEPARATOR)[0] for read in mates[0].names()])
        believed = None
        if evidence.species_evidence > 0:
            seen = SpeciesEvidence(engine.target_node, engine.lineages, engine.rules.min_hits)
            for block in blocks:
                seen.add(block.candidates, block.features)
            believed = seen.believed(evidence)
        tally = np.zeros((2, 3), dtype=np.int64)
        for block, own_names in zip(blocks, names, strict=True):
            called = engine.call(block, None, believed, evidence.doubtful_confidence)
            tally += judge(engine, called.call, [labels[label] for label in own_names])
        row: dict[str, Any] = {
            "sketch": sketch,
            "name": name,
            "parameters": asdict(parameters) | asdict(evidence),
        }
        for rank, (right, calls, reads) in zip(("species", "genus"), tally.tolist(), strict=True):
            row[rank] = {"precision": right / max(calls, 1), "sensitivity": right / max(reads, 1)}
        found.append(row)
        shares = [f"{row[rank][what]:.3f}" for rank in ("species", "genus")
                  for what in ("precision", "sensitivity")]  # fmt: skip
        print(f"| {sketch} | `{name}` | {shares[0]}, {shares[1]} | {shares[2]}, {shares[3]} |")
    result = {**describe_commit(), "reads": wanted.reads.name, "settings": found}
    wanted.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def judge(engine: Any, call: Any, truth: list[dict[str, str]]) -> Any:
    """Right calls, calls and reads to be found, at species and genus: int64[2, 3]."""
    from ngsgpu.classify.taxonomy import GENUS, SPECIES

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


if __name__ == "__main__":
    sys.exit(main())
