"""NVIDIA GPUs of this machine, as listed by the driver's ``nvidia-smi``.

The driver's own program needs no CUDA context and no library, so it works before anything is
installed and does not fix the GPUs visible to this process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ngsgpu.declared.numbers import is_digits

# Windows' subsystem for Linux keeps the program off the PATH.
_ELSEWHERE = (Path("/usr/lib/wsl/lib/nvidia-smi"), Path("/usr/local/nvidia/bin/nvidia-smi"))
_FIELDS = "index,uuid,name,memory.total,memory.free,compute_cap,driver_version,pci.bus_id"
_PATIENCE_SECONDS = 20.0
# First driver branches for a CUDA major version (NVIDIA, CUDA compatibility guide).
_DRIVERS_OF_CUDA = ((580, 13), (525, 12), (450, 11))


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        index: number by PCI bus order, from 0.
        uuid: the driver's identifier, ``GPU-...``.
        name: the model.
        memory: total bytes.
        free: unallocated bytes.
        capability: compute capability, as (9, 0); None if the driver does not report it.
        driver: driver version.
        pci: bus address, as ``00000000:1B:00.0``.
    """

    index: int
    uuid: str
    name: str
    memory: int
    free: int
    capability: tuple[int, int] | None
    driver: str
    pci: str

    @property
    def cuda(self) -> int | None:
        """Newest major version of CUDA that the driver runs; None for older ones than 11."""
        branch = _number(self.driver.partition(".")[0])
        return next((cuda for first, cuda in _DRIVERS_OF_CUDA if branch >= first), None)


@lru_cache(maxsize=1)
def gpus_of_driver() -> tuple[Gpu, ...] | None:
    """All GPUs known to the driver; None without a responding driver.

    Queried once per process.
    """
    program = shutil.which("nvidia-smi") or next(
        (str(path) for path in _ELSEWHERE if path.exists()), None
    )
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if "No devices were found" in answer.stdout:
        return ()
    return parse_gpus(answer.stdout) if answer.returncode == 0 else None


def parse_gpus(table: str) -> tuple[Gpu, ...]:
    """Read the table that ``nvidia-smi --query-gpu`` prints; lines of another form are skipped.

    >>> line = "0, GPU-8f1c, NVIDIA H200, 143771, 143167, 9.0, 580.82.07, 00000000:1B:00.0"
    >>> parse_gpus(line)[0].capability
    (9, 0)
    """
    gpus = []
    for line in table.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != _FIELDS.count(",") + 1 or not is_digits(fields[0]):
            continue
        index, uuid, name, total, free, capability, driver, pci = fields
        version = re.fullmatch(r"(\d+)\.(\d+)", capability)
        gpus.append(
            Gpu(
                index=int(index),
                uuid=uuid,
                name=name,
                memory=_number(total) << 20,
                free=_number(free) << 20,
                capability=(int(version[1]), int(version[2])) if version else None,
                driver=driver,
                pci=pci,
            )
        )
    return tuple(gpus)


def visible_gpus() -> tuple[Gpu, ...]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` leaves to this process, in its order.

    As in CUDA, the list ends at the first entry that names no GPU.
    """
    return tuple(gpu for _, gpu in visible_entries() if gpu is not None)


def visible_entries() -> tuple[tuple[str, Gpu | None], ...]:
    """The same with what stands for each in ``CUDA_VISIBLE_DEVICES``; UUIDs if it is not set.

    Where no driver can be asked, entries are believed and their GPUs are None.
    """
    gpus = gpus_of_driver()
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return tuple((gpu.uuid, gpu) for gpu in gpus or ())
    visible: list[tuple[str, Gpu | None]] = []
    for entry in (part.strip() for part in wanted.split(",")):
        gpu = _named(entry, gpus or ())
        if gpu is None and (gpus is not None or not re.fullmatch(r"[0-9]+|(GPU|MIG)-.+", entry)):
            break
        visible.append((entry, gpu))
    return tuple(visible)


def _named(entry: str, gpus: tuple[Gpu, ...]) -> Gpu | None:
    if is_digits(entry):
        return next((gpu for gpu in gpus if gpu.index == int(entry)), None)
    if entry.startswith("GPU-"):
        return next((gpu for gpu in gpus if gpu.uuid.startswith(entry)), None)
    if entry.startswith("MIG-") and gpus:
        # A MIG slice; nvidia-smi's table does not say of which GPU.
        return next((gpu for gpu in gpus if gpu.uuid in entry), gpus[0])
    return None


def _number(text: str) -> int:
    """A whole number, 0 for ``[N/A]`` and the like."""
    return int(text) if is_digits(text) else 0
