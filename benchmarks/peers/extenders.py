"""Programs that extend pairs to long reads, side by side: time, memory, and gaps against the truth.

ART draws pairs from genomes, with lengths of fragments as in Kallenborn (2024), chapter 9, or those
of data set S. ``ngsgpu extend`` in its three strict modes, and Konnector (of ABySS) and CAREx where
they are found, extend them with the same number of threads, in turn, several times; each is
measured as a whole process. ``ngsgpu evaluate extension`` judges what they wrote. One JSON file
holds everything, written anew after each run, so that nothing is lost if time runs out; a Markdown
table goes to standard output.

    python -m benchmarks.peers.extenders GENOME.fna.gz --threads 2 --repeats 3 -o out.json
    python -m benchmarks.peers.extenders S --genomes GENOMES --backend cuda -o out.json
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import MATES, NAMED, TRUTH, DataSet, data_set, make, write_pieces
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import (
    OUTPUT,
    ROOT,
    BenchmarkError,
    answer,
    apart,
    find_program,
    measure,
    version_in,
)
from benchmarks.harness.tables import markdown
from benchmarks.peers.commands import DEBIAN_ABYSS, Work, konnector, ngsgpu_extend

SCHEMA = "ngsgpu.benchmark.extenders"
SCHEMA_VERSION = 2
STRICT_MODES = (0, 1, 2)
WARM_UP_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class Library:
    """Pairs to draw.

    Attributes:
        profile: ART's name for the sequencing machine.
        read_length: bases.
        insert: mean length of the fragments, in bases.
        deviation: standard deviation of that.
    """

    profile: str
    read_length: int
    insert: int
    deviation: int

    @property
    def bounds(self) -> tuple[int, int]:
        """Shortest and longest fragment that is connected (section 9.2)."""
        shortest = max(2 * self.read_length, self.insert - 4 * self.deviation)
        return shortest, self.insert + 4 * self.deviation

    @classmethod
    def of(cls, data: DataSet) -> Library:
        """The library of a data set."""
        return cls(data.profile, data.read_length, data.insert, data.deviation)

    def data(self, genomes: Sequence[Path], coverage: int, seed: int) -> DataSet:
        """A data set of such pairs."""
        return DataSet(
            f"{genomes[0].name.split('.')[0]}_{self.insert}_{self.deviation}",
            tuple(genomes),
            profile=self.profile,
            read_length=self.read_length,
            coverage=coverage,
            insert=self.insert,
            deviation=self.deviation,
            seed=seed,
        )

    @property
    def name(self) -> str:
        """Fragments and reads in words."""
        return f"{self.insert}/{self.deviation}, 2 x {self.read_length}"


LIBRARIES = {
    "300": Library("HS20", 100, 300, 5),
    "500": Library("HS20", 100, 500, 10),
    "1000": Library("HS20", 100, 1000, 30),
    "150": Library("HSXt", 150, 500, 150),
}


@dataclass(frozen=True, slots=True)
class Job:
    """What is run.

    Attributes:
        command: no name in it has blanks.
        output: file of extended reads that it writes.
        statistics: file of what ngsgpu says of the run.
        numbered: whether extended reads have the numbers of their pairs for names.
    """

    command: str
    output: str
    statistics: str | None = None
    numbered: bool = False


def jobs(library: Library, settings: argparse.Namespace) -> dict[str, Job]:
    """The command lines of the programs that are here."""
    shortest, longest = library.bounds
    threads, backend = settings.threads, settings.backend
    found = {}
    work = Work(0, settings.coverage, threads, backend, shortest, longest, bloom=settings.bloom)
    for strict in settings.strict:
        own = ngsgpu_extend(strict)(work)
        found[f"ngsgpu, strict {strict}"] = Job(own.command, own.outputs[0], f"ngsgpu{strict}.json")
    if settings.konnector:
        own = konnector(work)
        found["konnector"] = Job(own.command, own.outputs[0])
    for strict in settings.strict if settings.carex else ():
        # Its fragments have to be longer than both reads. Its manual recommends tables on the GPU,
        # and that the threads that extend look into them themselves.
        least = max(2 * library.read_length + 1, shortest)
        found[f"carex-gpu, strict {strict}"] = Job(
            f"carex-gpu -i r1.fq -i r2.fq -d . --eo carex{strict}.fq --ro carex_rest.fq "
            f"--pairmode PE -c {settings.coverage} --minFragmentSize {least} --maxFragmentSize "
            f"{longest} --strictExtensionMode {strict} -t {threads} -g 0 -k 20 -h 48 "
            f"--useQualityScores --outputRemaining --warpcore 1 --batchsize {settings.carex_batch} "
            f"--gpuExtenderThreadConfig {settings.carex_config}",
            f"carex{strict}.fq",
            numbered=True,
        )
    return found


def name_pairs(folder: Path, extended: str) -> None:
    """Give extended reads that are named by the numbers of their pairs the names of these.

    Raises:
        BenchmarkError: the numbers are not understood.
    """
    with (folder / MATES[0]).open("rb") as reads:
        names: list[bytes] = []
        first: list[bytes] = []
        for number, line in enumerate(reads):
            if number % 4 == 0:
                names.append(line[1:].split()[0].removesuffix(b"/1"))
            elif number % 4 == 1 and len(first) < WARM_UP_PAIRS:
                first.append(line.rstrip())
    with (folder / extended).open("rb") as source, (folder / "named").open("wb") as target:
        for header in source:
            number = int(re.findall(rb"\d+", header)[0])
            bases, plus, qualities = (next(source) for _ in range(3))
            if number < len(first) and not bases.startswith(first[number][:20]):
                raise BenchmarkError(f"{extended}: read {number} does not begin as pair {number}")
            target.write(b"@%s\n%s%s%s" % (names[number], bases, plus, qualities))
    (folder / "named").replace(folder / extended)


def report(job: Job, folder: Path) -> dict[str, Any]:
    """What a finished run says of itself: seconds by stage, and more."""
    if job.statistics is not None:
        stats = json.loads((folder / job.statistics).read_text())
        kept = ("backend", "device", "insert", "pairs", "tasks", "memory", "gpu_memory")
        return {"parts": stats["time_s"], "statistics": {key: stats[key] for key in kept}}
    said = (folder / OUTPUT).read_text(errors="replace")
    times = re.findall(r"# elapsed time \((\w+)\): ([\d.e+-]+)", said)
    return {"parts": {name: round(float(seconds), 3) for name, seconds in times}}


def drawn_data(name: str, settings: argparse.Namespace) -> list[DataSet]:
    """The data sets to be made of a genome, one a library, or the named one."""
    if name in NAMED:
        return [data_set(name, settings.genomes)]
    path = Path(name)
    if not path.is_file():
        raise BenchmarkError(f"{path} is not there")
    libraries = [LIBRARIES[key] for key in settings.libraries]
    return [library.data([path], settings.coverage, settings.seed) for library in libraries]


def draw(data: DataSet, kept: Path, folder: Path, *, truth: bool = True) -> dict[str, Any]:
    """Make a data set, and put links to it into a folder, beside what reads are drawn from.

    Args:
        data: what to draw.
        kept: where it is made, unless it is there already.
        folder: gets ``r1.fq`` and ``r2.fq``, with the truth also ``r_errFree.sam`` and
            ``genome.fa``.
        truth: whether the error-free reads are wanted.

    Returns:
        What ``benchmarks.harness.datasets.make`` says of it.
    """
    made = make(data, kept, processes=os.cpu_count() or 1, truth=truth)
    if truth:
        write_pieces(data, folder / "genome.fa")
    for name in (*MATES, *((TRUTH,) if truth else ())):
        (folder / name).symlink_to(kept / name)
    return made


def warm_up(folder: Path, backend: str) -> None:
    """Let ngsgpu compile its kernels before anything is measured."""
    for mate in (1, 2):
        with (folder / f"r{mate}.fq").open("rb") as reads:
            (folder / f"few{mate}.fq").write_bytes(b"".join(islice(reads, 4 * WARM_UP_PAIRS)))
    for backend_of_kernels in dict.fromkeys(("cpu", backend)):
        command = (
            f"ngsgpu extend -q --backend {backend_of_kernels} -i few1.fq -I few2.fq -o few.fq "
            "--insert-size 300 --insert-sd 9"
        )
        measure(command.split(), folder)


def compare(
    library: Library,
    folder: Path,
    settings: argparse.Namespace,
    entries: list[dict[str, Any]],
    save: Callable[[], None],
) -> None:
    """Run all programs in turn, and evaluate them.

    Args:
        library: what the pairs are.
        folder: holds them.
        settings: of the command line.
        entries: gets what is to be known of each program.
        save: called whenever something has been added.
    """
    known = jobs(library, settings)
    programs = list(known)
    entries += [{"program": name, "command": known[name].command, "runs": []} for name in programs]
    runs = {entry["program"]: entry["runs"] for entry in entries}
    warm_up(folder, settings.backend)
    for repeat in range(settings.repeats):
        # Each begins once, so that none always follows the same other one.
        first = repeat % len(programs)
        for name in [*programs[first:], *programs[:first]]:
            # What others wrote shall not go to the disk while this one is measured.
            os.sync()
            measured = measure(known[name].command.split(), folder)
            print(f"{library.name}: {name} {measured.wall_s:.1f} s", file=sys.stderr)
            runs[name].append(asdict(measured) | report(known[name], folder))
            save()
    if settings.times_only:
        return
    for name in programs:
        if known[name].numbered:
            apart(name_pairs, folder, known[name].output)
    with ThreadPoolExecutor(len(programs)) as pool:
        judged = [pool.submit(judge, folder, known[name].output) for name in programs]
        for entry, accuracy in zip(entries, judged, strict=True):
            entry["accuracy"] = accuracy.result()
            save()


def judge(folder: Path, extended: str) -> dict[str, Any]:
    """Accuracy of extended reads, in a separate folder."""
    own = folder / f"judge_{extended}"
    own.mkdir()
    command = f"ngsgpu evaluate extension --truth ../{TRUTH} --reference ../genome.fa --json e.json"
    measure([*command.split(), "--extended", f"../{extended}"], own)
    accuracy: dict[str, Any] = json.loads((own / "e.json").read_text())
    return accuracy


def measure_data_set(
    data: DataSet,
    settings: argparse.Namespace,
    document: dict[str, Any],
    save: Callable[[], None],
) -> None:
    """Make a data set, and measure all programs on it; the document gets what is found."""
    library = Library.of(data)
    with ExitStack() as stack:
        kept = settings.folder
        if kept is None:
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=settings.work)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=settings.work)))
        reads = (kept / data.name).resolve()
        made = apart(draw, data, reads, folder, truth=not settings.times_only)
        entries: list[dict[str, Any]] = []
        document["datasets"].append(
            {
                "name": library.name,
                "library": asdict(library),
                "data": made,
                "pairs": made["reads"] // 2,
                "programs": entries,
            }
        )
        compare(library, folder, settings, entries, save)


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    header = "fragments|program|wall, s|CPU, s|memory, GB|GPU, GB|connected|error-free|error rate"
    rows = [[*header.split("|"), "without length"]]
    for data in document["datasets"]:
        for entry in data["programs"]:
            if not entry["runs"]:
                continue
            walls = [run["wall_s"] for run in entry["runs"]]
            cpu = statistics.median(run["user_s"] + run["system_s"] for run in entry["runs"])
            peak = max(run["peak_rss_bytes"] for run in entry["runs"])
            device = max(run.get("peak_device_bytes") or 0 for run in entry["runs"])
            rates = entry["accuracy"]["rates"] if "accuracy" in entry else {}
            rows.append(
                [
                    data["name"],
                    entry["program"],
                    f"{statistics.median(walls):.1f} ({min(walls):.1f}-{max(walls):.1f})",
                    f"{cpu:.1f}",
                    f"{peak / 1e9:.2f}",
                    f"{device / 1e9:.2f}" if device else "",
                    *(_percent(rates.get(key)) for key in ("connected", "error_free")),
                    *(
                        f"{rates.get(key) or 0:.6f}" if rates else ""
                        for key in ("error_rate", "error_rate_without_length")
                    ),
                ]
            )
    return markdown(rows, names=2)


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{100 * rate:.2f} %"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="extenders", description="Compare extenders.", formatter_class=described
    )
    add = parser.add_argument
    add("genome", metavar="GENOME", help="FASTA, plain or gzip, or S, a data set with its library")
    add("--genomes", type=Path, help="folder of genomes for S")
    add("--folder", type=Path, help="where data sets are kept; without it they are removed")
    add("--backend", choices=("cpu", "cuda"), default="cpu", help="of ngsgpu")
    add("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    add("-t", "--threads", type=int, default=2, help="of every program")
    add("--repeats", type=int, default=3, help="measurements of each program")
    add("--coverage", type=int, default=30, help="reads per position")
    add("--seed", type=int, default=1, help="of the simulation")
    add("--strict", nargs="+", type=int, choices=STRICT_MODES, default=list(STRICT_MODES))
    add("--no-konnector", action="store_true", help="leave out Konnector")
    add("--times-only", action="store_true", help="leave out the evaluation, and its truth")
    add("--bloom", default="480M", help="size of Konnector's Bloom filter")
    add("--no-carex", action="store_true", help="leave out CAREx")
    add("--carex-config", default="4:0", help="CAREx's threads that extend, and that only hash")
    add("--carex-batch", type=int, default=2048, help="pairs that each of them works on")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def is_here(program: str) -> bool:
    """Whether a program can be found."""
    try:
        find_program(program)
    except BenchmarkError:
        return False
    return True


def find_konnector() -> bool:
    """Whether Konnector is here; Debian keeps it out of the ``PATH``."""
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), DEBIAN_ABYSS])
    return is_here("konnector")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    settings = parse(arguments)
    settings.konnector = not settings.no_konnector and find_konnector()
    wants_carex = settings.backend == "cuda" and not settings.no_carex
    settings.carex = wants_carex and is_here("carex-gpu")
    versions = {"ngsgpu": "--version"}
    versions |= {"konnector": "--version"} if settings.konnector else {}
    versions |= {"carex-gpu": "--version"} if settings.carex else {}
    noted = ("genome", "coverage", "seed", "threads", "repeats", "backend", "strict")
    try:
        data_sets = apart(drawn_data, settings.genome, settings)
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "programs": {name: version_in(answer(name, how)) for name, how in versions.items()}
            | {"art_illumina": version_in(answer("art_illumina"))},
            "settings": {name: getattr(settings, name) for name in noted}
            | {"genome": Path(settings.genome).name},
            "datasets": [],
        }
        settings.work.mkdir(parents=True, exist_ok=True)
        save = partial(write_document, document, settings.output)
        for data in data_sets:
            measure_data_set(data, settings, document, save)
    except (BenchmarkError, OSError) as error:
        print(f"extenders: error: {error}", file=sys.stderr)
        return 1
    print(table(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
