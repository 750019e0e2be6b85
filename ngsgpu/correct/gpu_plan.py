"""The GPU memory that a correction takes, and what lies on the host where it is too little.

What goes first to page-locked host memory, from where kernels read it over the bus, is what is
read least often for each byte that it frees: the slots (once in a run); then tables, one by one
(by every read of a bucket, some half of the coverage); then qualities (by every anchor that keeps
the read, more than the coverage); the bases last (several times for every candidate). Before
that, batches become smaller, which costs next to nothing. None of it changes a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.correct.gpu import RESULT_BYTES, tiers_for, workspace_block_bytes
from ngsgpu.correct.gpu_batches import BatchSizes, batch_bytes
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.device.gpu_memory import gpu_memory
from ngsgpu.device.memory import format_size
from ngsgpu.device.sort import ARGSORT_BYTES
from ngsgpu.errors import DeviceError
from ngsgpu.minhash.gpu import SLOT_BYTES, SMALL_BYTES, pass_bytes, table_bytes
from ngsgpu.sequence.codec import words_for

if TYPE_CHECKING:
    from ngsgpu.correct.plan import CorrectionPlan
    from ngsgpu.correct.run import RunOptions
    from ngsgpu.readset import ReadSet
    from ngsgpu.readset.gpu import DeviceReadSet, Movable

ANCHOR_BYTES: Final = 4
ORDERING_BYTES: Final = 40
"""What putting the anchors in order takes for each read, before there are results."""

LENGTH_BYTES: Final = 8 + 8 + 4
"""Starts and length of a read, where lengths differ."""

SPARE_BYTES: Final = 15 << 20
"""For small arrays."""

ROUNDING_BYTES: Final = 1 << 20
"""What CuPy's pool takes for the arrays of the reads beyond their size."""

_MAX_FUNCTIONS: Final = 8
_MIN_FUNCTIONS: Final = 2
"""Functions of a pass; more passes take longer, fewer take no more memory than correcting does."""

_LEVELS: Final = 5
"""How often what batches take is halved before anything lies on the host."""

_MIN_BLOCKS: Final = 8


@dataclass(frozen=True, slots=True)
class ReadMemory:
    """What a read set takes.

    Attributes:
        reads: number of reads.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        uniform: whether all reads are equally long.
        planes: bytes of the bases.
        qualities: bytes of the qualities.
        other: bytes of lengths and ambiguous bases.
    """

    reads: int
    max_length: int
    paired: bool
    uniform: bool
    planes: int
    qualities: int
    other: int

    @property
    def total(self) -> int:
        """Bytes of it all."""
        return self.planes + self.qualities + self.other

    @classmethod
    def of(cls, reads: ReadSet | DeviceReadSet) -> ReadMemory:
        """That of a read set."""
        arrays: Any = getattr(reads, "arrays", reads)
        planes, qualities = int(arrays.planes.nbytes), int(arrays.qualities.nbytes)
        return cls(
            reads=reads.reads,
            max_length=reads.max_length,
            paired=reads.paired,
            uniform=arrays.uniform_length >= 0,
            planes=planes,
            qualities=qualities,
            other=int(reads.nbytes) - planes - qualities,
        )

    @classmethod
    def expected(
        cls, reads: int, bases: int, max_length: int, *, paired: bool, quality_bits: int
    ) -> ReadMemory:
        """That of reads of which no more is known."""
        uniform = bases == reads * max_length
        return cls(
            reads=reads,
            max_length=max_length,
            paired=paired,
            uniform=uniform,
            planes=16 * reads * words_for(max_length),
            qualities=reads * -(-max_length * quality_bits // 8)
            if uniform
            else bases * quality_bits // 8 + reads,
            other=0 if uniform else LENGTH_BYTES * reads,
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """What lies in the GPU's memory; the rest lies in page-locked memory of the host.

    Attributes:
        tables: how many minhash tables, the first ones.
        slots: the slots of the reads in the tables.
        qualities: the reads' qualities.
        planes: the reads' bases.
    """

    tables: int
    slots: bool = True
    qualities: bool = True
    planes: bool = True

    @property
    def moved(self) -> tuple[Movable, ...]:
        """The arrays of the read set that lie on the host."""
        names: list[Movable] = []
        if not self.qualities:
            names.append("qualities")
        if not self.planes:
            names.append("planes")
        return tuple(names)


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """What a correction takes on a GPU; all in bytes but for ``hashes`` and what has own units.

    Attributes:
        hashes: number of tables.
        placement: what lies where.
        batches: memory of a batch of anchors.
        reads: reads on the GPU.
        tables: tables and slots on the GPU, if every read is in every table.
        building: what building the tables takes besides.
        correcting: what correcting takes besides: results, anchors, batches.
        host: page-locked host memory.
        budget: that may be taken on the GPU.
        host_budget: that may be taken on the host.
        reading: what reading takes beside the reads, before all else; 0 where that is over.
    """

    hashes: int
    placement: Placement
    batches: BatchSizes
    reads: int
    tables: int
    building: int
    correcting: int
    host: int
    budget: int
    host_budget: int
    reading: int = 0

    @property
    def arena(self) -> int:
        """What is taken on the GPU for all but the reads."""
        return self.tables + max(self.building, self.correcting) + SPARE_BYTES

    @property
    def total(self) -> int:
        """The most that is in use on the GPU at a time."""
        return self.reads + ROUNDING_BYTES + self.arena

    def check_host(self) -> None:
        """Refuse a plan that takes too much of the host's memory.

        Raises:
            DeviceError: says what is needed and what there is.
        """
        if self.host > self.host_budget:
            raise DeviceError(
                f"correcting with {format_size(self.budget)} of GPU memory needs "
                f"{format_size(self.host)} of page-locked host memory and "
                f"{format_size(self.host_budget)} may be used; use a GPU with more memory, raise "
                "--gpu-memory, or use --backend cpu"
            )

    def line(self) -> str:
        """The plan for people."""
        parts = [
            f"reads {format_size(self.reads)}",
            f"tables {format_size(self.tables)}",
            f"work {format_size(self.arena - self.tables)}",
        ]
        if self.reading:
            parts.append(f"before that {format_size(self.reading)} to read")
        place = self.placement
        moved: list[str] = [*place.moved]
        if place.tables < self.hashes:
            moved.insert(0, f"{self.hashes - place.tables} of {self.hashes} tables")
        if not place.slots:
            moved.insert(0, "slots")
        where = f"; on the host {format_size(self.host)}: {', '.join(moved)}" if moved else ""
        return f"{format_size(self.total)} of {format_size(self.budget)}: {', '.join(parts)}{where}"

    def document(self) -> dict[str, Any]:
        """The plan for the statistics."""
        return {
            "planned_bytes": self.total,
            "budget_bytes": self.budget,
            "read_bytes": self.reads,
            "table_bytes": self.tables,
            "building_bytes": self.building,
            "correcting_bytes": self.correcting,
            "host_bytes": self.host,
            "tables_on_host": self.hashes - self.placement.tables,
            "slots_on_host": not self.placement.slots,
            "reads_on_host": list(self.placement.moved),
        } | asdict(self.batches)


def plan_gpu(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    *,
    budget: int,
    host_budget: int,
    batches: BatchSizes | None = None,
) -> GpuPlan:
    """Work out what lies where, and how large batches are.

    Args:
        reads: what the reads take.
        parameters: how they are corrected.
        budget: bytes that may be taken on the GPU, reads included.
        host_budget: bytes of page-locked memory that may be taken on the host.
        batches: the largest batches.

    Raises:
        DeviceError: neither suffices; the message says what is needed and what there is.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    levels = list(_levels(batches or BatchSizes()))

    def plan(placement: Placement, level: int) -> GpuPlan:
        return _plan(reads, parameters, placement, *levels[level], budget, host_budget)

    hashes = parameters.minhash.hashes
    smallest = plan(Placement(hashes), -1)
    for placement in _placements(hashes, reads.qualities):
        smallest = plan(placement, -1)
        if smallest.total > budget:
            continue
        # Every table takes as much as another.
        a_table = table_bytes(reads.reads)
        more = min(hashes - placement.tables, (budget - smallest.total) // a_table)
        placement = replace(placement, tables=placement.tables + more)
        fitting = (plan(placement, level) for level in range(len(levels)))
        chosen = next(made for made in fitting if made.total <= budget)
        chosen.check_host()
        return chosen
    raise DeviceError(
        f"correcting {reads.reads:,} reads takes at least {format_size(smallest.total)} of GPU "
        f"memory, with {format_size(smallest.host)} on the host, and {format_size(budget)} may be "
        "used; use a GPU with more memory, raise --gpu-memory, or use --backend cpu"
    )


def plan_for_this_gpu(
    run: CorrectionPlan, parameters: CorrectionParameters, options: RunOptions
) -> GpuPlan:
    """What a run would take on the current GPU, by what is free there now.

    Args:
        run: what is known of the run.
        parameters: how reads are corrected.
        options: memory that may be taken.

    Raises:
        DeviceError: it does not suffice, or CUDA does not answer.
        UnsuitableError: a read is too long for the GPU's shared memory.
    """
    reads = ReadMemory.expected(
        run.reads,
        run.bases,
        run.max_length,
        paired=run.paired,
        quality_bits=parameters.quality_bits,
    )
    from ngsgpu.io.gpu.records import CHUNK_BYTES
    from ngsgpu.readset.gpu_read import working_bytes

    budget = gpu_memory(options.gpu_memory).budget
    plan = plan_gpu(reads, parameters, budget=budget, host_budget=options.budget // options.gpus)
    # Chunks are smaller where the memory is limited, as in ``read_to_device``.
    chunk = min(CHUNK_BYTES, (options.gpu_memory or budget) // 96)
    return replace(plan, reading=working_bytes(2 if run.paired else 1, chunk))


def _placements(hashes: int, qualities: int) -> Iterator[Placement]:
    """What may be placed where, the best first; of some the fewest tables on the GPU."""
    yield Placement(hashes)
    yield Placement(0, slots=False)
    if qualities:
        yield Placement(0, slots=False, qualities=False)
    yield Placement(0, slots=False, qualities=not qualities, planes=False)


def _levels(largest: BatchSizes) -> Iterator[tuple[int, BatchSizes]]:
    """Functions of a pass and memory of a batch, from the largest to the smallest."""
    for level in range(_LEVELS):
        blocks = max(_MIN_BLOCKS, largest.workspace_blocks >> level)
        yield (
            max(_MIN_FUNCTIONS, _MAX_FUNCTIONS >> level),
            BatchSizes(largest.edit_bytes >> level, min(largest.workspace_blocks, blocks)),
        )


def _plan(
    reads: ReadMemory,
    parameters: CorrectionParameters,
    placement: Placement,
    functions: int,
    batches: BatchSizes,
    budget: int,
    host_budget: int,
) -> GpuPlan:
    count, hashes = reads.reads, parameters.minhash.hashes
    mates = 2 if reads.paired else 1
    anchors = count // mates
    a_table = table_bytes(count)
    slots = SLOT_BYTES * count * hashes
    signatures = min(functions, hashes) * pass_bytes(placement.slots) * count
    # Reads that are too short for a k-mer are left out by a list of the others.
    listed = 0 if reads.uniform else 8 * count
    tiers = tiers_for(reads.max_length, parameters.margin, mates)
    blocks = min(batches.workspace_blocks, max(1, anchors))
    work = batch_bytes(batches, anchors, reads.max_length, mates)
    work += blocks * workspace_block_bytes(tiers)
    on_host = hashes - placement.tables
    return GpuPlan(
        hashes=hashes,
        placement=placement,
        batches=batches,
        reads=reads.other
        + (reads.qualities if placement.qualities else 0)
        + (reads.planes if placement.planes else 0),
        tables=placement.tables * a_table + (slots if placement.slots else 0),
        building=signatures + ARGSORT_BYTES * count + listed + SMALL_BYTES,
        correcting=max(
            (RESULT_BYTES + ANCHOR_BYTES) * count + work, (ORDERING_BYTES + ANCHOR_BYTES) * count
        ),
        host=on_host * a_table
        + (0 if placement.slots else slots)
        + (0 if placement.qualities else reads.qualities)
        + (0 if placement.planes else reads.planes),
        budget=budget,
        host_budget=host_budget,
    )
