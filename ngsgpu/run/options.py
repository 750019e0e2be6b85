"""Run options common to all stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ngsgpu.device.memory import available_memory
from ngsgpu.io.text.reader import CHUNK_BYTES

_KEPT_SHARE: Final = 4
"""Part of the memory for inflated data, which then need not be inflated again: 1 / this."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a stage; none of these affects the output.

    Attributes:
        threads: number of threads.
        memory: memory budget in bytes; None: free memory.
        units_per_task: reads, pairs or queries per task; None: the stage's default.
        chunk_bytes: bytes per chunk of a file.
        progress: whether to show progress.
        backend: ``cpu`` or ``cuda``.
        may_fall_back: whether the CPU may take over from the GPU.
        gpu_memory: memory budget per GPU in bytes; None: free memory.
        gpus: number of GPUs.
        backend_note: why the backend was chosen, for the statistics.
        command: the command line, for the statistics.
    """

    threads: int = 1
    memory: int | None = None
    units_per_task: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    progress: bool = False
    backend: Literal["cpu", "cuda"] = "cpu"
    may_fall_back: bool = False
    gpu_memory: int | None = None
    gpus: int = 1
    backend_note: str = ""
    command: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """Memory budget in bytes."""
        return self.memory if self.memory is not None else available_memory()

    @property
    def kept_bytes(self) -> int:
        """Of the budget, bytes for inflated data that is read a second time."""
        return self.budget // _KEPT_SHARE

    def device(self, backend: str) -> str:
        """Name of the device of this run, for the statistics."""
        where = f"{self.threads} CPU threads"
        if backend == "cuda":
            where = "GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        return f"{where} ({self.backend_note})" if self.backend_note else where
