"""The findings of ``ngsgpu doctor``: gathered, then written for people or as JSON.

A problem keeps reads from being corrected here. A suggestion names something that is missing
for other work, with the command that gets it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import ngsgpu
from ngsgpu.device import inventory
from ngsgpu.device.backend import Backend, choose_backend, cupy_remedy
from ngsgpu.device.gpus import Gpu, gpus_of_driver, visible_gpus
from ngsgpu.device.inventory import Cache, FoundTool
from ngsgpu.device.memory import Memory, format_size, memory, usable_cpus

SCHEMA_VERSION = 1
# What correction imports, and what other commands do; names to install are names to import.
_NEEDED = ("numpy", "numba", "isal", *inventory.ZSTD)
_WANTED = ("pysam", "rich", "jinja2")
# Python, the libraries and the compiled kernels use about half of this before the first read.
_MIN_MEMORY = 512 << 20


@dataclass(frozen=True)
class Diagnosis:
    """All findings.

    Attributes:
        versions: name to version; None if not installed.
        system: operating system, release and processor architecture.
        cpus: usable CPUs.
        memory: total, available and limit.
        gpus: all GPUs known to the driver; None without a driver.
        visible: the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves.
        backend: the choice of ``ngsgpu correct --backend auto``.
        caches: of compiled kernels.
        tools: external programs.
        problems: what prevents correction, with remedies.
        suggestions: what else is missing, with remedies.
    """

    versions: dict[str, str | None]
    system: str
    cpus: int
    memory: Memory
    gpus: tuple[Gpu, ...] | None
    visible: tuple[Gpu, ...]
    backend: Backend
    caches: tuple[Cache, ...]
    tools: tuple[FoundTool, ...]
    problems: tuple[str, ...]
    suggestions: tuple[str, ...]


def diagnose() -> Diagnosis:
    """Examine the machine; takes about a second, mostly to start other programs."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        tools_later = pool.submit(inventory.find_tools)
        gpus_later = pool.submit(gpus_of_driver)
        problems = _broken_libraries(_NEEDED)
        broken = _broken_libraries(_WANTED)
        gpus = gpus_later.result()
        tools = tuple(tools_later.result())
    amount = memory()
    if amount.available < _MIN_MEMORY:
        problems.append(
            f"only {format_size(amount.available)} of memory is available; close other programs, "
            "or raise the limit of the container or batch job"
        )
    caches = []
    if (own := inventory.kernel_cache()) is not None:
        caches.append(own)
    if inventory.cupy_version():
        caches.append(inventory.cupy_cache())
    return Diagnosis(
        versions=_versions(gpus),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpus=usable_cpus(),
        memory=amount,
        gpus=gpus,
        visible=visible_gpus(),
        backend=choose_backend("auto"),
        caches=tuple(caches),
        tools=tools,
        problems=tuple(problems),
        suggestions=(*broken, *_suggestions(caches, tools, gpus)),
    )


def _broken_libraries(names: Sequence[str]) -> list[str]:
    """Import libraries, since an installed one may be broken; return those that fail."""
    problems = []
    for name in names:
        try:
            import_module(name)
        except Exception as error:
            cause = " ".join(str(error).split())
            problems.append(f"{name} cannot be imported ({cause}); pip install --upgrade {name}")
    return problems


def _versions(gpus: tuple[Gpu, ...] | None) -> dict[str, str | None]:
    versions: dict[str, str | None] = {
        "ngsgpu": ngsgpu.__version__,
        "Python": platform.python_version(),
    }
    for name in (*inventory.LIBRARIES, *inventory.OPTIONAL_LIBRARIES):
        versions[name] = inventory.library_version(name)
    versions["CuPy"] = inventory.cupy_version()
    versions["NVRTC"] = inventory.nvrtc_version()
    versions["NVIDIA driver"] = gpus[0].driver if gpus else None
    return versions


def _suggestions(
    caches: list[Cache], tools: tuple[FoundTool, ...], gpus: tuple[Gpu, ...] | None
) -> list[str]:
    found = []
    if problem := inventory.cache_problem():
        found.append(
            f"compiled kernels are not used, so they are compiled anew at every start: {problem}; "
            "let nobody else write there (chmod go-w), or set NGSGPU_CACHE_DIR to a folder of yours"
        )
    for cache in caches:
        if not cache.writable:
            found.append(
                f"{cache.path} cannot be written, so kernels are compiled anew at every start; "
                f"set {cache.kind.upper()}_CACHE_DIR to a folder of yours"
            )
    if gpus and not inventory.cupy_version():
        found.append(f"CuPy is missing, which GPUs are used through; {cupy_remedy(gpus[0])}")
    for tool in tools:
        if tool.path is None:
            found.append(f"{tool.tool.name} ({tool.tool.purpose}) is missing; {tool.tool.remedy}")
    return found


def as_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The findings as plain data for JSON; sizes are in bytes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "can_correct": not diagnosis.problems,
        "versions": diagnosis.versions,
        "system": diagnosis.system,
        "cpus": diagnosis.cpus,
        "memory": asdict(diagnosis.memory),
        "driver_found": diagnosis.gpus is not None,
        "gpus": [
            {**asdict(gpu), "visible": gpu in diagnosis.visible} for gpu in diagnosis.gpus or ()
        ],
        "backend": {"name": diagnosis.backend.name, "reason": diagnosis.backend.reason},
        "caches": [asdict(cache) for cache in diagnosis.caches],
        "tools": [
            {"name": found.tool.name, "path": found.path, "version": found.version}
            for found in diagnosis.tools
        ],
        "problems": list(diagnosis.problems),
        "suggestions": list(diagnosis.suggestions),
    }


def as_text(diagnosis: Diagnosis) -> str:
    """The findings as lines for people."""
    blocks = [
        ("Versions", _version_lines(diagnosis)),
        ("Machine", _machine_lines(diagnosis)),
        ("GPUs", _gpu_lines(diagnosis)),
        ("Compiled kernels", [_cache_line(cache) for cache in diagnosis.caches]),
        ("Programs", _table([_tool_row(found) for found in diagnosis.tools])),
    ]
    if diagnosis.suggestions:
        blocks.append(("Missing, and how to get it", list(diagnosis.suggestions)))
    if diagnosis.problems:
        blocks.append(("Problems", list(diagnosis.problems)))
    text = "\n\n".join("\n".join([title, *(f"  {line}" for line in lines)])
                       for title, lines in blocks)  # fmt: skip
    verdict = "Reads cannot be corrected here." if diagnosis.problems else "Ready to correct reads."
    return f"{text}\n\n{verdict}"


def _version_lines(diagnosis: Diagnosis) -> list[str]:
    return _table(
        [(name, version or "not installed") for name, version in diagnosis.versions.items()]
    )


def _machine_lines(diagnosis: Diagnosis) -> list[str]:
    amount = diagnosis.memory
    limit = "" if amount.limit is None else f", limited to {format_size(amount.limit)}"
    return _table(
        [
            ("system", diagnosis.system),
            ("CPUs", f"{diagnosis.cpus} usable"),
            (
                "memory",
                f"{format_size(amount.available)} available of {format_size(amount.total)}{limit}",
            ),
            ("backend", str(diagnosis.backend)),
        ]
    )


def _gpu_lines(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.gpus:
        why = "no NVIDIA driver" if diagnosis.gpus is None else "the driver sees none"
        return [f"none ({why}): the CPU is used, the output is the same to the byte"]
    return [_gpu_line(gpu, gpu in diagnosis.visible) for gpu in diagnosis.gpus]


def _gpu_line(gpu: Gpu, visible: bool) -> str:
    parts = [f"{gpu.index}: {gpu.name}", f"{format_size(gpu.free)} free of "
             f"{format_size(gpu.memory)}"]  # fmt: skip
    if gpu.capability:
        parts.append("compute capability {}.{}".format(*gpu.capability))
    parts.append(f"driver {gpu.driver}" + (f" (CUDA {gpu.cuda})" if gpu.cuda else ""))
    if not visible:
        parts.append("hidden by CUDA_VISIBLE_DEVICES")
    return ", ".join(parts)


def _cache_line(cache: Cache) -> str:
    state = f"{cache.files:,} files, {format_size(cache.size)}" if cache.files else "empty"
    lock = "" if cache.writable else ", cannot be written"
    return f"{cache.kind}: {cache.path} ({cache.where}): {state}{lock}"


def _tool_row(found: FoundTool) -> tuple[str, str]:
    if found.path is None:
        return found.tool.name, "not found"
    return found.tool.name, f"{found.version or 'unknown version'}  {found.path}"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]
