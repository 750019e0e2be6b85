"""Files that are cut or changed while they are mapped end a run in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.mapped import check_mapped, check_reads, map_file, open_regular
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.pool import map_all

_SIZE = 1 << 17


def mapped(path: Path) -> NDArray[np.int64]:
    """A new file of ones, mapped from its third value on."""
    np.ones(_SIZE + 2, dtype=np.int64).tofile(path)
    with open_regular(path) as file:
        array: NDArray[np.int64] = map_file(path, file, np.int64, (_SIZE,), 16)
    assert array.sum() == _SIZE
    check_mapped()
    return array


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kept", [0, 16, 4096 * 11, 4096 * 11 + 8])
def test_what_is_gone_reads_as_zeros_and_nothing_is_written(
    tmp_path: Path, kept: int, threads: int
) -> None:
    array = mapped(tmp_path / "x")
    os.truncate(tmp_path / "x", kept)
    pages = max(0, -(-kept // 4096) * 4096 - 16) // 8
    sums = map_all(threads, lambda _: int(array.sum()), range(8))
    assert max(sums) <= pages
    with pytest.raises(InputError, match="x: was cut short while it was read; build or copy"):
        check_reads()
    with AtomicFile(tmp_path / "out") as out:
        out.write(b"wrong")
        with pytest.raises(InputError, match="cut short"):
            out.commit()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_changes_are_seen_and_replacements_are_none(tmp_path: Path) -> None:
    array = mapped(tmp_path / "x")
    mapped(tmp_path / "y")
    (tmp_path / "y").replace(tmp_path / "x")
    assert array.sum() == _SIZE
    check_mapped()
    other = mapped(tmp_path / "z")
    with (tmp_path / "z").open("r+b") as file:
        file.write(b"other")
    os.utime(tmp_path / "z", ns=(1, 1))
    with pytest.raises(InputError, match="z: was changed while it was read"):
        check_mapped()
    check_mapped()  # it is said once
    del array, other


def test_a_small_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(64)))
    with open_regular(tmp_path / "x") as file:
        array = map_file(tmp_path / "x", file, np.uint8, (48,), 16)
        with pytest.raises(ValueError, match="64 bytes"):
            map_file(tmp_path / "x", file, np.uint8, (49,), 16)
    os.truncate(tmp_path / "x", 0)
    assert array.tolist() == list(range(16, 64))
    check_mapped()


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(ValueError, match="no regular file"):
            open_regular(path)


def test_other_faults_end_the_process_as_ever(tmp_path: Path) -> None:
    program = (
        "import mmap, os, sys\n"
        "from pathlib import Path\n"
        "from tests.io.test_mapped import mapped\n"
        "own = mapped(Path(sys.argv[1], 'x'))\n"
        "other = Path(sys.argv[1], 'y'); other.write_bytes(bytes(1 << 16))\n"
        "with other.open('rb') as file: pages = mmap.mmap(file.fileno(), 0, access=1)\n"
        "os.truncate(other, 0)\n"
        "print(pages[1 << 15])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGBUS
