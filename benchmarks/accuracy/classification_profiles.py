"""Abundances of species in simulated mixtures, beside sylph, with the bytes of the databases.

    python -m benchmarks.accuracy.classification_profiles --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --choose 0 1 --check 100 101 -o out.json

The genomes are dealt out as in ``classification_sets``: strains, species and genera that the
database lacks, genomes that it has, and some that it has with 1 to 5 % of the bases changed. Their
copies are lognormal (standard deviation 1.5), and pairs of 2 x 150 bases with 0.3 % errors come
from all of them: about 0.3-fold coverage in the mean. Judged are shares of genome copies among the
species that the database has, scaled to 1: the sum of the absolute differences (L1; half of it is
Bray-Curtis), species that are not in the mixture, and those of it that are missing. ``pysylph`` is
used if it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.accuracy.classification_holdout import Genome, read_genomes
from benchmarks.accuracy.classification_sets import CHANGED, changed, deal, draw_reads, sequences
from benchmarks.harness.document import describe_commit, write_document

PAIRS: Final = 100_000
KIND: Final = (150, 150, 0.003)
SPREAD: Final = 1.5
FRACTIONS: Final = (1.0, 0.25, 0.0625)
LACKED: Final = ("species", "genus")

Shares = dict[int, float]
"""Shares of genome copies by species; together 1."""


def scaled(shares: Shares) -> Shares:
    """Shares that add up to 1."""
    total = sum(shares.values()) or 1.0
    return {species: share / total for species, share in shares.items() if share > 0}


def make_mixture(genomes: Sequence[Genome], seed: int, folder: Path) -> tuple[Shares, list[Genome]]:
    """Write the reads of a mixture; return its species that the database has, and its genomes."""
    roles, there = deal(genomes, seed)
    source = np.random.default_rng(2000 + seed)
    copies = source.lognormal(0.0, SPREAD, len(roles))
    truth: Shares = defaultdict(float)
    drawn, bases = [], []
    for (i, role), own in zip(roles.items(), copies.tolist(), strict=True):
        genome = sequences(genomes[i].path)
        if role in CHANGED:
            rate = float(role.split()[1]) / 100
            genome = [changed(one, rate, source) for one in genome]
        if role not in LACKED:
            truth[genomes[i].species] += own
        drawn.append(genome)
        bases.append(own * sum(map(len, genome)))
    numbers = source.multinomial(PAIRS, np.array(bases) / sum(bases))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "1.fq").open("wb") as first, (folder / "2.fq").open("wb") as second:
        for genome, number in zip(drawn, numbers.tolist(), strict=True):
            for at, pair in enumerate(draw_reads(genome, number, KIND, source)):
                for file, text in zip((first, second), pair, strict=True):
                    file.write(b"@%d\n%s\n+\n%s\n" % (at, text, b"I" * len(text)))
    return scaled(truth), there


def ours(there: Sequence[Genome], folder: Path, wanted: Any) -> dict[str, dict[str, Any]]:
    """Abundances by ``ngsgpu classify``, and bytes, by fraction of features."""
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.database.change.thin import thin_database
    from ngsgpu.classify.params import CALLS_BY_EVIDENCE, EvidenceParameters, OutputRules
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.classify.run.samples import SampleOutputs, one_sample
    from ngsgpu.run.options import RunOptions

    options = RunOptions(backend="cpu", threads=2)
    build_database(
        [own.path for own in there], folder / "full", taxonomy=wanted.taxonomy, maps=[wanted.map],
        options=options,
    )  # fmt: skip
    reads = [str(folder / f"{mate}.fq") for mate in (1, 2)]
    found = {}
    for fraction in FRACTIONS:
        place = folder / f"fraction-{fraction:g}"
        database = thin_database(folder / "full", place, fraction=fraction)
        table = folder / "abundance.tsv"
        rules = OutputRules(evidence=EvidenceParameters())
        classifier = Classifier(database, CALLS_BY_EVIDENCE, options=options, rules=rules)
        sample = one_sample(reads[:1], reads[1:], interleaved=False, name="mixture")
        classifier.classify([sample], SampleOutputs(abundance=str(table)))
        rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
        shares = {int(row[0]): float(row[7] or 0) for row in rows if row[1] == "species"}
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        found[f"ngsgpu, fraction {fraction:g}"] = {"bytes": size, "shares": scaled(shares)}
    return found


def sylph(there: Sequence[Genome], folder: Path) -> dict[str, dict[str, Any]]:
    """Abundances by sylph with its defaults, and bytes."""
    program = importlib.import_module("pysylph")
    sketcher = program.Sketcher()
    by_name = {own.path.name: own.species for own in there}
    database = program.Database(
        [
            sketcher.sketch_genome(
                name=own.path.name,
                contigs=[bases.tobytes().decode() for bases in sequences(own.path)],
            )
            for own in there
        ]
    )
    database.dump(str(folder / "genomes.syldb"))
    mates = [(folder / f"{mate}.fq").read_text().splitlines()[1::4] for mate in (1, 2)]
    sample = sketcher.sketch_paired(name="mixture", r1=mates[0], r2=mates[1])
    shares: Shares = defaultdict(float)
    for result in program.Profiler(database).profile(sample):
        shares[by_name[result.genome_sketch.name]] += result.taxonomic_abundance
    size = (folder / "genomes.syldb").stat().st_size
    return {"sylph": {"bytes": size, "shares": scaled(shares)}}


def judge(observed: Shares, expected: Shares) -> dict[str, float]:
    """Distance of abundances, and species that are too many or missing."""
    species = {*observed, *expected}
    return {
        "l1": sum(abs(observed.get(own, 0.0) - expected.get(own, 0.0)) for own in species),
        "false": len(observed.keys() - expected.keys()),
        "missing": len(expected.keys() - observed.keys()),
        "species": len(expected),
    }


def run(seed: int, genomes: Sequence[Genome], wanted: Any) -> dict[str, Any]:
    """All programs on a mixture."""
    folder = wanted.work / f"mixture{seed}"
    truth, there = make_mixture(genomes, seed, folder)
    found = ours(there, folder, wanted)
    if importlib.util.find_spec("pysylph"):
        found |= sylph(there, folder)
    return {
        "seed": seed,
        "truth": truth,
        "programs": {
            name: {**own, **judge(own["shares"], truth)} for name, own in found.items()
        },
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--choose", type=int, nargs="+", default=[0, 1], metavar="SEED")
    parser.add_argument("--check", type=int, nargs="+", default=[100, 101], metavar="SEED")
    wanted = parser.parse_args()
    genomes = read_genomes(wanted)
    document: dict[str, Any] = {**describe_commit(), "pairs": PAIRS}
    for part in ("choose", "check"):
        document[part] = mixtures = []
        for seed in getattr(wanted, part):
            mixtures.append(run(seed, genomes, wanted))
            for name, own in mixtures[-1]["programs"].items():
                print(
                    f"| {part} {seed} | {name} | {own['bytes'] / 1e6:.1f} | {own['l1']:.3f} | "
                    f"{own['false']} | {own['missing']} of {own['species']} |",
                    flush=True,
                )
    write_document(document, wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
