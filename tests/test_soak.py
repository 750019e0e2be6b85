"""The same bytes from all commands, also where memory is full of rubbish when it is allocated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "attack_soak.py"
# What glibc fills memory with as it is allocated is the complement; nothing comes from new pages.
POISONED = {"MALLOC_PERTURB_": str(0xA5 ^ 0xFF), "MALLOC_MMAP_MAX_": "0"}


def soak(folder: Path, environment: dict[str, str], runs: int) -> dict[str, object]:
    command = [sys.executable, str(SCRIPT), "--runs", str(runs), "--seed", "5"]
    command += ["--folder", str(folder), "--expected", str(folder / "expected.json")]
    folder.mkdir(exist_ok=True)
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_outputs_do_not_depend_on_what_memory_holds(tmp_path: Path) -> None:
    for environment in ({}, POISONED):
        found = soak(tmp_path, environment, runs=0)
        assert found["failed"] == found["different"] == []
