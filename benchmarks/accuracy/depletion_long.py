"""Share of long reads that depletion takes for a host's, beside minimap2.

    python -m benchmarks.accuracy.depletion_long --host human.fa.gz --host yeast.fa.gz \
        --microbes GENOMES --model model_qc_clr --large 620e6 \
        --reads "NAME=own.fa.gz,other.fa.gz=reads.fq.gz" -o out.json

Reads are simulated as in ``long_reads`` with each share of errors: 400 of each host, and 60 of each
genome of ``--microbes``. ``--reads`` names real ones and the genomes that are taken for their host
in turn; the first is that of the reads. minimap2, if it is on the PATH, takes what it maps for the
host's, with its preset for such reads. ``--large`` adds a host of random bases, which has nothing
in common with random reads but by chance; k-mers of 22 bases stand for a larger one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import which
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.classification.genomes import ACGT, sequences
from benchmarks.accuracy.long_reads import KINDS, draw
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.depletion_long"
SCHEMA_VERSION: Final = 1
OF_HOST, OF_MICROBE = 400, 60
LENGTHS: Final = (500, 1000, 2000, 4000)
"""Of random reads."""
_SHORTER: Final = 22
"""k-mer length for these, which are in a host by chance as often as those of 24 bases in one 16
times as large."""
RANDOM: Final = 300_000
"""Random reads of each length."""


def write_reads(path: Path, reads: Iterable[bytes]) -> int:
    """Write reads as FASTA; their number."""
    number = 0
    with path.open("wb") as file:
        for number, read in enumerate(reads, 1):
            file.write(b">r%d\n%s\n" % (number, read))
    return number


def plain(genome: Path, folder: Path) -> Path:
    """A genome without compression."""
    path = folder / genome.name.removesuffix(".gz")
    if not path.exists():
        path.write_bytes(b"".join(b">s%d\n%s\n" % (i, own.tobytes())
                                  for i, own in enumerate(sequences(genome))))  # fmt: skip
    return path


def by_ngsgpu(
    host: Path, reads: Path, folder: Path, *options: str, kmer: int = 24
) -> dict[str, Any]:
    """Reads that are the host's, and what the run took."""
    index = folder / f"{host.name}.idx"
    if not index.exists():
        command = ["ngsgpu", "deplete-index", str(host), "-o", str(index), "-t", "1", "-q"]
        measure([*command, "--kmer", str(kmer)], folder)
    command = ["ngsgpu", "deplete", "-d", str(index), "-i", str(reads), "-o", "/dev/null", "-t",
               "1", "--backend", "cpu", "-q", "--stats", "s.json", *options]  # fmt: skip
    taken = measure(command, folder)
    stats = json.loads((folder / "s.json").read_text())
    return {"host": stats["reads"]["host"], "bounds": stats["bounds"], **asdict(taken)}


def by_minimap2(host: Path, reads: Path, folder: Path, preset: str) -> dict[str, Any]:
    """The same, by minimap2: reads that have an alignment."""
    found = folder / "found.paf"
    taken = measure(["minimap2", "-x", preset, "-t", "1", "--secondary=no", str(host), str(reads)],
                    folder, output=found)  # fmt: skip
    with found.open("rb") as file:
        return {"host": len({line.split(b"\t", 1)[0] for line in file}), **asdict(taken)}


def taken_out(host: Path, reads: Path, folder: Path, preset: str) -> dict[str, Any]:
    """By all programs."""
    found = {"ngsgpu": by_ngsgpu(host, reads, folder)}
    if which("minimap2"):
        found["minimap2"] = by_minimap2(host, reads, folder, preset)
    return found


def simulated(given: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Reads of hosts and microbes, by their errors."""
    genomes = sorted(given.microbes.iterdir())
    for name, kind in KINDS.items():
        preset = "map-ont" if kind.by_pbsim else "map-hifi"
        microbial = folder / "microbes.fa"
        longest = (max(sequences(genome), key=len) for genome in genomes)
        of_microbes = write_reads(microbial, (
            read for seed, bases in enumerate(longest)
            for read, _ in draw(bases, kind, OF_MICROBE, seed, given.model)
        ))  # fmt: skip
        for seed, genome in enumerate(given.host):
            host, own = plain(genome, folder), folder / "own.fa"
            bases = max(sequences(genome), key=len)
            drawn = draw(bases, kind, OF_HOST, 1000 + seed, given.model)
            of_host = write_reads(own, (read for read, _ in drawn))
            row = {
                "errors": name, "host": genome.name, "reads": of_host, "microbial": of_microbes,
                "found": taken_out(host, own, folder, preset),
                "lost": taken_out(host, microbial, folder, preset),
            }  # fmt: skip
            print(json.dumps({name: {program: one["host"] for program, one in row[name].items()}
                              for name in ("found", "lost")}), row["errors"], genome.name,
                  of_host, of_microbes, file=sys.stderr, flush=True)  # fmt: skip
            yield row


def real(given: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Sequenced reads against genomes."""
    for text in given.reads:
        name, genomes, reads = text.split("=")
        for genome in map(Path, genomes.split(",")):
            found = taken_out(plain(genome, folder), Path(reads), folder, given.preset)
            print(name, genome.name, {program: (one["host"], one["user_s"])
                                      for program, one in found.items()},
                  file=sys.stderr, flush=True)  # fmt: skip
            yield {"reads": name, "host": genome.name, "found": found}


def by_chance(given: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Random reads that are taken for those of a large random host."""
    source = np.random.default_rng(1)

    def random(bases: int) -> NDArray[np.uint8]:
        return ACGT[source.integers(0, 4, bases, dtype=np.uint8)]

    host = folder / "random.fa"
    with host.open("wb") as file:
        for number in range(20):
            file.write(b">c%d\n%s\n" % (number, random(given.large // 20).tobytes()))
    for length in LENGTHS:
        reads = folder / "random_reads.fa"
        write_reads(reads, (random(length).tobytes() for _ in range(RANDOM)))
        row: dict[str, Any] = {"length": length, "reads": RANDOM, "bases": given.large}
        row["auto"] = by_ngsgpu(host, reads, folder, kmer=_SHORTER)
        row["36"] = by_ngsgpu(host, reads, folder, "--min-bases", "36", kmer=_SHORTER)
        print(length, row["auto"]["host"], row["36"]["host"], file=sys.stderr, flush=True)
        yield row


def table(document: dict[str, Any]) -> str:
    """Simulated reads, sequenced ones, and random ones."""
    programs = {"ngsgpu": "`ngsgpu`", "minimap2": "minimap2"}
    rows = [["errors", "host", *(f"found: {own}" for own in programs.values()),
             *(f"microbial lost: {own}" for own in programs.values())]]  # fmt: skip
    for own in document["simulated"]:
        found = [f"{one['host'] / own['reads']:.4f}" for one in own["found"].values()]
        lost = [f"{one['host']:,} of {own['microbial']:,}" for one in own["lost"].values()]
        rows.append([own["errors"], named(own["host"]), *found, *lost])
    runs = [["reads", "genome of the host", *(f"found: {own}" for own in programs.values()),
             *(f"user time, s: {own}" for own in programs.values())]]  # fmt: skip
    for own in document["real"]:
        counts = [f"{one['host']:,}" for one in own["found"].values()]
        times = [f"{one['user_s']:.1f}" for one in own["found"].values()]
        runs.append([own["reads"], named(own["host"]), *counts, *times])
    chance = [["random reads of", "taken for the host's", "with `--min-bases 36`"]]
    for own in document["by_chance"]:
        cells = [f"{own[name]['host']:,} of {own['reads']:,}" for name in ("auto", "36")]
        chance.append([f"{own['length']:,} bases", *cells])
    tables = (rows, 2), (runs, 2), (chance, 1)
    return "\n".join(markdown(own, names=names) for own, names in tables)


def named(file: str) -> str:
    """The genome of a file for people."""
    genome = file.partition(".")[0]
    known = {
        "human_chr20_first_5Mb": "human, 5 Mb of chr20",
        "saccharomyces_cerevisiae_R64": "yeast",
    }
    species = genome.partition("__")[0].replace("_", " ")
    return known.get(genome, f"*{species[0].upper()}{species[1:]}*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", type=Path, action="append", default=[])
    parser.add_argument("--microbes", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--reads", action="append", default=[], metavar="NAME=HOST,HOST=READS")
    parser.add_argument("--preset", default="map-ont", help="of minimap2 for real reads")
    parser.add_argument("--large", type=lambda word: int(float(word)), default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    document = head(SCHEMA, SCHEMA_VERSION)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document["simulated"] = list(simulated(given, folder))
        document["real"] = list(real(given, folder))
        document["by_chance"] = list(by_chance(given, folder)) if given.large else []
    write_document(document, given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
