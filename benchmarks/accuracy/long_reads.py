"""Long reads in classification, simulated and real, beside Kraken 2.

    python -m benchmarks.accuracy.long_reads --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --model model_qc_clr --choose 0 1 --check 100 101 \
        --reads "NAME=reads.fq.gz=0.15=562" -o out.json

The draws are those of ``classification``: genomes whose strain, species or genus the database
lacks, that it has, or that it has with changed bases. PBSIM (1.0, on the PATH; ``--model`` is its
file of qualities) makes reads with 5, 10 and 15 % of errors, half of them insertions or deletions;
those of 0.5 %, which it cannot make, have errors at random places and one quality. Without stated
errors, those are allowed for that qualities say.
``strangers`` are the reads of genomes whose species or genus the database lacks, as samples without
anything else. ``--reads`` names real ones with their errors and their species' taxid, against a
database of all genomes: the share of them that is called at this species, at another one, and
above.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import which
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.classification.genomes import (
    ACGT,
    CHANGED,
    COMPLEMENT,
    Genome,
    Library,
    changed,
    deal,
    read_library,
    sequences,
)
from benchmarks.accuracy.classification.judging import RANKS, Judge, Truth
from benchmarks.accuracy.classification.programs import Kraken, Ngsgpu, calls_of
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from benchmarks.harness.tables import markdown
from ngsgpu.taxonomy.ranks import SPECIES

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


def make_reads(
    genomes: Sequence[Genome], seed: int, folder: Path, model: Path
) -> tuple[list[Genome], dict[str, Truth]]:
    """Write the reads of a draw, those of strangers also apart.

    Returns:
        The genomes of the database, and the truth by label of reads.
    """
    roles, there = deal(genomes, seed)
    species, genera = {own.species for own in there}, {own.genus for own in there}
    truth = {
        f"g{number}": Truth(own.species, own.genus, own.species in species, own.genus in genera)
        for number, own in enumerate(genomes[i] for i in roles)
    }
    if folder.exists():
        return there, truth
    folder.mkdir(parents=True)
    source = np.random.default_rng(2000 + seed)
    texts: dict[str, list[bytes]] = {}
    for number, (i, role) in enumerate(roles.items()):
        bases = max(sequences(genomes[i].path), key=len)
        if role in CHANGED:
            bases = changed(bases, float(role.split()[1]) / 100, source)
        for name, kind in KINDS.items():
            for at, read in enumerate(draw(bases, kind, READS, 100 * seed + number, model)):
                record = b"@g%d_%d\n%b\n+\n%b\n" % (number, at, *read)
                texts.setdefault(name, []).append(record)
                if role in STRANGERS:
                    texts.setdefault(f"strangers {name}", []).append(record)
    for name, records in texts.items():
        file_of(folder, name).write_bytes(b"".join(records))
    return there, truth


def file_of(folder: Path, name: str) -> Path:
    """The reads of a name."""
    return folder / f"{name.replace(' ', '').replace('%', '')}.fq"


def simulated(library: Library, seed: int, wanted: argparse.Namespace) -> dict[str, Any]:
    """Right calls, calls and reads to be found on a draw, by kind and program."""
    folder = wanted.work / f"long{seed}"
    there, truth = make_reads(library.genomes, seed, folder, wanted.model)
    judge, version = Judge(library.tree), Ngsgpu()
    database = version.build(there, library, folder)
    kraken = Kraken(there, library, folder) if which("kraken2") else None
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        stated = replace(version, options=("--read-errors", str(kind.errors)))
        for sample in (name, f"strangers {name}"):
            files = [file_of(folder, sample)]
            calls = {
                way: own.classify(database, [("reads", files)])["reads"][0]
                for way, own in (("defaults", version), ("errors stated", stated))
            }
            for confidence in KRAKENS if kraken else ():
                name_of = f"kraken2 --confidence {confidence:g}"
                calls[name_of] = kraken.classify(files, confidence) if kraken else []
            found[sample] = {way: [*judge.tally(own, truth).values()] for way, own in calls.items()}
            print(seed, sample, found[sample], file=sys.stderr, flush=True)
    return found


def real(library: Library, wanted: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Calls of sequenced reads against all genomes: right, another species, above, and none."""
    folder = wanted.work / "long_real"
    folder.mkdir(parents=True, exist_ok=True)
    judge = Judge(library.tree)
    version = Ngsgpu()
    database = version.build(library.genomes, library, folder)
    own = [*version.command, "classify", "-d", database.name, "-t", "1", "--backend", "cpu", "-q",
           "--kraken-reads", "calls.txt", "-i"]  # fmt: skip
    other = ["kraken2", "--db", "kraken2", "--output", "calls.txt"]
    if which("kraken2"):
        Kraken(library.genomes, library, folder)
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
            calls = calls_of((folder / "calls.txt").read_text())
            species = judge.taxa(calls, SPECIES)
            counts = {"right": species.count(int(taxid)), "other species": 0, "above": 0, "none": 0}
            counts["none"] = sum(called == 0 for _, called in calls)
            counts["above"] = species.count(0) - counts["none"]
            counts["other species"] = len(calls) - sum(counts.values())
            print(name, program, counts, taken.user_s, file=sys.stderr, flush=True)
            yield {"reads": name, "program": program, "calls": counts, **asdict(taken)}


def total(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rates of all draws together."""
    rates: dict[str, Any] = {}
    for kind, programs in draws[0].items():
        for program in programs:
            tally = np.sum([own[kind][program] for own in draws], axis=0).tolist()
            rates.setdefault(kind, {})[program] = {
                rank: {
                    "precision": round(right / max(calls, 1), 4),
                    "sensitivity": round(right / max(reads, 1), 4),
                }
                for rank, (right, calls, reads) in zip(RANKS, tally, strict=True)
            }
    return rates


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
    library = read_library(wanted.references, wanted.taxonomy, wanted.map)
    document: dict[str, Any] = {**head(SCHEMA, SCHEMA_VERSION), "draws": {}, "rates": {}}
    for part in ("choose", "check"):
        draws = [simulated(library, seed, wanted) for seed in getattr(wanted, part)]
        document["draws"][part] = draws
        document["rates"][part] = total(draws)
    document["real"] = list(real(library, wanted))
    write_document(document, wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
