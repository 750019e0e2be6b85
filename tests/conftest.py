"""What the tests of all packages share."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

from ngsgpu.__main__ import reuse_freed_memory
from ngsgpu.io.mapped import begin_run
from tests.support.backends import BACKENDS, need_gpu
from tests.support.commands import Commands

# How long one example takes says more about the machine, and about what is compiled meanwhile.
settings.register_profile("ngsgpu", deadline=None)
settings.load_profile("ngsgpu")

# As the command line does: its commands run in this process, one after the other.
reuse_freed_memory()

# A shell starts what runs in the background with Ctrl-C ignored, which children would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Let no test answer for files that an earlier one has mapped and damaged."""
    begin_run()


@pytest.fixture
def ngsgpu(capsys: pytest.CaptureFixture[str]) -> Commands:
    """The command line, in this process."""
    return Commands(capsys)


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The backend that a test's assertions hold for."""
    if request.param == "cuda":
        need_gpu()
    return str(request.param)
