"""Extended reads of real pairs beside Konnector's, judged by where they align (section 9.4.1).

Of each data set the pairs are taken whose reads both have the commonest length, evenly spread ones
if there are too many. ngsgpu in its strict modes and Konnector (of ABySS) extend them, as they are
and corrected, within the same bounds, which come from ngsgpu's estimate; Konnector leaves the
reads as they are (``--preserve-reads``), as ngsgpu does. BWA aligns what they write,
``ngsgpu evaluate extension`` compares the gaps. No times are taken. One JSON file, a Markdown
table.

    python -m benchmarks.accuracy.extension_mapped --data NAME R1.fq.gz R2.fq.gz \
        reference.fa.gz -o out.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import ROOT, BenchmarkError, answer, measure, version_in
from benchmarks.harness.tables import markdown
from benchmarks.peers.extenders import STRICT_MODES, find_konnector
from scripts.simulation_chunks import read_fasta

SCHEMA = "ngsgpu.benchmark.extension_mapped"
SCHEMA_VERSION = 1
KONNECTOR = "konnector"

Record = tuple[str, str, str, str]


def records(path: Path) -> Iterator[Record]:
    """The records of a gzip-compressed FASTQ file, four lines each."""
    with gzip.open(path, "rt") as lines:
        while record := tuple(islice(lines, 4)):
            yield record[0], record[1], record[2], record[3]


def prepare(paths: Sequence[Path], folder: Path, coverage: float) -> tuple[int, int]:
    """Write ``r1.fq``, ``r2.fq`` and ``reference.fa``; return pairs and length of their reads."""
    *reads, reference = paths
    genome = 0
    with (folder / "reference.fa").open("w") as out:
        for name, bases in read_fasta(reference):
            out.write(f">{name}\n{bases}\n")
            genome += len(bases) - bases.count("N")
    pairs = list(zip(*(records(path) for path in reads), strict=True))
    lengths = Counter(len(mate[1].strip()) for pair in pairs for mate in pair)
    length = lengths.most_common(1)[0][0]
    pairs = [pair for pair in pairs if all(len(mate[1].strip()) == length for mate in pair)]
    wanted = min(len(pairs), math.ceil(coverage * genome / (2 * length)))
    taken = [pairs[i * len(pairs) // wanted] for i in range(wanted)]
    for mate in range(2):
        with (folder / f"r{mate + 1}.fq").open("w") as out:
            out.writelines("".join(pair[mate]) for pair in taken)
    return len(taken), length


def estimated_bounds(folder: Path, length: int) -> tuple[dict[str, float], int, int]:
    """Mean and deviation of the fragments' lengths, and bounds as in section 9.2."""
    command = "ngsgpu extend -q -i r1.fq -I r2.fq -o first.fq --stats first.json"
    measure(command.split(), folder)
    insert = json.loads((folder / "first.json").read_text())["insert"]
    mean, deviation = insert["mean"], insert["sd"]
    low = max(2 * length, math.floor(mean - 4 * deviation))
    return {"mean": mean, "sd": deviation}, low, math.ceil(mean + 4 * deviation)


def commands(low: int, high: int, bloom: str) -> dict[str, tuple[str, str]]:
    """What each program is called with, and the file that it writes."""
    found = {
        f"ngsgpu, strict {strict}": (
            f"ngsgpu extend -q -i r1.fq -I r2.fq -o ngsgpu{strict}.fq --strict {strict} "
            f"--min-length {low} --max-length {high}",
            f"ngsgpu{strict}.fq",
        )
        for strict in STRICT_MODES
    }
    found[KONNECTOR] = (
        f"konnector -k 32 -b {bloom} -c 2 --preserve-reads --fastq -f {low} -F {high} "
        "-o konnector r1.fq r2.fq",
        "konnector_pseudoreads.fq",
    )
    return found


def judge(folder: Path, extended: str, pairs: int, length: int) -> dict[str, Any]:
    """Align extended reads and compare their gaps with the reference."""
    measure(["bwa", "mem", "reference.fa", extended], folder, output=folder / "aligned.sam")
    command = (
        f"ngsgpu evaluate extension --alignments aligned.sam --reference reference.fa "
        f"--extended {extended} --read-length {length} --pairs {pairs} --json e.json"
    )
    measure(command.split(), folder)
    found: dict[str, Any] = json.loads((folder / "e.json").read_text())
    return found


def measure_data(
    name: str, paths: Sequence[Path], settings: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Everything about one data set, as it is and corrected."""
    with tempfile.TemporaryDirectory(dir=settings.work) as work:
        folder = Path(work)
        pairs, length = prepare(paths, folder, settings.coverage)
        insert, low, high = estimated_bounds(folder, length)
        measure(["bwa", "index", "reference.fa"], folder)
        for reads in ("raw", "corrected"):
            if reads == "corrected":
                correct = "ngsgpu correct -q -i r1.fq -I r2.fq -o c1.fq -O c2.fq"
                measure(correct.split(), folder)
                for mate in (1, 2):
                    (folder / f"c{mate}.fq").replace(folder / f"r{mate}.fq")
            programs = {}
            for program, (command, extended) in commands(low, high, settings.bloom).items():
                if program == KONNECTOR and not settings.konnector:
                    continue
                measure(command.split(), folder)
                accuracy = judge(folder, extended, pairs, length)
                programs[program] = {"command": command, "accuracy": accuracy}
            yield {
                "name": name,
                "reads": reads,
                "files": [path.name for path in paths],
                "pairs": pairs,
                "read_length": length,
                "insert": insert,
                "programs": programs,
            }


def table(document: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    shares_of = "connected|aligned whole|error-free|at most 2 edits"
    rows = [f"data|reads|program|{shares_of}|error rate|without length".split("|")]
    for data in document["datasets"]:
        for program, entry in data["programs"].items():
            accuracy = entry["accuracy"]
            counts, rates = accuracy["counts"], accuracy["rates"]
            shares = [accuracy["connected"]]
            shares += [counts[key] for key in ("reads", "error_free", "few_edits")]
            rows.append(
                [
                    data["name"],
                    data["reads"],
                    program,
                    *(f"{100 * count / data['pairs']:.2f} %" for count in shares),
                    *(
                        f"{rates[key] or 0:.6f}"
                        for key in ("error_rate", "error_rate_without_length")
                    ),
                ]
            )
    return markdown(rows, names=3)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    described = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(
        prog="extension_mapped", description="Extended reads of real pairs, by their alignments.",
        formatter_class=described,
    )  # fmt: skip
    add = parser.add_argument
    files = ("NAME", "R1", "R2", "REFERENCE")
    add("--data", nargs=4, action="append", metavar=files, required=True, help="repeat for more")
    add("--coverage", type=float, default=60, help="reads per position at most")
    add("--bloom", default="50M", help="size of Konnector's Bloom filter")
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Extend, align, judge, write."""
    settings = parse(arguments)
    settings.konnector = find_konnector()
    versions = {"ngsgpu": "--version"} | ({KONNECTOR: "--version"} if settings.konnector else {})
    try:
        document: dict[str, Any] = {
            **head(SCHEMA, SCHEMA_VERSION),
            "programs": {name: version_in(answer(name, how)) for name, how in versions.items()}
            | {"bwa": version_in(answer("bwa"))},
            "settings": {"coverage": settings.coverage, "bloom": settings.bloom},
        }
        settings.work.mkdir(parents=True, exist_ok=True)
        document["datasets"] = [
            entry
            for name, *paths in settings.data
            for entry in measure_data(name, [Path(path) for path in paths], settings)
        ]
    except (BenchmarkError, OSError) as error:
        print(f"extension_mapped: error: {error}", file=sys.stderr)
        return 1
    write_document(document, settings.output)
    print(table(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
