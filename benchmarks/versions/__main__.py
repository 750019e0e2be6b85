"""Compare the output files of two versions of ngsgpu byte for byte, and their run times.

    scripts/compare_outputs --old HEAD~1 --reads FOLDER --genomes FOLDER --taxonomy FOLDER

Every command runs with both versions, each in its own folder but with the same arguments: correct,
extend, merge, kmers and evaluate on all libraries of --reads and on simulated pairs with known
truth; db build, plan, add, info and verify on --genomes, then classify and classify-merge. Each
library is read plain and gzipped, as pairs and as single reads, as FASTQ and as FASTA. Damaged
files and wrong options must be refused by both versions with the same exit status.

Compared are the names and bytes of all files written, standard output where it is data, and exit
statuses. In JSON files, entries that depend on the version, the machine or the time do not count
(version, time_s, device, job, memory, gpu_memory). Errors may be worded differently unless
--messages is given; the table counts these as reworded.

With --times N each command named by --only then runs N times with each version, in turn, and the
table shows the median of new / old for wall and CPU time. For that omit --head and set
--threads.

It needs Python with what ngsgpu imports, and no network; ngsgpu itself need not be installed. A
version is a folder that holds a checkout, or a git revision, which is unpacked to --work. A --work
that is kept saves time: kernels are compiled once for each version, and the outputs of an old
version that is a clean commit are made once. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.harness.archives import unpack
from benchmarks.versions import inputs
from benchmarks.versions.cases import Case, Options, all_cases, select
from benchmarks.versions.runs import SIDES, Bench, Outcome

ROOT = Path(__file__).resolve().parents[2]


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="compare_outputs", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--old", default="HEAD", help="git revision or checkout [%(default)s]")
    add("--new", default=str(ROOT), help="git revision or checkout [this one]")
    add("--reads", type=Path, metavar="FOLDER", help="FASTQ and FASTA files, plain or .gz; mates "
        "by _R1/_R2, _1/_2 or .1/.2 [only simulated reads]")  # fmt: skip
    add("--head", type=int, metavar="N", help="records taken of each file of reads [all]")
    add("--genomes", type=Path, metavar="FOLDER", help="FASTA files, plain or .gz, to build "
        "databases from [no db, no classify]")  # fmt: skip
    add("--most-genomes", type=int, default=8, metavar="N", help="files of it taken [%(default)s]")
    add("--taxonomy", type=Path, metavar="FOLDER", help="nodes.dmp and names.dmp, plain or .gz")
    add("--map", type=Path, action="append", default=[], metavar="FILE", help="names and taxids")
    add("--truth", type=Path, metavar="FILE", help="table for evaluate classification")
    add("--backend", nargs="+", default=["cpu"], choices=["cpu", "cuda"], help="[cpu]")
    add("--threads", type=int, default=2, metavar="N", help="of each command [%(default)s]")
    add("--gpu-memory", metavar="SIZE", help="of each command, as in 8G [what is free]")
    add("--tight", nargs="*", default=["64M", "256M"], metavar="SIZE", help="GPU memory of further "
        "runs with --backend cuda [64M 256M]")  # fmt: skip
    add("--jobs", type=int, default=1, metavar="N", help="libraries at a time [%(default)s]")
    add(
        "--only",
        type=re.compile,
        default=re.compile(""),
        metavar="REGEX",
        help="cases whose name holds this",
    )
    add("--times", type=int, default=0, metavar="N", help="compare times of N repetitions")
    add("--messages", action="store_true", help="errors must be worded in the same way")
    add("--work", type=Path, metavar="FOLDER", help="for checkouts and outputs [a temporary one]")
    add("--json", type=Path, metavar="FILE", help="write all results here")
    arguments = parser.parse_args()
    if arguments.times and arguments.jobs > 1:
        parser.error("--times needs --jobs 1: side by side, commands slow each other down")
    return arguments


def checkout(version: str, work: Path) -> tuple[Path, str]:
    """The folder of a version and its commit; a revision is unpacked below ``work``."""
    if (Path(version) / "ngsgpu").is_dir():
        git = ["git", "-C", version, "describe", "--always", "--dirty", "--abbrev=40"]
        return Path(version).resolve(), _output(git).decode().strip()
    git = ["git", "-C", str(ROOT)]
    commit = _output([*git, "rev-parse", "--verify", f"{version}^{{commit}}"]).decode().strip()
    if not commit:
        sys.exit(f"compare_outputs: {version} is neither a checkout nor a git revision")
    folder = work / "checkouts" / commit
    if not folder.is_dir():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(_output([*git, "archive", commit]))) as archive:
            unpack(archive, part)
        part.rename(folder)
    return folder, commit


def _output(command: list[str]) -> bytes:
    """What a command prints; nothing if it fails or is not installed."""
    try:
        return subprocess.run(command, capture_output=True).stdout
    except FileNotFoundError:
        return b""


def make_cases(arguments: argparse.Namespace, folder: Path) -> list[list[list[Case]]]:
    """Write all inputs to an empty folder; the cases to run on them."""
    files = sorted(arguments.genomes.glob("*.f*a*")) if arguments.genomes else []
    inputs.write_references(files[: arguments.most_genomes], arguments.taxonomy, folder)
    inputs.write_simulated(inputs.piece_of_genome(folder), folder)
    damaged = inputs.write_damaged(folder)
    libraries = {}
    if arguments.reads:
        libraries = inputs.write_libraries(arguments.reads, arguments.head, folder)
    words = ["--taxonomy ../inputs/taxonomy"] if arguments.taxonomy else []
    for number, path in enumerate(arguments.map):
        shutil.copyfile(path, folder / f"map{number}")
        words.append(f"--map ../inputs/map{number}")
    lacking = []
    if arguments.truth:
        shutil.copyfile(arguments.truth, folder / "truth.tsv")
    else:
        lacking.append("../inputs/truth.tsv")
    if not files:
        lacking += ["../inputs/genomes", "../inputs/added"]
    groups = []
    for backend in arguments.backend:
        options = Options(backend, arguments.threads, arguments.gpu_memory, " ".join(words))
        tight = arguments.tight if backend == "cuda" else []
        groups += all_cases(options, libraries, damaged, tight)
    return select(groups, arguments.only, lacking)


def print_table(outcomes: list[Outcome], commits: list[str], *, messages: bool) -> None:
    """A line for each backend and command, then what differs."""
    print(f"old {commits[0]}\nnew {commits[1]}\n")
    print(f"{'backend and command':<24}{'cases':>7}{'refused':>9}{'reworded':>10}{'differ':>8}"
          f"{'wall':>8}{'CPU':>8}")  # fmt: skip
    by_command: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        words = outcome.case.argv[: 2 if outcome.case.argv[0] in ("db", "evaluate") else 1]
        backend = outcome.case.name.partition("/")[0]
        by_command.setdefault(f"{backend} {' '.join(words)}", []).append(outcome)
    for command, own in sorted(by_command.items()):
        numbers = (
            f"{len(own):>7}{sum(o.status != 0 for o in own):>9}"
            f"{sum(bool(o.messages) for o in own):>10}{sum(bool(o.differences) for o in own):>8}"
        )
        timed = [outcome for outcome in own if outcome.repetitions]
        clocks = "".join(
            f"{median(o.ratio(clock) for o in timed):8.3f}" for clock in (0, 1) if timed
        )
        print(f"{command:<24}{numbers}{clocks}")
    for outcome in outcomes:
        if outcome.repetitions:
            wall = [median(run[side][0] for run in outcome.repetitions) for side in SIDES]
            print(f"{outcome.case.name}: {wall[0]:.3f} s, now {wall[1]:.3f} s; new / old "
                  f"{outcome.ratio(0):.3f} (wall), {outcome.ratio(1):.3f} (CPU)")  # fmt: skip
        for line in outcome.differences:
            print(f"\n{outcome.case.name}: {line}\n  ngsgpu {' '.join(outcome.case.argv)}")
        if outcome.messages and (outcome.differences or messages):
            for side, message in zip(SIDES, outcome.messages, strict=True):
                print(f"  {side}: {message.strip()}")
    for outcome in outcomes:
        _, kind, _ = outcome.case.name.split("/", 2)
        if outcome.status and not outcome.differences and kind not in ("refused", "wrong"):
            print(f"{outcome.case.name}: refused by both: {outcome.message}")
    statuses = sorted(Counter(outcome.status for outcome in outcomes).items())
    counts = ", ".join(f"{status}: {count}" for status, count in statuses)
    print(f"\n{len(outcomes)} cases; exit statuses {counts}")


def write_json(path: Path, arguments: argparse.Namespace, commits: list[str],
               outcomes: list[Outcome]) -> None:  # fmt: skip
    """Write what was run, where, and all outcomes."""
    cases = [
        asdict(outcome) | {"case": outcome.case.name, "argv": outcome.case.argv}
        for outcome in outcomes
    ]
    result = {
        "schema": "ngsgpu.compare-outputs", "schema_version": 1,
        "old": commits[0], "new": commits[1],
        "machine": {"cpus": len(os.sched_getaffinity(0)), "system": platform.platform()},
        "threads": arguments.threads, "head": arguments.head, "times": arguments.times,
        "cases": cases,
    }  # fmt: skip
    path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> int:
    """Run all; the exit status."""
    arguments = read_arguments()
    with tempfile.TemporaryDirectory(prefix="compare_outputs-") as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        versions = [checkout(version, work) for version in (arguments.old, arguments.new)]
        run = work / "run"
        shutil.rmtree(run / "inputs", ignore_errors=True)
        (run / "inputs").mkdir(parents=True)
        commits = [commit for _, commit in versions]
        groups = make_cases(arguments, run / "inputs")
        is_clean = commits[0] and not commits[0].endswith("-dirty")
        checkouts = versions[0][0], versions[1][0]
        bench = Bench(run, checkouts, arguments.times, commits[0] if is_clean else None)
        number = sum(len(row) for rows in groups for row in rows)
        done: list[Outcome] = []

        def run_row(row: tuple[int, list[Case]]) -> list[Outcome]:
            own = []
            for case in row[1]:
                is_timed = arguments.only.search(case.name) is not None
                own.append(bench.outcome(case, row[0], is_timed=is_timed))
                done.append(own[-1])
                mark = "differs" if own[-1].differences else "same"
                print(f"{len(done)}/{number} {case.name}: {mark}", file=sys.stderr, flush=True)
            return own

        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for rows in groups:
                for own in pool.map(run_row, enumerate(rows)):
                    outcomes += own
        print_table(outcomes, commits, messages=arguments.messages)
        if arguments.json:
            write_json(arguments.json, arguments, commits, outcomes)
    if arguments.messages and any(outcome.messages for outcome in outcomes):
        return 1
    return int(not outcomes or any(outcome.differences for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
