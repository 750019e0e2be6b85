"""Building databases and classifying reads: ngsgpu beside Kraken 2 and MetaCache.

    python -m benchmarks.peers.classification --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --reads r1.fq r2.fq --threads 2 -o out.json

Programs that are on the PATH take part (``ngsgpu`` always), in turn, several times, each run a
whole process with its inputs in the page cache. ``ngsgpu`` runs with its defaults and, as
``ngsgpu-metacache``, with MetaCache's values. ``--coverage X`` draws pairs of reads from the
references (ART, 2 x 100 bases) in place of ``--reads``. ``--compressed`` gives all programs .gz;
they write plain tables, as without. ``--build-once NAME`` is for programs that take minutes to
build. ``--copies N`` adds mutated copies of the references, for large databases; ``--build-only``
leaves the reads out. ``--check`` compares how many reads each program called.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.copies import mutated, records_of
from benchmarks.harness.datasets import MATES, DataSet, make
from benchmarks.harness.document import describe_commit, describe_machine, write_document
from benchmarks.harness.forms import ENDINGS, GZIP, form_paths, make_forms
from benchmarks.harness.measuring import (
    BenchmarkError,
    Measurement,
    answer,
    apart,
    find_program,
    measure,
    version_in,
)
from benchmarks.peers.classifiers import PROGRAMS, Inputs, Program


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
            records = list(records_of(path))
            for copy in range(copies + 1):
                target = folder / f"{path.name.split('.')[0]}_{copy}.fna"
                with target.open("wb") as out:
                    for name, original in records:
                        own = name if copy == 0 else f"copy{copy}_{name}"
                        letters = original if copy == 0 else mutated(original, source)
                        bases += len(letters)
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


def size_of(folder: Path, program: Program) -> int:
    """Bytes of a program's database, without what only building needs."""
    return sum(path.stat().st_size for path in folder.glob(program.kept) if path.is_file())


def run(
    inputs: Inputs,
    programs: Sequence[Program],
    runs: int,
    work: Path,
    build_once: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Measure all programs in turn."""
    found: dict[str, dict[str, Any]] = {}
    for program in programs:
        found[program.name] = {"build": [], "classify": []}
        (work / program.name).mkdir()
    for own in ("build", "classify") if inputs.reads else ("build",):
        for number in range(runs):
            for program in [*programs[number % len(programs) :], *programs][: len(programs)]:
                folder = work / program.name
                results = found[program.name][own]
                if own == "build" and results and program.name in build_once:
                    continue
                if own == "build":
                    shutil.rmtree(folder)
                    folder.mkdir()
                    commands = program.build(inputs)
                else:
                    commands = [program.classify(inputs)]
                results += [measure(command, folder) for command in commands]
                print(program.name, own, results[-1].wall_s, file=sys.stderr)
    for program in programs:
        found[program.name]["database_bytes"] = size_of(work / program.name, program)
        found[program.name]["version"] = version_of(program, work / program.name)
    return found


def warm_up(inputs: Inputs, programs: Sequence[Program], folder: Path) -> None:
    """Let ngsgpu compile its kernels, on one reference and few reads."""
    folder.mkdir()
    few = []
    for path in inputs.reads:
        few.append(folder / path.name)
        opened = gzip.open if path.suffix == ENDINGS[GZIP] else open
        with opened(path, "rb") as source, opened(few[-1], "wb") as target:
            target.writelines(islice(source, 4000))
    own = replace(inputs, references=inputs.references[:1], reads=tuple(few))
    for program in programs:
        if program.executable == "ngsgpu":
            for command in [*program.build(own), *([program.classify(own)] if few else [])]:
                measure(command, folder)


def version_of(program: Program, folder: Path) -> str:
    """What a program says of its version, asked beside its database."""
    return version_in(answer(*program.version.split(), directory=folder))


def count_calls(work: Path, names: Sequence[str], taxonomy: Path) -> dict[str, dict[str, int]]:
    """How many reads each program saw and left unclassified, from its output."""
    from ngsgpu.evaluate.classification.tally import read_tally
    from ngsgpu.taxonomy.dump import load_taxonomy

    tree = load_taxonomy(taxonomy)
    found = {}
    for name in names:
        calls = "calls.tsv" if name.startswith("ngsgpu") else "calls.txt"
        _, node, _, reads = read_tally(work / name / calls, tree, None, {}).rows.T
        found[name] = {"reads": int(reads.sum()), "unclassified": int(reads[node == -1].sum())}
    return found


def summary(measurements: Sequence[Measurement]) -> dict[str, Any]:
    walls = [one.wall_s for one in measurements]
    return {
        "wall_s": {"median": median(walls), "min": min(walls), "max": max(walls)},
        "cpu_s": median(one.user_s + one.system_s for one in measurements),
        "runs": [asdict(one) for one in measurements],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--references", type=Path, required=True, help="folder of FASTA files")
    add("--first", type=int, help="take only the first N references")
    add("--taxonomy", type=Path, required=True)
    add("--map", type=Path, required=True)
    add("--reads", type=Path, nargs="*", default=[])
    add("--coverage", type=float, default=0, help="draw pairs in place of --reads")
    add("--compressed", action="store_true", help="from .gz, one member a file")
    add("--copies", type=int, default=0)
    add("--build-only", action="store_true")
    add("--build-once", nargs="*", default=[], metavar="PROGRAM")
    add("--check", action="store_true")
    add("--programs", nargs="*", choices=[program.name for program in PROGRAMS])
    add("--threads", type=int, default=2)
    add("--backend", default="cpu")
    add("--runs", type=int, default=3)
    add("--work", type=Path)
    add("-o", "--out", type=Path, required=True)
    return parser.parse_args()


def main() -> int:
    wanted = parse()
    try:
        programs = [
            program
            for program in PROGRAMS
            if (program.name in wanted.programs if wanted.programs else is_there(program))
        ]
        if wanted.work is not None:
            wanted.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wanted.work) as place:
            document = measure_all(wanted, programs, Path(place))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    write_document(document, wanted.out)
    for name, own in document["programs"].items():
        parts = [f"{part} {own[part]['wall_s']['median']} s, {own[part]['cpu_s']:.1f} s of CPU"
                 for part in ("build", "classify") if part in own]  # fmt: skip
        print(f"{name}: {'; '.join(parts)}; database {own['database_bytes'] / 1e6:.0f} MB")
    return 0


def measure_all(
    wanted: argparse.Namespace, programs: Sequence[Program], folder: Path
) -> dict[str, Any]:
    """Prepare the inputs in a folder, measure, and say what was found."""
    files = sorted(wanted.references.glob("*.f*a*"))[: wanted.first]
    references, bases = apart(prepare, folder, files, wanted.taxonomy, wanted.map, wanted.copies)
    reads = [path.resolve() for path in wanted.reads]
    drawn = None
    if wanted.coverage and not wanted.build_only:
        data = DataSet("drawn", references, stage="classify", coverage=wanted.coverage)
        drawn = apart(make, data, folder / "drawn", processes=wanted.threads, truth=False)
        reads = [folder / "drawn" / name for name in MATES]
    if wanted.compressed and reads:
        plain = tuple(reads)
        apart(make_forms, [(plain, folder / "forms")], [GZIP], wanted.threads)
        reads = list(form_paths(GZIP, plain, folder / "forms"))
    inputs = Inputs(
        references, folder / "labelled.fna", folder / "taxonomy", folder / "map.tsv",
        () if wanted.build_only else tuple(reads), wanted.threads, wanted.backend,
    )  # fmt: skip
    work = folder / "work"
    work.mkdir()
    warm_up(inputs, programs, folder / "warm")
    found = run(inputs, programs, wanted.runs, work, wanted.build_once)
    names = [program.name for program in programs]
    if wanted.check and inputs.reads:
        for name, calls in apart(count_calls, work, names, inputs.taxonomy).items():
            found[name]["calls"] = calls

    def short(command: Sequence[str]) -> str:
        return " ".join(command).replace(f"{folder}/", "")

    return {
        "machine": describe_machine(),
        **describe_commit(),
        "threads": wanted.threads,
        "backend": wanted.backend,
        "compressed": wanted.compressed,
        "writes_gz": False,
        "references": len(references),
        "reference_bases": bases,
        "reads": [path.name for path in reads],
        **({} if drawn is None else {"pairs": drawn["reads"] // 2, "drawn": drawn["simulation"]}),
        "programs": {
            program.name: {
                "version": found[program.name]["version"],
                "commands": [
                    *(short(command) for command in program.build(replace(inputs, references=()))),
                    *([short(program.classify(inputs))] if inputs.reads else []),
                ],
                "database_bytes": found[program.name]["database_bytes"],
                **{
                    part: summary(found[program.name][part])
                    for part in ("build", "classify")
                    if found[program.name][part]
                },
                **(
                    {"calls": found[program.name]["calls"]}
                    if "calls" in found[program.name]
                    else {}
                ),
            }
            for program in programs
        },
    }


def is_there(program: Program) -> bool:
    """Whether a program can be started here."""
    try:
        find_program(program.executable)
    except BenchmarkError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
