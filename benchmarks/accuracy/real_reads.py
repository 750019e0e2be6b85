"""Correction and merging of real reads beside other programs, judged on a reference.

The raw reads are aligned once by bwa; ``ngsgpu evaluate mapped`` compares what each program made of
them. A mixture of two simulated strains, judged by ``ngsgpu evaluate kmers``, and simulated pairs
that do not overlap go with them. No times are compared. One JSON file, Markdown tables.

    python -m benchmarks.accuracy.real_reads --data FOLDER -o out.json
    python -m benchmarks.accuracy.real_reads --data FOLDER --correct ngsgpu --correct lighter \
        --correct "ngsgpu classic=--classic" --merge vsearch -o out.json

``--correct`` and ``--merge`` name programs of ``benchmarks.peers.commands``, or options of ngsgpu
as LABEL=OPTIONS. ``--keep`` takes the programs that are not run from an earlier file, so that
ngsgpu alone is measured again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.accuracy.art import draw_pairs
from benchmarks.accuracy.strains import COLI, KMER, Mixture, draw_mixture
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import ROOT, BenchmarkError, answer, measure, version_in
from benchmarks.peers.commands import COMMANDS, HIDDEN, Job, Work
from ngsgpu.evaluate.kmers import evaluate_kmers
from ngsgpu.evaluate.mapped import evaluate_mapped_reads
from ngsgpu.evaluate.merging import evaluate_merging
from scripts.benchmark_tables import real_read_tables
from scripts.restore_reads import order, pair_name, restore
from scripts.simulation_chunks import read_fasta

SCHEMA = "ngsgpu.benchmark.real_reads"
SCHEMA_VERSION = 1
OURS = "ngsgpu"


@dataclass(frozen=True)
class RealSet:
    """Real pairs with a reference, below the data folder.

    Attributes:
        name: for people.
        reads: prefix of the two files of reads.
        reference: FASTA.
        stages: what is run on them.
    """

    name: str
    reads: str
    reference: str
    stages: tuple[str, ...] = ("correct", "merge")


REFS = "reads/refs"
VIRUS = "genomes/virus/sars_cov_2_MN908947.3.fa.gz"
REAL = (
    RealSet(
        "NA12878 chr20",
        "reads/human_NA12878_chr20_10Mb",
        f"{REFS}/human_chr20_hg19_9995001-11095000.fa.gz",
    ),
    RealSet("SARS-CoV-2", "reads/sarscov2_miseq_MN908947_3", VIRUS),
    RealSet("SARS-CoV-2 amplicons", "reads/sarscov2_artic_miseq", VIRUS),
    RealSet(
        "E. coli 10 kb",
        "reads/ecoli_mg1655_10kb",
        f"{REFS}/ecoli_mg1655_first10kb.fa.gz",
        ("merge",),
    ),
    RealSet(
        "infant gut",
        "reads/infant_gut_metagenome_N5_271",
        f"{REFS}/infant_gut_N5_271_scaffolds.fa.gz",
        ("merge",),
    ),
)
MIXTURE = Mixture("checked", COLI, 0, 300_000, "HS20", 100, 100, ((8, 0.01),))
APART = f"{REFS}/human_chr20_hg19_9995001-11095000.fa.gz"


def unpack(path: Path, target: Path) -> None:
    """Write a gzip-compressed file as a plain one."""
    with gzip.open(path, "rb") as source, target.open("wb") as out:
        shutil.copyfileobj(source, out)


def unpack_pairs(prefix: Path, folder: Path) -> None:
    """Write ``r1.fq`` and ``r2.fq``: pairs of which both mates are there, in the first's order."""
    mates: list[dict[bytes, bytes]] = []
    for mate in (1, 2):
        with gzip.open(f"{prefix}_R{mate}.fastq.gz", "rb") as lines:
            own = {}
            while record := list(islice(lines, 4)):
                own[pair_name(record[0].split()[0])] = b"".join(record)
            mates.append(own)
    names = [name for name in mates[0] if name in mates[1]]
    for mate, own in enumerate(mates, start=1):
        (folder / f"r{mate}.fq").write_bytes(b"".join(own[name] for name in names))


def genome_bases(reference: Path) -> int:
    """Bases of a FASTA file without Ns."""
    return sum(len(bases) - bases.count("N") for _, bases in read_fasta(reference))


def prepare(folder: Path, genome: int, settings: argparse.Namespace) -> Work:
    """Add ``both.fq``; return the description of the reads for the programs."""
    with (folder / "both.fq").open("wb") as out:
        for mate in (1, 2):
            with (folder / f"r{mate}.fq").open("rb") as source:
                shutil.copyfileobj(source, out)
    with (folder / "both.fq").open("rb") as lines:
        bases = sum(len(line) - 1 for number, line in enumerate(lines) if number % 4 == 1)
    coverage = max(1, round(bases / genome))
    return Work(genome, coverage, settings.threads, settings.backend)


def job_of(stage: str, wish: str, work: Work) -> tuple[str, Job]:
    """Label and job of a program, or of ngsgpu with options.

    Raises:
        BenchmarkError: there is no such program.
    """
    label, is_ours, options = wish.partition("=")
    if not is_ours and wish != OURS:
        if wish not in COMMANDS[stage]:
            raise BenchmarkError(f"{wish}: the programs are {', '.join(COMMANDS[stage])}")
        return wish, COMMANDS[stage][wish].job(work)
    common = f"-q --backend {work.backend} -t {work.threads} -i r1.fq -I r2.fq"
    if stage == "correct":
        outputs: tuple[str, ...] = ("ours_1.fq", "ours_2.fq")
        command = f"ngsgpu correct {common} -o {outputs[0]} -O {outputs[1]} {options}"
    else:
        outputs = ("ours.fq",)
        command = f"ngsgpu merge {common} -o {outputs[0]} {options}"
    return label, Job(command.rstrip(), outputs)


def run_jobs(
    stage: str, wishes: Sequence[str], work: Work, folder: Path
) -> Iterator[tuple[str, dict[str, Any], list[Path]]]:
    """Run each program; give its label, what was measured, and its reads, whole and in order."""
    path = ":".join([*HIDDEN, str(Path(sys.executable).parent)])
    environment = {"PATH": f"{os.environ.get('PATH', '')}:{path}"}
    raw = [folder / "r1.fq", folder / "r2.fq"]
    for wish in wishes:
        label, job = job_of(stage, wish, work)
        # CARE and Lighter do not make their folders.
        for name in ("care-cpu", "care-gpu", "lighter", "flash"):
            (folder / name).mkdir(exist_ok=True)
        output = folder / job.output if job.output else None
        took = measure(["bash", "-c", job.command], folder, output=output, environment=environment)
        given = sorted(
            path for name in ([job.output] if job.output else job.outputs)
            for path in folder.glob(name)
        )  # fmt: skip
        if stage == "correct":
            targets = [folder / f"restored_{mate}.fq" for mate in (1, 2)]
            restore(raw, given, targets)
        else:
            targets = [folder / "restored.fq"]
            merged = next(path for path in given if path.name == Path(job.outputs[0]).name)
            order(raw[0], merged, targets[0])
        yield label, {"command": job.command, "wall_s": took.wall_s}, targets


def short(document: Any) -> Any:
    """An evaluation without its lists by quality."""
    if isinstance(document, dict):
        return {key: short(own) for key, own in document.items() if key != "by_quality"}
    return document


def real_sets(settings: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each real set and stage."""
    for own in REAL:
        with tempfile.TemporaryDirectory(dir=settings.work) as name:
            folder = Path(name)
            reference = folder / "reference.fa"
            unpack(settings.data / own.reference, reference)
            unpack_pairs(settings.data / own.reads, folder)
            work = prepare(folder, genome_bases(reference), settings)
            measure(["bwa", "index", "reference.fa"], folder)
            sam = folder / "aligned.sam"
            mem = f"bwa mem -K 10000000 -t {settings.threads} reference.fa r1.fq r2.fq"
            measure(mem.split(), folder, output=sam)
            for stage in own.stages:
                programs = {}
                wishes = settings.correct if stage == "correct" else settings.merge
                for label, entry, files in run_jobs(stage, wishes, work, folder):
                    found = evaluate_mapped_reads(
                        reference,
                        folder / "r1.fq",
                        folder / "r2.fq",
                        out1=files[0] if stage == "correct" else None,
                        out2=files[1] if stage == "correct" else None,
                        merged=files[0] if stage == "merge" else None,
                        alignments=sam,
                    )
                    programs[label] = entry | {"evaluation": short(found.document())}
                yield {"name": own.name, "stage": stage, "programs": programs}


def strain_mixture(settings: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Two strains that differ by SNVs, the rarer one's own k-mers after correction."""
    with tempfile.TemporaryDirectory(dir=settings.work) as name:
        folder = Path(name)
        draw_mixture(MIXTURE, settings.data, folder)
        work = prepare(folder, MIXTURE.bases, settings)
        programs = {}
        for label, entry, files in run_jobs("correct", settings.correct, work, folder):
            found = evaluate_kmers(
                [folder / "r1.fq", folder / "r2.fq"],
                files,
                reference=folder / "s0.fa",
                minority=folder / "s1.fa",
                k=KMER,
            )
            programs[label] = entry | {"evaluation": found.document()}
        yield {"name": "two strains, 100 x and 8 x", "stage": "strains", "programs": programs}


def pairs_apart(settings: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Simulated pairs that do not overlap."""
    with tempfile.TemporaryDirectory(dir=settings.work) as name:
        folder = Path(name)
        unpack(settings.data / APART, folder / "reference.fa")
        options = ("-ef", "-l", 100, "-f", 4.35, "-m", 400, "-s", 10, "-rs", 1)
        draw_pairs("HS20", "reference.fa", "r", folder, *options, "-d", "r")
        work = prepare(folder, genome_bases(folder / "reference.fa"), settings)
        programs = {}
        for label, entry, files in run_jobs("merge", settings.merge, work, folder):
            found = evaluate_merging(
                folder / "r_errFree.sam", folder / "r1.fq", folder / "r2.fq", files[0]
            )
            document = short(found.document())
            programs[label] = entry | {"evaluation": {"merging": document}}
        yield {"name": "human, 2 x 100, fragments of 400", "stage": "merge", "programs": programs}


def add_earlier(document: dict[str, Any], earlier: dict[str, Any]) -> None:
    """Add the programs of an earlier file that were not run now, behind those that were."""
    document["programs"] = earlier["programs"] | document["programs"]
    found = {(data["name"], data["stage"]): data["programs"] for data in earlier["datasets"]}
    for data in document["datasets"]:
        old = found.get((data["name"], data["stage"]), {})
        data["programs"] |= {name: old[name] for name in old if name not in data["programs"]}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="real_reads", description="Correction and merging of real reads, on a reference.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of genomes/ and reads/")
    programs = "program, or LABEL=OPTIONS of ngsgpu; repeat for more"
    add("--correct", action="append", help=f"{programs} (ngsgpu)")
    add("--merge", action="append", help=f"{programs} (ngsgpu)")
    add("--keep", type=Path, help="earlier file, for the programs that are not run")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("--threads", type=int, default=2)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    settings = parser.parse_args(arguments)
    settings.correct = settings.correct or [OURS]
    settings.merge = settings.merge or [OURS]
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, write."""
    settings = parse(arguments)
    named = {wish.partition("=")[0] for wish in (*settings.correct, *settings.merge)}
    versions = {
        name: command.version
        for stage in ("correct", "merge")
        for name, command in COMMANDS[stage].items()
        if name in named
    } | {OURS: "ngsgpu --version", "bwa": "bwa", "art": "art_illumina"}
    try:
        settings.work.mkdir(parents=True, exist_ok=True)
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "programs": {name: version_of(how) for name, how in versions.items()},
            "datasets": [],
        }
        for entry in chain(real_sets(settings), strain_mixture(settings), pairs_apart(settings)):
            document["datasets"].append(entry)
            print(f"{entry['name']}, {entry['stage']}: done", file=sys.stderr)
            # What was measured is kept if a program fails on a later set.
            write_document(document, settings.output)
        if settings.keep:
            add_earlier(document, json.loads(settings.keep.read_text()))
    except (BenchmarkError, OSError) as error:
        print(f"real_reads: error: {error}", file=sys.stderr)
        return 1
    write_document(document, settings.output)
    print(real_read_tables(document), end="")
    return 0


def version_of(how: str) -> str:
    """The version that a program says."""
    name, *options = how.split()
    path = shutil.which(name) or shutil.which(name, path=":".join(HIDDEN)) or name
    return version_in(answer(path, *options))


if __name__ == "__main__":
    sys.exit(main())
