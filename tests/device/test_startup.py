"""CuPy is made ready in a thread while others import it."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ngsgpu
from tests.support.device import TABLE

PACKAGE = Path(ngsgpu.__file__).parent


def imported(path: Path) -> list[str]:
    """Modules that a file imports, in its order, also within functions."""
    return [
        name
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if "cupy" in path.read_text()],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_cupy_is_imported_whole_and_first(path):
    # "from cupy.cuda import x" locks cupy.cuda and then waits for cupy. A thread that is importing
    # cupy waits for cupy.cuda meanwhile, and Python hands out half of a module to one of them.
    parts = [name for name in imported(path) if name.startswith(("cupy.", "cupy_backends"))]
    assert parts == []
    # It imports SciPy where that is installed, for half a second.
    assert not [name for name in imported(path) if name.split(".")[0] == "cupyx"]


def test_numpy_is_imported_whole_and_first():
    for path in PACKAGE.rglob("*.py"):
        names = [name for name in imported(path) if name.split(".")[0] == "numpy"]
        assert names[:1] in ([], ["numpy"]), path


OPERATOR = """
import sys
if sys.argv[1] == "command":
    from ngsgpu.device.cuda.cupyx import postpone_cupyx
    postpone_cupyx()
import ngsgpu
import cupy
from cupy.cuda import MemoryPointer, UnownedMemory
if cupy.cuda.is_available():
    numbers = cupy.zeros(4, dtype=cupy.uint64)
else:
    nowhere = MemoryPointer(UnownedMemory(4096, 64, None, 0), 0)
    numbers = cupy.ndarray((4,), cupy.uint64, memptr=nowhere)
try:
    numbers >> 15
except cupy.cuda.runtime.CUDARuntimeError:
    assert not cupy.cuda.is_available()
print("cupyx.linalg" in sys.modules, "scipy.sparse" in sys.modules)
import cupyx
print(callable(cupyx.rsqrt), hasattr(cupyx, "nothing"), cupyx.scipy.special.erf.name)
print("cupyx.linalg" in sys.modules, cupyx.scipy.sparse.__name__)
"""


@pytest.mark.parametrize("where", ["command", "program of others"])
def test_operators_with_numbers_do_not_import_all_of_cupyx(where):
    done = subprocess.run(
        [sys.executable, "-c", OPERATOR, where], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first == "False False" or where != "command"
    assert others == ["True False cupyx_scipy_special_erf", "True cupyx.scipy.sparse"]


COMMANDS = [
    ["correct", "-i", "1.fq", "-o", "c.fq"],
    ["correct", "--method", "spectrum", "-i", "1.fq", "-o", "c.fq"],
    ["db", "build", "refs.fa", "-d", "db"],
]

RUN = """
import json, os, sys
from ngsgpu.cli import main
from ngsgpu.device import startup

def note(*_):
    heavy = {"asyncio", "cupy", "numba", "numpy", "pysam", "rich"}
    print("imported:", *sorted(heavy & set(sys.modules)), flush=True)
    assert any(finder.__class__.__module__.endswith("cupyx") for finder in sys.meta_path)
    os._exit(0)

startup.prepare_cuda = note
for command in json.load(sys.stdin):
    if os.fork() == 0:
        print(*command, flush=True)
        os._exit(main([*command, "--backend", "cuda"]))
    os.wait()
"""


def test_commands_import_what_takes_long_after_cuda_has_been_started(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<END\n{TABLE}END\n")
    program.chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(PACKAGE.parent),
        "NGSGPU_LOCK_DIR": str(tmp_path / "locks"),
        "CUDA_VISIBLE_DEVICES": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(COMMANDS), cwd=tmp_path,
        capture_output=True, text=True, env=os.environ | variables,
    )  # fmt: skip
    lines = [line for command in COMMANDS for line in (" ".join(command), "imported:")]
    assert done.stdout.splitlines() == lines, done.stderr
