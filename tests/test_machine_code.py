"""Kernels of integers, which need Numba only until they are compiled."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from ngsgpu import compiled
from ngsgpu.io.compress.formats import BGZF_PIECE_BYTES, packing_of
from ngsgpu.jit_names import baseline_environment
from ngsgpu.machine_code import machine_code

ROOT = Path(__file__).parents[1]

KERNELS = """
import sys
import numpy as np
from ngsgpu.jit import njit
from ngsgpu.machine_code import machine_code
from ngsgpu.sequence.intrinsics import array_at

@njit(nogil=True, cache=True, _nrt=False)
def plus(number):
    return number + {more}

@machine_code
def weighted(place, size, more):
    if size < 0:
        raise ValueError("negative")
    values = array_at(place, size, np.int32)
    total = 0
    for at in range(size):
        total += plus(values[at]) * at
        values[at] = 0
    return total + more

if __name__ == "__main__":
    import logging
    logging.basicConfig(format="%(message)s")
    if len(sys.argv) > 1:
        from pathlib import Path
        from ngsgpu import compiled, machine_code as module
        compiled.PREBUILT = Path(sys.argv[1])
        module.has_baseline = lambda: sys.argv[2] == "baseline"
    values = np.arange(5, dtype=np.int32)
    print(weighted(values.ctypes.data, 5, -(1 << 40)), values.sum(), "numba" in sys.modules)
    try:
        weighted(0, -1, 0)
    except RuntimeError as error:
        print(error)
"""
RESULT = 30 - (1 << 40)


def run(
    folder: Path, *arguments: str, more: int = 0, cache: str = "cache", **variables: str
) -> tuple[int, bool, str]:
    """What the kernel gives in a new process, whether that has Numba, and what is said."""
    (folder / "kernels.py").write_text(KERNELS.format(more=more))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-B", "kernels.py", *arguments], cwd=folder, capture_output=True,
        env=environment | {"NGSGPU_CACHE_DIR": str(folder / cache)}, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    number, rest, numba = first.split()
    assert (rest, second) == ("0", "weighted failed")
    return int(number), numba == "True", done.stderr


def test_once_it_is_compiled_it_runs_without_numba(tmp_path: Path) -> None:
    assert run(tmp_path) == (RESULT, True, "")
    (kept,) = (tmp_path / "cache").rglob("cpu.__main__.weighted-*")
    assert run(tmp_path) == (RESULT, False, "")
    # What it calls is seen.
    assert run(tmp_path, more=7) == (RESULT + 70, True, "")
    assert run(tmp_path, more=7) == (RESULT + 70, False, "")
    kept.write_bytes(kept.read_bytes()[:-9])
    assert run(tmp_path) == (RESULT, True, "")
    kept.chmod(0o666)  # others could have written it
    assert run(tmp_path) == (RESULT, True, "")


def test_where_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for _ in range(2):
        number, numba, said = run(tmp_path, cache="file/cache")
        assert (number, numba) == (RESULT, True)
        assert said.startswith("compiled kernels cannot be cached (Not a directory), so every")
        assert said.count("\n") == 1


@pytest.mark.skipif(not baseline_environment(), reason="no baseline for this processor")
def test_code_of_the_installation(tmp_path: Path) -> None:
    """Compiled elsewhere for most processors, used if this one has all their instructions."""
    prebuilt = tmp_path / "prebuilt"
    prebuilt.mkdir()
    assert run(tmp_path, cache="elsewhere", **baseline_environment())[1]
    (made,) = (tmp_path / "elsewhere").rglob("cpu.__main__.weighted-*")
    code = compiled.read(made)
    assert code is not None
    (prebuilt / f"{made.name}.xz").write_bytes(lzma.compress(code))
    assert run(tmp_path, str(prebuilt), "baseline", cache="used") == (RESULT, False, "")
    assert run(tmp_path, str(prebuilt), "other", cache="compiled") == (RESULT, True, "")


def test_code_needs_nothing_of_python() -> None:
    """All that what compresses names outside is of the C library."""
    packing, folder = packing_of("out.gz"), compiled.cache_folder()
    assert packing is not None
    assert folder is not None
    kept = []
    for level, module in ((1, "reads.blocks"), (2, "bgzf_blocks")):
        packing.pack(bytes(BGZF_PIECE_BYTES), level)
        kept.append([*folder.glob(f"cpu.ngsgpu.io.compress.{module}._put_blocks-code-*")])
    assert all(kept)
    for path in chain(*kept):
        code = compiled.read(path)
        assert code is not None
        assert not re.findall(rb"\0(?:_?Py|NRT_|numba_)\w+", code)


def test_a_kernel_that_allocates_is_refused() -> None:
    @machine_code
    def sorted_away(size):  # type: ignore[no-untyped-def]
        return len(list(range(size)))

    with pytest.raises(Exception, match="NRT required but not enabled"):
        sorted_away(3)


def test_threads_load_it_once() -> None:
    @machine_code
    def doubled(number):  # type: ignore[no-untyped-def]
        return 2 * number

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(doubled, range(100))) == list(range(0, 200, 2))
