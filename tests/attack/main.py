"""``scripts/attack``: run attacks for some minutes, or a fixed number of each, and count."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.attack import (
    chains,
    changes,
    changing,
    databases,
    disks,
    mutations,
    names,
    servers,
    signals,
    soak,
    studies,
)
from tests.attack.arena import Arena, Verdict

Attack = Callable[[Arena, str, random.Random], Verdict]

ATTACKS: Final[dict[str, Attack]] = {
    "changed inputs": mutations.attack,
    "changing inputs": changing.attack,
    "damaged databases": databases.attack,
    "changing databases": changes.attack,
    "signals": signals.attack,
    "full disks": disks.attack,
    "name clashes": names.attack,
    "soak": soak.attack,
    "damaged studies": studies.attack,
    "chains": chains.attack,
    "killed chains": chains.kill,
    "servers": servers.attack,
}
SHORT: Final = {
    "changed inputs": 300,
    "changing inputs": 40,
    "damaged databases": 250,
    "changing databases": 8,
    "signals": 100,
    "full disks": 20,
    "name clashes": 50,
    "soak": 60,
    "damaged studies": 30,
    "chains": 40,
    "killed chains": 10,
    "servers": 6,
}


def _numbered(counts: dict[str, int], seconds: float | None) -> Iterator[tuple[str, int]]:
    """Cases by attack and number, mixed in proportion: as many as asked for, or until the end."""
    began = time.monotonic()
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    random.Random(1).shuffle(kinds)
    done: Counter[str] = Counter()
    while True:
        for kind in kinds:
            if seconds is not None and time.monotonic() - began > seconds:
                return
            yield kind, done[kind]
            done[kind] += 1
        if seconds is None:
            return


def _work(arena: Arena, seed: int, jobs: int, job: int, cases: Iterator[tuple[str, int]]) -> None:
    """Run every ``jobs``-th case and write a line of JSON for each."""
    with (arena.root / f"job-{job}.jsonl").open("w") as lines:
        for number, (kind, index) in enumerate(cases):
            if number % jobs != job:
                continue
            name = f"{kind.replace(' ', '-')}-{index}"
            source = random.Random(f"{seed}/{kind}/{index}")
            try:
                verdict = ATTACKS[kind](arena, name, source)
            except Exception as error:
                verdict = Verdict("the attack", "broken", repr(error))
            case = {"kind": kind, "index": index, **vars(verdict)}
            lines.write(json.dumps(case) + "\n")
            lines.flush()
            if verdict.problem:
                print(f"WRONG {kind} {index}: {verdict.what}: {verdict.problem}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long; without, a short fixed number")
    parser.add_argument("--seed", type=int, default=1, help="chooses the cases (default 1)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", type=int, help="how many of --only, instead of the short form's")
    parser.add_argument("--only", choices=list(ATTACKS), help="one kind of attack")
    parser.add_argument("--case", type=int, metavar="N", help="one case of --only, again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts here")
    return parser.parse_args()


def main() -> int:
    """Run the attacks; the exit status is 1 if any outcome was wrong."""
    options = _arguments()
    counts = {options.only: options.cases or SHORT[options.only]} if options.only else SHORT
    seconds = None if options.minutes is None else 60 * options.minutes
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="ngsgpu-attack-"))
    try:
        arena = Arena(root / "arena")
        print(f"the world is made: {time.monotonic() - began:.0f} s", flush=True)
        if options.case is not None:
            source = random.Random(f"{options.seed}/{options.only}/{options.case}")
            print(ATTACKS[options.only](arena, "case", source))
            return 0
        children = []
        for job in range(options.jobs):
            child = os.fork()
            if child == 0:
                try:
                    _work(arena, options.seed, options.jobs, job, _numbered(counts, seconds))
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        return _tell(arena.root, options, time.monotonic() - began)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _tell(root: Path, options: argparse.Namespace, seconds: float) -> int:
    """Print and write the counts."""
    cases = [
        json.loads(line)
        for path in sorted(root.glob("job-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    outcomes = {kind: Counter(c["outcome"] for c in cases if c["kind"] == kind) for kind in ATTACKS}
    wrong = [case for case in cases if case["problem"]]
    for kind, counter in outcomes.items():
        told = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counter.items()))
        bad = sum(case["kind"] == kind for case in wrong)
        print(f"{kind}: {counter.total()} cases ({told}), {bad} wrong")
    print(
        f"{len(cases)} cases in {seconds:.0f} s, seed {options.seed}: {len(wrong)} wrong outcomes"
    )
    if options.json is not None:
        result = {"seed": options.seed, "seconds": round(seconds), "cases": len(cases),
                  "outcomes": outcomes, "wrong": wrong}  # fmt: skip
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
