"""A short soak of leases; ``python -m tests.support.lease_soak`` runs longer ones."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("seed", [1])
def test_no_gpu_is_ever_booked_twice(seed):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lease_soak", "--leases", "120", "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=230,
    )
    counts = json.loads(done.stdout)
    assert (counts["twice"], counts["failed"], done.returncode) == ([], [], 0), counts
    assert counts["leases"] >= 120
    assert counts["deeds"]
