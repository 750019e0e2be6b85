"""All programs on all data sets: time and its parts, memory of host and GPU, accuracy, parity.

    python -m benchmarks.peers.suite --data S L --genomes GENOMES --backend cuda --parity S \
        -o out.json
    python -m benchmarks.peers.suite --data ecoli.fna.gz yeast.fa.gz --threads 2 -o out.json

Each data set goes through the programs of its stage that are on the PATH, with the same number of
threads, in turn, several times; each is measured as a whole process from plain files to plain
files, the inputs being in the page cache. With ``--compressed`` they read .gz, and those that can
write .gz; ``writes_gz`` says of each whether it did. One JSON file holds everything, a Markdown
table goes to standard output. ``benchmarks/README.md`` says what is measured how.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import MATES, NAMED, REPEATED, TRUTH, DataSet, data_set, make
from benchmarks.harness.document import head, write_document
from benchmarks.harness.forms import ENDINGS, GZIP, Files, form_paths, make_forms, write_first
from benchmarks.harness.measuring import (
    ROOT,
    BenchmarkError,
    Measurement,
    answer,
    apart,
    measure,
    version_in,
)
from benchmarks.harness.tables import table
from benchmarks.peers.programs import NAMES, NGSGPU, Job, Program, Work, programs_of

SCHEMA = "ngsgpu.benchmark.suite"
SCHEMA_VERSION = 1
START_PAIRS = 100
WARM_UP_PAIRS = 50_000
CACHES = {
    "NGSGPU_CACHE_DIR": "ngsgpu",
    "CUPY_CACHE_DIR": "cupy",
}
"""Where ngsgpu keeps compiled kernels; each benchmark begins with these empty."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One data set, where it is and what works on it.

    Attributes:
        data: what was made, as ``benchmarks.harness.datasets.make`` describes it.
        reads: folder of the reads and of the truth.
        directory: where the programs run; ``r1.fq`` and ``r2.fq`` in it lead to the reads.
        kernels: folder of the compiled kernels of ngsgpu.
        work: the description of the programs' task.
    """

    data: dict[str, Any]
    reads: Path
    directory: Path
    kernels: Path
    work: Work

    @property
    def environment(self) -> dict[str, str]:
        """Where kernels are kept."""
        return {name: str(self.kernels / folder) for name, folder in CACHES.items()}

    def run(self, job: Job) -> Measurement:
        """Run a job once, from a state in which no output is there."""
        for output in job.outputs:
            (self.directory / output).parent.mkdir(exist_ok=True)
            (self.directory / output).unlink(missing_ok=True)
        # What others wrote shall not go to the disk while this one is measured.
        os.sync()
        return measure(
            job.command.split(),
            self.directory,
            output=self.directory / job.output if job.output else None,
            environment=self.environment,
        )

    def first_pairs(self, pairs: int) -> Bench:
        """The same with the data set's first pairs only, in a separate folder."""
        directory = self.directory / f"first{pairs}"
        apart(_make_first, self.directory, pairs, directory, self.work)
        return replace(self, directory=directory)


def _make_first(source: Path, pairs: int, directory: Path, work: Work) -> None:
    first = write_first((source / MATES[0], source / MATES[1]), pairs, directory)
    if work.ending:
        _make_compressed(first, directory, directory, work.threads)


def _make_compressed(files: Files, folder: Path, directory: Path, threads: int) -> None:
    """Make the .gz files of plain ones in a folder of forms; links to them in another folder."""
    make_forms([(files, folder)], [GZIP], threads)
    for path in form_paths(GZIP, files, folder):
        (directory / path.name).symlink_to(path.resolve())


def start_times(bench: Bench, program: Program) -> dict[str, Any]:
    """Seconds that ngsgpu takes for few pairs with no compiled kernels, and with all of them."""
    few = bench.first_pairs(START_PAIRS)
    job = program.job(few.work)
    runs = [asdict(few.run(job)) for _ in range(4)]
    return {"pairs": START_PAIRS, "command": job.command, "cold": runs[0], "warm": runs[1:]}


def warm_up(bench: Bench, program: Program) -> None:
    """Compile whatever kernels the data set needs, and bring its files into the page cache."""
    few = bench.first_pairs(WARM_UP_PAIRS)
    few.run(program.job(few.work))
    for mate in bench.work.mates:
        with (bench.directory / mate).open("rb", buffering=0) as reads:
            while reads.read(1 << 20):
                pass


def measure_in_turn(
    bench: Bench, programs: dict[str, Program], repeats: int
) -> dict[str, list[dict[str, Any]]]:
    """Run all programs in turn, several times; the runs of each."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    names = list(programs)
    for repeat in range(repeats):
        # Each begins once, so that none always follows the same other one.
        first = repeat % len(names)
        for name in [*names[first:], *names[:first]]:
            program = programs[name]
            measured = bench.run(program.job(bench.work))
            print(f"{bench.data['name']}: {name} {measured.wall_s:.1f} s", file=sys.stderr)
            runs[name].append(asdict(measured) | program.report(bench.directory))
    return runs


def evaluate(bench: Bench, job: Job) -> dict[str, Any]:
    """Accuracy of what a corrector wrote: all counts but those by position."""
    if job.output is not None:
        split_mates(bench.directory, job, bench.data["reads"] // 2)
    measure(
        [
            *("ngsgpu", "evaluate", "correction", "--truth", str(bench.reads / TRUTH)),
            *("--json", "e.json", "-i", MATES[0], "-I", MATES[1]),
            *("-o", job.outputs[0], "-O", job.outputs[1]),
        ],
        bench.directory,
        environment=bench.environment,
    )
    document = json.loads((bench.directory / "e.json").read_text())
    return {key: document[key] for key in ("totals", "rates", "reads", "indel_reads", "all_reads")}


def evaluate_merging(bench: Bench, program: Program) -> dict[str, Any]:
    """Accuracy of what a merger wrote, and its check sum, which tells if two agree.

    For ngsgpu under ``edgar`` also the accuracy with posterior probabilities as qualities.
    """
    job = program.job(bench.work)
    if not program.orders:
        job = program.job(replace(bench.work, threads=1))
        bench.run(job)
    found = _against_fragments(bench, job)
    # Of the reads, however they were compressed.
    opened = gzip.open if job.outputs[0].endswith(".gz") else open
    with opened(bench.directory / job.outputs[0], "rb") as merged:
        found["sha256"] = hashlib.file_digest(merged, "sha256").hexdigest()
    if job.command.endswith(" --flash"):
        options = "--overlap flash --max-overlap 65"
        other = replace(job, command=job.command.removesuffix("--flash") + options)
        bench.run(other)
        found["edgar"] = _against_fragments(bench, other)
    return found


def _against_fragments(bench: Bench, job: Job) -> dict[str, Any]:
    measure(
        [
            *("ngsgpu", "evaluate", "merging", "--truth", str(bench.reads / TRUTH)),
            *("--json", "e.json", "-i", MATES[0], "-I", MATES[1], "-m", job.outputs[0]),
        ],
        bench.directory,
        environment=bench.environment,
    )
    document = json.loads((bench.directory / "e.json").read_text())
    return {key: document[key] for key in ("pairs", "rates", "bases", "calibration")}


def compare_backends(bench: Bench, program: Program) -> dict[str, Any]:
    """Whether the other backend of ngsgpu writes the same bytes, and how long it takes."""
    other = "cpu" if bench.work.backend == "cuda" else "cuda"
    ours, theirs = (
        program.job(replace(bench.work, backend=name)) for name in (bench.work.backend, other)
    )
    measured = bench.run(theirs)
    same = all(
        filecmp.cmp(bench.directory / one, bench.directory / two, shallow=False)
        for one, two in zip(ours.outputs, theirs.outputs, strict=True)
    )
    return {"backends": [bench.work.backend, other], "same": same, "other_run": asdict(measured)}


def join_mates(directory: Path, ending: str = "") -> None:
    """Write ``r1.fq`` and ``r2.fq`` one after the other into ``both.fq``; .gz as members of one."""
    with (directory / f"both.fq{ending}").open("wb") as both:
        for mate in (f"{mate}{ending}" for mate in MATES):
            with (directory / mate).open("rb") as reads:
                shutil.copyfileobj(reads, both, 1 << 20)


def split_mates(directory: Path, job: Job, pairs: int) -> None:
    """Write the first half of what a program printed to its one output, the rest to the other."""
    with (directory / str(job.output)).open("rb") as reads:
        for output in job.outputs:
            with (directory / output).open("wb") as target:
                target.writelines(islice(reads, 4 * pairs))


def measure_data_set(
    bench: Bench, stage: str, programs: dict[str, Program], settings: argparse.Namespace
) -> dict[str, Any]:
    """Everything that is to be known of one data set."""
    name = bench.data["name"]
    described = bench.data | {"stage": stage, "parity": None, "programs": []}
    ours = programs.get(NGSGPU)
    if any(program.job(bench.work).joined for program in programs.values()):
        join_mates(bench.directory, bench.work.ending)
    if ours is not None:
        warm_up(bench, ours)
    repeats = 1 if settings.accuracy_only else settings.repeats
    runs = measure_in_turn(bench, programs, repeats)
    for program_name, program in programs.items():
        job = program.job(bench.work)
        entry: dict[str, Any] = {"program": program_name, "command": job.command}
        if settings.compressed:
            entry["writes_gz"] = (job.output or job.outputs[0]).endswith(".gz")
        if not settings.accuracy_only:
            entry["runs"] = runs[program_name]
        entry["accuracy"] = None
        if wants_truth(name, settings):
            merges = stage == "merge"
            entry["accuracy"] = evaluate_merging(bench, program) if merges else evaluate(bench, job)
        described["programs"].append(entry)
    if ours is not None and name in settings.parity:
        described["parity"] = compare_backends(bench, ours)
    return described


def wants_truth(name: str, settings: argparse.Namespace) -> bool:
    """Whether the accuracy on a data set is to be reported."""
    if settings.evaluate is None:
        return name != "L" and not REPEATED.fullmatch(name)
    return name in settings.evaluate


@contextmanager
def work_directory(parent: Path) -> Iterator[Path]:
    """A directory that is removed in the end."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


def prepare(
    data: DataSet, folder: Path, kernels: Path, directory: Path, settings: argparse.Namespace
) -> Bench:
    """Make the data set, unless it is there, and a directory for the programs."""
    reads = (folder / data.name).resolve()
    made = apart(
        make,
        data,
        reads,
        processes=settings.threads,
        truth=wants_truth(data.name, settings),
    )
    for mate in MATES:
        (directory / mate).symlink_to(reads / mate)
    coverage = round(data.coverage or made["reads"] * data.read_length / made["genome_bases"])
    work = Work(made["genome_bases"], coverage, settings.threads, settings.backend)
    if settings.compressed:
        work = replace(work, ending=ENDINGS[GZIP])
        pair = (reads / MATES[0], reads / MATES[1])
        apart(_make_compressed, pair, reads / "forms", directory, settings.threads)
    return Bench(made, reads, directory, kernels, work)


def run(settings: argparse.Namespace) -> dict[str, Any]:
    """Measure all data sets; the document."""
    drawn = {name: getattr(settings, name) for name in ("coverage", "insert", "seed")}
    chosen = [apart(data_set, name, settings.genomes, **drawn) for name in settings.data]
    tables = {data.stage: programs_of(data.stage, settings.programs) for data in chosen}
    everything = {
        name: program for programs in tables.values() for name, program in programs.items()
    }
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "programs": {name: program.found_version() for name, program in everything.items()}
        | {"art_illumina": version_in(answer("art_illumina"))},
        "settings": {
            "backend": settings.backend,
            "threads": settings.threads,
            "repeats": 1 if settings.accuracy_only else settings.repeats,
            "accuracy_only": settings.accuracy_only,
            "compressed": settings.compressed,
        },
        "start": None,
        "datasets": [],
    }
    with work_directory(settings.work) as work:
        for data in chosen:
            programs = tables[data.stage]
            if not programs:
                raise BenchmarkError(f"no program for {data.name} (stage {data.stage}) was found")
            with work_directory(work) as directory:
                folder = settings.folder or directory / "data"
                bench = prepare(data, folder, work / "kernels", directory, settings)
                ours = programs.get(NGSGPU)
                if document["start"] is None and ours is not None and not settings.accuracy_only:
                    document["start"] = start_times(bench, ours)
                measured = measure_data_set(bench, data.stage, programs, settings)
                document["datasets"].append(measured)
    return document


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="suite", description="Measure programs side by side.", formatter_class=described
    )
    add = parser.add_argument
    named = ", ".join(NAMED)
    add("--data", nargs="+", required=True, help=f"{named}, or FASTA files, plain or gzip")
    add("--genomes", type=Path, help=f"folder of genomes for {named}")
    add("--folder", type=Path, help="where data sets are kept; without it they are removed")
    named = f"of {', '.join(NAMES)}, or LABEL=OPTIONS of ngsgpu"
    add("--programs", nargs="+", help=f"instead of all that are found: {named}")
    add("--backend", choices=("cpu", "cuda"), default="cpu", help="of ngsgpu")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1, help="of every program")
    add("--repeats", type=int, default=3, help="measurements of each program")
    add("--compressed", action="store_true", help="from .gz, and to .gz where a program can")
    add("--accuracy-only", action="store_true", help="run each program once and record no times")
    add("--evaluate", nargs="*", metavar="DATA", help="tell the accuracy on these; all but L, M20")
    add(
        "--parity", nargs="*", metavar="DATA", default=[], help="compare ngsgpu's backends on these"
    )
    add("--coverage", type=int, default=30, help="reads per position, for FASTA files")
    add("--insert", type=int, default=300, help="mean length of fragments, for FASTA files")
    add("--seed", type=int, default=1, help="of the simulation, for FASTA files")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    settings = parse(arguments)
    try:
        document = run(settings)
    except (BenchmarkError, OSError) as error:
        print(f"suite: error: {error}", file=sys.stderr)
        return 1
    write_document(document, settings.output)
    print(table(document), end="")
    differ = [
        data for data in document["datasets"] if data["parity"] and not data["parity"]["same"]
    ]
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
