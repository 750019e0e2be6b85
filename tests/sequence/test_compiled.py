"""Compiled kernels are kept, since the package itself need not be writable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ngsgpu

USE_PER_KERNEL = """
import numpy as np
from ngsgpu.sequence import codec
codec.set_base(np.zeros(2, dtype=np.uint64), 0, 1, 3, 2)
print(codec.__file__)
"""


@pytest.fixture
def read_only_package(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package in a folder that cannot be written."""
    folder = tmp_path / "installed"
    folder.mkdir()
    # Permissions do not stop root, a read-only file system does.
    is_root = os.geteuid() == 0
    if is_root and not mounted(["-t", "tmpfs", "tmpfs", str(folder)]):
        pytest.skip("no file system can be mounted here")
    try:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(ngsgpu.__file__).parent, folder / "ngsgpu", ignore=ignored)
        if is_root and not mounted(["-o", "remount,ro", str(folder)]):
            pytest.skip("no file system can be made read-only here")
        for path in [path for path in folder.rglob("*") if path.is_dir() and not is_root]:
            path.chmod(0o555)
        yield folder
    finally:
        if is_root:
            subprocess.run(["umount", str(folder)], check=True)
        for path in folder.rglob("*/"):
            path.chmod(0o755)


def mounted(options: list[str]) -> bool:
    return subprocess.run(["mount", *options], capture_output=True).returncode == 0


def test_read_only_package_uses_the_users_cache(read_only_package: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", USE_PER_KERNEL],
        env={"HOME": str(home), "PYTHONPATH": str(read_only_package), "PATH": os.environ["PATH"]},
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{read_only_package}/ngsgpu/sequence/codec.py\n"
    assert list(home.rglob("cpu.ngsgpu.sequence.codec.set_base-*"))
