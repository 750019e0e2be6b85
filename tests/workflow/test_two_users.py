"""Two workflows on eight GPUs, shortly; ``python -m tests.support.workflow_soak`` takes longer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workflow import ROOT
from tests.support.workflow_soak import JOB, TWICE

JOBS = 8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workflows_of_two_users_never_share_a_gpu():
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.workflow_soak", "--jobs", str(JOBS), "--seed", "2"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=590,
    )  # fmt: skip
    assert done.stdout, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["twice"], counts["failed"], done.returncode) == ([], [], 0), counts
    assert counts["jobs"] == 2 * JOBS
    assert sum(counts["gpus"].values()) >= 2 * JOBS
    assert counts["killed"]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_witness_tells(tmp_path: Path, monkeypatch, is_held):
    """A job on a GPU that another one holds says so."""
    (tmp_path / "witness").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/job.sh").write_text(JOB.format(twice=TWICE))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    flock = shutil.which("flock")
    assert flock is not None
    before = [flock, "../witness/GPU-b"] if is_held else []
    done = subprocess.run([*before, "sh", "job.sh", "3"], cwd=tmp_path / "work", check=False)
    assert done.returncode == (TWICE if is_held else 0)
    assert (tmp_path / "work/twice").exists() is is_held
