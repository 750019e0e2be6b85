"""Leases: assign GPUs to processes, so that processes of one host do not share one by accident.

Schedulers such as Snakemake's local one count GPUs without assigning them. A lease takes some of
the visible GPUs, all or none, by a lock on each GPU's UUID, and narrows ``CUDA_VISIBLE_DEVICES`` to
them. It ends with the process, or with the last child that inherited it. Under a scheduler that
narrows ``CUDA_VISIBLE_DEVICES`` itself (Slurm, Kubernetes), nobody else wants the same GPUs and a
lease is granted at once.

A program started inside a lease leases from its GPUs, with separate locks.
"""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import re
import secrets
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ngsgpu.device.gpus import gpus_of_driver, visible_entries
from ngsgpu.device.leases.folder import FolderUnusableError, LockFolder, Taken
from ngsgpu.device.leases.record import NO_LEASE, Device, LeaseRecord
from ngsgpu.device.startup import stop_preparing
from ngsgpu.errors import DeviceError, UsageError

_LOG = logging.getLogger(__name__)
_LEASE_VARIABLE = "NGSGPU_LEASE"
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", _LEASE_VARIABLE)
_LONGEST_COMMAND = 120


@dataclass(eq=False)
class Lease:
    """GPUs leased by this process; as a context manager it ends with the block.

    Inside the block the environment shows CUDA only these GPUs, provided CUDA has not been used
    before.

    Attributes:
        devices: the GPUs.
        locked: whether lock files back it; otherwise only names held by the kernel do, which other
            containers do not see.
        record: its times, and the use of its GPUs.
    """

    devices: tuple[Device, ...]
    locked: bool
    record: LeaseRecord
    _folder: LockFolder
    _taken: list[Taken]
    _id: str
    _before: dict[str, str | None] = field(default_factory=dict)

    @property
    def files(self) -> tuple[int, ...]:
        """Descriptors that a child has to inherit to keep the lease when this process dies."""
        return tuple(file for one in self._taken for file in one.files)

    def environment(self) -> dict[str, str]:
        """Variables that show CUDA the leased GPUs, and their children the lease."""
        variables = {
            "CUDA_VISIBLE_DEVICES": ",".join(device.entry for device in self.devices),
            # Numbers are meant as nvidia-smi gives them.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        if self._taken:
            uuids = ",".join(device.uuid for device in self.devices)
            variables[_LEASE_VARIABLE] = f"{self._id}:{uuids}"
        return variables

    def release(self) -> None:
        """End the lease here; children that inherited its files keep it until they end."""
        self.keep(0)

    def keep(self, count: int) -> None:
        """Release all GPUs after the first ``count``, which this process must no longer use."""
        if count == 0:
            stop_preparing()
        held = bool(self._taken)
        given_back = self.devices[count:]
        if given_back:
            _LOG.info("lease: given back: %s", self.record.give_back(given_back))
        self._folder.release(self._taken[count:])
        self._taken, self.devices = self._taken[:count], self.devices[:count]
        if held and not self._taken:
            self._folder.forget(f"{self._id}.")
        if self in _entered:
            self._show()

    def _show(self) -> None:
        """Show CUDA the GPUs, and children the lease."""
        shown = self.environment()
        for name in _VARIABLES:
            if name in shown:
                os.environ[name] = shown[name]
            else:
                os.environ.pop(name, None)

    def __enter__(self) -> Self:
        self._before = {name: os.environ.get(name) for name in _VARIABLES}
        _entered.append(self)
        self._show()
        return self

    def __exit__(self, *error: object) -> None:
        stop_preparing()
        _entered.remove(self)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.release()


_entered: list[Lease] = []
"""Leases inside of whose ``with`` blocks this process is, the innermost one last."""


def keep_gpus(count: int) -> None:
    """Release the leased GPUs that this process does not need: all but the first.

    Args:
        count: number of GPUs of the innermost lease to keep; 0 if the CPU takes over. Without a
            lease nothing happens.
    """
    if _entered and len(_entered[-1].devices) > count:
        _entered[-1].keep(count)


def lease_entry() -> dict[str, Any]:
    """The innermost lease for the statistics of a run; see docs/formats.md."""
    return _entered[-1].record.entry() if _entered else dict(NO_LEASE)


def pool() -> tuple[Device, ...]:
    """The GPUs that can be leased: those of ``CUDA_VISIBLE_DEVICES`` if it is set, else all."""
    devices: dict[str, Device] = {}
    for entry, gpu in visible_entries():
        # A slice is found by its own name, and so is what no driver can be asked about.
        uuid = entry if gpu is None or entry.startswith("MIG-") else gpu.uuid
        devices.setdefault(uuid, Device(entry, uuid, gpu))
    return tuple(devices.values())


def lease_gpus(count: int, wait: float | None = None, *, command: Sequence[str] = ()) -> Lease:
    """Lease GPUs, all or none.

    If the lock directory is unusable (see ``lock_folder``), a warning is logged and only names held
    by the kernel are used.

    Args:
        count: number of GPUs, at least 1.
        wait: seconds to wait until they are free; None: no limit, 0: do not wait.
        command: their purpose, shown to others; by default this process's command line.

    Raises:
        UsageError: the machine does not have enough.
        DeviceError: they did not become free in time; the message names the holders.
    """
    if count < 1:
        raise UsageError(f"{count} GPUs cannot be leased; ask for at least 1")
    devices = pool()
    if len(devices) < count:
        raise UsageError(_too_few(count, len(devices)))
    folder = LockFolder(lock_folder())
    names = {_lock_name(device): device for device in devices}
    wanted = _gpus(count)

    def say_waiting(blocked: str) -> None:
        why = blocked or _held(folder, names)
        _LOG.info("lease: waiting for %s of %d (%s)", wanted, len(devices), why)

    locked, asked, name = True, time.monotonic(), secrets.token_hex(6)
    try:
        taken = folder.take(
            list(names), count, wait=wait, holder=_about_me(command), on_wait=say_waiting
        )
    except FolderUnusableError as error:
        _LOG.warning(
            "lease: no locks in %s (%s); programs of other containers may use the same GPUs. Name "
            "another folder by NGSGPU_LOCK_DIR", folder.path, error,
        )  # fmt: skip
        locked = False
        try:
            taken = folder.take_in_kernel(list(names), count, wait=wait, on_wait=say_waiting)
        except OSError:
            some = devices[:count]
            return Lease(some, False, LeaseRecord(some, 0.0, name), folder, [], "")
    if taken is None:
        patience = "now" if not wait else f"within {wait:g} s"
        raise DeviceError(
            f"{wanted} of {len(devices)} could not be leased {patience} ({_held(folder, names)}); "
            "wait longer, or stop the programs holding them"
        )
    leased = tuple(names[one.name] for one in taken)
    waited = time.monotonic() - asked
    _LOG.info("lease: %s", _shown(leased, waited))
    return Lease(leased, locked, LeaseRecord(leased, waited, name), folder, taken, name)


def holders(devices: Sequence[Device]) -> list[str | None]:
    """The holder of each GPU, as text; None for a free one.

    Inside a lease that is the holder of the lease, not of a lease from it.

    Raises:
        FolderUnusableError: the directory cannot hold locks.
    """
    names = [_file_name(device) for device in devices]
    found = LockFolder(lock_folder()).holders(names)
    return [_holder_words(found[name]) if name in found else None for name in names]


def lock_folder() -> Path:
    """Folder of the locks: ``$NGSGPU_LOCK_DIR``, else one in /tmp that all users share."""
    return Path(os.environ.get("NGSGPU_LOCK_DIR") or Path(tempfile.gettempdir()) / "ngsgpu-locks")


def _file_name(device: Device) -> str:
    """The UUID; old drivers put slashes into that of a slice."""
    return re.sub(r"[^\w.-]", "_", device.uuid)


def _lock_name(device: Device) -> str:
    """Name of a GPU's lock: its UUID, below the lease that this process was started in."""
    name = _file_name(device)
    lease, _, uuids = os.environ.get(_LEASE_VARIABLE, "").partition(":")
    if device.uuid in uuids.split(",") and re.fullmatch(r"[0-9a-f]+", lease):
        return f"{lease}.{name}"
    return name


def _about_me(command: Sequence[str]) -> dict[str, object]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry in passwd, as in some containers
        user = str(os.getuid())
    words = shlex.join(command or [Path(sys.argv[0]).name, *sys.argv[1:]])
    words = " ".join(words.split())
    if len(words) > _LONGEST_COMMAND:
        words = words[: _LONGEST_COMMAND - 1] + "…"
    return {"pid": os.getpid(), "user": user, "host": socket.gethostname(), "command": words}


def _shown(devices: Sequence[Device], waited: float) -> str:
    words = ", ".join(map(str, devices))
    driver = next((f", driver {one.gpu.driver}" for one in devices if one.gpu), "")
    return words + driver + (f", after waiting {waited:.1f} s" if waited >= 0.1 else "")


def _holder_words(holder: dict[str, object]) -> str:
    if "trouble" in holder:
        return f"nobody can tell whom: {holder['trouble']}"
    if not isinstance(holder.get("pid"), int):
        return "someone who left no name"
    words = f"{holder.get('user')}, process {holder['pid']}"
    # Process numbers of another container mean nothing here.
    if holder.get("host") == socket.gethostname():
        with contextlib.suppress(PermissionError):
            try:
                os.kill(int(str(holder["pid"])), 0)
            except ProcessLookupError:
                words += " (ended; what it started still runs)"
    else:
        words += f" of {holder.get('host')}"
    return f"{words}: {holder.get('command')}"


def _held(folder: LockFolder, names: dict[str, Device]) -> str:
    """List GPUs and their holders, for messages."""
    try:
        found = folder.holders(list(names))
    except FolderUnusableError:
        return "by an unknown process"
    parts = [f"{names[name].entry} is held by {_holder_words(found[name])}" for name in found]
    return "; ".join(parts) or f"others came before, by their tickets in {folder.path}"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _too_few(count: int, found: int) -> str:
    if found:
        return f"{count} GPUs are asked for and {found} can be seen; ask for fewer"
    if gpus_of_driver() is None:
        return (
            "no NVIDIA driver was found (nvidia-smi is missing or does not answer); install the "
            "driver"
        )
    return "no GPU can be seen; check nvidia-smi and CUDA_VISIBLE_DEVICES"
