"""Calls where the values were not chosen: reads, and genomes, that were held out.

    python -m benchmarks.accuracy.classification_holdout halves --references GENOMES \
        --taxonomy TAX --map seqid2taxid.tsv --reads reads.fa --labels labels.tsv -o out.json
    python -m benchmarks.accuracy.classification_holdout genomes --references GENOMES \
        --taxonomy TAX --map seqid2taxid.tsv -o out.json

``halves`` parts labelled reads (see ``classification_curves``) into two halves, takes the values
that do best on one, and judges them on the other: random halves of the reads, and halves of the
species, whose reads are then all on one side.

``genomes`` leaves genomes out of the database and draws reads from them (ART, HiSeq 2000, 100
bases): of 24 genomes 6 stay, of 6 the genome is left out, of 6 all genomes of its species, and of
6 those of its genus. ``ngsgpu``, MetaCache and Kraken 2, as far as they are on the PATH, classify
the first mates alone, and the pairs; ``ngsgpu evaluate classification`` judges.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.classification_curves import SEPARATOR, judge
from benchmarks.harness.datasets import MATES, DataSet, make
from benchmarks.harness.document import describe_commit, write_document
from benchmarks.harness.measuring import BenchmarkError, apart, measure
from benchmarks.peers.classification import is_there, prepare
from benchmarks.peers.classifiers import PROGRAMS, Inputs, Program, ngsgpu_build, ngsgpu_classify

SPLITS = 10
ROLES = ("stays", "genome", "species", "genus")
GENOMES_PER_ROLE = 6
PAIRS_PER_GENOME = 1000
RANKS = ("species", "genus")

Score = dict[str, list[int]]
"""Right calls, calls, and reads to be found, by rank."""


# --- halves of real reads ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """Values that decide calls: of a read, and by the evidence for species."""

    near_hits: int
    confidence: float
    species_confidence: float
    species_identity: float
    genus_identity: float
    doubtful_confidence: float


DEFAULTS = Setting(2, 0.05, 0.0, 0.94, 0.9, 0.1)
ALONE = Setting(3, 0.05, 0.22, 0.0, 0.0, 0.0)
"""The defaults, and those without ``--species-identity``."""


def settings() -> Iterator[Setting]:
    """All values that are tried."""
    for share, species, identity, genus, doubtful in product(
        (0.0, 0.05, 0.1),
        (0.0, 0.1, 0.2),
        (0.92, 0.93, 0.94, 0.95, 0.96),
        (0.88, 0.9, 0.92),
        (0.05, 0.1, 0.2),
    ):
        yield Setting(2, share, species, identity, genus, doubtful)
    for hits, share, species in product((2, 3), (0.05, 0.1, 0.2), (0.15, 0.22, 0.3, 0.4)):
        yield Setting(hits, share, species, 0.0, 0.0, 0.0)


class Reads:
    """Labelled reads, their candidates, and how their calls are judged.

    Args:
        wanted: the command's arguments.
    """

    def __init__(self, wanted: argparse.Namespace) -> None:
        from ngsgpu.classify.database.build import build_database
        from ngsgpu.classify.params import CALLS_BY_EVIDENCE
        from ngsgpu.classify.query.engine import Engine
        from ngsgpu.classify.run.samples import one_sample, queries_of
        from ngsgpu.run.options import RunOptions

        with wanted.labels.open(newline="") as file:
            labels = {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}
        self._database = build_database(
            [wanted.references], None, taxonomy=wanted.taxonomy, maps=[wanted.map],
            options=RunOptions(threads=2),
        )  # fmt: skip
        engine = Engine(self._database, CALLS_BY_EVIDENCE)
        lane = one_sample([str(wanted.reads)], [], interleaved=False, name="reads").lanes[0]
        (mates,) = lane.batches(threads=2, phred_offset="auto", chunk_bytes=64 << 20)
        self._block = engine.find_candidates(queries_of(mates, lane))
        names = [read.decode().split(SEPARATOR)[0] for read in mates[0].names()]
        self._truth = [labels[name] for name in names]
        self.label = np.array(names)
        self.has_genome = np.array([own["species_genome_here"] == "True" for own in self._truth])

    def score(self, which: Any, setting: Setting) -> Score:
        """Judge the calls of some of the reads, which are a separate sample."""
        from ngsgpu.classify.call.cpu import call_block
        from ngsgpu.classify.call.evidence import SpeciesEvidence
        from ngsgpu.classify.params import CALLS_BY_EVIDENCE, EvidenceParameters
        from ngsgpu.classify.query.engine import Engine

        own = asdict(setting)
        evident, genus, doubtful = (
            own.pop(name) for name in ("species_identity", "genus_identity", "doubtful_confidence")
        )
        engine = Engine(self._database, replace(CALLS_BY_EVIDENCE, **own), partitions=[])
        rows = np.flatnonzero(which)
        whole = self._block
        best = whole.candidates
        part = replace(
            whole,
            name_start=whole.name_start[rows],
            name_end=whole.name_end[rows],
            length1=whole.length1[rows],
            length2=whole.length2[rows],
            features=whole.features[rows],
            candidates=type(best)(*(array[rows] for array in best)),
        )
        accepted = None
        if evident:
            evidence = SpeciesEvidence(engine.target_node, engine.lineages, engine.rules)
            expected = engine.expected_hits(part)
            evidence.add(part.candidates, expected, part.features)
            accepted = evidence.accepted(
                EvidenceParameters(evident, genus, doubtful), engine.sketch.kmer
            )
        called = call_block(engine, part, None, accepted, doubtful)
        tally = judge(engine, called.call, [self._truth[row] for row in rows.tolist()])
        return dict(zip(RANKS, tally.tolist(), strict=True))


def rates_of(score: Score) -> dict[str, dict[str, float]]:
    """Precision and sensitivity by rank."""
    return {
        rank: {
            "precision": round(right / max(calls, 1), 4),
            "sensitivity": round(right / max(reads, 1), 4),
        }
        for rank, (right, calls, reads) in score.items()
    }


def quality(score: Score) -> float:
    """What values are chosen by: the sum of F1 at species and genus."""
    return sum(2 * right / max(calls + reads, 1) for right, calls, reads in score.values())


def halves(wanted: argparse.Namespace) -> dict[str, Any]:
    """Choose values on a half, judge on the other."""
    reads = Reads(wanted)
    found: list[dict[str, Any]] = []
    for kind, seed in product(("reads", "species"), range(SPLITS)):
        half = split(reads, kind, seed)
        best = max(settings(), key=lambda own: quality(reads.score(half, own)))
        scores = {
            "chosen": reads.score(~half, best),
            "chosen, on its own half": reads.score(half, best),
            "defaults": reads.score(~half, DEFAULTS),
            "one pass": reads.score(~half, ALONE),
        }
        found.append({"halves_of": kind, "seed": seed, "chosen": asdict(best), "scores": scores})
        print(kind, seed, asdict(best), rates_of(scores["chosen"]), file=sys.stderr)
    summary = {
        kind: {
            name: rates_of(
                added([one["scores"][name] for one in found if one["halves_of"] == kind])
            )
            for name in found[0]["scores"]
        }
        for kind in ("reads", "species")
    }
    return {"reads": wanted.reads.name, "settings": len(list(settings())), "summary": summary,
            "splits": found}  # fmt: skip


def split(reads: Reads, kind: str, seed: int) -> Any:
    """A random half of the reads, or those of a random half of the species: bool[n].

    Each half has species with a genome among the references, and species without.
    """
    source = np.random.default_rng(seed)
    if kind == "reads":
        half = np.zeros(len(reads.label), dtype=np.bool_)
        half[source.permutation(len(half))[: len(half) // 2]] = True
        return half
    names = np.unique(reads.label)
    while True:
        half = np.isin(reads.label, source.permutation(names)[: len(names) // 2])
        sides = (reads.has_genome[half], reads.has_genome[~half])
        if all(side.any() and not side.all() for side in sides):
            return half


def added(scores: Sequence[Score]) -> Score:
    """The reads of several scores together."""
    return {rank: np.sum([score[rank] for score in scores], axis=0).tolist() for rank in RANKS}


# --- genomes that are left out -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Genome:
    """A genome: its file, names of its sequences, taxids of species and genus (or -1)."""

    path: Path
    names: tuple[str, ...]
    species: int
    genus: int


def read_genomes(wanted: argparse.Namespace) -> list[Genome]:
    """All genomes whose sequences have a taxon."""
    from ngsgpu.taxonomy.dump import load_taxonomy
    from ngsgpu.taxonomy.ranks import GENUS, SPECIES
    from scripts.simulation_chunks import read_fasta

    tree = load_taxonomy(wanted.taxonomy)
    ranked = tree.ranked_lineages()
    taxid = dict(line.split("\t")[:2] for line in wanted.map.read_text().splitlines() if line)
    genomes = []
    for path in sorted(wanted.references.glob("*.f*a*")):
        names = tuple(name for name, _ in read_fasta(path))
        known = [taxid[name] for name in names if name in taxid]
        if not known:
            continue
        above = ranked[tree.index_of(int(known[0]))]
        species, genus = (
            int(tree.taxid[above[rank]]) if above[rank] >= 0 else -1 for rank in (SPECIES, GENUS)
        )
        genomes.append(Genome(path, names, species, genus))
    return genomes


@dataclass(frozen=True, slots=True)
class Draw:
    """Which genomes reads are drawn from, and which the database has."""

    sampled: tuple[Genome, ...]
    there: tuple[Genome, ...]

    def nearest(self, genome: Genome) -> str:
        """What the database has of a genome."""
        if genome in self.there:
            return "genome"
        if any(other.species == genome.species for other in self.there):
            return "species"
        return "genus" if any(other.genus == genome.genus for other in self.there) else "none"


def draw(genomes: Sequence[Genome], seed: int) -> Draw:
    """Deal roles out at random; a genome that another one's role excludes is not there either."""
    order = np.random.default_rng(seed).permutation(len(genomes))
    sampled = [genomes[i] for i in order[: len(ROLES) * GENOMES_PER_ROLE]]
    there = list(genomes)
    for place, own in enumerate(sampled):
        role = ROLES[place % len(ROLES)]
        there = [
            other
            for other in there
            if not (
                (role == "genome" and other == own)
                or (role in ("species", "genus") and other.species == own.species)
                or (role == "genus" and other.genus == own.genus)
            )
        ]
    return Draw(tuple(sampled), tuple(there))


COMPETITORS = (
    PROGRAMS[0],
    Program("ngsgpu-alone", "ngsgpu", ngsgpu_build(), ngsgpu_classify("--species-identity", "0")),
    *(program for program in PROGRAMS[1:] if program.name != "metacache-gpu"),
)


def genomes_left_out(wanted: argparse.Namespace) -> dict[str, Any]:
    """Classify reads of genomes that the database lacks."""
    genomes = read_genomes(wanted)
    programs = [
        program
        for program in COMPETITORS
        if (program.name in wanted.programs if wanted.programs else is_there(program))
    ]
    found: list[dict[str, Any]] = []
    for seed in range(wanted.first_draw, wanted.first_draw + wanted.draws):
        own = draw(genomes, seed)
        with tempfile.TemporaryDirectory(dir=wanted.work) as place:
            results = classify_draw(own, programs, Path(place), wanted)
        found.append(
            {
                "seed": seed,
                "references": len(own.there),
                "sampled": {one.path.name: own.nearest(one) for one in own.sampled},
                "results": results,
            }
        )
    summary = {
        reads: {
            program.name: pooled([one["results"][reads][program.name] for one in found])
            for program in programs
        }
        for reads in ("single", "pairs")
    }
    return {"genomes": len(genomes), "pairs_a_genome": PAIRS_PER_GENOME, "summary": summary,
            "draws": found}  # fmt: skip


def classify_draw(
    own: Draw, programs: Sequence[Program], folder: Path, wanted: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Counts by kind of reads, program and rank."""
    references, _ = apart(
        prepare, folder, [one.path for one in own.there], wanted.taxonomy, wanted.map, 0
    )
    reads = simulate(own.sampled, folder)
    inputs = Inputs(
        references,
        folder / "labelled.fna",
        folder / "taxonomy",
        folder / "map.tsv",
        reads,
        2,
        "cpu",
    )
    results: dict[str, dict[str, Any]] = {"single": {}, "pairs": {}}
    for program in programs:
        work = folder / program.name
        work.mkdir()
        for command in program.build(inputs):
            measure(command, work)
        for kind, files in (("single", reads[:1]), ("pairs", reads)):
            measure(program.classify(replace(inputs, reads=files)), work)
            calls = work / ("calls.tsv" if program.executable == "ngsgpu" else "calls.txt")
            results[kind][program.name] = evaluate(
                calls, folder / "taxonomy", folder / "truth.tsv", folder / "map.tsv"
            )
            shown = {rank: results[kind][program.name][rank] for rank in RANKS}
            print(program.name, kind, shown, file=sys.stderr)
    return results


def simulate(sampled: Sequence[Genome], folder: Path) -> tuple[Path, ...]:
    """Draw pairs of all genomes, about as many of each; their names tell the genome."""
    outputs = tuple(folder / name for name in MATES)
    rows = ["label\ttaxid\tgenus_taxid"]
    for number, genome in enumerate(sampled):
        data = DataSet(str(number), (genome.path,), stage="classify", coverage=0, seed=1)
        bases = apart(genome_bases, genome.path)
        made = replace(data, coverage=PAIRS_PER_GENOME * 200 / bases)
        apart(make, made, folder / f"reads{number}", processes=2, truth=False)
        for mate, output in zip(MATES, outputs, strict=True):
            text = (folder / f"reads{number}" / mate).read_text().splitlines()
            with output.open("a") as out:
                for at in range(0, len(text), 4):
                    name = f"@g{number}_{at // 4}"
                    out.write("\n".join([name, *text[at + 1 : at + 4]]) + "\n")
        genus = "NA" if genome.genus < 0 else str(genome.genus)
        rows.append(f"g{number}\t{genome.species}\t{genus}")
    (folder / "truth.tsv").write_text("\n".join(rows) + "\n")
    return outputs


def genome_bases(path: Path) -> int:
    from scripts.simulation_chunks import read_fasta

    return sum(len(bases) for _, bases in read_fasta(path))


def evaluate(calls: Path, taxonomy: Path, truth: Path, references: Path) -> dict[str, Any]:
    """Counts at species and genus, as ``ngsgpu evaluate classification`` gives them."""
    from ngsgpu.evaluate.classification import evaluate_classification
    from ngsgpu.taxonomy.dump import load_taxonomy

    evaluation = evaluate_classification(
        [("run", calls)], load_taxonomy(taxonomy), truth=truth, references=references, ranks=RANKS
    )
    ranks: dict[str, Any] = evaluation.document()["runs"][0]["ranks"]
    return ranks


def pooled(draws: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Rates over the reads of all draws."""
    rates = {}
    for rank in RANKS:
        tp, fp, represented = (
            sum(one[rank][name] for one in draws) for name in ("tp", "fp", "represented")
        )
        rates[rank] = {
            "precision": round(tp / max(tp + fp, 1), 4),
            "sensitivity": round(tp / max(represented, 1), 4),
        }
    return rates


# --- the command ---------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    kinds = parser.add_subparsers(required=True)
    for name, run in (("halves", halves), ("genomes", genomes_left_out)):
        own = kinds.add_parser(name)
        own.set_defaults(run=run)
        for option in ("references", "taxonomy", "map"):
            own.add_argument(f"--{option}", type=Path, required=True)
        own.add_argument("-o", "--out", type=Path, required=True)
        if run is halves:
            own.add_argument("--reads", type=Path, required=True)
            own.add_argument("--labels", type=Path, required=True)
        else:
            own.add_argument("--draws", type=int, default=5)
            own.add_argument("--first-draw", type=int, default=0, help="its seed")
            own.add_argument("--programs", nargs="*", choices=[one.name for one in COMPETITORS])
            own.add_argument("--work", type=Path)
    wanted = parser.parse_args()
    try:
        found = wanted.run(wanted)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    write_document({**describe_commit(), **found}, wanted.out)
    print(json.dumps(found["summary"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
