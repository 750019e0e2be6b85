"""Compiling CUDA C++ at run time, by NVRTC through CuPy; needs neither a GPU nor a driver.

A kernel file is a ``.cu`` file in a package of ngsgpu. It includes headers by their path from the
folder above ``ngsgpu``, as ``#include "ngsgpu/sequence/hashing.cuh"``, structs by the module that
declares them (``structs``), and may include CUB and libcu++, which CuPy brings along.
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ngsgpu
from ngsgpu.device.cuda.structs import SUFFIX, declarations
from ngsgpu.errors import DeviceError, UsageError, install_extra

ROOT = Path(ngsgpu.__file__).resolve().parents[1]
# Products are not contracted into sums, so that each operation rounds as on the CPU.
OPTIONS = ("-std=c++17", "--fmad=false", "-lineinfo", "-default-device")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"](ngsgpu/[^>"]+)[>"]', re.MULTILINE)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """What to compile for.

    Attributes:
        architecture: ``sm_90`` for machine code, ``compute_90`` for PTX, which drivers of newer
            GPUs translate.
    """

    architecture: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(sm|compute)_\d+[af]?", self.architecture):
            raise UsageError(f"{self.architecture!r} is not a CUDA architecture such as sm_90")


def known_architectures() -> tuple[int, ...]:
    """Compute capabilities that NVRTC compiles for, as 90 for 9.0, in rising order."""
    return tuple(sorted(_nvrtc().getSupportedArchs()))


def target_for(capability: int) -> Target:
    """Choose the target for a GPU: its machine code, or PTX if NVRTC is older than the GPU.

    Args:
        capability: compute capability of the GPU, 90 for 9.0.

    Raises:
        DeviceError: this NVRTC no longer supports the GPU.
    """
    known = known_architectures()
    if capability in known:
        return Target(f"sm_{capability}")
    older = [one for one in known if one < capability]
    if not older:
        raise DeviceError(
            f"CUDA {'.'.join(map(str, _nvrtc().getVersion()))} does not support GPUs of compute "
            f"capability {capability / 10}; install CuPy for an older CUDA, or use `backend='cpu'`"
        )
    return Target(f"compute_{older[-1]}")


def compile_source(source: Path, target: Target, *, warnings_are_errors: bool = False) -> bytes:
    """Compile a kernel file.

    Args:
        source: the ``.cu`` file.
        target: the architecture.
        warnings_are_errors: as in continuous integration. User runs only log warnings, since other
            compiler versions may emit more.

    Returns:
        A CUDA binary, or PTX if the target is ``compute_90`` or similar.

    Raises:
        DeviceError: the code does not compile; with the compiler's message.
    """
    nvrtc = _nvrtc()
    files = included(source)
    made = {name.encode(): text for name, text in files.items() if name.endswith(SUFFIX)}
    text = files[str(source.absolute())].decode()
    program = nvrtc.createProgram(text, str(source), tuple(made.values()), tuple(made))
    options = (*OPTIONS, f"-arch={target.architecture}", *(f"-I{path}" for path in _folders(ROOT)))
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip()
            raise DeviceError(
                f"{source} does not compile for {target.architecture}: {error}\n{log}"
            ) from error
        log = nvrtc.getProgramLog(program).strip()
        if log and warnings_are_errors:
            raise DeviceError(f"{source} compiles for {target.architecture} with warnings:\n{log}")
        if log:
            _LOG.debug("%s, %s: %s", source, target.architecture, log)
        is_ptx = target.architecture.startswith("compute_")
        image = nvrtc.getPTX(program) if is_ptx else nvrtc.getCUBIN(program)
        return image.encode() if isinstance(image, str) else bytes(image)
    finally:
        nvrtc.destroyProgram(program)


def source_hash(source: Path, target: Target) -> str:
    """Hash what a kernel file says and how it is compiled, as 64 hexadecimal digits.

    That is the text of the file and of the headers of ngsgpu that it includes, directly or not; the
    options and the architecture. Needs neither CuPy nor NVRTC.

    Raises:
        DeviceError: an included header of ngsgpu does not exist.
    """
    digest = hashlib.sha256(repr((OPTIONS, target.architecture)).encode())
    for name, content in included(source).items():
        digest.update(f"\0{Path(name).name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def fingerprint(source: Path, target: Target) -> str:
    """Hash everything that the compiled code depends on, as 64 hexadecimal digits.

    That is ``source_hash``, and the versions of CuPy, which brings CUB's headers, and of NVRTC.

    Raises:
        DeviceError: as ``source_hash``.
    """
    import cupy

    versions = (cupy.__version__, _nvrtc().getVersion())
    return hashlib.sha256(repr((source_hash(source, target), versions)).encode()).hexdigest()


def included(source: Path) -> dict[str, bytes]:
    """The file and the headers of ngsgpu that it includes, by name, as they are first included."""
    files: dict[str, bytes] = {}
    waiting = [str(source.absolute())]
    while waiting:
        name = waiting.pop(0)
        if name in files:
            continue
        try:
            made = name.endswith(SUFFIX)
            files[name] = declarations(name).encode() if made else (ROOT / name).read_bytes()
        except (OSError, ImportError) as error:
            raise DeviceError(f"{source} includes {name}, which cannot be read: {error}") from error
        waiting += [found.decode() for found in _INCLUDE.findall(files[name])]
    return files


@lru_cache
def _folders(root: Path) -> tuple[Path, ...]:
    """Include folders: ours, CUB and libcu++ of CuPy, CUDA's own if installed."""
    import cupy

    bundled = Path(cupy.__file__).parent / "_core" / "include" / "cupy" / "_cccl"
    folders = [root, *(bundled / name for name in ("cub", "thrust", "libcudacxx"))]
    # CuPy depends on this package since version 14; without it CUDA_PATH has to do.
    if find_spec("cuda") and find_spec("cuda.pathfinder"):
        from cuda.pathfinder import find_nvidia_header_directory

        if found := find_nvidia_header_directory("cudart"):
            folders.append(Path(found))
    return tuple(folders)


@lru_cache(maxsize=1)
def _nvrtc() -> Any:
    """CuPy's binding of NVRTC, seen to be there.

    Raises:
        UsageError: CuPy or NVRTC is not installed.
    """
    try:
        from cupy import cuda

        cuda.nvrtc.getVersion()
    except Exception as error:
        cause = " ".join(str(error).split())
        raise UsageError(
            f"CUDA kernels cannot be compiled ({cause}); {install_extra('cuda13')} or, for a "
            "driver of CUDA 12, '.[cuda12]'"
        ) from error
    return cuda.nvrtc
