"""What the tests of all packages share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# A shell starts what runs in the background with Ctrl-C ignored, which children would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real genomes, reads and awkward files, beside the repository.

    A test that uses it fails if the folder is not there, unless the environment variable
    NGSGPU_NO_SHARED_DATA is 1: then the test is skipped.
    """
    if SHARED_DATA.is_dir():
        return SHARED_DATA
    if os.environ.get("NGSGPU_NO_SHARED_DATA") == "1":
        pytest.skip(f"NGSGPU_NO_SHARED_DATA=1: {SHARED_DATA} is not there")
    pytest.fail(
        f"{SHARED_DATA} is not there: put the test data beside the repository, or set "
        "NGSGPU_NO_SHARED_DATA=1 to skip the tests that need them",
        pytrace=False,
    )
