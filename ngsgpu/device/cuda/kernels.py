"""Kernels: compiled when first needed, kept on disk, launched with our errors.

A package with kernels makes one ``KernelModule`` and launches by name::

    KERNELS = KernelModule("ngsgpu.minhash")
    KERNELS.launch("sign_reads", (blocks,), (threads,), (keys, np.int64(count)))

A release brings machine code for common GPUs, found by a hash of sources and options; the compiler
is loaded only where there is none. CuPy's own cache does not see changes of included headers, so
what is compiled here is kept by a hash of all that it depends on (``ngsgpu.compiled``). ``python -m
ngsgpu.device.cuda.kernels`` compiles every kernel without a GPU and prints how long each took.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ngsgpu import compiled
from ngsgpu.device.cuda.compiler import (
    ROOT,
    Target,
    compile_source,
    fingerprint,
    known_architectures,
    source_hash,
    target_for,
)
from ngsgpu.device.errors import device_error
from ngsgpu.errors import DeviceError, NgsgpuError

# Shared memory that a block may use without opting in (CUDA C++ programming guide).
_SHARED_WITHOUT_ASKING = 48 << 10
_MAX_DYNAMIC_SHARED_SIZE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_BLOCKS_PER_MULTIPROCESSOR = 32
_LOG = logging.getLogger(__name__)

THREADS: Final = 256
"""Threads per block; as in ``tiles.cuh``."""

TILE: Final = 256
"""Words that a warp handles at a time; as in ``tiles.cuh``."""

Observer = Callable[[str, Any], AbstractContextManager[object]]
"""Is given a kernel's name and its stream, and entered around the launch."""

_nothing = contextlib.nullcontext()
_observer: Observer | None = None


@contextlib.contextmanager
def observed_launches(observer: Observer) -> Iterator[None]:
    """Have every launch observed inside a ``with`` block, by one observer at a time."""
    global _observer
    _observer = observer
    try:
        yield
    finally:
        _observer = None


class KernelModule:
    """The kernels of one ``.cu`` file; safe to use from several threads and on several GPUs.

    Args:
        package: name of the package whose folder holds the file, as ``ngsgpu.correct``.
        source: name of the file.
    """

    def __init__(self, package: str, source: str = "kernels.cu") -> None:
        self.name = f"{package}.{Path(source).stem}"
        self.path = ROOT.joinpath(*package.split(".")) / source
        self._lock = threading.Lock()
        self._modules: dict[int, Any] = {}
        self._functions: dict[tuple[int, str], Any] = {}
        # The most dynamic shared memory that was asked for, by GPU and kernel.
        self._shared: dict[tuple[int, str], int] = {}

    def compile_for(self, architecture: str) -> bytes:
        """Compile for an architecture, without a GPU and without the cache; a warning fails.

        Args:
            architecture: as ``sm_90``, or ``compute_90`` for PTX.

        Raises:
            DeviceError: the code does not compile.
            UsageError: CuPy or NVRTC is missing, or the architecture is misspelt.
        """
        return compile_source(self.path, Target(architecture), warnings_are_errors=True)

    def checked(self, architecture: str) -> bytes:
        """As ``compile_for``, unless the same has been compiled before."""
        return self._kept(Target(architecture), "-checked", lambda: self.compile_for(architecture))

    def image(self, target: Target) -> bytes:
        """Compiled code from the cache, or compiled now and kept there."""
        return self._kept(target, "", lambda: compile_source(self.path, target))

    def prebuilt(self, target: Target) -> bytes | None:
        """Compiled code that came with the installation; None if there is none of this source."""
        return compiled.prebuilt(self.prebuilt_name(target))

    def prebuilt_name(self, target: Target) -> str:
        """What the installation calls the code, by what the source says."""
        digest = source_hash(self.path, target)[:32]
        return f"gpu.{self.name}-{target.architecture}-{digest}"

    def _kept(self, target: Target, suffix: str, make: Callable[[], bytes]) -> bytes:
        folder = compiled.trusted_folder()
        if folder is not None:
            own = f"{self.name}-{target.architecture}-{fingerprint(self.path, target)}{suffix}"
            path = folder / own
            if (image := compiled.read(path)) is not None:
                return image
        start = time.monotonic()
        image = make()
        _LOG.debug("compiled %s for %s in %.1f s", self.name, target.architecture,
                   time.monotonic() - start)  # fmt: skip
        if folder is not None:
            try:
                compiled.keep(path, image)
            except OSError as error:
                _LOG.debug("could not keep compiled kernels: %s", error)
        return image

    def load(self) -> None:
        """Compile if necessary and load onto the current GPU; otherwise the first launch does it.

        Raises:
            DeviceError: the code does not compile, or the GPU rejects it.
        """
        from cupy import cuda

        self._module(cuda.runtime.getDevice())

    def compile_aside(self) -> None:
        """Compile for the current GPU in a separate thread, if that has not been done."""
        from cupy import cuda

        capability = int(cuda.Device().compute_capability)
        if self.prebuilt(Target(f"sm_{capability}")) is None:
            threading.Thread(
                target=self._compile, args=(capability,), name="ngsgpu-compile", daemon=True
            ).start()

    def _compile(self, capability: int) -> None:
        try:
            with self._lock:
                self.image(target_for(capability))
        except NgsgpuError as error:  # a launch will say so
            _LOG.debug("could not compile %s ahead: %s", self.name, error)

    def launch(
        self,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: Sequence[Any],
        shared_bytes: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch a kernel on the current GPU, asynchronously.

        With ``NGSGPU_SYNC_KERNELS=1`` in the environment it has finished on return, so that a fault
        is attributed to its kernel; otherwise CUDA reports it at a later call.

        Args:
            kernel: name of an ``extern "C"`` kernel.
            grid: blocks in up to three dimensions; nothing is launched if one of them is 0.
            block: threads of a block in up to three dimensions.
            arguments: CuPy arrays and NumPy scalars of the kernel's parameter types.
            shared_bytes: dynamic shared memory of a block.
            stream: CuPy stream; the current one by default.

        Raises:
            DeviceError: CUDA rejected the launch; the message names the kernel.
        """
        from cupy import cuda

        if 0 in grid:
            return
        try:
            device = cuda.runtime.getDevice()
            function = self._function(device, kernel)
            if shared_bytes > _SHARED_WITHOUT_ASKING:
                self._ask_for_shared(device, kernel, function, shared_bytes)
            with _nothing if _observer is None else _observer(kernel, stream):
                function(grid, block, tuple(arguments), shared_bytes, stream)
            if os.environ.get("NGSGPU_SYNC_KERNELS") == "1":
                cuda.runtime.deviceSynchronize()
        except (
            cuda.runtime.CUDARuntimeError,
            cuda.driver.CUDADriverError,
            cuda.memory.OutOfMemoryError,
        ) as error:
            where = f"kernel {kernel} of {self.name} (grid {grid}, block {block}"
            where += f", {shared_bytes:,} bytes of shared memory)" if shared_bytes else ")"
            raise device_error(where, error) from error

    def launch_threads(self, kernel: str, units: int, *arguments: Any) -> None:
        """``launch`` with a thread for each unit of work, in blocks of ``THREADS``.

        Raises:
            DeviceError: as ``launch``.
        """
        self.launch(kernel, grid_of(units, THREADS), (THREADS,), arguments)

    def resident_blocks(self, kernel: str, threads: int, shared_bytes: int = 0) -> int:
        """Number of blocks of a kernel that the current GPU runs concurrently.

        Args:
            kernel: name of an ``extern "C"`` kernel.
            threads: threads per block.
            shared_bytes: dynamic shared memory of a block.

        Raises:
            DeviceError: the kernel cannot be loaded.
        """
        from cupy import cuda

        device = cuda.runtime.getDevice()
        # A thread that has not yet used CUDA has no context, which the driver's call needs.
        cuda.runtime.setDevice(device)
        function = self._function(device, kernel)
        if shared_bytes > _SHARED_WITHOUT_ASKING:
            self._ask_for_shared(device, kernel, function, shared_bytes)
        blocks = cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            function.ptr, threads, shared_bytes
        )
        return int(blocks) * multiprocessors()

    def _function(self, device: int, kernel: str) -> Any:
        key = device, kernel
        function = self._functions.get(key)
        if function is None:
            module = self._module(device)
            function = self._functions[key] = module.get_function(kernel)
        return function

    def _module(self, device: int) -> Any:
        with self._lock:
            module = self._modules.get(device)
            if module is None:
                module = self._modules[device] = self._loaded(device)
            return module

    def _loaded(self, device: int) -> Any:
        from cupy import cuda

        # The runtime makes a context for the thread at its first real call only.
        cuda.runtime.free(0)
        capability = int(cuda.Device(device).compute_capability)
        module = cuda.function.Module()
        refused = (cuda.driver.CUDADriverError, cuda.runtime.CUDARuntimeError)
        if (image := self.prebuilt(Target(f"sm_{capability}"))) is not None:
            try:
                module.load(image)
                return module
            except refused as error:  # a driver older than the compiler of the release
                _LOG.debug("the driver refuses the prebuilt %s: %s", self.name, error)
                module = cuda.function.Module()
        try:
            module.load(self.image(target_for(capability)))
        except refused as error:
            raise device_error(f"loading the kernels {self.name}", error) from error
        return module

    def _ask_for_shared(self, device: int, kernel: str, function: Any, size: int) -> None:
        from cupy import cuda

        key = device, kernel
        with self._lock:
            if self._shared.get(key, 0) < size:
                cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED_SIZE, size)
                self._shared[key] = size


def multiprocessors() -> int:
    """Number of multiprocessors of the current GPU, by which grids are sized."""
    from cupy import cuda

    return _multiprocessors(cuda.Device().id)


def grid_for(units: int, a_block: int, blocks_per_multiprocessor: int) -> tuple[int]:
    """Grid for kernels whose blocks loop over units: just enough to fill the GPU.

    Args:
        units: number of units.
        a_block: units per block and iteration.
        blocks_per_multiprocessor: maximum number of blocks for each.
    """
    return (min(-(-units // a_block), blocks_per_multiprocessor * multiprocessors()),)


def grid_of(units: int, per_block: int) -> tuple[int]:
    """Grid of at least one block, and at most ``_BLOCKS_PER_MULTIPROCESSOR`` for each."""
    return grid_for(max(1, units), per_block, _BLOCKS_PER_MULTIPROCESSOR)


def grid_of_warps(units: int) -> tuple[int]:
    """Grid of blocks of ``THREADS`` with one warp per unit."""
    return grid_of(units, THREADS // 32)


@lru_cache
def _multiprocessors(device: int) -> int:
    from cupy import cuda

    return int(cuda.Device(device).attributes["MultiProcessorCount"])


def all_modules() -> list[KernelModule]:
    """One module for each ``.cu`` file of the package."""
    return [
        KernelModule(".".join(path.parent.relative_to(ROOT).parts), path.name)
        for path in sorted((ROOT / "ngsgpu").rglob("*.cu"))
    ]


def architectures_to_check() -> list[str]:
    """T4, A100, H100 and H200, and the newest architecture NVRTC supports."""
    return list(dict.fromkeys(["sm_75", "sm_80", "sm_90", f"sm_{known_architectures()[-1]}"]))


def main(architectures: Sequence[str]) -> int:
    """Compile every kernel file for architectures, by default those that are to be checked.

    Returns:
        The exit status: 0, or 1 if any does not compile without a warning.
    """
    status = 0
    try:
        wanted = architectures or architectures_to_check()
    except NgsgpuError as error:
        print(f"ngsgpu: error: {error}", file=sys.stderr)
        return error.exit_status
    for module in all_modules():
        for architecture in wanted:
            start = time.monotonic()
            try:
                size = len(module.compile_for(architecture))
            except DeviceError as error:
                print(error, file=sys.stderr)
                status = 1
            else:
                print(f"{module.name}  {architecture}  {size:,} bytes  "
                      f"{time.monotonic() - start:.1f} s")  # fmt: skip
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
