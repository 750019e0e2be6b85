"""Our own commands on the same reads in every form: plain, BGZF, gzip, zstd, BAM; and their start.

    python -m benchmarks.forms --genomes GENOMES --folder DATA --backend cuda -t 16 -o out.json
    python -m benchmarks.forms --data r1.fq,r2.fq --references ecoli.fna.gz --jobs correct start \
        -o out.json

Outputs have the form of the input (from BAM BGZF, from gzip BGZF as always); calls and histograms
are plain text. A job's forms are measured in turn, as whole processes, inputs in the page cache.
Before that each job runs on the first pairs in each form, which compiles all kernels, and the
outputs must hold the same as those from plain files; otherwise the exit status is 1. ``start``
runs four commands on 1,000 pairs with an empty cache, and then with what is in it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.forms.jobs import JOBS, Reads, Runner, is_same, remove_outputs
from benchmarks.harness.datasets import MATES, data_set, make
from benchmarks.harness.document import head, run_in, write_document
from benchmarks.harness.forms import ENDINGS, GZIP, PLAIN, Files, make_forms, write_first
from benchmarks.harness.measuring import ROOT, BenchmarkError, apart, measure
from benchmarks.harness.tables import markdown
from ngsgpu.io.output.store import checksum

SCHEMA: Final = "ngsgpu.benchmark.forms"
SCHEMA_VERSION: Final = 1
START: Final = "start"
START_JOBS: Final = ("correct", "extend", "merge", "classify")
START_PAIRS: Final = 1000
WARM_STARTS: Final = 3
READ_BYTES: Final = 8 << 20


def check(jobs: Sequence[str], reads: Reads, forms: Sequence[str], runner: Runner) -> list[str]:
    """Run jobs on few pairs in all forms; what has other content than from plain files."""
    differences = []
    for name in jobs:
        job = JOBS[name]
        for form in dict.fromkeys((PLAIN, *forms)):
            taken = runner.run(job, reads, form)
            print(f"check: {name}, {form} {taken.wall_s:.1f} s", file=sys.stderr, flush=True)
            if not apart(is_same, job, reads, form):
                differences.append(f"{name}: {form} and {PLAIN}")
    return differences


def measure_in_turn(
    name: str, reads: Reads, forms: Sequence[str], runner: Runner, repeats: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run a job on all forms in turn; the runs of each, and differences of plain outputs."""
    job = JOBS[name]
    runs: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for repeat in range(repeats):
        # Each begins once, so that none always follows the same other one.
        first = repeat % len(forms)
        for form in [*forms[first:], *forms[:first]]:
            measured = runner.run(job, reads, form)
            print(f"{name}, {form}: {measured.wall_s:.2f} s", file=sys.stderr, flush=True)
            runs[form].append(asdict(measured))
            if any(output.endswith(".fq") for _, output in job.outputs):
                remove_outputs(job, reads, form)
    differences = []
    for _, output in job.outputs:
        if not output.endswith(".fq"):
            sums = {form: apart(checksum, reads.place / form / output) for form in forms}
            differences += [f"{name}: {form} and {forms[0]}, all reads"
                            for form in forms if sums[form] != sums[forms[0]]]  # fmt: skip
    entries = []
    for form in forms:
        remove_outputs(job, reads, form)
        command = " ".join(runner.command(job, reads, form))
        entries.append({"job": name, "form": form, "command": command, "runs": runs[form]})
    return entries, differences


def measure_starts(reads: Reads, forms: Sequence[str], runner: Runner) -> list[dict[str, Any]]:
    """Runs on few pairs: one with nothing in the user's cache, others with what it left there."""
    entries = []
    for name in START_JOBS:
        for form in forms:
            with tempfile.TemporaryDirectory(dir=runner.caches.parent) as empty:
                own = replace(runner, caches=Path(empty))
                new, *warm = (
                    asdict(own.run(JOBS[name], reads, form)) for _ in range(1 + WARM_STARTS)
                )
            walls = ", ".join(f"{run['wall_s']:.2f}" for run in (new, *warm))
            print(f"start: {name}, {form}: {walls} s", file=sys.stderr, flush=True)
            entries.append({"job": name, "form": form, "new": new, "warm": warm})
    return entries


def find(
    spec: str, stem: str, settings: argparse.Namespace, work: Path
) -> tuple[Files, tuple[Path, ...], Path]:
    """The files of a data set, or those that are named; genomes; the folder of their forms.

    Raises:
        BenchmarkError: there are no such files.
    """
    kept = settings.folder or work / "data"
    if "," in spec:
        files = tuple(Path(name) for name in spec.split(","))
        if len(files) != 2 or not all(path.is_file() for path in files):
            raise BenchmarkError(f"{spec}: name a data set, or two FASTQ files with a comma")
        return files, (), kept / f"{stem}-forms"
    data = apart(data_set, spec, settings.genomes)
    folder = kept / data.name
    apart(make, data, folder, processes=settings.threads, truth=False)
    return (folder / MATES[0], folder / MATES[1]), data.genomes, folder / "forms"


def prepare(
    jobs: Sequence[str], genomes: Sequence[Path], settings: argparse.Namespace, runner: Runner
) -> dict[str, Any]:
    """Compile kernels if that is wanted; build the database and the index that jobs need."""
    work = runner.caches.parent
    backend = ["--backend", settings.backend]
    threads = ["-t", str(settings.threads), "-q"]
    steps = {}
    if settings.precompile is not None:
        kinds = ["--arch", settings.precompile] if settings.precompile else []
        steps["compile"] = [
            *("compile", "--shared", *threads),
            *(["--cpu"] if settings.backend == "cpu" else kinds),
        ]
    needs = {"classify": "database", "deplete": "index"}
    if not genomes and needs.keys() & set(jobs):
        raise BenchmarkError("a database or index is built of genomes; name some: --references")
    named = [str(path.resolve()) for path in genomes]
    if "classify" in jobs:
        taxa = [] if settings.taxonomy is None else ["--taxonomy", str(settings.taxonomy.resolve())]
        taxa += [] if settings.map is None else ["--map", str(settings.map.resolve())]
        steps["database"] = ["db", "build", *named, "-d", "database", *taxa, *backend, *threads]
    if "deplete" in jobs:
        steps["index"] = ["deplete-index", named[0], "-o", "host.idx", *threads]
    return {
        name: asdict(measure(["ngsgpu", *words], work, environment=runner.environment))
        for name, words in steps.items()
    }


def read_through(paths: Sequence[Path]) -> None:
    """Bring files into the page cache."""

    def read(path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            while file.read(READ_BYTES):
                pass

    with ThreadPoolExecutor() as pool:
        list(pool.map(read, paths))


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    jobs = [name for name in settings.jobs if name != START]
    starts = START in settings.jobs
    forms = list(settings.forms)
    start_forms = [form for form in settings.start_forms if form in forms] if starts else []
    options = ("--backend", settings.backend, "-t", str(settings.threads), "-q")
    runner = Runner(options, work / "kernels")
    sets: dict[bool, Reads] = {}
    few: dict[bool, Reads] = {}
    genomes: tuple[Path, ...] = tuple(settings.references)
    wanted = {JOBS[name].overlapping for name in jobs} | ({False} if starts else set())
    for overlapping in sorted(wanted):
        spec = settings.overlapping if overlapping else settings.data
        stem = "overlapping" if overlapping else "reads"
        files, own, folder = find(spec, stem, settings, work)
        genomes = genomes or own
        sets[overlapping] = Reads(files, folder, work / stem)
        few[overlapping] = _first(files, settings.check_pairs, work / f"first-{stem}")
    all_sets = [*sets.values(), *few.values()]
    if starts:
        start_reads = _first(sets[False].files, START_PAIRS, work / "few")
        all_sets.append(start_reads)
    apart(make_forms, [(own.files, own.forms) for own in all_sets], forms, settings.threads)
    for own_set in all_sets:
        own_set.link(list(dict.fromkeys((PLAIN, *forms))))
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {
            name: getattr(settings, name)
            for name in ("data", "overlapping", "backend", "threads", "repeats", "check_pairs")
        }
        | {"precompiled": settings.precompile is not None, "taxonomy": bool(settings.taxonomy)},
        "bytes": {
            own.place.name: {
                form: sum(path.stat().st_size for path in own.paths(form)) for form in forms
            }
            for own in sets.values()
        },
        "prepared": prepare([*jobs, *(START_JOBS if starts else ())], genomes, settings, runner),
        "jobs": [],
        "start": [],
        "differences": [],
    }
    if "," in settings.data + settings.overlapping:
        document["settings"] |= {"data": "files", "overlapping": "files"}
    if starts:
        document["start"] = measure_starts(start_reads, start_forms, runner)
    for overlapping, reads in sets.items():
        own_jobs = [name for name in jobs if JOBS[name].overlapping == overlapping]
        document["differences"] += check(own_jobs, few[overlapping], forms, runner)
        read_through([path for form in forms for path in reads.paths(form)])
        for name in own_jobs:
            entries, differ = measure_in_turn(name, reads, forms, runner, settings.repeats)
            document["jobs"] += entries
            document["differences"] += differ
            write_document(document, settings.output)
    return document


def _first(files: Files, pairs: int, place: Path) -> Reads:
    first = apart(write_first, files, pairs, place / "plain-files")
    return Reads(first, place / "forms", place)


def table(document: dict[str, Any]) -> str:
    """Rows are jobs, columns forms: wall time and its ratio to plain, CPU time, memory."""
    entries = {(own["job"], own["form"]): own["runs"] for own in document["jobs"]}
    for own in document["start"]:
        entries[f"{own['job']}, 1,000 pairs, warm", own["form"]] = own["warm"]
        entries[f"{own['job']}, 1,000 pairs, new machine", own["form"]] = [own["new"]]
    forms = list(dict.fromkeys(form for _, form in entries))
    rows = [["job", "", *forms]]
    for name in dict.fromkeys(name for name, _ in entries):
        lines = [
            _cells(entries.get((name, form), []), entries.get((name, PLAIN), [])) for form in forms
        ]
        titles = ("wall, s (x plain)", "CPU, s", "host, GB", "GPU, GB")
        for row, title in enumerate(titles):
            cells = [line[row] for line in lines]
            if any(cell != "-" for cell in cells):
                rows.append([name if row == 0 else "", title, *cells])
    return markdown(rows, names=2)


def _cells(runs: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]) -> list[str]:
    if not runs:
        return ["-"] * 4
    wall = statistics.median(run["wall_s"] for run in runs)
    ratio = wall / statistics.median(run["wall_s"] for run in plain) if plain else None
    cpu = statistics.median(run["user_s"] + run["system_s"] for run in runs)
    device = max(run["peak_device_bytes"] or 0 for run in runs)
    return [
        f"{wall:.2f}" + (f" ({ratio:.2f})" if ratio is not None else ""),
        f"{cpu:.1f}",
        f"{max(run['peak_rss_bytes'] for run in runs) / 1e9:.2f}",
        f"{device / 1e9:.2f}" if device else "-",
    ]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="forms",
        description="Measure our commands on reads in every form.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    names = [name for name in JOBS if name != "extend"]
    add("--data", default="L", help="data set, or R1.fq,R2.fq")
    add("--overlapping", default="M20", help="the same for merge")
    add("--genomes", type=Path, help="folder of genomes for data sets")
    add("--references", type=Path, nargs="+", default=[], help="in place of the data set's genomes")
    add("--taxonomy", type=Path, help="of the database; without it reads are called to sequences")
    add("--map", type=Path, help="of the database, names of sequences to taxa")
    add("--folder", type=Path, help="where data sets and forms are kept; without it removed")
    add("--jobs", nargs="+", choices=[*names, START], default=[*names, START])
    add("--forms", nargs="+", choices=list(ENDINGS), default=list(ENDINGS))
    add("--start-forms", nargs="+", choices=list(ENDINGS), default=[PLAIN, GZIP])
    add("--check-pairs", type=int, default=100_000, help="first pairs that the check takes")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("-t", "--threads", type=int, default=os.cpu_count() or 1)
    add("--repeats", type=int, default=3)
    add("--precompile", nargs="?", const="", metavar="ARCH",
        help="put compiled kernels into the installation first (of this architecture)")  # fmt: skip
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if contents differ."""
    return run_in(parse(arguments), "forms", run, table)


if __name__ == "__main__":
    sys.exit(main())
