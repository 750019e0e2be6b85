"""What a server (``ngsgpu db serve``) saves many small runs of ``ngsgpu classify``.

    python -m benchmarks.serving --megabases 200 --samples 20 --reads 1000 -o out.json

Samples are classified one by one, and two at a time: by a process each, by clients of a server (its
start and end are included), and by one process (``--samples``). Each way is measured as a whole, in
turn, with one thread a sample and inputs in the page cache. Genomes are random, reads have 1 % of
errors. Outputs that differ make the exit status 1. Memory is that of two runs at the same time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.harness.document import head, run_in
from benchmarks.harness.drawn import LETTERS, fastq, substitute
from benchmarks.harness.measuring import ROOT, apart, find_program, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.serving"
SCHEMA_VERSION: Final = 1
LENGTH: Final = 150
GENOME: Final = 2_000_000

_EACH: Final = (
    "seq $samples | xargs -P $jobs -I @ "
    '"$@" classify -d db $server -i s@.fq -o $folder/@.tsv --backend $backend -t 1 -q'
)
WAYS: Final = {
    "a process a sample": _EACH,
    "a server": '"$@" db serve -d db --socket socket --backend $backend -t $jobs -q & '
    f"while [ ! -S socket ]; do sleep 0.02; done; server=--server=socket; {_EACH}; "
    '"$@" db serve -d db --socket socket --stop; wait',
    "one process": '"$@" classify -d db --samples sheet.tsv -o $folder/{sample}.tsv '
    "--backend $backend -t $jobs -q",
}
"""Shell commands."""


def draw(megabases: int, samples: int, reads: int, folder: Path) -> None:
    """Write genomes, reads of them and a sheet of the samples."""
    rng = np.random.default_rng(1)
    genomes = rng.choice(LETTERS, (max(1, megabases * 1_000_000 // GENOME), GENOME))
    with (folder / "genomes.fa").open("wb") as file:
        for number, genome in enumerate(genomes):
            file.write(b">g%d\n%s\n" % (number, genome.tobytes()))
    text = genomes.reshape(-1)
    rows = ["sample\tfastq_1\n"]
    for sample in range(1, samples + 1):
        starts = rng.integers(0, len(text) - LENGTH, reads)
        bases = text[starts[:, None] + np.arange(LENGTH)]
        substitute(bases, 0.01, rng)
        (folder / f"s{sample}.fq").write_bytes(fastq(b"r%d", 0, bases))
        rows.append(f"{sample}\ts{sample}.fq\n")
    (folder / "sheet.tsv").write_text("".join(rows))


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    apart(draw, settings.megabases, settings.samples, settings.reads, work)
    ngsgpu = find_program("ngsgpu")
    backend = ["--backend", settings.backend]
    measure(["ngsgpu", "db", "build", "genomes.fa", "-d", "db", "-q", *backend], work)
    names = ("megabases", "samples", "reads", "backend")
    document: dict[str, Any] = {
        **head(SCHEMA, SCHEMA_VERSION),
        "settings": {name: getattr(settings, name) for name in names},
        "database_bytes": sum(own.stat().st_size for own in (work / "db").rglob("*")),
        "runs": {f"{way}, {jobs} at a time": [] for jobs in (1, 2) for way in WAYS},
        "differences": [],
    }
    for number in range(settings.repeats + 1):
        for jobs in (1, 2):
            for way, shell in WAYS.items():
                folder = f"{list(WAYS).index(way)}-{jobs}"
                (work / folder).mkdir(exist_ok=True)
                values = {"samples": settings.samples, "jobs": jobs, "folder": folder}
                given = "".join(f"{name}={own}; " for name, own in values.items())
                given += f"backend={settings.backend}; set -f; "
                taken = measure(["sh", "-c", given + shell, "sh", *ngsgpu], work)
                print(f"{way}, {jobs} at a time: {taken.wall_s:.2f} s", file=sys.stderr, flush=True)
                if number:  # the first round compiles the kernels
                    document["runs"][f"{way}, {jobs} at a time"].append(asdict(taken))
    document["differences"] += _differences(settings.samples, work)
    if settings.backend == "cpu":
        document["memory"] = {"processes": _memory(work, ngsgpu), "server": _served(work, ngsgpu)}
    return document


def _differences(samples: int, work: Path) -> list[str]:
    """Samples whose calls are not the same in all ways."""
    folders = sorted(work.glob("[0-9]-[0-9]"))
    return [
        str(sample)
        for sample in range(1, samples + 1)
        if len({(folder / f"{sample}.tsv").read_bytes() for folder in folders}) != 1
    ]


def _served(work: Path, ngsgpu: list[str]) -> list[dict[str, int]]:
    serve = [*ngsgpu, "db", "serve", "-d", "db", "--socket", "socket", "--backend", "cpu", "-q"]
    with subprocess.Popen(serve, cwd=work, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        found = _memory(work, ngsgpu, "--server=socket", server=server.pid)
        server.terminate()
    return found


def _memory(work: Path, ngsgpu: list[str], *options: str, server: int = 0) -> list[dict[str, int]]:
    """Bytes of the processes of two runs that have classified all samples, and still wait.

    Args:
        work: the folder.
        ngsgpu: command.
        options: of the runs.
        server: the server, if there is one, which is counted with its copies.
    """
    command = [*ngsgpu, "classify", "-d", "db", "--samples", "-", "-o", "{sample}.tsv", "-q"]
    command += ["-t", "1", "--backend", "cpu", *options]
    sheet = (work / "sheet.tsv").read_text().splitlines(keepends=True)
    with ExitStack() as stack:
        running = []
        for number in range(2):
            folder = work / f"memory-{number}"
            folder.mkdir(exist_ok=True)
            own = [word.replace("{sample}", f"{folder}/{{sample}}") for word in command]
            process = stack.enter_context(
                subprocess.Popen(
                    own, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            assert process.stdin is not None and process.stdout is not None
            process.stdin.writelines(sheet)
            process.stdin.flush()
            for _ in sheet:
                process.stdout.readline()
            running.append(process)
        pids = [process.pid for process in running]
        if server:
            children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
            pids = [*pids, server, *map(int, children)]
        return [_rollup(pid) for pid in pids]


def _rollup(process: int) -> dict[str, int]:
    """Resident bytes of a process: all, its share of what it has in common, and of files."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return {
        name: 1024 * int(found[1])
        for name in ("Rss", "Pss", "Pss_File", "Private_Dirty")
        if (found := re.search(rf"^{name}: +(\d+) kB", text, re.MULTILINE))
    }


def table(document: dict[str, Any]) -> str:
    """Rows are ways: wall and CPU time, beside those of a process a sample."""
    rows = [["samples are classified by", "wall, s", "CPU, s"]]
    first = (0.0, 0.0)
    for name, runs in document["runs"].items():
        wall = statistics.median(own["wall_s"] for own in runs)
        cpu = statistics.median(own["user_s"] + own["system_s"] for own in runs)
        first = (wall, cpu) if name.startswith("a process") else first
        rows.append(
            [name, f"{wall:.1f} ({wall / first[0]:.2f} x)", f"{cpu:.1f} ({cpu / first[1]:.2f} x)"]
        )
    lines = [markdown(rows, names=1)]
    for name, processes in document.get("memory", {}).items():
        shares = ", ".join(f"{own['Pss'] / 1e6:.0f}" for own in processes)
        resident = ", ".join(f"{own['Rss'] / 1e6:.0f}" for own in processes)
        lines.append(f"two runs, {name}: PSS {shares} MB; RSS {resident} MB\n")
    return "".join(lines)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="serving",
        description="Measure small runs of classify with and without a server.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--megabases", type=int, default=200, help="of the genomes")
    add("--samples", type=int, default=20)
    add("--reads", type=int, default=1000, help="of a sample")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("--repeats", type=int, default=3)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table; the status is 1 if calls differ."""
    return run_in(parse(arguments), "serving", run, table)


if __name__ == "__main__":
    sys.exit(main())
