"""Counting k-mers and making unitigs, side by side: ngsgpu on CPU and GPU, KMC 3 and BCALM 2.

Each program runs on a data set or on the files named, as a whole process, from plain files (with
``--compressed`` from .gz, which all of them read) to plain files. What all make must agree: the
histograms, the databases and the unitigs of both backends, and KMC's histogram. ``kmc``,
``kmc_tools`` and ``bcalm`` take part if they are on the ``PATH``.

    python -m benchmarks.peers.kmers L --genomes GENOMES --backend cuda --threads 16 -o out.json
    python -m benchmarks.peers.kmers r1.fq r2.fq --threads 2 -o out.json
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import MATES, NAMED, data_set, make
from benchmarks.harness.document import head, write_document
from benchmarks.harness.forms import ENDINGS, GZIP, form_paths, make_forms
from benchmarks.harness.measuring import (
    ROOT,
    BenchmarkError,
    answer,
    apart,
    find_program,
    measure,
    version_in,
)
from benchmarks.harness.tables import markdown

SCHEMA = "ngsgpu.benchmark.kmers"
SCHEMA_VERSION = 1
READS = "reads.txt"
WARM_UP_LINES = 4 * 2000
HIGHEST = 10_000
_STAGE = re.compile(r"^ngsgpu: ([\w ]+): .* in ([\d.]+) s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Job:
    """What is run.

    Attributes:
        task: what is made: a histogram, a database, unitigs.
        program: name of the program and what is special about it.
        command: with file names of the folder that it runs in.
        output: file or folder that it makes.
        backend: of ngsgpu; None for others.
    """

    task: str
    program: str
    command: str
    output: str
    backend: str | None = None


def jobs(settings: argparse.Namespace) -> list[Job]:
    """The command lines, in the order in which they run."""
    k, threads, least = settings.kmer, settings.threads, settings.min_abundance
    reads = " ".join(f"-i {name}" for name in names_of(settings))
    found = []
    others = () if settings.no_cpu else ("cpu",)
    for backend in dict.fromkeys((settings.backend, *others)):
        limits = ["", *settings.gpu_memory] if backend == "cuda" else [""]
        for limit in limits:
            own = f"--backend {backend} -t {threads} {reads} -k {k}"
            own += f" --gpu-memory {limit}" if limit else ""
            name, stem = f"ngsgpu, {backend}{f', {limit}' if limit else ''}", f"{backend}{limit}"
            for task, command, output in (
                ("histogram", "kmers count --histo", f"{stem}.histo"),
                ("database", "kmers count -o", f"{stem}.kmers"),
                ("unitigs", f"unitigs --min-abundance {least} -o", f"{stem}.fa"),
            ):
                line = f"ngsgpu {command} {output} {own}"
                found.append(Job(task, name, line, output, backend))
    memory = settings.memory_gb
    if is_here("kmc"):
        line = f"kmc -k{k} -ci1 -cs65535 -t{threads} -m{memory} -fq @{READS} kmc ."
        found.append(Job("database", "KMC", line, "kmc.kmc_suf"))
    if is_here("bcalm"):
        line = f"bcalm -in {READS} -kmer-size {k} -abundance-min {least} -nb-cores {threads} "
        line += f"-max-memory {1000 * memory} -out bcalm"
        found.append(Job("unitigs", "BCALM", line, "bcalm.unitigs.fa"))
    return [job for job in found if job.task in settings.tasks]


def names_of(settings: argparse.Namespace) -> list[str]:
    """Names of the files that programs read."""
    return [f"{mate}{ENDINGS[GZIP] if settings.compressed else ''}" for mate in MATES]


def is_here(program: str) -> bool:
    """Whether a program can be found."""
    try:
        find_program(program)
    except BenchmarkError:
        return False
    return True


def warm_up(folder: Path, known: Sequence[Job]) -> None:
    """Let ngsgpu compile its kernels before anything is measured."""
    few = folder / "few"
    few.mkdir()
    for name in MATES:
        for path in folder.glob(f"{name}*"):
            opened = gzip.open if path.suffix == ENDINGS[GZIP] else open
            with opened(path, "rb") as reads, opened(few / path.name, "wb") as target:
                target.writelines(islice(reads, WARM_UP_LINES))
    for job in known:
        if job.backend is not None:
            measure(job.command.split(), few)
    shutil.rmtree(few)


def run(job: Job, folder: Path) -> dict[str, Any]:
    """Run a program and measure it; of ngsgpu also the seconds of its stages."""
    # What others wrote shall not go to the disk while this one is measured.
    os.sync()
    measured = asdict(measure(job.command.split(), folder))
    print(f"{job.task}: {job.program} {measured['wall_s']:.2f} s", file=sys.stderr)
    if job.backend is not None:
        said = (folder / "messages.txt").read_text(errors="replace")
        measured["stages_s"] = {name: float(seconds) for name, seconds in _STAGE.findall(said)}
        measured["said"] = said.splitlines()[-12:]
    return measured


def compare(
    folder: Path,
    settings: argparse.Namespace,
    document: dict[str, Any],
    save: Callable[[], None],
) -> None:
    """Run all programs; the document gets what is to be known of each, and what differs."""
    known = jobs(settings)
    entries = [asdict(job) | {"runs": []} for job in known]
    document["programs"] = entries
    warm_up(folder, known)
    for repeat in range(settings.repeats):
        for job, entry in zip(known, entries, strict=True):
            if repeat == 0 or job.backend == "cuda" or settings.repeat_all:
                entry["runs"].append(run(job, folder))
                save()
    document["differences"] = list(differences(known, folder))
    save()


def differences(known: Sequence[Job], folder: Path) -> Iterator[str]:
    """What programs made otherwise than the first one of the same task."""
    for task in dict.fromkeys(job.task for job in known):
        own = [job for job in known if job.task == task and job.backend is not None]
        for job in own[1:]:
            if not same(folder / own[0].output, folder / job.output):
                yield f"{task}: {job.program} and {own[0].program}"
    histograms = [job for job in known if job.task == "histogram"]
    if histograms and (folder / "kmc.kmc_suf").exists() and is_here("kmc_tools"):
        command = f"kmc_tools transform kmc histogram kmc.histo -ci1 -cx{HIGHEST}"
        measure(command.split(), folder)
        if counts_of(folder / "kmc.histo") != counts_of(folder / histograms[0].output):
            yield f"histogram: KMC and {histograms[0].program}"


def same(first: Path, second: Path) -> bool:
    """Whether two files, or the files of two folders, have the same content."""
    if first.is_dir():
        names = sorted(path.name for path in first.iterdir())
        return names == sorted(path.name for path in second.iterdir()) and all(
            same(first / name, second / name) for name in names
        )
    return filecmp.cmp(first, second, shallow=False)


def counts_of(path: Path) -> dict[int, int]:
    """The lines of a histogram, up to ``HIGHEST``."""
    pairs = (line.split() for line in path.read_text().splitlines())
    numbers = {int(count): int(kmers) for count, kmers in pairs}
    return {count: kmers for count, kmers in numbers.items() if kmers and count <= HIGHEST}


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    rows = [["task", "program", "wall, s", "CPU, s", "memory, GB", "GPU, GB", "stages, s"]]
    for entry in document["programs"]:
        runs = entry["runs"]
        if not runs:
            continue
        walls = [own["wall_s"] for own in runs]
        device = max(own.get("peak_device_bytes") or 0 for own in runs)
        stages = runs[-1].get("stages_s", {})
        rows.append(
            [
                entry["task"],
                entry["program"],
                f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})",
                f"{statistics.median(own['user_s'] + own['system_s'] for own in runs):.1f}",
                f"{max(own['peak_rss_bytes'] for own in runs) / 1e9:.2f}",
                f"{device / 1e9:.2f}" if device else "",
                ", ".join(f"{name} {seconds:g}" for name, seconds in stages.items()),
            ]
        )
    return markdown(rows, names=2)


@contextmanager
def reads_of(settings: argparse.Namespace, document: dict[str, Any]) -> Iterator[Path]:
    """A folder with the reads, in which all programs run."""
    settings.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.work) as name:
        folder = Path(name)
        if settings.data[0] in NAMED:
            data = data_set(settings.data[0], settings.genomes)
            kept = (settings.folder or folder / "data") / data.name
            document["data"] = apart(
                partial(make, data, kept, processes=os.cpu_count() or 1, truth=False)
            )
            paths = [kept / mate for mate in MATES]
        else:
            paths = [Path(path) for path in settings.data]
            if len(paths) != len(MATES) or not all(path.is_file() for path in paths):
                raise BenchmarkError("name a data set, or two FASTQ files")
            document["data"] = {"name": paths[0].name.split(".")[0]}
        if settings.compressed:
            named = settings.data[0] in NAMED
            forms = (paths[0].parent if named else settings.folder or folder) / "forms"
            apart(make_forms, [(tuple(paths), forms)], [GZIP], settings.threads)
            paths = list(form_paths(GZIP, tuple(paths), forms))
        for name, path in zip(names_of(settings), paths, strict=True):
            (folder / name).symlink_to(path.resolve())
        (folder / READS).write_text("".join(f"{name}\n" for name in names_of(settings)))
        yield folder


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="kmers", description="Compare k-mer counters.", formatter_class=described
    )
    add = parser.add_argument
    add("data", nargs="+", help="S, L and so on, or two plain FASTQ files")
    add("--genomes", type=Path, help="folder of genomes for a data set")
    add("--folder", type=Path, help="where data sets are kept; without it they are removed")
    add("--tasks", nargs="+", default=["histogram", "database", "unitigs"])
    add("--backend", choices=("cpu", "cuda"), default="cpu", help="of ngsgpu; cpu runs as well")
    add("--compressed", action="store_true", help="from .gz, one member a file")
    add("--no-cpu", action="store_true", help="leave out ngsgpu on the CPU where a GPU runs it")
    add("--gpu-memory", nargs="*", default=["8G"], help="further runs on the GPU, with so much")
    add("-k", "--kmer", type=int, default=31)
    add("--min-abundance", type=int, default=3, help="of unitigs")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1, help="of every program")
    add("--memory-gb", type=int, default=12, help="for KMC and BCALM")
    add("--repeats", type=int, default=3, help="measurements on the GPU; others run once")
    add("--repeat-all", action="store_true", help="measure all programs as often")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; the status is 1 if results differ."""
    settings = parse(arguments)
    versions = {"ngsgpu": "--version", "kmc": "--version", "bcalm": "-version"}
    noted = ("backend", "kmer", "min_abundance", "threads", "memory_gb", "repeats", "compressed")
    try:
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "versions": {
                name: version_in(answer(name, how))
                for name, how in versions.items()
                if is_here(name)
            },
            "settings": {name: getattr(settings, name) for name in noted},
            "writes_gz": False,
        }
        save = partial(write_document, document, settings.output)
        with reads_of(settings, document) as folder:
            compare(folder, settings, document, save)
    except (BenchmarkError, OSError) as error:
        print(f"kmers: error: {error}", file=sys.stderr)
        return 1
    print(table(document), end="")
    for difference in document["differences"]:
        print(f"kmers: these differ: {difference}", file=sys.stderr)
    return 1 if document["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
