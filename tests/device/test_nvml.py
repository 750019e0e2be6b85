"""GPUs as a stand-in for the driver's library lists them, and when its program is asked instead."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ngsgpu.device import gpus, nvml
from ngsgpu.device.gpus import Gpu, gpus_of_driver, parse_gpus
from tests.support.device import TABLE

FINE, NOT_SUPPORTED, NO_DRIVER, LOST, UNKNOWN = 0, 3, 9, 15, 999
MIB = 1 << 20
HANDLES = 1000
"""Handle of the first GPU."""


class Library:
    """NVML with the GPUs of ``TABLE``.

    Args:
        count: number of GPUs.
        fails: statuses of functions that fail; of a single GPU, with its number before the name.
        lacks: functions that this driver does not have.
    """

    def __init__(
        self, count: int = 2, fails: dict[str, int] | None = None, lacks: tuple[str, ...] = ()
    ) -> None:
        self.gpus = parse_gpus(TABLE)[:count]
        self.fails = fails or {}
        self.lacks = lacks
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        known = getattr(type(self), f"_{name}", None)
        if known is None or name in self.lacks:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            first = getattr(arguments[0], "value", None) if arguments else None
            whose = first % HANDLES if isinstance(first, int) else None
            status = self.fails.get(name, self.fails.get(f"{whose} {name}", FINE))
            if status == FINE:
                known(self, *arguments)
            return status

        return call

    def _nvmlInit_v2(self) -> None:  # noqa: N802
        self.opened += 1

    def _nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def _nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> None:  # noqa: N802
        assert len(text) == size.value >= 80
        text.value = b"580.82.07"

    def _nvmlDeviceGetCount_v2(self, count: Any) -> None:  # noqa: N802
        count._obj.value = len(self.gpus)

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> None:  # noqa: N802
        handle._obj.value = HANDLES + index.value

    def _nvmlDeviceGetUUID(self, handle: Any, text: Any, size: Any) -> None:  # noqa: N802
        assert len(text) == size.value >= 96
        text.value = self.gpus[handle.value - HANDLES].uuid.encode()

    def _nvmlDeviceGetName(self, handle: Any, text: Any, size: Any) -> None:  # noqa: N802
        assert len(text) == size.value >= 96
        text.value = self.gpus[handle.value - HANDLES].name.encode()

    def _nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> None:  # noqa: N802
        assert memory._obj.version == 40 | 2 << 24  # as in nvml.h
        gpu = self.gpus[handle.value - HANDLES]
        memory._obj.total = gpu.memory + MIB // 2
        memory._obj.reserved = 600 * MIB
        memory._obj.free = gpu.free + MIB - 1
        memory._obj.used = gpu.memory - gpu.free - 600 * MIB

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> None:  # noqa: N802
        gpu = self.gpus[handle.value - HANDLES]
        memory._obj.total = gpu.memory
        memory._obj.free = gpu.free
        memory._obj.used = gpu.memory - gpu.free

    def _nvmlDeviceGetCudaComputeCapability(  # noqa: N802
        self, handle: Any, major: Any, minor: Any
    ) -> None:
        major._obj.value, minor._obj.value = 9, 0

    def _nvmlDeviceGetPciInfo_v3(self, handle: Any, pci: Any) -> None:  # noqa: N802
        pci._obj.legacy_address = b"0000:1B:00.0"
        pci._obj.address = self.gpus[handle.value - HANDLES].pci.encode()


class Machine:
    """A machine with a driver: its library, and its program, which prints ``TABLE`` as well."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.program = folder / "nvidia-smi"
        self.program.write_bytes(b"\x7fELF...")
        self.program.chmod(0o755)
        self.runs: list[str] = []
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setattr(gpus, "_ELSEWHERE", ())
        monkeypatch.setattr(subprocess, "run", self._run)

    def _run(self, command: list[str], **_: object) -> SimpleNamespace:
        self.runs.append(command[0])
        return SimpleNamespace(stdout=TABLE, returncode=0)

    def gpus(self, library: object) -> tuple[Gpu, ...] | None:
        """What is found with this library; an exception if it cannot be loaded."""

        def load() -> object:
            if isinstance(library, Exception):
                raise library
            return library

        self._patch.setattr(nvml, "_load", load)
        gpus_of_driver.cache_clear()
        found = gpus_of_driver()
        assert gpus_of_driver() is found
        return found


@pytest.fixture
def machine(tmp_path, monkeypatch):
    yield Machine(tmp_path, monkeypatch)
    gpus_of_driver.cache_clear()


def test_the_library_says_what_the_program_prints(machine):
    library = Library()
    assert machine.gpus(library) == parse_gpus(TABLE)
    assert (machine.runs, library.opened) == ([], 0)


def test_no_gpu(machine):
    library = Library(0)
    assert machine.gpus(library) == ()
    assert (machine.runs, library.opened) == ([], 0)


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetPciInfo_v3",
    ],
)
def test_a_lost_gpu_is_left_out(machine, function):
    library = Library(fails={f"1 {function}": LOST})
    assert machine.gpus(library) == parse_gpus(TABLE)[:1]
    assert (machine.runs, library.opened) == ([], 0)


def test_a_gpu_without_compute_capability(machine):
    found = machine.gpus(Library(fails={"nvmlDeviceGetCudaComputeCapability": NOT_SUPPORTED}))
    assert [gpu.capability for gpu in found] == [None, None]
    assert machine.runs == []


def test_memory_of_old_drivers(machine):
    assert machine.gpus(Library(lacks=("nvmlDeviceGetMemoryInfo_v2",))) == parse_gpus(TABLE)
    assert machine.runs == []


@pytest.mark.parametrize(
    "library",
    [
        OSError("libnvidia-ml.so.1: cannot open shared object file"),
        Library(fails={"nvmlInit_v2": NO_DRIVER}),
        Library(fails={"nvmlDeviceGetCount_v2": UNKNOWN}),
        Library(fails={"1 nvmlDeviceGetName": UNKNOWN}),
        Library(fails={"0 nvmlDeviceGetMemoryInfo_v2": NOT_SUPPORTED}),
        Library(lacks=("nvmlInit_v2",)),
        Library(lacks=("nvmlDeviceGetPciInfo_v3",)),
        Library(lacks=("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo")),
    ],
)
def test_where_the_library_fails_the_program_is_asked(machine, library):
    assert machine.gpus(library) == parse_gpus(TABLE)
    assert machine.runs == [str(machine.program)]
    assert getattr(library, "opened", 0) == 0


def test_a_script_in_place_of_the_program_counts(machine):
    machine.program.write_text("#!/bin/sh\n")
    assert machine.gpus(Library(0)) == parse_gpus(TABLE)
    assert machine.runs == [str(machine.program)]


def test_without_the_program_there_is_no_driver(machine):
    machine.program.unlink()
    assert machine.gpus(Library()) is None
    assert machine.runs == []


def test_a_driver_that_hangs(machine, monkeypatch):
    goes_on, library = threading.Event(), Library()
    monkeypatch.setattr(gpus, "_PATIENCE_SECONDS", 0.01)
    library.nvmlInit_v2 = lambda: UNKNOWN if goes_on.wait(30) else FINE
    try:
        assert machine.gpus(library) is None
        assert machine.runs == []
    finally:
        goes_on.set()
