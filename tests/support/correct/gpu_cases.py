"""Reads, and budgets of GPU memory that force each thing that a plan can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.gpu_plan import GpuPlan, plan_gpu
from ngsgpu.correct.gpu_run import AnchorBatches
from ngsgpu.errors import DeviceError
from ngsgpu.readset import ReadSet, gpu_divided
from ngsgpu.readset.gpu import ReadMemory
from tests.support.correct.random_reads import simulate
from tests.support.minhash.slots import find_slots

if TYPE_CHECKING:
    from ngsgpu.minhash import MinhashTables
    from ngsgpu.minhash.gpu import DeviceTables
    from ngsgpu.readset.gpu import DeviceReadSet

COVERAGE = 20.0
ENOUGH = 1 << 44

NAMES = [
    "everything on the GPU",
    "as little as that takes",
    "smaller batches",
    "results",
    "a table",
    "half of the tables",
    "all tables",
    "qualities",
    "planes",
    "the smallest",
]


def make_reads(seed: int) -> tuple[ReadSet, CorrectionParameters]:
    """At most 600 reads, and how to correct them."""
    random = Random(seed)
    paired = random.random() < 0.5
    letters, qualities = simulate(random, paired=paired, quality=random.random() < 0.8, most=601)
    reads = ReadSet.from_sequences(
        letters[:600], qualities and qualities[:600], paired=paired, quality_bits=8
    )
    minhash = MinhashParameters(kmer=random.choice([12, 20]), hashes=random.choice([5, 20, 40]))
    return reads, CorrectionParameters(minhash=minhash)


def assert_equal(found: Corrections, expected: Corrections) -> None:
    """Compare all but the order of edits."""
    for field in fields(expected):
        if field.name not in ("edits", "edit_start"):
            ours, theirs = getattr(found, field.name), getattr(expected, field.name)
            assert np.array_equal(ours, theirs), field.name
    for read in np.flatnonzero(expected.edit_count):
        count = expected.edit_count[read]
        ours = found.edits[found.edit_start[read] :][:count]
        assert np.array_equal(ours, expected.edits[expected.edit_start[read] :][:count])


def assert_tables_equal(
    device_reads: DeviceReadSet, found: DeviceTables, reads: ReadSet, expected: MinhashTables
) -> None:
    """Compare the tables of a GPU, and where it finds the reads in them, with those of the CPU."""
    import cupy

    assert [own.entries for own in found.tables] == expected.entries.tolist()
    arrays = expected.arrays
    for table, own in enumerate(found.tables):
        count, listed = own.entries, slice(*arrays.long_start[table : table + 2])
        assert np.array_equal(values(own.ids[: count + 1]), arrays.ids[table, : count + 1])
        assert np.array_equal(values(own.positions[:count]), arrays.positions[table, :count])
        assert own.positions.dtype == arrays.positions.dtype
        assert np.array_equal(values(own.cells), arrays.cells[table])
        long_buckets = arrays.long_buckets[listed].astype(np.uint64)
        assert values(own.long_buckets).tolist() == [
            int(begin) << 32 | int(end) for begin, end in long_buckets
        ]
    rows = np.arange(reads.reads)
    slots = cupy.empty((len(rows), len(found.tables)), dtype=cupy.uint32)
    found.find_slots(device_reads, cupy.asarray(rows.astype(np.uint32)), 1, slots)
    assert np.array_equal(slots.get(), find_slots(reads.arrays, arrays, found.kmer, rows))


def values(array: Any) -> Any:
    """What kernels find in an array, wherever it lies."""
    return (array + array.dtype.type(0)).get()


def plan_with(
    memory: ReadMemory, parameters: CorrectionParameters, budget: int, divided_over: int = 1
) -> GpuPlan:
    """The plan for a budget, on a host that has enough."""
    return plan_gpu(
        memory, parameters, budget=budget, host_budget=ENOUGH, divided_over=divided_over
    )


def largest_budget(
    memory: ReadMemory,
    parameters: CorrectionParameters,
    holds: Callable[[GpuPlan], bool],
    divided_over: int = 1,
) -> int:
    """The largest budget whose plan is as wanted; it stays so with smaller ones."""
    low, high = 0, ENOUGH
    while high - low > 1:
        middle = (low + high) // 2
        try:
            wanted = holds(plan_with(memory, parameters, middle, divided_over))
        except DeviceError:
            wanted = True
        low, high = (middle, high) if wanted else (low, middle)
    return low


def divide_always(monkeypatch: pytest.MonkeyPatch, *, reads: bool = True) -> None:
    """Divide tables, and reads if asked for, over linked GPUs also where they fit on each."""
    monkeypatch.setattr(gpu_divided, "divisions", lambda gpus, linked: [(gpus, reads)])


def budget_for(
    name: str, memory: ReadMemory, parameters: CorrectionParameters, divided_over: int = 1
) -> int:
    """The largest budget that makes one thing that a plan can do, of ``NAMES``; ever less."""
    hashes = parameters.minhash.tables
    rich = plan_with(memory, parameters, ENOUGH, divided_over)

    def largest(holds: Callable[[GpuPlan], bool]) -> int:
        return largest_budget(memory, parameters, holds, divided_over)

    def tables(most: int) -> int:
        # Where qualities or bases move, tables come back.
        return largest(lambda plan: plan.placement.tables <= most or bool(plan.placement.moved))

    choices: dict[str, Callable[[], int]] = {
        "everything on the GPU": lambda: ENOUGH,
        "as little as that takes": lambda: rich.total,
        "smaller batches": lambda: largest(
            lambda plan: plan.batches != rich.batches or not plan.placement.results
        ),
        "results": lambda: largest(lambda plan: not plan.placement.results),
        "a table": lambda: tables(hashes - 1),
        "half of the tables": lambda: tables(hashes // 2),
        "all tables": lambda: tables(0),
        "qualities": lambda: largest(lambda plan: bool(plan.placement.moved)),
        "planes": lambda: largest(lambda plan: not plan.placement.planes),
        "the smallest": lambda: 1 + largest(lambda plan: False),
    }
    return choices[name]()


def correct_with_tables(
    reads: DeviceReadSet, tables: DeviceTables, parameters: CorrectionParameters, coverage: float
) -> Corrections:
    """Correct all reads of a read set by the kernels alone, without a plan of the memory.

    What they decide is combined on the GPU, as that of many reads.
    """
    from ngsgpu.correct.gpu import AnchorCorrector
    from ngsgpu.correct.gpu_combine import combine

    corrector = AnchorCorrector(reads, tables, parameters, coverage)
    corrector.observe()
    corrector.clear()
    corrector.run(AnchorBatches(len(corrector.anchors), corrector.batch))
    corrector.release()
    return combine([corrector], few=0)
