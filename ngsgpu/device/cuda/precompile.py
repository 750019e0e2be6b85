"""Compiling all kernels before they are needed, for images and releases; needs no GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from ngsgpu import compiled
from ngsgpu.device.cuda.compiler import Target, compile_source, known_architectures
from ngsgpu.device.cuda.kernels import KernelModule, all_modules
from ngsgpu.errors import UsageError, output_error
from ngsgpu.pool import map_all

COMMON: Final = (75, 80, 86, 89, 90, 100, 103, 120, 121)
"""Capabilities of the GPUs of servers, workstations and notebooks since 2018, as 90 for 9.0."""


def common_targets() -> list[Target]:
    """What a release is compiled for: those of ``COMMON`` that this compiler knows."""
    known = known_architectures()
    return [Target(f"sm_{one}") for one in COMMON if one in known]


def all_targets() -> list[Target]:
    """All that this compiler knows."""
    return [Target(f"sm_{one}") for one in known_architectures()]


def checked_targets(architectures: Sequence[str]) -> list[Target]:
    """Targets by their names.

    Raises:
        UsageError: a name is none, or this compiler does not know it.
    """
    targets = [Target(one) for one in architectures]
    known = [f"{kind}_{one}" for kind in ("sm", "compute") for one in known_architectures()]
    for target in targets:
        if target.architecture.rstrip("af") not in known:
            raise UsageError(
                f"this CUDA compiler does not know {target.architecture}; it knows "
                f"{', '.join(name for name in known if name.startswith('sm_'))}"
            )
    return targets


def precompile(
    targets: Sequence[Target],
    threads: int,
    shared: bool,
    say: Callable[[str], None] = lambda text: None,
) -> int:
    """Compile every kernel for the targets and keep it; what is kept already is left alone.

    Args:
        targets: what to compile for.
        threads: that compile at the same time.
        shared: whether to keep it in the installation, for all its users, instead of the user's
            cache.
        say: called with each kernel file that was compiled.

    Returns:
        Number of kernel files times architectures.

    Raises:
        DeviceError: a kernel does not compile.
        OutputError: the installation may not be written to.
    """

    def make(job: tuple[Target, KernelModule]) -> None:
        target, module = job
        if not shared:
            module.image(target)
        elif module.prebuilt(target) is None:
            _share(module, target)
            say(f"{module.name} for {target.architecture}")

    jobs = list(product(targets, all_modules()))
    # The structs of headers are declared by modules, which threads would import at the same time.
    for target, module in jobs:
        module.prebuilt_name(target)
    map_all(threads, make, jobs, name="compile")
    return len(jobs)


def _share(module: KernelModule, target: Target) -> None:
    """Compile for the installation; what it has of other versions of the source goes."""
    name = module.prebuilt_name(target)
    image = compile_source(module.path, target)
    try:
        compiled.keep_prebuilt(name, image)
    except OSError as error:
        raise output_error(compiled.PREBUILT, error) from error
    for path in compiled.PREBUILT.glob(f"gpu.{module.name}-{target.architecture}-*.xz"):
        if path.stem != name:
            with contextlib.suppress(OSError):
                path.unlink()
