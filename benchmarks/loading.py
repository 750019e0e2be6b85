"""How long loading what compresses outputs holds up a thread of Python that starts short calls.

    python -m benchmarks.loading --beside OTHER -o out.json

That is what a thread does that feeds a GPU: it starts kernels, for each of which it gives Python's
lock away, and waits for the GPU now and then. In turn, in new processes: the thread alone, and
beside another thread that loads the encoder and packs one piece, with this version and, with
``--beside FOLDER``, another one, a checkout. Code is compiled before.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.document import describe_commit, head, run_in
from benchmarks.harness.measuring import OUTPUT, ROOT, measure
from benchmarks.harness.tables import markdown

SCHEMA: Final = "ngsgpu.benchmark.loading"
SCHEMA_VERSION: Final = 1
BATCHES: Final = 190
CALLS: Final = 60
WAIT_S: Final = 0.003

_ONE: Final = "import runpy, sys; runpy.run_path(sys.argv[1])['one']({loads})"
"""Runs ``one`` of this file with the package of another version."""


def one(loads: bool) -> None:
    """Print the seconds of the thread that starts calls, and CPU seconds of the one that loads."""
    from ngsgpu.io.compress.formats import packing_of

    packing = packing_of("out.fq.gz")
    assert packing is not None
    piece, pack = bytes(packing.piece_bytes), packing.pack
    cpu_s = [0.0]

    def load() -> None:
        pack(piece, 1)
        cpu_s[0] = time.thread_time()

    call = ctypes.CDLL(None).getpid
    thread = threading.Thread(target=load if loads else bool)
    begin = time.perf_counter()
    thread.start()
    for _ in range(BATCHES):
        for _ in range(CALLS):
            sum(range(600))
            call()
        time.sleep(WAIT_S)
    calls_s = time.perf_counter() - begin
    thread.join()
    print(json.dumps({"calls_s": calls_s, "load_cpu_s": cpu_s[0]}))


def run(settings: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything; the document."""
    kinds = {"alone": (False, ROOT), "beside loading": (True, ROOT)}
    if settings.beside is not None:
        kinds["beside loading, other version"] = True, settings.beside.resolve()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in kinds}
    for number in range(-1, settings.repeats):
        for name, (loads, version) in kinds.items():
            paths = [str(version), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {"PYTHONPATH": os.pathsep.join(paths)}
            command = [sys.executable, "-c", _ONE.format(loads=loads), __file__]
            measure(command, work, environment=environment)
            if number >= 0:
                runs[name].append(json.loads((work / OUTPUT).read_text()))
    made = {"batches": BATCHES, "calls": CALLS, "wait_s": WAIT_S}
    document = {**head(SCHEMA, SCHEMA_VERSION), "settings": made, "runs": runs, "differences": []}
    if settings.beside is not None:
        document["other"] = describe_commit(settings.beside.resolve())
    return document


def table(document: dict[str, Any]) -> str:
    """Rows are kinds of runs; medians."""
    rows = [["thread that starts calls", "s", "CPU time of loading, s"]]
    for name, runs in document["runs"].items():
        medians = [statistics.median(own[key] for own in runs) for key in ("calls_s", "load_cpu_s")]
        rows.append([name, *(f"{median:.2f}" for median in medians)])
    return markdown(rows, names=1)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="loading", description="Measure what loading the encoder of outputs holds up."
    )
    add = parser.add_argument
    add("--beside", type=Path, metavar="FOLDER", help="a checkout of another version")
    add("--repeats", type=int, default=5)
    add("--work", type=Path, default=ROOT / "benchmarks" / "work", help="for temporary files")
    add("-o", "--output", type=Path, required=True, help="JSON file to write")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    return run_in(parse(arguments), "loading", run, table)


if __name__ == "__main__":
    sys.exit(main())
