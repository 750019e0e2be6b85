"""What the tests of all packages share."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ngsgpu.__main__ import reuse_freed_memory
from ngsgpu.device import memory
from ngsgpu.io.mapped import begin_run
from tests.support.backends import BACKENDS, need_gpu
from tests.support.commands import Commands

FREE_MEMORY = 4 << 30
"""Bytes that plans of runs in this process find free, at least."""

GPU_TESTS = Path(__file__).with_name("gpu")

# Collecting tests makes much that stays: no garbage is looked for until all are there.
gc.disable()

# How long one example takes says more about the machine, and about what is compiled meanwhile.
settings.register_profile("ngsgpu", deadline=None)
settings.load_profile("ngsgpu")

# As the command line does: its commands run in this process, one after the other.
reuse_freed_memory()

# A shell starts what runs in the background with Ctrl-C ignored, which children would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# As nohup does with the end of a terminal.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append what failed, and all it said, to a file of this process in ``NGSGPU_TEST_LOGS``.

    At once, for a process may be killed, and of several side by side, or of xdist's, the terminal
    shows a part. Workers of xdist write their own files; their master has no reports to add.
    """
    folder = os.environ.get("NGSGPU_TEST_LOGS")
    if not folder or not report.failed or hasattr(report, "node"):
        return
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with (Path(folder) / f"failures-{worker}-{os.getpid()}.log").open("a") as file:
        file.write(f"==== {report.nodeid} ({report.when}, {report.duration:.1f} s)\n")
        file.write(f"{report.longreprtext}\n")
        for title, text in report.sections:
            file.write(f"---- {title}\n{text}\n")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread the folder of which no test would be chosen."""
    chosen = config.option.markexpr != "not gpu" or collection_path != GPU_TESTS
    return None if chosen else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that no worker has one left when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Never look through what collecting has made."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Let no test answer for what an earlier one did: files mapped and damaged, quiet commands."""
    begin_run()
    logging.getLogger("ngsgpu").setLevel(logging.NOTSET)


@pytest.fixture(scope="session", autouse=True)
def steady_memory() -> Iterator[None]:
    """Plan as on a machine with some free memory, however much other work leaves."""
    read = memory._machine_memory

    def at_least(root: Path) -> tuple[int, int]:
        total, available = read(root)
        return total, max(available, min(total, FREE_MEMORY)) if root == memory._ROOT else available

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "_machine_memory", at_least)
        yield


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
