"""The choice between CPU and CUDA.

Both give identical output, so only speed matters: ``auto`` uses what is available, and only an
explicit ``cuda`` may fail or wait. GPUs are leased, so that other jobs on the machine keep off them
(see ``leases``).
"""

from __future__ import annotations

import importlib.util
import logging
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal, Self

from ngsgpu.device.gpus import Gpu, gpus_of_driver, visible_gpus
from ngsgpu.device.leases import Lease, lease_gpus
from ngsgpu.errors import DeviceError, UsageError, install_extra

BackendName = Literal["cpu", "cuda"]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backend:
    """The backend of a run; as a context manager it ends the lease of its GPUs.

    Attributes:
        name: ``cpu`` or ``cuda``.
        gpus: the GPUs in use; empty for the CPU.
        reason: short reason, for the log and the statistics.
        lease: the lease of the GPUs; None without GPUs, or if none was requested.
    """

    name: BackendName
    gpus: tuple[Gpu, ...]
    reason: str
    lease: Lease | None = None
    _open: ExitStack = field(default_factory=ExitStack, compare=False, repr=False)

    def __enter__(self) -> Self:
        """Show CUDA the leased GPUs alone, in the environment of this process."""
        if self.lease is not None:
            self._open.enter_context(self.lease)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


def choose_backend(
    requested: Literal["auto", "cpu", "cuda"],
    gpus: int | None = None,
    *,
    lease: bool = False,
    wait: float | None = None,
    most: int | None = None,
) -> Backend:
    """Choose the backend.

    Args:
        requested: ``auto`` uses GPUs if the machine has them, otherwise the CPU; ``cpu`` and
            ``cuda`` are mandatory.
        gpus: number of GPUs; 0 means the CPU, None means one.
        lease: whether to lease the GPUs; use the result in a ``with`` statement then. ``auto`` does
            not wait for GPUs in use, but uses the CPU.
        wait: seconds that ``cuda`` waits for GPUs in use; None: no limit.
        most: maximum number of GPUs that the run can use; no more are leased.

    Raises:
        DeviceError: ``requested`` is ``cuda`` and the GPUs did not become free in time.
        UsageError: ``requested`` is unknown, contradicts ``gpus``, or is ``cuda`` and a requirement
            is missing; the message says which and how to install it.
    """
    if requested not in ("auto", "cpu", "cuda"):
        raise UsageError(f"unknown backend {requested!r}; choose auto, cpu or cuda")
    if gpus is not None and gpus < 0:
        raise UsageError(f"`gpus` must be 0 or more, not {gpus}")
    if gpus is not None and most is not None and gpus > most:
        _LOG.info("%d GPUs requested, but this run can use at most %d", gpus, most)
        gpus = most
    if requested == "cpu":
        return Backend("cpu", (), "as asked for")
    if requested == "cuda":
        if gpus == 0:
            raise UsageError("`backend='cuda'` with 0 GPUs; ask for at least 1, or `backend='cpu'`")
        problem = missing_for_cuda(gpus or 1)
        if problem:
            raise UsageError(f"`backend='cuda'` is not possible here: {problem}")
        return _cuda(gpus or 1, "as asked for", lease, wait)
    return _automatic(gpus, lease)


def _cuda(gpus: int, reason: str, lease: bool, wait: float | None) -> Backend:
    if not lease:
        return Backend("cuda", tuple(visible_gpus()[:gpus]), reason)
    taken = lease_gpus(gpus, wait)
    return Backend("cuda", tuple(one.gpu for one in taken.devices if one.gpu), reason, taken)


def _automatic(gpus: int | None, lease: bool) -> Backend:
    if gpus == 0:
        return Backend("cpu", (), "0 GPUs asked for")
    if problem := missing_for_cuda(gpus or 1):
        return Backend("cpu", (), problem.partition(";")[0].partition(" (")[0])
    try:
        return _cuda(gpus or 1, "found", lease, wait=0)
    except DeviceError as error:
        _LOG.info("continuing on the CPU: %s", str(error).partition(";")[0])
        return Backend("cpu", (), "all GPUs are in use")


def missing_for_cuda(gpus: int = 1) -> str | None:
    """Explain what prevents this machine from computing on ``gpus`` GPUs, with the remedy.

    Returns:
        One clause with its remedy after a semicolon, or None if nothing is missing.
    """
    found = gpus_of_driver()
    if found is None:
        return (
            "no NVIDIA driver was found (nvidia-smi is missing or does not answer); "
            "install the driver, or use `backend='cpu'`"
        )
    if not found:
        return "the NVIDIA driver sees no GPU; check nvidia-smi, or use `backend='cpu'`"
    visible = visible_gpus()
    if not visible:
        return (
            "CUDA_VISIBLE_DEVICES hides every GPU; unset it or name one there, or use "
            "`backend='cpu'`"
        )
    if len(visible) < gpus:
        return f"{gpus} GPUs are asked for and {len(visible)} can be seen; ask for fewer"
    if importlib.util.find_spec("cupy") is None:
        return f"CuPy is not installed; {cupy_remedy(visible[0])}"
    return None


def cupy_remedy(gpu: Gpu | None) -> str:
    """How to install CuPy for the CUDA version that a GPU's driver supports."""
    if gpu is None or gpu.cuda is None:
        return f"{install_extra('cuda12')} or, for a driver of CUDA 13, '.[cuda13]'"
    extra = "cuda13" if gpu.cuda >= 13 else "cuda12"
    return install_extra(extra)
