"""Building databases and classifying reads: ngsgpu beside Kraken 2 and MetaCache.

    python -m benchmarks.classification --references GENOMES --taxonomy TAX --map seqid2taxid.tsv \
        --reads r1.fq r2.fq --threads 2 -o out.json

Programs that are on the PATH take part (``ngsgpu`` always), in turn, several times, each run a
whole process with its inputs in the page cache. ``ngsgpu`` runs with its defaults and, as
``ngsgpu-metacache``, with MetaCache's values. ``--copies N`` adds mutated copies of the
references, for large databases; ``--build-only`` leaves the reads out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import (
    BenchmarkError,
    Measurement,
    answer,
    apart,
    describe_commit,
    describe_machine,
    find_program,
    measure,
    version_in,
)

DATABASE = "db"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What all programs get.

    Attributes:
        references: plain FASTA files, in order.
        labelled: the same in one file, with taxids in the headers, for Kraken 2.
        taxonomy: directory of nodes.dmp, names.dmp and ``map.accession2taxid``.
        map: name and taxid of each sequence.
        reads: plain FASTQ or FASTA, one file or two.
        threads: for each program.
        backend: of ngsgpu.
    """

    references: tuple[Path, ...]
    labelled: Path
    taxonomy: Path
    map: Path
    reads: tuple[Path, ...]
    threads: int
    backend: str


@dataclass(frozen=True, slots=True)
class Program:
    """How a program builds, and how it classifies; commands run in a folder of their own."""

    name: str
    executable: str
    build: Callable[[Inputs], list[list[str]]]
    classify: Callable[[Inputs], list[str]]


def ngsgpu_build(*options: str) -> Callable[[Inputs], list[list[str]]]:
    def commands(own: Inputs) -> list[list[str]]:
        return [
            ["ngsgpu", "db", "build", *map(str, own.references), "-d", DATABASE, "--taxonomy",
             str(own.taxonomy), "--map", str(own.map), "-t", str(own.threads), "--backend",
             own.backend, "-q", *options]
        ]  # fmt: skip

    return commands


def ngsgpu_classify(*options: str) -> Callable[[Inputs], list[str]]:
    def command(own: Inputs) -> list[str]:
        mates = ["-I", str(own.reads[1])] if len(own.reads) == 2 else []
        return [
            "ngsgpu", "classify", "-d", DATABASE, "-i", str(own.reads[0]), *mates, "-o",
            "calls.tsv", "--report", "report.txt", "-t", str(own.threads), "--backend",
            own.backend, "-q", *options,
        ]  # fmt: skip

    return command


def kraken_build(own: Inputs) -> list[list[str]]:
    script = (
        f"mkdir -p {DATABASE}/taxonomy && cp {own.taxonomy}/*.dmp {DATABASE}/taxonomy && "
        f"cp {own.taxonomy}/map.accession2taxid {DATABASE}/taxonomy/nucl.accession2taxid && "
        f"kraken2-build --add-to-library {own.labelled} --db {DATABASE} --no-masking && "
        f"kraken2-build --build --db {DATABASE} --threads {own.threads}"
    )
    return [["bash", "-c", script]]


def kraken_classify(own: Inputs) -> list[str]:
    paired = ["--paired"] if len(own.reads) == 2 else []
    return [
        "kraken2", "--db", DATABASE, *paired, "--threads", str(own.threads), "--output",
        "calls.txt", "--report", "report.txt", *map(str, own.reads),
    ]  # fmt: skip


def metacache_build(own: Inputs) -> list[list[str]]:
    return [
        ["metacache", "build", DATABASE, *map(str, own.references), "-taxonomy", str(own.taxonomy),
         "-taxpostmap", str(own.taxonomy / "map.accession2taxid"), "-threads", str(own.threads)]
    ]  # fmt: skip


def metacache_classify(own: Inputs) -> list[str]:
    paired = ["-pairfiles"] if len(own.reads) == 2 else []
    return [
        "metacache", "query", DATABASE, *map(str, own.reads), *paired, "-taxids", "-threads",
        str(own.threads), "-out", "calls.txt",
    ]  # fmt: skip


PROGRAMS = (
    Program("ngsgpu", "ngsgpu", ngsgpu_build(), ngsgpu_classify()),
    Program(
        "ngsgpu-metacache", "ngsgpu", ngsgpu_build("--sketch", "16"), ngsgpu_classify("--metacache")
    ),
    Program("kraken2", "kraken2", kraken_build, kraken_classify),
    Program("metacache", "metacache", metacache_build, metacache_classify),
)


def prepare(
    folder: Path, references: Sequence[Path], taxonomy: Path, table: Path, copies: int
) -> tuple[tuple[Path, ...], int]:
    """Write references as plain files, once more with taxids, and the map as Kraken 2 wants it.

    Returns:
        The references, and their bases.
    """
    taxid = dict(line.split("\t")[:2] for line in table.read_text().splitlines() if line)
    source = np.random.default_rng(1)
    plain, bases = [], 0
    rows = ["accession\taccession.version\ttaxid\tgi"]
    mapped = []
    with (folder / "labelled.fna").open("wb") as labelled:
        for path in references:
            content = path.read_bytes()
            records = (gzip.decompress(content) if path.suffix == ".gz" else content).split(b">")[
                1:
            ]
            for copy in range(copies + 1):
                target = folder / f"{path.name.split('.')[0]}_{copy}.fna"
                with target.open("wb") as out:
                    for record in records:
                        header, _, body = record.partition(b"\n")
                        name = header.split()[0].decode()
                        own = name if copy == 0 else f"copy{copy}_{name}"
                        letters = np.frombuffer(body.replace(b"\n", b""), dtype=np.uint8).copy()
                        bases += len(letters)
                        if copy > 0:
                            places = source.random(len(letters)) < 0.01
                            letters[places] = source.choice(
                                np.frombuffer(b"ACGT", dtype=np.uint8), int(places.sum())
                            )
                        out.write(b">" + own.encode() + b"\n" + letters.tobytes() + b"\n")
                        if name in taxid:
                            label = f">{own}|kraken:taxid|{taxid[name]}\n".encode()
                            labelled.write(label + letters.tobytes() + b"\n")
                            rows.append(f"{own.split('.')[0]}\t{own}\t{taxid[name]}\t0")
                            mapped.append(f"{own}\t{taxid[name]}")
                plain.append(target)
    shutil.copytree(taxonomy, folder / "taxonomy")
    (folder / "taxonomy/map.accession2taxid").write_text("\n".join(rows) + "\n")
    (folder / "map.tsv").write_text("\n".join(mapped) + "\n")
    return tuple(plain), bases


def size_of(folder: Path, name: str) -> int:
    """Bytes of a program's database, without what only building needs."""
    if name == "kraken2":
        return sum(path.stat().st_size for path in (folder / DATABASE).glob("*.k2d"))
    inside = (folder / DATABASE).rglob("*") if name.startswith("ngsgpu") else folder.glob("db.*")
    return sum(path.stat().st_size for path in inside if path.is_file())


def run(inputs: Inputs, programs: Sequence[Program], runs: int, work: Path, reads: bool) -> Any:
    """Measure all programs in turn."""
    found: dict[str, dict[str, Any]] = {}
    for program in programs:
        found[program.name] = {"build": [], "classify": []}
        (work / program.name).mkdir()
    for own in ("build", "classify"):
        for number in range(runs if own == "build" or reads else 0):
            for program in [*programs[number % len(programs) :], *programs][: len(programs)]:
                folder = work / program.name
                if own == "build":
                    shutil.rmtree(folder)
                    folder.mkdir()
                    commands = program.build(inputs)
                else:
                    commands = [program.classify(inputs)]
                results = [measure(command, folder) for command in commands]
                found[program.name][own].append(results[0])
                print(program.name, own, results[0].wall_s, file=sys.stderr)
    for program in programs:
        found[program.name]["database_bytes"] = size_of(work / program.name, program.name)
    return found


def summary(measurements: Sequence[Measurement]) -> dict[str, Any]:
    walls = [one.wall_s for one in measurements]
    return {
        "wall_s": {"median": median(walls), "min": min(walls), "max": max(walls)},
        "cpu_s": median(one.user_s + one.system_s for one in measurements),
        "runs": [asdict(one) for one in measurements],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--references", type=Path, required=True, help="folder of FASTA files")
    parser.add_argument("--first", type=int, help="take so many references only")
    parser.add_argument("--taxonomy", type=Path, required=True)
    parser.add_argument("--map", type=Path, required=True)
    parser.add_argument("--reads", type=Path, nargs="*", default=[])
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--programs", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    wanted = parser.parse_args()
    try:
        programs = [
            program
            for program in PROGRAMS
            if (program.name in wanted.programs if wanted.programs else _is_there(program))
        ]
        with tempfile.TemporaryDirectory(dir=wanted.work) as place:
            folder = Path(place)
            files = sorted(wanted.references.glob("*.f*a*"))[: wanted.first]
            references, bases = apart(
                prepare, folder, files, wanted.taxonomy, wanted.map, wanted.copies
            )
            inputs = Inputs(
                references, folder / "labelled.fna", folder / "taxonomy", folder / "map.tsv",
                tuple(path.resolve() for path in wanted.reads), wanted.threads, wanted.backend,
            )  # fmt: skip
            (folder / "work").mkdir()
            reads = bool(wanted.reads) and not wanted.build_only
            found = run(inputs, programs, wanted.runs, folder / "work", reads)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    result = {
        "machine": describe_machine(),
        **describe_commit(),
        "threads": wanted.threads,
        "backend": wanted.backend,
        "references": len(references),
        "reference_bases": bases,
        "reads": [path.name for path in wanted.reads],
        "versions": {
            program.name: version_in(answer(program.executable, "--version"))
            for program in programs
            if program.executable != "metacache"
        },
        "programs": {
            name: {
                "database_bytes": own["database_bytes"],
                **{part: summary(own[part]) for part in ("build", "classify") if own[part]},
            }
            for name, own in found.items()
        },
    }
    wanted.out.write_text(json.dumps(result, indent=1) + "\n")
    for name, own in result["programs"].items():
        parts = [f"{part} {own[part]['wall_s']['median']} s, {own[part]['cpu_s']:.1f} s of CPU"
                 for part in ("build", "classify") if part in own]  # fmt: skip
        print(f"{name}: {'; '.join(parts)}; database {own['database_bytes'] / 1e6:.0f} MB")
    return 0


def _is_there(program: Program) -> bool:
    try:
        find_program(program.executable)
    except BenchmarkError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
