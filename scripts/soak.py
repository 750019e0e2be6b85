#!/usr/bin/env python3
"""Run commands of ngsgpu thousands of times on small inputs, and watch that none hangs or differs.

    scripts/soak.py --runs 10000 --jobs 16 --limit 60 -o soak.json
    scripts/soak.py --case 4711                   one run again

Every run draws a command, the form of its input, threads and the compression of its outputs. It has
to end within the limit, with exit status 0, without temporary files, and with the decompressed
outputs of the first run of this command, which had one thread and plain files. One of ten gets
SIGINT or SIGTERM at a random moment: it has to end within ten seconds, with all of its outputs or
none, and without temporary files. What goes wrong is printed with its command line, and its folder
is kept; of a run that hangs also the stacks of its threads.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.harness.document import head, write_document  # noqa: E402
from scripts.soak_files import FORMS, contents_of, write_inputs  # noqa: E402

COMMANDS: Final = {
    "trim": "trim --cut-tail READS -o OUT/c_1.fq -O OUT/c_2.fq",
    "correct": "correct READS -o OUT/c_1.fq -O OUT/c_2.fq",
    "correct by k-mers": "correct --method spectrum READS -o OUT/c_1.fq -O OUT/c_2.fq",
    "merge": "merge READS -o OUT/m.fq --unmerged1 OUT/u_1.fq --unmerged2 OUT/u_2.fq",
    "deplete": "deplete -d IN/host.idx READS -o OUT/k_1.fq -O OUT/k_2.fq",
    "classify": "classify -d IN/db --sample s READS -o OUT/calls.tsv --report OUT/report.txt",
    "kmers count": "kmers count -k 21 READS -o OUT/counts --histo OUT/kmers.histo",
    "extend": "extend --insert-size 200 --insert-sd 30 READS -o OUT/e.fq "
    "--remaining1 OUT/r_1.fq --remaining2 OUT/r_2.fq",
    "assemble": "assemble READS -o OUT/contigs.fa --gfa OUT/contigs.gfa",
    "chain": "run --steps trim,correct,merge --sample s READS -o OUT",
}
PROGRAM = (sys.executable, "-m", "ngsgpu")
READ_TWICE: Final = ("assemble",)
"""Commands that refuse streams."""
FILES_ON_GPU: Final = ("trim", "merge", "deplete", "chain")
"""Commands that refuse them on a GPU."""
GPU_MEMORY: Final = "4G"
"""Of each run, so that runs at the same time do not take it from each other."""
INTERLEAVED_IN: Final = ("trim", "merge")
"""Commands whose option for interleaved input is called ``--interleaved-in``."""
ZIPPED: Final = (".fq", ".tsv", ".fa")
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED: Final = 0.1
"""Share of the runs that get a signal."""
MEMORY: Final = Path("/dev/shm")
"""Where chains keep reads between steps."""
GRACE: Final = 10.0
"""Seconds in which a run has to end after a signal; more where the machine is slow."""
SLOWER: Final = 20
"""How many times as long as the slowest first run another one may take, if that is longer than the
limit."""


@dataclass(frozen=True)
class Run:
    """What one run does.

    Attributes:
        number: of the run, from which all else is drawn.
        command: its name.
        form: of the input.
        interleaved: whether the mates alternate in one file, as they do in streams.
        threads: number of threads.
        zipped: whether outputs are compressed.
        signal: the signal that is sent; 0: none.
        moment: when, as a multiple of the seconds of the first run.
    """

    number: int
    command: str
    form: str = "plain"
    interleaved: bool = False
    threads: int = 1
    zipped: bool = False
    signal: int = 0
    moment: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        run: the run.
        kind: done, interrupted, hang, failure, leftover or difference.
        seconds: how long it took.
        told: what is to be known of a run that went wrong.
    """

    run: Run
    kind: str
    seconds: float
    told: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether this must not happen."""
        return self.kind not in {"done", "interrupted"}


@dataclass(frozen=True)
class First:
    """The outputs and the seconds of a command's first run."""

    contents: dict[str, bytes]
    seconds: float


def draw(seed: int, backend: str, number: int) -> Run:
    """A run by its number."""
    source = random.Random(f"{seed}/{number}")
    command = source.choice(list(COMMANDS))
    is_file = command in READ_TWICE or (backend == "cuda" and command in FILES_ON_GPU)
    form = source.choice(FORMS[:-1] if is_file else FORMS)
    return Run(
        number,
        command=command,
        form=form,
        interleaved=form == "stream" or source.random() < 0.25,
        threads=source.randint(1, 8),
        zipped=source.random() < 0.5,
        signal=int(source.choice(SIGNALS)) if source.random() < INTERRUPTED else 0,
        moment=source.uniform(0, 1.1),
    )


class Soak:
    """Inputs, an index and a database in a folder, and runs in folders beside them.

    Args:
        root: a new folder.
        backend: the backend of all runs.
        limit: seconds after which a run hangs.

    Attributes:
        grace: seconds in which a run has to end after a signal.
    """

    def __init__(self, root: Path, backend: str, limit: float) -> None:
        self.root = root
        self.inputs = root / "in"
        self.backend = backend
        self.limit = limit
        self.grace = GRACE
        self.firsts: dict[str, First] = {}
        write_inputs(self.inputs)
        refs = str(self.inputs / "refs.fa")
        self._build("deplete-index", str(self.inputs / "host.fa"), "-o", self.inputs / "host.idx")
        self._build("db", "build", refs, "-d", self.inputs / "db")

    def _build(self, *arguments: str | Path) -> None:
        """Run a command that makes an input."""
        words = [*PROGRAM, *map(str, arguments), "-q"]
        subprocess.run(words, env=_environment(self.root), check=True, stdin=subprocess.DEVNULL)

    def words(self, run: Run, folder: Path) -> list[str]:
        """The command line of a run, which writes below ``folder``."""
        words = [*PROGRAM]
        for word in COMMANDS[run.command].split():
            if word == "READS":
                words += self._reads(run)
            elif word.startswith("IN/"):
                words.append(str(self.inputs / word[3:]))
            elif word.startswith("OUT"):
                words.append(str(folder / "out") + word[3:])
                words[-1] += ".gz" if run.zipped and word.endswith(ZIPPED) else ""
            else:
                words.append(word)
        if run.interleaved and "-O" in words:
            at = words.index("-O")
            words[at - 1] = words[at - 1].replace("_1.fq", ".fq")
            del words[at : at + 2]
        words += ["--threads", str(run.threads), "--backend", self.backend, "--quiet"]
        return [*words, "--gpu-memory", GPU_MEMORY] if self.backend == "cuda" else words

    def _reads(self, run: Run) -> list[str]:
        if not run.interleaved:
            paths = [str(self.inputs / f"{mate}.{run.form}") for mate in "12"]
            return ["-i", paths[0], "-I", paths[1]]
        path = "-" if run.form == "stream" else str(self.inputs / f"both.{run.form}")
        if run.command == "kmers count":
            return ["-i", path]
        return ["-i", path, "--interleaved" + "-in" * (run.command in INTERLEAVED_IN)]

    def first(self, command: str) -> Outcome:
        """Run a command for the first time, and remember what it writes."""
        return self.run(Run(-1, command))

    def run(self, run: Run) -> Outcome:
        """One run, in a folder that is removed unless something went wrong."""
        folder = self.root / f"{run.command.replace(' ', '-')}-{run.number}"
        for name in ("out", "tmp"):
            (folder / name).mkdir(parents=True)
        words = self.words(run, folder)
        began = time.monotonic()
        status, is_late, errors = self._wait(run, words, folder)
        seconds = time.monotonic() - began
        kind, told = "hang", errors
        if not is_late:
            kind, told = self._judge(run, status, errors, folder, seconds)
        outcome = Outcome(run, kind, seconds, told)
        if outcome.is_wrong:
            outcome = Outcome(run, kind, seconds, f"{' '.join(words)}\n{told}\nkept in {folder}")
        else:
            shutil.rmtree(folder)
        return outcome

    def _wait(self, run: Run, words: list[str], folder: Path) -> tuple[int, bool, str]:
        """Exit status, whether it had to be killed, and what it wrote to standard error."""
        feeder = None
        with (folder / "stderr").open("wb") as errors:
            if run.form == "stream":
                text = str(self.inputs / "both.stream")
                feeder = subprocess.Popen(["cat", text], stdout=subprocess.PIPE, stderr=errors)
            process = subprocess.Popen(
                words,
                stdin=feeder.stdout if feeder else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=folder,
                env=_environment(folder / "tmp"),
                start_new_session=True,
            )
        if feeder and feeder.stdout:
            feeder.stdout.close()
        try:
            is_late = _watch(
                process, self._signal_after(run), run.signal, self.limit, grace=self.grace
            )
        finally:
            if feeder:
                feeder.wait()
        return process.returncode, is_late, (folder / "stderr").read_text(errors="replace")

    def _signal_after(self, run: Run) -> float | None:
        return run.moment * self.firsts[run.command].seconds if run.signal else None

    def suit(self, settings: argparse.Namespace) -> None:
        """Give runs the time that the first ones show to be needed, where other work goes on."""
        slowest = max(first.seconds for first in self.firsts.values())
        self.limit = max(settings.limit, SLOWER * slowest)
        self.grace = max(GRACE, 2 * slowest)

    def _judge(
        self, run: Run, status: int, errors: str, folder: Path, seconds: float
    ) -> tuple[str, str]:
        """The kind of a run's outcome, and what is to be known of it."""
        contents = contents_of(folder / "out")
        left = [path for path in folder.rglob("*") if _is_temporary(path.relative_to(folder))]
        if left:
            return "leftover", f"exit status {status}, left: {', '.join(map(str, left))}"
        stopped = {128 + run.signal, -run.signal} if run.signal else set()
        if run.signal == signal.SIGINT and "ngsgpu/__main__.py" not in errors:
            # Python itself, before a line of ours ran, ends like this.
            stopped |= {1} if "KeyboardInterrupt" in errors else set()
        if status in stopped and (not contents or contents == self.firsts[run.command].contents):
            return "interrupted", ""
        if status in stopped:
            return "leftover", f"exit status {status}, outputs: {', '.join(contents)}"
        if status != 0:
            return "failure", f"exit status {status}: {errors[-2000:]}"
        first = self.firsts.setdefault(run.command, First(contents, seconds))
        names = sorted(set(contents) | set(first.contents))
        differing = [name for name in names if contents.get(name) != first.contents.get(name)]
        if differing or not contents:
            return "difference", f"in: {', '.join(differing) or 'no outputs'}"
        return "done", ""


def in_memory() -> set[str]:
    """Names of folders that chains of this user keep in memory."""
    return {path.name for path in MEMORY.glob(f".ngsgpu-{os.getuid()}.*")}


def _is_temporary(path: Path) -> bool:
    if "ngsgpu-locks" in path.parts:  # of leased GPUs; they stay, for the next job
        return False
    return any(part.startswith(".") for part in path.parts) or (
        path.parts[0] == "tmp" and len(path.parts) > 1
    )


def _environment(tmp: Path) -> dict[str, str]:
    """The environment of a run: with its own temporary folder, and stacks on SIGABRT."""
    before = os.environ.get("PYTHONPATH")
    paths = f"{ROOT}{os.pathsep}{before}" if before else str(ROOT)
    return os.environ | {"TMPDIR": str(tmp), "PYTHONPATH": paths, "PYTHONFAULTHANDLER": "1"}


def _watch(
    process: subprocess.Popen[bytes],
    after: float | None,
    number: int,
    limit: float,
    *,
    grace: float = GRACE,
) -> bool:
    """Wait for a process, with a signal on the way; return whether it hung and was killed."""
    try:
        if after is not None:
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                limit = grace
        process.wait(limit)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # has faulthandler print the stacks of all threads
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        _kill(process)
        return True
    except BaseException:  # a test that is out of time leaves no process behind
        _kill(process)
        raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    with contextlib.suppress(ProcessLookupError):  # it left no children
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def summary(
    outcomes: list[Outcome], settings: argparse.Namespace, seconds: float
) -> dict[str, Any]:
    """The counts of all runs as a document."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    drawn = Counter((outcome.run.command, outcome.run.form) for outcome in outcomes)
    table = {command: {form: drawn[command, form] for form in FORMS} for command in COMMANDS}
    return {
        **head("ngsgpu.soak"),
        "seed": settings.seed,
        "jobs": settings.jobs,
        "backend": settings.backend,
        "limit_seconds": settings.limit,
        "runs": len(outcomes),
        "runs_by_command_and_form": table,
        "signals_sent": sum(outcome.run.signal != 0 for outcome in outcomes),
        "outcomes": {
            kind: kinds[kind]
            for kind in ("done", "interrupted", "hang", "failure", "leftover", "difference")
        },
        "longest_seconds": round(max(outcome.seconds for outcome in outcomes), 1),
        "seconds": round(seconds, 1),
        "wrong": [vars(o.run) | {"kind": o.kind, "told": o.told} for o in outcomes if o.is_wrong],
    }


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run ngsgpu thousands of times with a watchdog.")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=60, help="seconds of a run")
    parser.add_argument("--seed", type=int, default=1, help="chooses the runs")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--case", type=int, metavar="N", help="only the run of this number")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="counts as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; the exit status is 1 if anything went wrong."""
    settings = _arguments(arguments)
    root = Path(tempfile.mkdtemp(prefix="ngsgpu-soak-"))
    began = time.monotonic()
    before = in_memory()
    soak = Soak(root, settings.backend, settings.limit)
    # Kernels may have to be compiled first.
    soak.limit = max(settings.limit, 900)
    outcomes = []
    for command in COMMANDS:
        outcomes.append(soak.first(command))
        if outcomes[-1].is_wrong:
            print(f"WRONG the first run of {command}: {outcomes[-1].told}", flush=True)
            return 1
        outcomes[-1] = soak.run(Run(-2, command))  # this time with compiled kernels
        soak.firsts[command] = First(soak.firsts[command].contents, outcomes[-1].seconds)
    soak.suit(settings)
    numbers = range(settings.runs) if settings.case is None else [settings.case]
    runs = map(partial(draw, settings.seed, settings.backend), numbers)
    with ThreadPoolExecutor(settings.jobs) as pool:
        for outcome in pool.map(soak.run, runs):
            outcomes.append(outcome)
            if outcome.is_wrong:
                print(f"WRONG {outcome.run.number}: {outcome.kind}: {outcome.told}", flush=True)
    left = in_memory() - before
    patience = time.monotonic() + GRACE
    while left and time.monotonic() < patience:
        time.sleep(0.1)
        left &= in_memory()  # chains that others run end at some time
    document = summary(outcomes, settings, time.monotonic() - began)
    document["left_in_memory"] = sorted(left)
    if settings.output:
        write_document(document, settings.output)
    print(", ".join(f"{kind} {count}" for kind, count in document["outcomes"].items()))
    if left:
        print(f"WRONG left in {MEMORY}: {', '.join(sorted(left))}")
    if document["wrong"] or left:
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
