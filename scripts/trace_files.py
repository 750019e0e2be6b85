#!/usr/bin/env python3
"""List the files of ngsgpu that a read goes through: those with functions that run.

    scripts/trace_files.py                       all walks; without a GPU only those on the CPU
    scripts/trace_files.py --checkout FOLDER     those of another version
    scripts/trace_files.py --page                also write the table of docs/architecture.md

Walks on 100 simulated pairs of a genome of 1,500 bases: on the CPU correct (with both methods),
extend, merge, deplete, assemble, db build and classify, and on a GPU correct, db build and
classify. Each runs under a profile hook on all threads, and these files count:

- Python files of which a function ran after the import, not those that were only imported or that
  hold only classes of data;
- files of Numba kernels that were called, and of the kernels that these call in turn;
- of CUDA kernels the .cu files that were loaded onto the GPU, and the headers that they include.

Files of cli/ are counted apart, since every command has them. Which files these are depends on the
options (here: pairs, plain text, one GPU, no --stats) and on the size of the data: larger input
also needs files that spread it, as over the memory of the host.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_IS_FUNCTION = 1  # CO_OPTIMIZED: the code is no module and no class body
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](ngsgpu/[^>"]+)[>"]', re.MULTILINE)

READS = "-i 1.fq -I 2.fq --threads 2 -q"
ON_CPU = f"{READS} --backend cpu"
WALKS = {
    "correct, CPU": f"correct {ON_CPU} -o c1.fq -O c2.fq",
    "spectrum, CPU": f"correct {ON_CPU} -o c1.fq -O c2.fq --method spectrum",
    "extend, CPU": f"extend {ON_CPU} -o e.fq --insert-size 300 --insert-sd 30",
    "merge, CPU": f"merge {ON_CPU} -o m.fq --unmerged1 u1.fq --unmerged2 u2.fq",
    "deplete, CPU": f"deplete -d host.idx {ON_CPU} -o d1.fq -O d2.fq",
    "assemble, CPU": f"assemble {ON_CPU} -o contigs.fa",
    "db build, CPU": "db build genome.fa -d cpu.db --threads 2 -q --backend cpu",
    "classify, CPU": f"classify -d cpu.db {ON_CPU} -o calls.tsv",
    "correct, GPU": f"correct {READS} --backend cuda -o c1.fq -O c2.fq",
    "db build, GPU": "db build genome.fa -d db --threads 2 -q --backend cuda",
    "classify, GPU": f"classify -d db {READS} --backend cuda -o calls.tsv",
}
INDEXING = "deplete-index genome.fa -o host.idx -q"

PAGE = ROOT / "docs/architecture.md"
TABLE = re.compile(r"(?<=<!-- walks -->\n).*?(?=<!-- end of walks -->)", re.DOTALL)
HEAD = "| walk | files | of `cli` | the others, by room |\n|---|---|---|---|\n"


class Trace:
    """What runs in this process: Python's functions and Numba's kernels."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.kernels: dict[int, Any] = {}

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Is called by Python when a function begins or ends."""
        if event == "call":
            if frame.f_code not in self.codes and not is_importing(frame):
                self.codes.add(frame.f_code)
            if frame.f_code.co_qualname == "Kernel.__call__":
                kernel = frame.f_locals["self"]
                self.kernels[id(kernel)] = kernel

    def python_files(self) -> set[str]:
        """Files of the functions."""
        return {code.co_filename for code in self.codes if code.co_flags & _IS_FUNCTION}

    def kernel_files(self) -> set[str]:
        """Files of the kernels that were called, and of all that they may call."""
        files: set[str] = set()
        todo = [kernel.function for kernel in self.kernels.values()]
        seen: set[int] = set()
        while todo:
            function = todo.pop()
            if id(function) not in seen:
                seen.add(id(function))
                files.add(function.__code__.co_filename)
                todo += called_kernels(function)
        return files


def is_importing(frame: FrameType) -> bool:
    """Whether a frame belongs to the import of a module."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_back is not None:
            return True
        above = above.f_back
    return False


def called_kernels(function: Any) -> Iterator[Any]:
    """The functions behind the kernels and intrinsics that a kernel names."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        values = [value]
        if isinstance(value, ModuleType):
            values = [vars(value).get(other) for other in function.__code__.co_names]
        for one in values:
            if type(one).__module__ == "ngsgpu.jit":
                yield one.function


def cuda_files(checkout: Path) -> set[str]:
    """The .cu files that are loaded, and all that they include."""
    modules = [one for one in gc.get_objects() if type(one).__name__ == "KernelModule"]
    todo = [Path(module.path) for module in modules if module._modules]
    files: set[str] = set()
    while todo:
        path = todo.pop()
        if str(path) not in files:
            files.add(str(path))
            included = [checkout / name for name in _INCLUDE.findall(path.read_text())]
            # Structs are made from the declarations of the Python file of that name.
            files |= {str(one.with_suffix(".py")) for one in included if one.suffix == ".structs"}
            todo += [one for one in included if one.suffix != ".structs"]
    return files


def run_traced(checkout: Path, arguments: list[str]) -> list[str]:
    """Run a command of ngsgpu in this process; the files that it goes through."""
    from ngsgpu.cli import main

    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        status = main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if status:
        sys.exit(status)
    package = str(checkout / "ngsgpu") + os.sep
    files = trace.python_files() | trace.kernel_files() | cuda_files(checkout)
    return sorted(file.removeprefix(package) for file in files if file.startswith(package))


def write_inputs(folder: Path) -> None:
    """100 pairs with errors, and the genome they come from, as ``inputs.write_simulated``."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.versions.inputs import piece_of_genome, write_simulated

    write_simulated(piece_of_genome(folder, 1500), folder, pairs=100)
    for mate in (1, 2):
        (folder / f"simulated.{mate}.fq").rename(folder / f"{mate}.fq")
    (folder / "source.fa").rename(folder / "genome.fa")


def has_gpu(environment: dict[str, str]) -> bool:
    """Whether CuPy finds a GPU."""
    code = "import cupy; cupy.cuda.runtime.getDeviceCount()"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def write_table(walks: dict[str, list[str]]) -> None:
    """Write the numbers of files into the page; rows of walks that were not run stay."""
    page = PAGE.read_text()
    old = TABLE.search(page)
    rows = dict(re.findall(r"^\| ([\w ,]+?) (\|.*)$", old[0] if old else "", re.MULTILINE))
    for name, files in walks.items():
        rooms = Counter(file.partition("/")[0] if "/" in file else "." for file in files)
        of_cli = rooms.pop("cli", 0)
        listed = [f"`{room}` {number}" for room, number in rooms.most_common() if room != "."]
        by_room = ", ".join([*listed, f"modules {rooms['.']}"])
        rows[name] = f"| {len(files) - of_cli} | {of_cli} | {by_room} |"
    text = HEAD + "".join(f"| {name} {rows[name]}\n" for name in WALKS if name in rows)
    PAGE.write_text(TABLE.sub(lambda _: text, page))


def main() -> int:
    """Run the walks, each in a process; print and write their files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the version [this one]")
    parser.add_argument("--json", type=Path, help="file to write the lists to")
    parser.add_argument("--page", action="store_true", help="write the table of the page")
    parser.add_argument("--traced", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    if arguments.traced:
        files = run_traced(checkout, WALKS[arguments.traced].split())
        Path("files.json").write_text(json.dumps(files))
        return 0
    folders = [str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    is_gpu_there = has_gpu(environment)
    walks: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        write_inputs(Path(temporary))
        index = [sys.executable, "-m", "ngsgpu", *INDEXING.split()]
        subprocess.run(index, check=True, cwd=temporary, env=environment)
        for name in WALKS:
            if name.endswith("GPU") and not is_gpu_there:
                print(f"{name}: not run, there is no GPU\n")
                continue
            own = ["--checkout", str(checkout), "--traced", name]
            command = [sys.executable, "-P", str(Path(__file__).resolve()), *own]
            subprocess.run(command, check=True, cwd=temporary, env=environment)
            walks[name] = json.loads((Path(temporary) / "files.json").read_text())
            of_cli = sum(file.startswith("cli/") for file in walks[name])
            print(f"{name}: {len(walks[name]) - of_cli} files, and {of_cli} of cli/")
            by_room: dict[str, list[str]] = {}
            for file in walks[name]:
                room, _, own_name = file.rpartition("/")
                by_room.setdefault(room or ".", []).append(own_name)
            for room, names in by_room.items():
                print(f"  {room:<18}{len(names):>3}  {' '.join(names)}")
            print()
    if arguments.page:
        write_table(walks)
    if arguments.json:
        arguments.json.write_text(json.dumps(walks, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
