"""Libraries and programs: which are installed, in which version, and how to get the others.

Versions are determined without importing libraries. Programs are run for theirs, all at once and
with a time limit, because some take a second to start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ngsgpu.compiled import cache_folder, distrust
from ngsgpu.pool import map_all

PATIENCE_SECONDS = 10.0
# Correction cannot run without these.
ZSTD = ("backports.zstd",) if sys.version_info < (3, 14) else ()  # newer ones have it
LIBRARIES = ("numpy", "numba", "llvmlite", "pysam", "isal", *ZSTD, "rich", "click", "jinja2")
OPTIONAL_LIBRARIES = ("snakemake", "matplotlib")
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_NVRTC = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")


@dataclass(frozen=True)
class Tool:
    """An external program that the workflow calls.

    Attributes:
        name: common name.
        programs: names of its executable; the first found is used.
        purpose: its use here.
        version_option: option that prints its version.
        apt: Debian and Ubuntu package; empty without one.
        conda: Bioconda or conda-forge package.
        pip: PyPI package; empty without one.
    """

    name: str
    programs: tuple[str, ...]
    purpose: str
    version_option: str
    apt: str
    conda: str
    pip: str = ""

    @property
    def remedy(self) -> str:
        """The ways to install it, easiest first."""
        ways = [f"apt install {self.apt}"] if self.apt else []
        ways += [f"pip install {self.pip}"] if self.pip else []
        ways += [f"conda install {self.conda}"] if self.conda else []
        return " or ".join(ways) or "install Miniforge"


_CONDA = "-c conda-forge -c bioconda"
TOOLS = (
    Tool("ART", ("art_illumina",), "simulates reads", "--help",
         "art-nextgen-simulation-tools", f"{_CONDA} art"),
    Tool("SPAdes", ("spades.py", "spades"), "assembles", "--version",
         "spades", f"{_CONDA} spades"),
    Tool("QUAST", ("quast.py", "quast"), "evaluates assemblies", "--version",
         "", f"{_CONDA} quast", "setuptools quast"),
    Tool("minimap2", ("minimap2",), "QUAST aligns with it", "--version",
         "minimap2", f"{_CONDA} minimap2"),
    Tool("fastp", ("fastp",), "trims, if chosen", "--version", "fastp", f"{_CONDA} fastp"),
    Tool("sra-tools", ("fasterq-dump",), "fetches public runs", "--version",
         "sra-toolkit", f"{_CONDA} sra-tools"),
    Tool("KronaTools", ("ktImportText",), "draws taxa", "-h", "radiant", f"{_CONDA} krona"),
    Tool("MultiQC", ("multiqc",), "summarizes results", "--version",
         "", f"{_CONDA} multiqc", "multiqc"),
    Tool("Snakemake", ("snakemake",), "runs the workflow", "--version",
         "", f"{_CONDA} 'snakemake>=9.19,<10'", "'snakemake>=9.19,<10'"),
    Tool("Lighter", ("lighter",), "for comparison", "-v", "lighter", f"{_CONDA} lighter"),
    Tool("FLASH", ("flash",), "for comparison", "--version", "flash", f"{_CONDA} flash"),
    Tool("Kraken 2", ("kraken2",), "for comparison", "--version", "kraken2", f"{_CONDA} kraken2"),
    Tool("conda", ("mamba", "conda", "micromamba"), "environments for --use-conda", "--version",
         "", ""),
)  # fmt: skip


@dataclass(frozen=True)
class FoundTool:
    """A tool on this machine; path and version are None where there is none or it keeps quiet."""

    tool: Tool
    path: str | None
    version: str | None


def find_tools(tools: Sequence[Tool] = TOOLS) -> list[FoundTool]:
    """Find programs and their versions.

    Searches the PATH, the directory of this Python, and where ``make`` installs them in a checkout.
    """
    return map_all(len(tools) or 1, _find_tool, tools, name="tools")


def _find_tool(tool: Tool) -> FoundTool:
    # A virtual environment that is used without being activated is not on the PATH.
    beside = [Path(sys.executable).parent, Path(__file__).parents[2] / ".tools" / "bin"]
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, beside)])
    path = next(filter(None, (shutil.which(name, path=folders) for name in tool.programs)), None)
    if path is None:
        return FoundTool(tool, None, None)
    if tool.name == "Snakemake" and Path(path).parent == Path(sys.executable).parent:
        return FoundTool(tool, path, library_version("snakemake"))
    return FoundTool(tool, path, _ask_version([path, tool.version_option]))


def _ask_version(command: list[str]) -> str | None:
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return find_version(answer.stdout)


def find_version(text: str) -> str | None:
    """Return the first version number in a program's output.

    >>> find_version("SPAdes genome assembler v3.15.5")
    '3.15.5'
    """
    match = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*(?:[-+.]?(?:dev|rc|a|b|post)\w*)?)", text)
    return match[1] if match else None


def library_version(name: str) -> str | None:
    """Version of an installed Python distribution; None when it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cupy_version() -> str | None:
    """CuPy's distribution and version, as ``cupy-cuda12x 14.2.0``; None when not installed."""
    return _first_of(_CUPY)


def nvrtc_version() -> str | None:
    """Version of CUDA's run-time compiler; None when it is not found."""
    if found := _first_of(_NVRTC):
        return found.partition(" ")[2]
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"):
        try:
            library = ctypes.CDLL(name)
            major, minor = ctypes.c_int(), ctypes.c_int()
            if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
                return f"{major.value}.{minor.value}"
        except (OSError, AttributeError):
            continue
    return None


def _first_of(names: Sequence[str]) -> str | None:
    for name in names:
        if version := library_version(name):
            return f"{name} {version}"
    return None


@dataclass(frozen=True)
class Cache:
    """A folder of compiled kernels.

    Attributes:
        kind: ``CuPy`` or ``ngsgpu``, which is also how its variable begins.
        path: the folder.
        where: why there, in a few words.
        files: number of files in it that belong to ngsgpu.
        size: their bytes.
        writable: whether new kernels can be kept there.
    """

    kind: str
    path: str
    where: str
    files: int
    size: int
    writable: bool


def cupy_cache() -> Cache:
    """CuPy's cache of CUDA kernels."""
    if forced := os.environ.get("CUPY_CACHE_DIR"):
        return _cache("CuPy", Path(forced), "CUPY_CACHE_DIR", "*")
    return _cache("CuPy", _home() / ".cupy" / "kernel_cache", "user cache", "*")


def kernel_cache() -> Cache | None:
    """Where the machine code of ngsgpu's kernels is kept; None for a user without a home."""
    folder = cache_folder()
    if folder is None:
        return None
    where = "NGSGPU_CACHE_DIR" if os.environ.get("NGSGPU_CACHE_DIR") else "user cache"
    return _cache("ngsgpu", folder, where, "*ngsgpu.*")


def cache_problem() -> str | None:
    """Why kernels in the user's folder may be those of others; None if they are not."""
    folder = cache_folder()
    return None if folder is None else distrust(folder)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without an entry in passwd, as in some containers
        return Path(tempfile.gettempdir())


def _cache(kind: str, folder: Path, where: str, pattern: str) -> Cache:
    sizes = []
    # A folder that cannot be read counts as empty.
    with contextlib.suppress(OSError):
        sizes = [path.stat().st_size for path in folder.glob(pattern) if path.is_file()]
    return Cache(kind, str(folder), where, len(sizes), sum(sizes), can_write(folder))


def can_write(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself where it is not there yet."""
    for ancestor in (folder, *folder.parents):
        if ancestor.exists():
            return ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)
    return False
