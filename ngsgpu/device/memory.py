"""Memory and CPUs that this process may use, and sizes as users write them.

A container or a batch scheduler often grants less than the machine has, through control groups
(version 1 or 2), CPU affinity or resource limits. Every function here reports what is granted.
Missing or unreadable files count as "no limit", so that the functions work on any Linux; on other
systems they fall back to Python's functions.

Each function takes the root of the file system, ``/`` in production, so that tests can pose as
other machines.
"""

from __future__ import annotations

import os
import re
import resource
from dataclasses import dataclass
from pathlib import Path

from ngsgpu.errors import HostMemoryError, UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE | re.ASCII)
_LARGEST_SIZE = 1 << 60
_ROOT = Path("/")
# Version 1 writes "no limit" as the largest multiple of the page size below 2^63.
_UNLIMITED = 1 << 60
_LEAST_ADDRESS_SPACE = 480 << 20
"""Of a run: Python, NumPy and Numba map about 280 MiB, and the smallest plan takes 200 more."""


def parse_size(text: str) -> int:
    """Turn a size such as ``8G``, ``1.5 GiB``, ``500m`` or ``1048576`` into bytes.

    Units are powers of 1024, with or without ``B`` or ``iB``; no unit means bytes.

    Raises:
        UsageError: the text is not a size, or the size is 0.

    >>> parse_size("8G")
    8589934592
    >>> parse_size("1.5k")
    1536
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a size; write a number and K, M, G or T (powers of 1024), as in 8G"
        )
    number = float(match[1]) * _UNITS[match[2].upper()]
    if number > _LARGEST_SIZE:
        raise UsageError(f"{text[:20]!r}... is more than any machine has; write a size such as 8G")
    size = int(number)
    if size < 1:
        raise UsageError(f"{text!r} is not a positive size; write one such as 8G")
    return size


def format_size(size: float) -> str:
    """Write a number of bytes for people, in powers of 1024.

    >>> format_size(8589934592), format_size(1536), format_size(17)
    ('8.0 GiB', '1.5 KiB', '17 bytes')
    """
    for unit in ("T", "G", "M", "K"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:,.1f} {unit}iB"
    return f"{int(size):,} byte{'' if int(size) == 1 else 's'}"


@dataclass(frozen=True)
class Memory:
    """Memory in bytes.

    Attributes:
        total: of the machine.
        available: what this process can allocate now without swapping, within all limits.
        limit: the lowest limit of a control group or of ``ulimit -v``; None without one.
    """

    total: int
    available: int
    limit: int | None


def memory(root: Path = _ROOT) -> Memory:
    """Query the machine's memory and how much of it this process can use."""
    total, available = _machine_memory(root)
    limits: list[int] = []
    for limit, used in _cgroup_memory(root):
        limits.append(limit)
        available = min(available, max(0, limit - used))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
        available = min(available, max(0, soft - _address_space(root)))
    return Memory(total, available, min(limits) if limits else None)


def check_address_space() -> None:
    """Refuse to begin a run under a limit of ``ulimit -v`` under which none can end.

    Libraries that are imported beyond the limit fail in various ways, and Python 3.11 may try
    for ever: it takes a number to handle an exception, and fails to.

    Raises:
        HostMemoryError: the limit is too low.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_ADDRESS_SPACE:
        raise HostMemoryError(
            f"this process may have {format_size(soft)} of virtual memory (ulimit -v), and a run "
            f"takes {format_size(_LEAST_ADDRESS_SPACE)} at least; raise the limit"
        )


def available_memory(root: Path = _ROOT) -> int:
    """Bytes that this process can allocate now: free or reclaimable, within all limits."""
    return memory(root).available


def usable_cpus(root: Path = _ROOT) -> int:
    """Number of CPUs that this process may use: affinity and control-group quota, at least 1.

    A quota of 1.5 CPUs counts as 2: threads beyond the quota would only wait for each other,
    but one thread less would leave half a CPU idle.
    """
    cpus = _affinity()
    for quota, period in _cgroup_cpu(root):
        cpus = min(cpus, -(-quota // period))
    return max(1, cpus)


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _read_number(path: Path) -> int | None:
    """The single number in a file; None if the file is missing or contains ``max``."""
    text = _read(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def _table(text: str | None) -> dict[str, int]:
    """Read lines of a name and a number, as in ``/proc/meminfo`` and ``memory.stat``."""
    lines = re.findall(r"^(\w+):?[ \t]+(\d+)", text or "", flags=re.MULTILINE)
    return {name: int(number) for name, number in lines}


def _machine_memory(root: Path) -> tuple[int, int]:
    """Total and available memory of the machine, in bytes."""
    table = _table(_read(root / "proc/meminfo"))
    total = table.get("MemTotal", 0) * 1024
    if total == 0:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return total, total
    # Kernels before 3.14 do not estimate the available memory.
    free = table.get("MemFree", 0) + table.get("Buffers", 0) + table.get("Cached", 0)
    return total, table.get("MemAvailable", free) * 1024


def _address_space(root: Path) -> int:
    """Bytes of address space in use, which is what ``ulimit -v`` counts."""
    fields = (_read(root / "proc/self/statm") or "0").split()
    return int(fields[0]) * os.sysconf("SC_PAGE_SIZE")


def _cgroup_folders(root: Path, controller: str) -> list[tuple[int, Path]]:
    """Control groups of this process from its own to the outermost, with their version.

    Inside a container the path in ``/proc/self/cgroup`` may name folders of the host that are
    not mounted here; the container's own group is then the mounted root, which the walk to the
    top reaches anyway.
    """
    folders: list[tuple[int, Path]] = []
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            version, top = 2, root / "sys/fs/cgroup"
            if not (top / "cgroup.controllers").exists():
                top = top / "unified"
        elif controller in controllers.split(","):
            version, top = 1, root / "sys/fs/cgroup" / controller
        else:
            continue
        inner = Path(path.lstrip("/"))
        if ".." in inner.parts:
            inner = Path()
        folders += [(version, top / step) for step in (inner, *inner.parents)]
    return list(dict.fromkeys(folders))


def _cgroup_memory(root: Path) -> list[tuple[int, int]]:
    """Limit and use of each control group that limits memory, in bytes.

    Use excludes the inactive page cache, which the kernel reclaims under pressure.
    """
    found = []
    for version, folder in _cgroup_folders(root, "memory"):
        names = ("memory.max", "memory.current") if version == 2 else (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )  # fmt: skip
        limit = _read_number(folder / names[0])
        if limit is None or limit >= _UNLIMITED:
            continue
        used = _read_number(folder / names[1]) or 0
        stat = _table(_read(folder / "memory.stat"))
        cache = stat.get("inactive_file" if version == 2 else "total_inactive_file", 0)
        found.append((limit, max(0, used - cache)))
    return found


def _cgroup_cpu(root: Path) -> list[tuple[int, int]]:
    """Quota and period, in microseconds, of each control group that limits CPU time."""
    found = []
    for version, folder in _cgroup_folders(root, "cpu"):
        if version == 2:
            fields = (_read(folder / "cpu.max") or "max").split()
            numbers = [int(field) for field in fields if field.isdigit()]
            quota, period = numbers if len(numbers) == 2 else (-1, 0)
        else:
            quota = _read_number(folder / "cpu.cfs_quota_us") or -1
            period = _read_number(folder / "cpu.cfs_period_us") or 0
        if quota > 0 and period > 0:
            found.append((quota, period))
    return found
