import ctypes
import resource
import sys
import time

import pytest

from benchmarks.harness import measuring
from benchmarks.harness.device_memory import DeviceMemory, Driver, find_driver
from benchmarks.harness.document import describe_commit
from benchmarks.harness.measuring import (
    BenchmarkError,
    answer,
    apart,
    busy_seconds,
    find_program,
    measure,
    version_in,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Lighter v1.1.2", "1.1.2"),
        ("ngsgpu 0.1.0", "0.1.0"),
        ("r181", "r181"),
        ("\n   ====ART====\n ART_Illumina (2008-2016)\n Q Version 2.5.8 (June 6, 2016)", "2.5.8"),
        ("CARE 2.3", "2.3"),
        ("", "unknown"),
        ("bar3 for 17", "unknown"),
    ],
)
def test_version_in(text, version):
    assert version_in(text) == version


def test_a_process_is_measured_with_its_children(tmp_path):
    child = "x = b'x' * 150_000_000; sum(range(3_000_000))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    measured = measure([sys.executable, "-c", parent], tmp_path)
    assert measured.user_s + measured.system_s > 0
    assert measured.wall_s > 0
    assert measured.peak_rss_bytes > 150_000_000
    assert measured.other_cpu_s >= 0


def test_output_environment_and_directory(tmp_path):
    script = "import os; print(os.environ['COLOUR'], os.getcwd())"
    measure(
        [sys.executable, "-c", script],
        tmp_path,
        output=tmp_path / "said",
        environment={"COLOUR": "blue"},
    )
    assert (tmp_path / "said").read_text() == f"blue {tmp_path}\n"


def test_a_process_that_fails(tmp_path):
    with pytest.raises(BenchmarkError, match=r"status 3\nno way"):
        measure([sys.executable, "-c", "import sys; print('no way', file=sys.stderr); exit(3)"],
                tmp_path)  # fmt: skip


def test_output_is_kept_for_who_asks(tmp_path):
    measure([sys.executable, "-c", "print('said')"], tmp_path)
    assert (tmp_path / "output.txt").read_text() == "said\n"


def test_ngsgpu_that_is_not_installed_runs_from_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring.shutil, "which", lambda name, path: None)
    assert find_program("ngsgpu") == [sys.executable, "-m", "ngsgpu"]
    assert answer("ngsgpu", "--version", directory=tmp_path).startswith("ngsgpu ")


def takes_memory(size):
    if size < 0:
        raise BenchmarkError("too small")
    return len(b"x" * size)


def test_memory_of_what_runs_apart_is_not_ours():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert apart(takes_memory, 500_000_000) == 500_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak + 100_000
    with pytest.raises(BenchmarkError, match="too small"):
        apart(takes_memory, size=-1)


def test_commit(monkeypatch):
    monkeypatch.setenv("NGSGPU_COMMIT", "abc")
    assert describe_commit() == {"commit": "abc", "changed": None}


class Library:
    """Stands in for the driver's library: two GPUs, of which the second fills up."""

    def __init__(self):
        self.asked = 0

    def nvmlInit_v2(self):  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count):  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, gpu):  # noqa: N802
        gpu._obj.value = index + 1
        return 0

    def nvmlDeviceGetMemoryInfo(self, gpu, memory):  # noqa: N802
        self.asked += gpu.value == 2
        memory._obj.used = 100 if gpu.value == 1 else [50, 70, 90][min(self.asked, 3) - 1]
        return 0


def test_device_memory(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    with DeviceMemory(Driver()) as memory:
        time.sleep(0.1)
    assert memory.peak_bytes == 40
    with DeviceMemory(None) as memory:
        pass
    assert memory.peak_bytes is None


def test_without_a_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert find_driver() is None


def test_programs():
    with pytest.raises(BenchmarkError, match="no-such-program"):
        find_program("no-such-program")
    # Beside this Python, whether or not that is on the PATH.
    assert answer("ngsgpu", "--version").startswith("ngsgpu ")


def test_busy_seconds(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 9999 4 5 6 7 8\ncpu0 1 1 1 1\n")
    assert busy_seconds(stat) == pytest.approx(1.65)
