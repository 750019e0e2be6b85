"""Programs that extend pairs to long reads, side by side: time, memory, and gaps against the truth.

ART draws pairs from a genome, with lengths of fragments as in Kallenborn (2024), chapter 9.
``ngsgpu extend`` in its three strict modes and Konnector (of ABySS), where it is found, extend them
with the same number of threads, in turn, several times; each is measured as a whole process.
``ngsgpu evaluate extension`` judges what they wrote. One JSON file holds everything, a Markdown
table goes to standard output.

    python -m benchmarks.compare_extenders GENOME.fna.gz --threads 2 --repeats 3 -o out.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measuring import (
    ROOT,
    BenchmarkError,
    answer,
    describe_commit,
    describe_machine,
    find_program,
    measure,
    version_in,
)
from benchmarks.tables import markdown
from scripts.simulation_chunks import ChunkError, read_fasta

SCHEMA = "ngsgpu.benchmark.extenders"
SCHEMA_VERSION = 1
DEBIAN_ABYSS = "/usr/lib/abyss"
STRICT_MODES = (0, 1, 2)
PROGRAMS = ("ngsgpu", "konnector")
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
    """What is run, and the file of extended reads that it writes."""

    command: str
    output: str


def jobs(library: Library, threads: int, modes: Sequence[int], bloom: str) -> dict[str, Job]:
    """The programs' command lines; no name in them has blanks."""
    shortest, longest = library.bounds
    found = {
        f"ngsgpu, strict {strict}": Job(
            f"ngsgpu extend -q -i r1.fq -I r2.fq -o ngsgpu{strict}.fq --remaining1 n1.fq "
            f"--remaining2 n2.fq --min-length {shortest} --max-length {longest} "
            f"--strict {strict} -t {threads}",
            f"ngsgpu{strict}.fq",
        )
        for strict in modes
    }
    found["konnector"] = Job(
        f"konnector -k 32 -b {bloom} -c 2 --fastq -j {threads} -f {shortest} -F {longest} "
        "-o konnector r1.fq r2.fq",
        "konnector_pseudoreads.fq",
    )
    return found


def simulate(
    genomes: Sequence[Path], library: Library, folder: Path, coverage: int, seed: int
) -> int:
    """Draw pairs into ``r1.fq`` and ``r2.fq``, the truth into ``r_errFree.sam``; return pairs."""
    try:
        with (folder / "genome.fa").open("w") as target:
            for genome in genomes:
                for name, bases in read_fasta(genome):
                    target.write(f">{name}\n{bases}\n")
    except ChunkError as error:
        raise BenchmarkError(f"{genome}: {error}") from error
    art = (
        f"art_illumina -ss {library.profile} -p -l {library.read_length} -f {coverage} "
        f"-m {library.insert} -s {library.deviation} -rs {seed} -ef -na -q -i genome.fa -o r"
    )
    measure(art.split(), folder)
    (folder / "r.sam").unlink(missing_ok=True)
    with (folder / "r1.fq").open("rb") as reads:
        return sum(1 for _ in reads) // 4


def warm_up(folder: Path) -> None:
    """Let ngsgpu compile its kernels before anything is measured."""
    for mate in (1, 2):
        with (folder / f"r{mate}.fq").open("rb") as reads:
            (folder / f"few{mate}.fq").write_bytes(b"".join(islice(reads, 4 * WARM_UP_PAIRS)))
    command = "ngsgpu extend -q -i few1.fq -I few2.fq -o few.fq --insert-size 300 --insert-sd 9"
    measure(command.split(), folder)


def compare(
    library: Library, folder: Path, settings: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Run all programs in turn, evaluate them, and yield what is to be known of each."""
    known = jobs(library, settings.threads, settings.strict, settings.bloom)
    programs = [
        name
        for name in known
        if name.split(",")[0] in settings.programs
        and (not name.startswith("konnector") or settings.konnector)
    ]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    warm_up(folder)
    for repeat in range(settings.repeats):
        # Each begins once, so that none always follows the same other one.
        first = repeat % len(programs)
        for name in [*programs[first:], *programs[:first]]:
            # What others wrote shall not go to the disk while this one is measured.
            os.sync()
            measured = measure(known[name].command.split(), folder)
            print(f"{library.name}: {name} {measured.wall_s:.1f} s", file=sys.stderr)
            runs[name].append(asdict(measured))
    judge = "ngsgpu evaluate extension --truth r_errFree.sam --reference genome.fa --json e.json"
    for name in programs:
        measure([*judge.split(), "--extended", known[name].output], folder)
        yield {
            "program": name,
            "command": known[name].command,
            "runs": runs[name],
            "accuracy": json.loads((folder / "e.json").read_text()),
        }


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    header = "fragments|program|wall, s|CPU, s|memory, GB|connected|error-free|error rate"
    rows = [[*header.split("|"), "without length"]]
    for data in document["datasets"]:
        for entry in data["programs"]:
            walls = [run["wall_s"] for run in entry["runs"]]
            cpu = statistics.median(run["user_s"] + run["system_s"] for run in entry["runs"])
            peak = max(run["peak_rss_bytes"] for run in entry["runs"])
            rates = entry["accuracy"]["rates"]
            rows.append(
                [
                    data["name"],
                    entry["program"],
                    f"{statistics.median(walls):.1f} ({min(walls):.1f}-{max(walls):.1f})",
                    f"{cpu:.1f}",
                    f"{peak / 1e9:.2f}",
                    *(f"{100 * (rates[key] or 0):.2f} %" for key in ("connected", "error_free")),
                    *(
                        f"{rates[key] or 0:.6f}"
                        for key in ("error_rate", "error_rate_without_length")
                    ),
                ]
            )
    return markdown(rows, names=2)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="compare_extenders", description="Compare extenders.", formatter_class=described
    )
    add = parser.add_argument
    add("genome", type=Path, metavar="GENOME", help="FASTA, plain or gzip")
    add("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    add("-t", "--threads", type=int, default=2, help="of every program")
    add("--repeats", type=int, default=3, help="measurements of each program")
    add("--coverage", type=int, default=30, help="reads per position")
    add("--seed", type=int, default=1, help="of the simulation")
    add("--strict", nargs="+", type=int, choices=STRICT_MODES, default=list(STRICT_MODES))
    add("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    add("--bloom", default="480M", help="size of Konnector's Bloom filter")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def find_konnector() -> bool:
    """Whether Konnector is here; Debian keeps it out of the ``PATH``."""
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), DEBIAN_ABYSS])
    try:
        find_program("konnector")
    except BenchmarkError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    settings = parse(arguments)
    settings.konnector = find_konnector()
    versions = {"ngsgpu": "--version"} | ({"konnector": "--version"} if settings.konnector else {})
    try:
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "machine": describe_machine(),
            "source": describe_commit(),
            "programs": {name: version_in(answer(name, how)) for name, how in versions.items()}
            | {"art_illumina": version_in(answer("art_illumina"))},
            "settings": {
                name: getattr(settings, name) for name in ("coverage", "seed", "threads", "repeats")
            }
            | {"genome": settings.genome.name},
            "datasets": [],
        }
        settings.work.mkdir(parents=True, exist_ok=True)
        for name in settings.libraries:
            library = LIBRARIES[name]
            with tempfile.TemporaryDirectory(dir=settings.work) as work:
                folder = Path(work)
                pairs = simulate(
                    [settings.genome], library, folder, settings.coverage, settings.seed
                )
                data = {"name": library.name, "library": asdict(library), "pairs": pairs}
                programs = list(compare(library, folder, settings))
                document["datasets"].append(data | {"programs": programs})
    except (BenchmarkError, OSError) as error:
        print(f"compare_extenders: error: {error}", file=sys.stderr)
        return 1
    settings.output.parent.mkdir(parents=True, exist_ok=True)
    settings.output.write_text(json.dumps(document, indent=1) + "\n")
    print(table(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
