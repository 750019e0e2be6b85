"""Kernels that look at reads all the time, compiled a second time for the most frequent reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ngsgpu.device.cuda.kernels import KernelModule

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory


class ReadKernels:
    """The kernels of a package, and the same for reads of one length with a byte for each quality.

    The latter have a tenth less code, for which kernels wait (``reads.cuh``).

    Args:
        package: name of the package whose folder holds ``kernels.cu`` and ``equal_reads.cu``.
    """

    def __init__(self, package: str) -> None:
        self._any = KernelModule(package)
        self._equal = KernelModule(package, "equal_reads.cu")

    def load(self) -> None:
        """Load those that most runs need onto the current GPU; see ``KernelModule.load``.

        The others are compiled beside them, where that has not been done.
        """
        self._any.compile_aside()
        self._equal.load()

    def of(self, reads: DeviceReadSet | ReadMemory) -> KernelModule:
        """The kernels for a read set."""
        return self._equal if reads.are_equal else self._any
