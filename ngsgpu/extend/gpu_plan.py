"""The GPU memory that an extension takes, known before it is taken.

Reads, tables, and what the tasks under way need have to fit. Where they do not, batches become
smaller. Qualities are read only in columns where candidates differ, so they may lie in page-locked
memory of the host, from where kernels read them over the bus; the rest is read too often for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.correct.gpu_plan import ROUNDING_BYTES, ReadMemory
from ngsgpu.device.gpu_memory import each_gpu, free_unused, gpu_memory
from ngsgpu.device.memory import available_memory, format_size
from ngsgpu.errors import DeviceError
from ngsgpu.extend.gpu_run import BATCH_BYTES, BATCHES_PER_GPU, pairs_per_batch
from ngsgpu.extend.insert import sampling_parameters
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.minhash.ends_gpu import building_bytes, table_bytes
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, Movable

if TYPE_CHECKING:
    from ngsgpu.correct.run import RunOptions
    from ngsgpu.extend.plan import ExtensionPlan

SMALLER_BATCHES: Final = 5
"""How often the size of a batch may be halved."""

SPARE_BYTES: Final = 32 << 20
"""For small arrays, and what the pool rounds up."""


@dataclass(frozen=True, slots=True)
class ExtensionGpuPlan:
    """What an extension takes on a GPU, in bytes.

    Attributes:
        pairs: number of pairs.
        tables: number of tables.
        read_bytes: reads on the GPU.
        table_bytes: tables.
        building_bytes: what building the tables takes besides.
        extending_bytes: what the tasks under way take besides.
        host_bytes: page-locked host memory, for qualities.
        budget_bytes: that may be taken on the GPU.
        host_budget_bytes: that may be taken on the host.
        batch_bytes: what the results of a batch may take.
        reading_bytes: what reading takes beside the reads, before all else; 0 where that is over.
    """

    pairs: int
    tables: int
    read_bytes: int
    table_bytes: int
    building_bytes: int
    extending_bytes: int
    host_bytes: int
    budget_bytes: int
    host_budget_bytes: int
    batch_bytes: int
    reading_bytes: int = 0

    @property
    def working_bytes(self) -> int:
        """What is taken beside reads and tables, at most."""
        return max(self.building_bytes, self.extending_bytes) + SPARE_BYTES

    @property
    def total_bytes(self) -> int:
        """The most that is in use on the GPU at a time."""
        return self.read_bytes + ROUNDING_BYTES + self.table_bytes + self.working_bytes

    @property
    def fits(self) -> bool:
        """Whether it may be taken."""
        return self.total_bytes <= self.budget_bytes and self.host_bytes <= self.host_budget_bytes

    def line(self) -> str:
        """The plan for people."""
        before = f", before that {format_size(self.reading_bytes)} to read"
        host = f"; on the host {format_size(self.host_bytes)}: qualities"
        return (
            f"{format_size(self.total_bytes)} of {format_size(self.budget_bytes)}: "
            f"reads {format_size(self.read_bytes)}, tables {format_size(self.table_bytes)}, "
            f"work {format_size(self.working_bytes)}"
            f"{before if self.reading_bytes else ''}{host if self.host_bytes else ''}"
        )

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            "planned_bytes": self.total_bytes,
            "budget_bytes": self.budget_bytes,
            "read_bytes": self.read_bytes,
            "table_bytes": self.table_bytes,
            "building_bytes": self.building_bytes,
            "extending_bytes": self.extending_bytes,
            "host_bytes": self.host_bytes,
        }

    def check(self, parameters: ExtensionParameters) -> None:
        """Refuse a plan that does not fit.

        Raises:
            DeviceError: says what is needed, what there is, and which options would help.
        """
        if self.fits:
            return
        advice = []
        surplus = self.total_bytes - self.budget_bytes
        if self.tables > 2 and self.table_bytes // self.tables * (self.tables - 2) >= surplus:
            advice.append("try --hashes 2")
        if self.host_bytes > self.host_budget_bytes and parameters.quality_bits == 8:
            advice.append("try --quality-bits 2")
        advice += ["use a GPU with more memory", "raise --gpu-memory", "or use --backend cpu"]
        host = f", with {format_size(self.host_bytes)} on the host," if self.host_bytes else ""
        raise DeviceError(
            f"extending {self.pairs:,} pairs takes {format_size(self.total_bytes)} of GPU memory"
            f"{host} and {format_size(self.budget_bytes)} may be used; {', '.join(advice)}"
        )


def plan_gpu(
    reads: ReadMemory, parameters: ExtensionParameters, *, budget: int, host_budget: int
) -> ExtensionGpuPlan:
    """Work out how large batches are, and whether qualities have to lie on the host.

    Args:
        reads: what the reads take.
        parameters: how pairs are extended.
        budget: bytes that may be taken on the GPU, reads included.
        host_budget: bytes of page-locked memory that may be taken on the host.

    Raises:
        DeviceError: they do not suffice.
    """

    def planned(on_host: int, batch_bytes: int) -> ExtensionGpuPlan:
        return ExtensionGpuPlan(
            pairs=reads.reads // 2,
            tables=parameters.ends.hashes,
            read_bytes=reads.total - on_host,
            table_bytes=table_bytes(reads.reads, parameters.ends),
            building_bytes=building_bytes(reads.reads, uniform=reads.uniform),
            extending_bytes=_extending_bytes(reads, parameters, batch_bytes),
            host_bytes=on_host,
            budget_bytes=budget,
            host_budget_bytes=host_budget,
            batch_bytes=batch_bytes,
        )

    sizes = [BATCH_BYTES >> halvings for halvings in range(SMALLER_BATCHES + 1)]
    plans = [planned(on_host, size) for on_host in (0, reads.qualities) for size in sizes]
    plan = next((plan for plan in plans if plan.fits), plans[-1])
    plan.check(parameters)
    return plan


def place_reads(
    reads: ReadSet | DeviceReadSet, parameters: ExtensionParameters, options: RunOptions
) -> tuple[DeviceReadSet, ExtensionGpuPlan]:
    """Plan for the GPUs of a run, and copy or move the reads to where the plan has them.

    Raises:
        DeviceError: the memory does not suffice.
    """
    budgets = []
    for place in each_gpu(options.gpus):
        free_unused()
        there = reads.device_nbytes if place == 0 and isinstance(reads, DeviceReadSet) else 0
        budgets.append(gpu_memory().budget + there)
    budget = min(budgets)
    plan = plan_gpu(
        ReadMemory.of(reads),
        parameters,
        budget=budget if options.gpu_memory is None else min(budget, options.gpu_memory),
        host_budget=available_memory() if options.memory is None else options.memory,
    )
    moved: tuple[Movable, ...] = ("qualities",) if plan.host_bytes else ()
    if isinstance(reads, DeviceReadSet):
        reads.keep_on_host(moved)
        free_unused()
        return reads, plan
    return DeviceReadSet.from_host(reads, on_host=moved), plan


def plan_for_this_gpu(
    run: ExtensionPlan, parameters: ExtensionParameters, options: RunOptions
) -> ExtensionGpuPlan:
    """What a run would take on the current GPU, by what is free there now.

    Args:
        run: what is known of the run.
        parameters: how pairs are extended.
        options: memory that may be taken.

    Raises:
        DeviceError: it does not suffice, or CUDA does not answer.
    """
    from ngsgpu.io.gpu.records import CHUNK_BYTES
    from ngsgpu.readset.gpu_read import working_bytes

    reads = ReadMemory.expected(
        2 * run.pairs, run.bases, run.max_length, paired=True, quality_bits=parameters.quality_bits
    )
    budget = gpu_memory(options.gpu_memory).budget
    plan = plan_gpu(reads, parameters, budget=budget, host_budget=options.budget)
    # Chunks are smaller where the memory is limited, as in ``read_to_device``.
    chunk = min(CHUNK_BYTES, (options.gpu_memory or budget) // 96)
    return replace(plan, reading_bytes=working_bytes(2, chunk))


def _extending_bytes(reads: ReadMemory, parameters: ExtensionParameters, batch_bytes: int) -> int:
    """Bytes that the batches under way take."""
    from ngsgpu.extend.gpu import result_bytes, workspace_bytes

    pairs = max(1, reads.reads // 2)
    # Of fragments whose length is not known yet the longest ones that are looked for count.
    known = parameters.insert_mean, parameters.insert_sd
    if known[0] is None or known[1] is None:
        sampling = sampling_parameters(parameters)
        rules = replace(sampling, outward=parameters.outward).rules(0.0, 0.0)
    else:
        rules = parameters.rules(known[0], known[1])
    batch = min(pairs_per_batch(rules, batch_bytes), pairs)
    taken = workspace_bytes(rules, reads.max_length, batch)
    if known[0] is None:
        # Batches have more pairs where fragments turn out to be shorter.
        most = min(batch_bytes, result_bytes(rules, pairs))
        taken += max(0, most - result_bytes(rules, batch))
    return BATCHES_PER_GPU * taken
