"""Kernels that Numba compiles when they are called."""

from __future__ import annotations

import hashlib
import lzma
import os
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu import compiled
from ngsgpu.jit import interpreted, njit
from ngsgpu.jit_names import baseline_environment

ROOT = Path(__file__).parents[1]


@njit(nogil=True)
def twice(number: int) -> int:
    return 2 * number


@njit(nogil=True)
def four_times(number: int) -> int:
    return twice(twice(number))


def test_kernels_call_each_other() -> None:
    assert four_times(np.int64(3)) == 12
    with interpreted():
        assert four_times(np.int64(3)) == 12


def test_kernels_for_kernels_have_no_wrappers() -> None:
    assert four_times(np.int64(3)) == 12
    assert twice(np.int64(3)) == 6
    for inner in (True, False):
        (kernel,) = twice.dispatcher(inner).overloads.values()
        code = kernel.library.get_llvm_str()
        assert (kernel.fndesc.llvm_cpython_wrapper_name in code) != inner
        assert (kernel.fndesc.llvm_cfunc_wrapper_name in code) != inner


def test_importing_kernels_does_not_import_numba() -> None:
    code = "import sys, ngsgpu.classify.database.build; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CALLER = """
from typing import NamedTuple
from callee import FACTOR, Values, plus
from ngsgpu.jit import njit

@njit(nogil=True, cache=True)
def computed(values, number):
    return FACTOR * plus(number) + values.first

if __name__ == "__main__":
    import logging
    logging.basicConfig(format="%(message)s")
    print(computed(Values(first=1000, second=2000), 10))
"""
CALLEE = """
from typing import NamedTuple
from ngsgpu.jit import njit

FACTOR = {factor}

class Values(NamedTuple):
    {fields[0]}: int
    {fields[1]}: int

@njit(nogil=True, cache=True)
def plus(number):
    return number + {more}
"""


def write_kernels(
    folder: Path, factor: int = 1, more: int = 1, fields: tuple[str, str] = ("first", "second")
) -> None:
    (folder / "caller.py").write_text(CALLER)
    (folder / "callee.py").write_text(CALLEE.format(factor=factor, more=more, fields=fields))


def run_kernels(folder: Path, cache: Path | None, **options: Any) -> tuple[int, str]:
    """What the kernel gives in a new process, and what is said."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/dev/null"}
    if cache is not None:
        environment["NGSGPU_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-B", "caller.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the kernels are."""
    folder = tmp_path_factory.mktemp("compiled")
    write_kernels(folder)
    assert run_kernels(folder, folder / "cache") == (1011, "")
    return folder / "cache"


@pytest.fixture
def cache(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of that cache, and in its parent the kernels' sources."""
    write_kernels(tmp_path)
    return shutil.copytree(compiled_once, tmp_path / "cache")


def test_what_a_kernel_uses_of_other_files_is_seen(tmp_path: Path, cache: Path) -> None:
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("cpu.*")}
    assert len(kept) >= 2
    assert run_kernels(tmp_path, cache) == (1011, "")
    assert kept == {path: path.stat().st_mtime_ns for path in cache.rglob("cpu.*")}
    write_kernels(tmp_path, more=5)
    assert run_kernels(tmp_path, cache) == (1015, "")
    write_kernels(tmp_path, more=5, factor=2)
    assert run_kernels(tmp_path, cache) == (1030, "")
    write_kernels(tmp_path, more=5, factor=2, fields=("second", "first"))
    assert run_kernels(tmp_path, cache) == (1030, "")
    callee = tmp_path / "callee.py"
    callee.write_text(callee.read_text().replace("cache=True", "cache=True, boundscheck=True"))
    before = set(cache.rglob("cpu.*"))
    assert run_kernels(tmp_path, cache) == (1030, "")
    assert set(cache.rglob("cpu.*")) > before


MANY = """
import sys
import numpy as np
from ngsgpu.jit import njit

@njit(nogil=True, cache=True)
def ordered(values, wanted):
    if wanted < 0:
        raise ValueError("negative")
    counts = np.zeros(len(values), dtype=np.int64)
    copy = np.sort(values)
    for i in range(len(values)):
        counts[i] = max(np.searchsorted(copy, values[i]), wanted) + round(np.log2(values[i]))
    return copy, counts.sum(), 7

@njit(nogil=True, cache=True)
def hashed(number):
    return {"seven": 7}["seven"] + number

@njit(nogil=True)
def compiled(values):
    return ordered(values, 0)[1] + np.cumsum(values)[-1] + values.argmax()

values = np.array([8.0, 2.0, 4.0])
print([float(value) for value in ordered(values, 1)[0]], *map(int, ordered(values, 1)[1:]))
try:
    ordered(values, -1)
except ValueError as error:
    print(error)
print("numba.np.arraymath" in sys.modules, "scipy" in sys.modules)
print(hashed(1))  # by a secret that a module of Numba knows
print(int(compiled(values)), "numba.np.arraymath" in sys.modules, "scipy" in sys.modules)
"""


def test_kept_kernels_run_without_what_compiling_needs(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    environment["NGSGPU_CACHE_DIR"] = str(tmp_path / "cache")
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-B", "many.py"], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    results = "[2.0, 4.0, 8.0] 10 7"
    assert said[0] == [results, "negative", "True False", "8", "23 True False"]
    assert said[1] == [results, "negative", "False False", "8", "23 True False"]


def test_kernels_are_shared_by_copies_of_their_sources(tmp_path: Path, cache: Path) -> None:
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("cpu.*")}
    (tmp_path / "other").mkdir()
    write_kernels(tmp_path / "other")
    assert run_kernels(tmp_path / "other", cache) == (1011, "")
    assert kept == {path: path.stat().st_mtime_ns for path in cache.rglob("cpu.*")}


def test_old_versions_of_a_kernel_go_when_a_new_one_is_kept(tmp_path: Path, cache: Path) -> None:
    old, *others = sorted(cache.rglob("cpu.__main__.computed-*")) + sorted(
        cache.rglob("cpu.callee*")
    )
    os.utime(old, (0, 0))
    assert run_kernels(tmp_path, cache) == (1011, "")
    assert old.exists()
    write_kernels(tmp_path, factor=2)
    assert run_kernels(tmp_path, cache) == (1022, "")
    assert not old.exists()
    assert all(other.exists() for other in others)


def test_kernels_with_nowhere_to_be_kept(tmp_path: Path) -> None:
    """As in a container with a home that cannot be written, even by root."""
    write_kernels(tmp_path)
    result, said = run_kernels(tmp_path, None)
    assert result == 1011
    assert said.startswith("compiled kernels cannot be cached (Not a directory), so every start")
    assert said.count("\n") == 1


def test_kernels_that_cannot_be_written(tmp_path: Path) -> None:
    write_kernels(tmp_path)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    cache = tmp_path / "cache"
    result, said = run_kernels(tmp_path, cache, preexec_fn=limit)
    assert result == 1011
    assert said.startswith("compiled kernels cannot be cached (File too large), so every start")
    assert said.count("\n") == 1
    assert list(cache.rglob("cpu.*")) == []


def test_kept_kernels_that_are_damaged(tmp_path: Path, cache: Path) -> None:
    for path in cache.rglob("cpu.*"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run_kernels(tmp_path, cache) == (1011, "")
    assert run_kernels(tmp_path, cache) == (1011, "")


def test_scipy_is_hidden_from_numba_alone() -> None:
    code = (
        "import importlib.util, sys, ngsgpu.jit as jit\n"
        "jit._numba()\n"
        "assert not {'scipy', 'yaml'} & set(sys.modules)\n"
        "import yaml\n"
        "assert not [one for one in sys.meta_path if type(one).__name__ == '_HiddenHere']\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SHARED = """
import sys
from pathlib import Path
from caller import Values, computed
from ngsgpu import compiled, jit_cache

compiled.PREBUILT = Path(sys.argv[1])
jit_cache.has_baseline = lambda: sys.argv[2] == "baseline"
print(computed(Values(first=1000, second=2000), 10))
"""


@pytest.mark.skipif(not baseline_environment(), reason="no baseline for this processor")
def test_kernels_of_the_installation(tmp_path: Path) -> None:
    """Compiled elsewhere for most processors, used if this one has all their instructions."""
    write_kernels(tmp_path)
    (tmp_path / "shared.py").write_text(SHARED)

    def run(cache: str, processor: str, **variables: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-B", "shared.py", str(tmp_path / "prebuilt"), processor],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "NGSGPU_CACHE_DIR": str(tmp_path / cache),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("1011\n", "")
        return {path.name for path in (tmp_path / cache).rglob("cpu.*")}

    made = run("elsewhere", "other", **baseline_environment())
    assert made
    for name in made:
        code = compiled.read(tmp_path / "elsewhere" / "kernels" / name)
        assert code is not None
        (tmp_path / "prebuilt").mkdir(exist_ok=True)
        (tmp_path / "prebuilt" / f"{name}.xz").write_bytes(lzma.compress(code))
    assert run("used", "baseline") == set()
    assert run("compiled", "other")
    for path in (tmp_path / "prebuilt").iterdir():
        path.write_bytes(path.read_bytes()[:-8])
    assert run("damaged", "baseline")


def test_kernels_in_a_folder_that_others_may_write_to(tmp_path: Path, cache: Path) -> None:
    kept = sorted(cache.rglob("cpu.*"))
    (cache / "kernels").chmod(0o777)
    result, said = run_kernels(tmp_path, cache)
    assert result == 1011
    assert said.startswith(f"compiled kernels in {cache}/kernels are not used, and every start")
    assert "may be written to by others (mode 0777)" in said
    assert said.count("\n") == 1
    assert sorted(cache.rglob("cpu.*")) == kept


def test_a_kernel_that_others_may_write_to_is_not_read(tmp_path: Path, cache: Path) -> None:
    """What is unpickled runs: a kernel that anybody could have written."""
    mark = tmp_path / "mark"
    code = pickle.dumps(Attack(mark))
    for path in cache.rglob("cpu.*"):
        path.write_bytes(hashlib.sha256(code).digest() + code)
        path.chmod(0o666)
    assert run_kernels(tmp_path, cache) == (1011, "")
    assert not mark.exists()


class Attack:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_hooks_of_numba_that_are_not_public() -> None:
    """All that this package uses; Numba's versions that have them are those that it requires."""
    import inspect
    import tomllib

    import numba
    from numba.core import caching, compiler, serialize, types
    from numba.core.codegen import CPUCodegen
    from numba.core.dispatcher import Dispatcher
    from numba.core.typing.templates import make_intrinsic_template

    called: dict[Any, list[str]] = {
        caching.NullCache.load_overload: ["self", "sig", "target_context"],
        caching.NullCache.save_overload: ["self", "sig", "cres"],
        compiler.CompileResult._reduce: ["self"],
        serialize.dumps: ["obj"],
        CPUCodegen.magic_tuple: ["self"],
        Dispatcher.compile: ["self", "sig"],
        Dispatcher.get_call_template: ["self", "args", "kws"],
        make_intrinsic_template: ["handle", "defn", "name", "prefer_literal", "kwargs"],
    }
    assert {hook: list(inspect.signature(hook).parameters) for hook in called} == called
    assert "target_context" in inspect.signature(compiler.CompileResult._rebuild).parameters
    assert isinstance(vars(Dispatcher)["_numba_type_"], property)
    assert {"py_func", "_cache"} <= vars(numba.njit(lambda: 0)).keys()
    assert {"lifted", "library"} <= set(compiler.CR_FIELDS)
    assert issubclass(types.NamedTuple, types.BaseNamedTuple) and callable(types.unliteral)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "numba>=0.61,<0.69" in project["dependencies"]
