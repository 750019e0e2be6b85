"""Long reads in classification, simulated and real, beside Kraken 2.

    python -m benchmarks.accuracy.long_reads --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --model model_qc_clr --choose 0 1 --check 100 101 \
        --reads "NAME=reads.fq.gz=0.15=562" -o out.json

The draws are those of ``classification_sets``: genomes whose strain, species or genus the database
lacks, that it has, or that it has with changed bases. PBSIM (1.0, on the PATH; ``--model`` is its
file of qualities) makes reads with 5, 10 and 15 % of errors, half of them insertions or deletions;
those of 0.5 %, which it cannot make, have errors at random places and one quality. Without stated
errors, those are allowed for that qualities say, or, without qualities, those that hits do.
``strangers`` are the reads of genomes whose species or genus the database lacks, as samples without
anything else. ``--reads`` names real ones with their errors and their species' taxid, against a
database of all genomes: the share of them that is called at this species, at another one, and
above.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.classification_curves import RANKS
from benchmarks.accuracy.classification_holdout import Genome, rates_of, read_genomes
from benchmarks.accuracy.classification_sets import (
    ACGT,
    CHANGED,
    COMPLEMENT,
    WINDOWS,
    Kraken,
    build,
    changed,
    classify,
    deal,
    sequences,
)
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from benchmarks.harness.tables import markdown
from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.run.samples import one_sample
from ngsgpu.run.options import RunOptions

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database
    from ngsgpu.classify.params import EvidenceParameters

SCHEMA: Final = "ngsgpu.benchmark.long_reads"
SCHEMA_VERSION: Final = 2
LENGTH, DEVIATION, LEAST, MOST = 6000, 5000, 500, 50_000
"""Bases of reads: mean, standard deviation, shortest and longest."""
READS: Final = 60
"""Of a genome and kind, about."""
KRAKENS: Final = (0.0, 0.05)
"""Values of ``--confidence``."""
STRANGERS: Final = ("species", "genus")
Read = tuple[bytes, bytes]
"""Bases and qualities."""


@dataclass(frozen=True)
class Kind:
    """Reads of a technology: errors per base, and whether PBSIM makes them."""

    errors: float
    by_pbsim: bool


KINDS: Final = {
    "0.5 %": Kind(0.005, by_pbsim=False),
    "5 %": Kind(0.05, by_pbsim=True),
    "10 %": Kind(0.1, by_pbsim=True),
    "15 %": Kind(0.15, by_pbsim=True),
}


def misread(bases: NDArray[np.uint8], errors: float, source: np.random.Generator) -> bytes:
    """A read with errors at random places, half of them insertions or deletions."""
    what = np.full(len(bases), -1)
    wrong = np.flatnonzero(source.random(len(bases)) < errors)
    what[wrong] = source.integers(0, 4, len(wrong))
    found = bases.copy()
    swapped = what < 2
    swapped &= what >= 0
    codes = np.minimum(np.searchsorted(ACGT, found[swapped]), 3)
    found[swapped] = ACGT[(codes + source.integers(1, 4, len(codes))) % 4]
    times = np.where(what == 2, 2, np.where(what == 3, 0, 1))
    longer = np.repeat(found, times)
    places = np.cumsum(times)[what == 2] - 1
    longer[places] = ACGT[source.integers(0, 4, len(places))]
    return longer.tobytes()


def at_random(
    bases: NDArray[np.uint8], errors: float, reads: int, source: np.random.Generator
) -> Iterator[Read]:
    """Reads of a sequence; their lengths are distributed as those of PBSIM."""
    quality = b"%c" % round(33 - 10 * np.log10(errors))
    shape = (LENGTH / DEVIATION) ** 2
    lengths = source.gamma(shape, LENGTH / shape, reads).astype(int)
    for length in np.clip(lengths, LEAST, min(MOST, len(bases) - 1)):
        start = source.integers(0, len(bases) - length)
        own = misread(bases[start : start + length], errors, source)
        read = own.translate(COMPLEMENT)[::-1] if source.random() < 0.5 else own
        yield read, quality * len(read)


def by_pbsim(
    bases: NDArray[np.uint8], errors: float, reads: int, seed: int, model: Path
) -> Iterator[Read]:
    """The same, by PBSIM."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "genome.fa").write_bytes(b">genome\n" + bases.tobytes() + b"\n")
        settings = {
            "data-type": "CLR", "model_qc": model, "seed": seed + 1, "prefix": "reads",
            "depth": reads * LENGTH / len(bases), "length-mean": LENGTH, "length-sd": DEVIATION,
            "length-min": LEAST, "length-max": MOST, "accuracy-mean": 1 - errors,
            "accuracy-sd": 0.02, "difference-ratio": "50:25:25",
        }  # fmt: skip
        options = [word for own, value in settings.items() for word in (f"--{own}", str(value))]
        subprocess.run(["pbsim", *options, "genome.fa"], cwd=folder, check=True,
                       capture_output=True)  # fmt: skip
        lines = (folder / "reads_0001.fastq").read_bytes().splitlines()
        yield from zip(lines[1::4], lines[3::4], strict=True)


def draw(
    bases: NDArray[np.uint8], kind: Kind, reads: int, seed: int, model: Path
) -> Iterator[Read]:
    """Reads of a sequence."""
    if kind.by_pbsim:
        return by_pbsim(bases, kind.errors, reads, seed, model)
    return at_random(bases, kind.errors, reads, np.random.default_rng(seed))


def make_reads(genomes: Sequence[Genome], seed: int, folder: Path, model: Path) -> list[Genome]:
    """Write the reads of a draw, those of strangers also apart; the genomes of the database."""
    roles, there = deal(genomes, seed)
    if (folder / "labels.tsv").exists():
        return there
    folder.mkdir(parents=True, exist_ok=True)
    source = np.random.default_rng(2000 + seed)
    rows = ["label\ttaxid\tgenus_taxid\tspecies_genome_here\tgenus_genome_here\trole"]
    species, genera = ({getattr(own, rank) for own in there} for rank in RANKS)
    texts: dict[str, list[bytes]] = {}
    for number, (i, role) in enumerate(roles.items()):
        own, bases = genomes[i], max(sequences(genomes[i].path), key=len)
        if role in CHANGED:
            bases = changed(bases, float(role.split()[1]) / 100, source)
        rows.append(f"g{number}\t{own.species}\t{own.genus}\t{own.species in species}\t"
                    f"{own.genus in genera}\t{role}")  # fmt: skip
        for name, kind in KINDS.items():
            for at, read in enumerate(draw(bases, kind, READS, 100 * seed + number, model)):
                record = b"@g%d_HiSeq%d\n%b\n+\n%b\n" % (number, at, *read)
                texts.setdefault(name, []).append(record)
                if role in STRANGERS:
                    texts.setdefault(f"strangers {name}", []).append(record)
    for name, records in texts.items():
        file_of(folder, name).write_bytes(b"".join(records))
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    return there


def file_of(folder: Path, name: str) -> Path:
    """The reads of a name."""
    return folder / f"{name.replace(' ', '').replace('%', '')}.fq"


def by_qualities(database: Database, reads: Path) -> EvidenceParameters:
    """The defaults, with the errors that qualities of reads say."""
    from ngsgpu.classify.params import EvidenceParameters
    from ngsgpu.classify.run.errors import ReadErrors, with_errors

    (lane,) = one_sample([str(reads)], [], interleaved=False, name="x").lanes
    errors = ReadErrors()
    for (batch,) in lane.batches(threads=1, phred_offset="auto", chunk_bytes=1 << 22):
        errors.take(batch)
    kmer = database.parameters.sketch.kmer
    return with_errors(EvidenceParameters(), errors.estimate(), kmer, reads.name)


def simulated(
    genomes: Sequence[Genome], seed: int, wanted: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, float | None]]:
    """Right calls, calls and reads to be found on a draw, by program and kind.

    And the errors that qualities say, if those are allowed for.
    """
    from ngsgpu.classify.params import CALLS_BY_EVIDENCE, EvidenceParameters

    folder = wanted.work / f"long{seed}"
    there = make_reads(genomes, seed, folder, wanted.model)
    with (folder / "labels.tsv").open(newline="") as file:
        truth = {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}
    database = build(there, WINDOWS[0], wanted)
    kraken = Kraken(there, folder, wanted) if which("kraken2") else None
    estimates: dict[str, float | None] = {}
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        for sample in (name, f"strangers {name}"):
            files = [file_of(folder, sample)]
            own: dict[str, Any] = {}
            ways = {
                "defaults": by_qualities(database, *files),
                "without qualities": EvidenceParameters(),
                "errors stated": EvidenceParameters(read_errors=kind.errors),
            }
            for label, evidence in ways.items():
                tally = classify(database, files, truth, CALLS_BY_EVIDENCE, evidence)
                own[label] = tally.tolist()
            estimates[sample] = ways["defaults"].read_errors
            if kraken is not None:
                for confidence in KRAKENS:
                    tally = kraken.classify(files, truth, confidence)
                    own[f"kraken2 --confidence {confidence:g}"] = tally.tolist()
            found[sample] = own
            print(seed, sample, estimates[sample], own, file=sys.stderr, flush=True)
    return found, estimates


def real(genomes: Sequence[Genome], wanted: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Calls of sequenced reads against all genomes: right, another species, above, and none."""
    from ngsgpu.classify.params import DatabaseParameters
    from ngsgpu.taxonomy.dump import load_taxonomy
    from ngsgpu.taxonomy.ranks import SPECIES

    folder = wanted.work / "long_real"
    folder.mkdir(parents=True, exist_ok=True)
    tree = load_taxonomy(wanted.taxonomy)
    lineages = tree.ranked_lineages()
    build_database(
        [own.path for own in genomes], folder / "db", parameters=DatabaseParameters(),
        taxonomy=wanted.taxonomy, maps=[wanted.map], options=RunOptions(threads=1),
    )  # fmt: skip
    own = ["ngsgpu", "classify", "-d", "db", "-t", "1", "--backend", "cpu", "-q",
           "--kraken-reads", "calls.txt", "-i"]  # fmt: skip
    other = ["kraken2", "--db", "kraken2", "--output", "calls.txt"]
    if which("kraken2"):
        Kraken(genomes, folder, wanted)
    for text in wanted.reads:
        name, path, errors, taxid = text.split("=")
        commands = {"defaults": [*own, path]}
        for stated in (errors, "0.014"):
            commands[f"defaults --read-errors {stated}"] = [*own, path, "--read-errors", stated]
        if which("kraken2"):
            packed = ["--gzip-compressed"] if path.endswith(".gz") else []
            for confidence in KRAKENS:
                more = ["--confidence", str(confidence), *packed, path]
                commands[f"kraken2 --confidence {confidence:g}"] = [*other, *more]
        for program, command in commands.items():
            taken = measure(command, folder)
            counts = dict.fromkeys(("right", "other species", "above", "none"), 0)
            for line in (folder / "calls.txt").read_text().splitlines():
                called, _, at = line.split("\t")[:3]
                node = tree.index_of(int(at)) if called == "C" else -1
                species = lineages[node][SPECIES] if node >= 0 else -1
                is_right = species >= 0 and int(tree.taxid[species]) == int(taxid)
                what = "right" if is_right else "other species" if species >= 0 else "above"
                counts[what if node >= 0 else "none"] += 1
            print(name, program, counts, taken.user_s, file=sys.stderr, flush=True)
            yield {"reads": name, "program": program, "calls": counts, **asdict(taken)}


def total(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rates of all draws together."""
    return {
        kind: {
            program: rates_of(dict(zip(RANKS, np.sum([own[kind][program] for own in draws],
                                                     axis=0).tolist(), strict=True)))
            for program in programs
        }
        for kind, programs in draws[0].items()
    }  # fmt: skip


def table(document: dict[str, Any]) -> str:
    """Simulated reads that were checked on, then sequenced ones."""
    rows = [["errors", "program", "species: precision", "sensitivity", "genus: precision",
             "sensitivity", "strangers called as a species, %"]]  # fmt: skip
    for errors in KINDS:
        for program, own in document["rates"]["check"][errors].items():
            shares = [own[rank][what] for rank in RANKS for what in ("precision", "sensitivity")]
            draws = [one[f"strangers {errors}"][program] for one in document["draws"]["check"]]
            called, reads = (sum(tally[at][i] for tally in draws) for at, i in ((0, 1), (1, 2)))
            cells = [*(f"{share:.3f}" for share in shares), f"{100 * called / reads:.0f}"]
            rows.append([errors, shown(program), *cells])
    runs = [["reads", "program", "right species, %", "another, %", "above, %", "not called, %",
             "CPU, s"]]  # fmt: skip
    for run in document["real"]:
        total = sum(run["calls"].values())
        cells = [f"{100 * calls / total:.2f}" for calls in run["calls"].values()]
        runs.append([run["reads"], shown(run["program"]), *cells,
                     f"{run['user_s'] + run['system_s']:.1f}"])  # fmt: skip
    return markdown(rows, names=2) + "\n" + markdown(runs, names=2)


def shown(program: str) -> str:
    """A program for people."""
    name, _, options = program.partition(" --")
    known = {"kraken2": "Kraken 2.1.2", "errors stated": "`--read-errors`"}
    words = [known.get(name, name), f"`--{options}`" if options else ""]
    return ", ".join(filter(None, words))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "work", "model"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reads", action="append", default=[], metavar="NAME=READS=ERRORS=TAXID")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--choose", type=int, nargs="+", default=[0, 1], metavar="SEED")
    parser.add_argument("--check", type=int, nargs="+", default=[100, 101], metavar="SEED")
    wanted = parser.parse_args()
    genomes = read_genomes(wanted)
    document: dict[str, Any] = {**head(SCHEMA, SCHEMA_VERSION), "draws": {}, "rates": {}}
    document["by_qualities"] = {}
    for part in ("choose", "check"):
        draws, estimates = zip(
            *(simulated(genomes, seed, wanted) for seed in getattr(wanted, part)), strict=True
        )
        document["draws"][part] = draws
        document["by_qualities"][part] = estimates
        document["rates"][part] = total(draws)
    document["real"] = list(real(genomes, wanted))
    write_document(document, wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
