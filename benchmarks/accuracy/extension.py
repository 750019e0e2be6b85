"""How right extended reads are, beside Konnector's, for genomes and lengths of fragments.

ART draws pairs from each genome, with fragments as in Kallenborn (2024), chapter 9. All reads help,
but only some pairs, spread evenly, are extended and judged by ``ngsgpu evaluate extension``: by
ngsgpu in all its strict modes, and by Konnector (of ABySS), whose Bloom filter is built from all
reads, too. Both know the bounds of the length; ngsgpu also mean and deviation. No times are taken.
One JSON file holds everything, a Markdown table goes to standard output.

    python -m benchmarks.accuracy.extension ecoli.fna.gz yeast.fa.gz,human_chr20.fa.gz -o out.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.harness.datasets import TRUTH
from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import ROOT, BenchmarkError, answer, version_in
from benchmarks.harness.tables import markdown
from benchmarks.peers.extenders import LIBRARIES, STRICT_MODES, Library, draw, find_konnector
from ngsgpu.align.alignment import quality_weights
from ngsgpu.evaluate.extension import evaluate_extension
from ngsgpu.extend import EndParameters, ExtensionParameters, cpu
from ngsgpu.extend.records import Format, format_pairs
from ngsgpu.extend.rules import Rules
from ngsgpu.extend.tasks.joining import NOT_CONNECTED, join
from ngsgpu.io.text.batch import concatenate
from ngsgpu.io.text.pairs import Mates, read_pairs
from ngsgpu.minhash.ends import EndTables, build_end_tables
from ngsgpu.readset import ReadArrays, ReadSet, ReadSetBuilder
from ngsgpu.readset.fill import fill_unknown

SCHEMA = "ngsgpu.benchmark.extension_accuracy"
SCHEMA_VERSION = 1
PAIRS_PER_TASK = 1024
OURS = tuple(f"ngsgpu, strict {strict}" for strict in STRICT_MODES)
KONNECTOR = "konnector"


@njit(nogil=True)
def extend_in_all_modes(
    reads: ReadArrays,
    tables: EndTables,
    weights: NDArray[np.int32],
    rules: tuple[Rules, Rules, Rules],
    pairs: NDArray[np.int64],
    work: cpu.Workspace,
    results: tuple[cpu.Extensions, cpu.Extensions, cpu.Extensions],
) -> None:
    """Extend pairs; the strict mode matters to joining alone, so tasks run once for all modes.

    What strict 0 does not connect, no other mode does.
    """
    for row in range(len(pairs)):
        cpu.extend_pair(reads, tables, weights, rules[0], pairs[row], work)
        cpu.keep_pair(rules[0], work, row, results[0])
        if results[0].kind[row] == NOT_CONNECTED:
            continue
        for mode in range(1, 3):
            join(rules[mode], work.first, work.third, work.connection)
            cpu.keep_pair(rules[mode], work, row, results[mode])


class Sample:
    """Pairs of a library, those of them that are extended, and where the latter come from.

    Args:
        folder: where ``draw`` put the library; ``s1.fq``, ``s2.fq`` and ``s.sam`` are added.
        pairs: how many pairs there are.
        wanted: how many of them are extended at most.
    """

    def __init__(self, folder: Path, pairs: int, wanted: int) -> None:
        self.folder = folder
        count = min(pairs, wanted)
        self.pairs = np.arange(count, dtype=np.int64) * pairs // max(1, count)
        for mate in (1, 2):
            with (folder / f"r{mate}.fq").open("rb") as reads:
                self._write(f"s{mate}.fq", self._groups(reads, 4))
        # Each piece that reads were drawn from has a separate header.
        with (folder / TRUTH).open("rb") as truth:
            header = b"".join(line for line in truth if line.startswith(b"@"))
            truth.seek(0)
            lines = (line for line in truth if not line.startswith(b"@"))
            self._write("s.sam", [header, *self._groups(lines, 2)])

    def _groups(self, lines: Iterator[bytes], size: int) -> Iterator[bytes]:
        """Groups of lines, those of the sample."""
        at = 0
        for pair in self.pairs.tolist():
            for _ in islice(lines, size * (pair - at)):
                pass
            yield b"".join(islice(lines, size))
            at = pair + 1

    def _write(self, name: str, parts: Iterator[bytes] | list[bytes]) -> None:
        with (self.folder / name).open("wb") as out:
            out.writelines(parts)


def read_all(folder: Path) -> ReadSet:
    """The reads of a library."""
    builder = ReadSetBuilder(paired=True)
    for mates in read_pairs(folder / "r1.fq", folder / "r2.fq"):
        builder.add(*mates)
    reads = builder.finish()
    fill_unknown(reads)
    return reads


def extend_sample(sample: Sample, library: Library, threads: int) -> dict[str, dict[str, Any]]:
    """Extend the sample in all strict modes; return what is written of each."""
    reads = read_all(sample.folder)
    tables = build_end_tables(reads, EndParameters(), threads=threads)
    mean, deviation = float(library.insert), float(library.deviation)
    low, high = library.bounds
    parameters = [
        ExtensionParameters(
            strict=strict,
            insert_mean=mean,
            insert_sd=deviation,
            min_length=low,
            max_length=high,
        )
        for strict in STRICT_MODES
    ]
    loose, middle, strict = (one.rules(mean, deviation) for one in parameters)
    rules = (loose, middle, strict)
    weights = quality_weights(reads.arrays.quality_bits, reads.levels)

    def work(begin: int) -> tuple[cpu.Extensions, ...]:
        part = sample.pairs[begin : begin + PAIRS_PER_TASK]
        space = cpu.Workspace.allocate(loose, reads.max_length, len(tables.cells))
        first, second, third = (cpu.Extensions.allocate(len(part), one) for one in rules)
        results = (first, second, third)
        extend_in_all_modes(reads.arrays, tables, weights, rules, part, space, results)
        return results

    mates = list(read_pairs(sample.folder / "s1.fq", sample.folder / "s2.fq"))
    first, second = (Mates.of(concatenate([pair[i] for pair in mates]), 0, 1) for i in range(2))
    how = Format(
        fasta=0,
        phred_offset=33,
        gap_quality=-1,
        include_remaining=0,
        interleave_remaining=0,
        reverse_complemented_input=0,
    )
    paths = [sample.folder / f"ngsgpu{strict}.fq" for strict in STRICT_MODES]
    files = [path.open("wb") for path in paths]
    begins = range(0, len(sample.pairs), PAIRS_PER_TASK)
    with ThreadPoolExecutor(threads) as pool:
        for begin, results in zip(begins, pool.map(work, begins), strict=True):
            for file, part in zip(files, results, strict=True):
                file.write(format_pairs(first, second, begin, how, part)[0].tobytes())
    for file in files:
        file.close()
    return {
        name: {"parameters": asdict(one), "accuracy": judge(sample, path)}
        for name, one, path in zip(OURS, parameters, paths, strict=True)
    }


def connect_sample(
    sample: Sample, library: Library, settings: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Connect the sample by Konnector."""
    low, high = library.bounds
    build = (
        f"abyss-bloom build -k 32 -b {settings.bloom} -l 2 -j {settings.threads} "
        "k.bloom r1.fq r2.fq"
    )
    connect = (
        f"konnector -k 32 -i k.bloom --fastq -j {settings.threads} -f {low} -F {high} "
        "-o konnector s1.fq s2.fq"
    )
    found: dict[str, Any] = {"commands": [build, connect], "accuracy": None}
    built = run(build, sample.folder, settings.limit)
    connected = None if built is None else run(connect, sample.folder, settings.limit)
    rates = [line for line in (built or "").splitlines() if "FPR" in line]
    found["bloom_filter"] = rates[-1].strip() if rates else None
    if connected is not None:
        found["accuracy"] = judge(sample, sample.folder / "konnector_pseudoreads.fq")
    return {KONNECTOR: found}


def run(command: str, folder: Path, limit: float) -> str | None:
    """Run a command and return what it says, or None if it takes longer than ``limit`` seconds."""
    try:
        done = subprocess.run(
            command.split(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise BenchmarkError(f"{command}: status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def judge(sample: Sample, extended: Path) -> dict[str, Any]:
    """Compare extended reads with the truth."""
    folder = sample.folder
    return evaluate_extension([folder / "s.sam"], folder / "genome.fa", [extended]).document()


def rows_of(data: dict[str, Any]) -> Iterator[list[str]]:
    """Lines of the table for one genome and library."""
    for name, entry in data["programs"].items():
        if entry["accuracy"] is None:
            yield [data["genome"], data["name"], name, *["-"] * 4]
            continue
        rates = entry["accuracy"]["rates"]
        yield [
            data["genome"],
            data["name"],
            name,
            *(f"{100 * (rates[key] or 0):.2f} %" for key in ("connected", "error_free")),
            *(f"{rates[key] or 0:.6f}" for key in ("error_rate", "error_rate_without_length")),
        ]


def is_ahead(data: dict[str, Any]) -> bool | None:
    """Whether all strict modes have more error-free gaps than Konnector, at a lower error rate."""
    theirs = data["programs"].get(KONNECTOR, {}).get("accuracy")
    if theirs is None:
        return None
    ours = [data["programs"][name]["accuracy"]["rates"] for name in OURS]
    return all(
        one["error_free"] > theirs["rates"]["error_free"]
        and (one["error_rate"] or 0) < theirs["rates"]["error_rate"]
        for one in ours
    )


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    header = "genome|fragments|program|connected|error-free|error rate|without length"
    rows = [header.split("|")]
    for data in document["datasets"]:
        rows += rows_of(data)
    return markdown(rows, names=3)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="extension_accuracy", description="How right extended reads are.",
        formatter_class=described,
    )  # fmt: skip
    add = parser.add_argument
    add("genomes", nargs="+", metavar="GENOME", help="FASTA; several, joined by commas, are one")
    add("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    add("--sample", type=int, default=100_000, help="pairs that are extended")
    add("-t", "--threads", type=int, default=2, help="of every program")
    add("--coverage", type=int, default=30, help="reads per position")
    add("--seed", type=int, default=1, help="of the simulation")
    add("--bloom", default="480M", help="size of Konnector's Bloom filter")
    add("--limit", type=float, default=900, help="seconds after which Konnector is ended")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def measure_library(paths: Sequence[Path], name: str, settings: argparse.Namespace) -> Any:
    """Everything about one library of one genome."""
    library = LIBRARIES[name]
    with tempfile.TemporaryDirectory(dir=settings.work) as work:
        folder = Path(work)
        drawn = library.data(paths, settings.coverage, settings.seed)
        pairs = draw(drawn, folder / "reads", folder)["reads"] // 2
        sample = Sample(folder, pairs, settings.sample)
        programs = extend_sample(sample, library, settings.threads)
        if settings.konnector:
            programs |= connect_sample(sample, library, settings)
    data: dict[str, Any] = {
        "genome": " and ".join(path.name for path in paths),
        "name": library.name,
        "library": asdict(library),
        "pairs": pairs,
        "extended_pairs": len(sample.pairs),
        "programs": programs,
    }
    return data | {"ahead_of_konnector": is_ahead(data)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Extend, judge, write."""
    settings = parse(arguments)
    settings.konnector = find_konnector()
    versions = {"ngsgpu": "--version"} | ({KONNECTOR: "--version"} if settings.konnector else {})
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "programs": {name: version_in(answer(name, how)) for name, how in versions.items()}
        | {"art_illumina": version_in(answer("art_illumina"))},
        "settings": {
            name: getattr(settings, name) for name in ("coverage", "seed", "sample", "bloom")
        },
        "datasets": [],
    }
    try:
        settings.work.mkdir(parents=True, exist_ok=True)
        for genome in settings.genomes:
            for name in settings.libraries:
                paths = [Path(path) for path in genome.split(",")]
                document["datasets"].append(measure_library(paths, name, settings))
                print("".join(table(document).splitlines(keepends=True)[-4:]), file=sys.stderr)
                # What is there is kept, should a later one fail.
                write_document(document, settings.output)
    except (BenchmarkError, OSError) as error:
        print(f"extension_accuracy: error: {error}", file=sys.stderr)
        return 1
    print(table(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
