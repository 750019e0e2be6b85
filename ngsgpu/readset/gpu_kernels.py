"""Kernels that look at reads all the time, compiled a second time for the most frequent reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.readset.qualities import LEVEL_BITS

if TYPE_CHECKING:
    from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory


class ReadKernels:
    """The kernels of a package, and the same for reads of one length with 8 or 2 bits per quality.

    The latter have a tenth less code, for which kernels wait (``reads.cuh``).

    Args:
        package: name of the package whose folder holds ``kernels.cu``, ``equal_reads.cu`` and
            ``equal_reads_of_levels.cu``.
    """

    def __init__(self, package: str) -> None:
        self._any = KernelModule(package)
        self._equal = {
            8: KernelModule(package, "equal_reads.cu"),
            LEVEL_BITS: KernelModule(package, "equal_reads_of_levels.cu"),
        }

    def load(self) -> None:
        """Load those that most runs need onto the current GPU; see ``KernelModule.load``.

        The others are compiled beside them, where that has not been done.
        """
        self._any.compile_aside()
        self._equal[LEVEL_BITS].compile_aside()
        self._equal[8].load()

    def of(self, reads: DeviceReadSet | ReadMemory) -> KernelModule:
        """The kernels for a read set."""
        bits = reads.equal_bits
        return self._any if bits is None else self._equal.get(bits, self._any)
