"""The set of candidates of an anchor never fills up, and a full one is not probed for ever.

The header's own code runs here, compiled for the host: one thread, in the states that a block's
threads can bring about.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ngsgpu.correct.gpu_tiers import MAX_THREADS, TIERS, block_threads, tiers_for, useful_tiers
from ngsgpu.device.cuda.compiler import ROOT, included
from ngsgpu.device.cuda.structs import SUFFIX

SOURCE = Path(__file__).with_name("candidate_set.cpp")


def test_a_full_set_is_not_probed_for_ever(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed, which runs the header's code on the host")
    program = tmp_path / "set"
    for name, content in included(SOURCE).items():
        if name.endswith(SUFFIX):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
    folders = [f"-I{folder}" for folder in (ROOT, tmp_path)]
    command = [compiler, "-std=c++17", "-O1", "-w", *folders, str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.split() == ["160", "1", "161", "160"]


@pytest.mark.parametrize("mates", [1, 2])
@pytest.mark.parametrize("length", [20, 36, 66, 100, 150, 200, 226, 250, 300, 1000])
def test_sets_have_room_for_what_all_threads_insert(length: int, mates: int) -> None:
    margin = 15
    threads = block_threads(length, margin)
    assert threads % 32 == 0
    assert min(length + 2 * margin, MAX_THREADS) <= threads <= MAX_THREADS
    for sizes, (cells, limit) in zip(tiers_for(length, margin, mates), TIERS, strict=True):
        assert cells & (cells - 1) == 0
        assert sizes.cells == cells > sizes.limit + threads
        assert 0 < sizes.limit <= limit
    # The last one takes all that the tables can give.
    assert tiers_for(length, margin, mates)[-1].limit == TIERS[-1][1]


def test_small_tiers_that_help_nobody_are_left_out() -> None:
    tiers = tiers_for(100, 15, 2)
    assert useful_tiers(tiers, [6, 6, 4, 2]) == tiers[1:]
    assert useful_tiers(tiers, [8, 7, 4, 2]) == tiers
    assert useful_tiers(tiers, [2, 2, 2, 2]) == tiers[3:]


def test_threads_are_those_of_the_kernel() -> None:
    text = (ROOT / "ngsgpu" / "correct" / "workspace.cuh").read_text()
    assert f"constexpr int MAX_THREADS = {MAX_THREADS};" in text
