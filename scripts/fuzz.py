#!/usr/bin/env python3
"""Feed every parser of ngsgpu with changed files, guided by coverage.

    scripts/fuzz.py --seconds 60 --jobs 4 -o fuzz.json          all targets, a minute each
    scripts/fuzz.py --target gzip --seconds 3600 --seeds 4       four processes, one corpus
    scripts/fuzz.py --target gzip --input FILE                  one input again

A parser has to accept an input, or to refuse it by an error of ours with a message. A finding is
any other exception, more than ten seconds, more than 2 GB of memory, or a crash. It ends a process;
the input is kept in the folder of ``--corpus``, with what has been learnt. Atheris (libFuzzer)
changes the inputs by what they reach in Python code; where it is not installed they are changed at
random. Targets and valid files to begin with are in ``scripts/fuzz_targets.py``.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import importlib.util
import logging
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.harness.document import head, write_document  # noqa: E402
from ngsgpu.errors import NgsgpuError  # noqa: E402
from scripts.fuzz_targets import LARGEST, TARGETS, Target  # noqa: E402
from tests.attack.mutations import mutate  # noqa: E402

LONGEST: Final = 10
"""Seconds that an input may take."""
MOST_MEGABYTES: Final = 2048
"""Resident memory that a process may take."""
_LATE: Final = 120
"""Seconds for starting, and for the last input."""


@dataclass(frozen=True)
class Result:
    """What came of a process.

    Attributes:
        target: name of its target.
        seed: of the changes.
        inputs: how many were tried.
        seconds: how long it ran.
        finding: what went wrong; empty if nothing.
    """

    target: str
    seed: int
    inputs: int
    seconds: float
    finding: str


def try_input(target: Target, data: bytes, folder: Path) -> bool:
    """Have a target parse an input; return whether it is accepted.

    Args:
        target: the parser.
        data: the input.
        folder: that the target may write to.

    Raises:
        AssertionError: it is refused without a message.
        Exception: whatever the parser raises that is no error of ours.
    """
    try:
        target.check(data, folder)
    except NgsgpuError as error:
        assert str(error).strip(), "an error without a message"
        assert "\n" not in str(error), "a message of several lines"
        return False
    return True


def fuzz_at_random(target: Target, corpus: Path, folder: Path, seconds: float, seed: int) -> int:
    """Change valid inputs at random until the time is over; return how many were tried.

    Args:
        target: the parser.
        corpus: folder of inputs to begin with, where a finding is kept.
        folder: that the target may write to.
        seconds: how long.
        seed: of the changes.
    """
    source = random.Random(seed)
    seeds = [path.read_bytes() for path in sorted(corpus.iterdir())]
    end, tried = time.monotonic() + seconds, 0
    pending = corpus.with_name(f"{corpus.name}-pending-{seed}")
    while time.monotonic() < end:
        data = mutate(source.choice(seeds), source)[: 2 * LARGEST]
        pending.write_bytes(data)  # also there after a crash
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try_input(target, data, folder)
        faulthandler.cancel_dump_traceback_later()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        assert used < MOST_MEGABYTES, f"{used} MB of memory"
        tried += 1
    pending.unlink(missing_ok=True)
    return tried


def fuzz_by_coverage(target: Target, corpus: Path, folder: Path, seconds: float, seed: int) -> None:
    """Have libFuzzer change inputs by the coverage they reach; ends the process.

    Args:
        target: the parser.
        corpus: folder of inputs to begin with, where those that reach more are added.
        folder: that the target may write to.
        seconds: how long.
        seed: of the changes.
    """
    import atheris

    for name in [name for name in sys.modules if name.startswith("ngsgpu.")]:
        _instrument(atheris, sys.modules[name])

    def check(data: bytes) -> None:
        try_input(target, data, folder)

    options = {
        "max_total_time": int(seconds),
        "timeout": LONGEST,
        "rss_limit_mb": MOST_MEGABYTES,
        "max_len": 2 * LARGEST,
        "seed": seed,
        "detect_leaks": 0,
        "print_final_stats": 1,
        "artifact_prefix": f"{corpus}-",
    }
    words = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *words, str(corpus)], check)
    atheris.Fuzz()


def _instrument(atheris: Any, module: types.ModuleType) -> None:
    """Count the coverage of a module's functions, but not of those that are compiled."""
    for own in list(vars(module).values()):
        members = vars(own).values() if isinstance(own, type) else [own]
        for function in members:
            if (
                isinstance(function, types.FunctionType)
                and function.__module__ == module.__name__
                and not function.__name__.startswith("<")
            ):
                atheris.instrument_func(function)


def _child(settings: argparse.Namespace) -> int:
    """Fuzz one target in this process."""
    logging.disable(logging.CRITICAL)
    (name,) = settings.target
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="ngsgpu-fuzz-") as work:
        if settings.input:
            is_accepted = try_input(target, settings.input.read_bytes(), Path(work))
            print("accepted" if is_accepted else "refused")
            return 0
        corpus = settings.corpus / name.replace(" ", "-")
        arguments = target, corpus, Path(work), settings.seconds, settings.seed
        if importlib.util.find_spec("atheris"):
            fuzz_by_coverage(*arguments)
        else:
            print(f"stat::number_of_executed_units: {fuzz_at_random(*arguments)}")
    return 0


def _run(name: str, seed: int, settings: argparse.Namespace) -> Result:
    """Fuzz one target in a separate process."""
    corpus = settings.corpus / name.replace(" ", "-")
    corpus.mkdir(parents=True, exist_ok=True)
    for data in TARGETS[name].seeds():
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    words = [sys.executable, __file__, "--child", "--target", name, "--seed", str(seed)]
    words += ["--seconds", str(settings.seconds), "--corpus", str(settings.corpus)]
    began = time.monotonic()
    finding = ""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False,
            timeout=settings.seconds + _LATE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        text = done.stdout + done.stderr
        if done.returncode:
            finding = f"exit status {done.returncode}: {text[-6000:]}"
    except subprocess.TimeoutExpired as error:
        text, finding = "", f"it hung: {(error.stderr or b'')[-6000:]!r}"
    counts = re.findall(r"number_of_executed_units: *(\d+)", text)
    inputs = int(counts[-1]) if counts else 0
    return Result(name, seed, inputs, time.monotonic() - began, finding)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Feed every parser with changed files.")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="default: all")
    parser.add_argument("--seconds", type=float, default=60, help="of each process")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, default=1, help="processes of each target")
    parser.add_argument("--corpus", type=Path, default=Path("fuzz-corpus"), help="default here")
    parser.add_argument("--input", type=Path, metavar="FILE", help="one input of --target again")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="counts as JSON")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    settings = parser.parse_args(arguments)
    if (settings.input or settings.child) and len(settings.target or []) != 1:
        parser.error("--input needs one --target")
    return settings


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the targets; the exit status is 1 if there are findings."""
    settings = _arguments(arguments)
    if settings.child or settings.input:
        return _child(settings)
    names = settings.target or list(TARGETS)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    began = time.monotonic()
    with ThreadPoolExecutor(settings.jobs) as pool:
        results = []
        for result in pool.map(lambda one: _run(one[0], one[1], settings), product(names, seeds)):
            results.append(result)
            state = f"FOUND {result.finding}" if result.finding else "nothing found"
            print(f"{result.target}: {result.inputs} inputs, {state}", flush=True)
    if settings.output:
        document = {
            **head("ngsgpu.fuzz"),
            "engine": "atheris" if importlib.util.find_spec("atheris") else "random",
            "seconds_of_each": settings.seconds,
            "seconds": round(time.monotonic() - began, 1),
            "inputs": sum(result.inputs for result in results),
            "targets": [vars(result) for result in results],
        }
        write_document(document, settings.output)
    return 1 if any(result.finding for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
