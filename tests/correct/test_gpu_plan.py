"""What a correction takes on a GPU, and what lies on the host where that is too much."""

from __future__ import annotations

import re
from random import Random

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.correct.gpu import BatchSizes
from ngsgpu.correct.gpu_plan import GpuPlan, plan_gpu, plan_team
from ngsgpu.errors import DeviceError
from ngsgpu.minhash.gpu_memory import table_bytes
from ngsgpu.readset.gpu import ReadMemory
from tests.support.correct.gpu_cases import ENOUGH, NAMES, budget_for, largest_budget, plan_with

GIB = 1 << 30
LARGE = ReadMemory.expected(30_600_000, 3_060_000_000, 100, paired=True, quality_bits=8)
"""30 million reads of 100 bases."""


def random_reads(random: Random) -> ReadMemory:
    reads = 2 * random.choice([0, 1, 50, 100_000, 30_000_000, 400_000_000])
    length = random.choice([1, 50, 100, 300])
    bases = reads * length if random.random() < 0.5 else reads * length * 3 // 4
    return ReadMemory.expected(
        reads, bases, length, paired=random.random() < 0.5, quality_bits=random.choice([8, 2, 0])
    )


def rank(plan: GpuPlan) -> tuple[int, ...]:
    """The larger, the better."""
    place = plan.placement
    flags = (place.planes, place.planes and place.qualities, place.results)
    return (*map(int, flags), place.tables, plan.batches.edit_bytes)


def test_expected_memory() -> None:
    assert (LARGE.planes, LARGE.qualities, LARGE.other) == (32 * LARGE.reads, 100 * LARGE.reads, 0)
    mixed = ReadMemory.expected(1000, 90_000, 100, paired=False, quality_bits=2)
    assert not mixed.uniform
    assert (mixed.planes, mixed.qualities, mixed.other) == (32_000, 22_500 + 1000, 20_000)


def test_everything_on_the_gpu() -> None:
    parameters = CorrectionParameters()
    plan = plan_with(LARGE, parameters, 130 * GIB)
    assert plan.placement.tables == 48
    assert plan.placement.results
    assert plan.placement.moved == ()
    assert plan.host == 0
    assert plan.batches == BatchSizes()
    # Five bytes an entry, a directory of up to half a byte, and a list of long buckets.
    assert plan.reads == LARGE.total
    assert 48 * 5.2 * LARGE.reads < plan.tables < 48 * 5.7 * LARGE.reads
    assert plan.total < 17e9
    assert re.fullmatch(
        r"14\.\d GiB of 130\.0 GiB: reads 3\.8 GiB, tables 7\.\d GiB, work 3\.\d GiB", plan.line()
    )


HUMAN = ReadMemory.expected(914_000_000, 91_400_000_000, 100, paired=True, quality_bits=2)
"""A human genome 30-fold, of four levels of quality."""


@pytest.mark.parametrize(
    ("gpus", "budget", "host", "hashes", "divided", "tables", "on_host"),
    [
        # GPUs, GiB of each and of the host, tables; over how many GPUs tables are divided, and
        # whether reads are; tables on GPUs, GiB on the host at most.
        (1, 78, 110, None, (1, False), 3, 90),
        (1, 78, 240, 32, (1, False), 2, 165),
        (1, 78, 240, 48, (1, False), 1, 240),
        (1, 139, 110, None, (1, False), 16, 32),
        (1, 139, 240, 32, (1, False), 16, 105),
        (1, 139, 240, 48, (1, False), 15, 180),
        (2, 78, 240, None, (2, True), 16, 32),
        (2, 78, 240, 32, (2, True), 17, 100),
        (2, 78, 240, 48, (2, True), 16, 175),
        (2, 139, 240, None, (1, False), 16, 32),
        (4, 78, 240, None, (4, True), 16, 0),
        (4, 78, 240, 48, (4, True), 46, 41),
        (4, 139, 240, None, (1, False), 16, 32),
        (4, 139, 240, 48, (4, False), 48, 32),
        (8, 78, 240, None, (8, False), 16, 32),
        (8, 78, 240, 32, (8, True), 32, 0),
        (8, 78, 240, 48, (8, True), 48, 0),
    ],
)
def test_human_reads(
    gpus: int,
    budget: int,
    host: int,
    hashes: int | None,
    divided: tuple[int, bool],
    tables: int,
    on_host: int,
) -> None:
    """GPUs of 80 and 141 GB, one and several; several never refuse what one takes."""
    parameters = CorrectionParameters(minhash=MinhashParameters(hashes=hashes, kmer=20))
    plan = plan_team(
        HUMAN, parameters, gpus, linked=True, budget=budget * GIB, host_budget=host * GIB
    )
    assert plan.hashes == (hashes or 16)
    assert (plan.divided_over, plan.reads_divided) == divided
    assert plan.placement.tables == tables
    assert plan.placement.moved == ()
    assert plan.host <= on_host * GIB
    assert plan.total <= budget * GIB
    # As large as that is of use.
    assert plan.batches.edit_bytes >= 64 << 20


def test_without_links_all_gpus_have_the_same_memory_of_the_host() -> None:
    def plan(gpus: int) -> GpuPlan:
        parameters = CorrectionParameters()
        budget, host = 78 * GIB, 110 * GIB
        return plan_team(HUMAN, parameters, gpus, linked=False, budget=budget, host_budget=host)

    assert plan(4) == plan(1)


def test_data_are_divided_where_they_do_not_fit_on_each_gpu() -> None:
    parameters = CorrectionParameters()

    def plan(budget: int, reads: ReadMemory = LARGE, *, linked: bool = True) -> GpuPlan:
        return plan_team(reads, parameters, 4, linked=linked, budget=budget, host_budget=4 * ENOUGH)

    # With more, each GPU has all; with less, tables would move to the host.
    less = largest_budget(LARGE, parameters, lambda plan: plan.over_bus)
    assert (plan(130 * GIB).divided_over, plan(less + 1).divided_over) == (1, 1)
    divided = plan(less)
    assert (divided.divided_over, divided.reads_divided, divided.moved) == (4, False, [])
    assert divided.tables < 0.3 * plan(130 * GIB).tables
    least = largest_budget(LARGE, parameters, lambda plan: plan.over_bus, 4)
    assert plan(least + 1).reads_divided and not plan(least + 1).over_bus
    alone = plan(less, linked=False)
    assert (alone.divided_over, alone.moved) == (1, ["results", "1 of 48 tables"])
    # So few reads that parts of them, rounded up, take more than all.
    few = ReadMemory.expected(200, 20_000, 100, paired=True, quality_bits=8)
    least = 1 + largest_budget(few, parameters, lambda plan: False)
    assert (plan(least, few).divided_over, bool(plan(least, few).moved)) == (1, True)
    with pytest.raises(DeviceError):
        plan(least - 1, few)


@pytest.mark.parametrize("seed", range(20))
def test_less_memory_moves_more_to_the_host(seed: int) -> None:
    random = Random(seed)
    reads = random_reads(random)
    hashes = random.choice([1, 16, 48, 255])
    parameters = CorrectionParameters(minhash=MinhashParameters(hashes=hashes))
    smallest = 1 + largest_budget(reads, parameters, lambda plan: False)
    whole = plan_with(reads, parameters, ENOUGH).total
    steps = sorted({random.randrange(smallest, whole + 2) for _ in range(60)} | {smallest, whole})
    before: GpuPlan | None = None
    for budget in steps:
        plan = plan_with(reads, parameters, budget)
        assert plan.total <= budget
        place = plan.placement
        a_table = table_bytes(reads.reads, reads.max_length, parameters.minhash.k)
        assert plan.host == (
            (hashes - place.tables) * a_table
            + (0 if place.results else 37 * reads.reads)
            + sum(getattr(reads, name) for name in place.moved)
        )
        assert plan.reads + sum(getattr(reads, name) for name in place.moved) == reads.total
        if not place.planes:
            assert not (place.qualities and reads.qualities)
        if place.moved or place.tables < hashes:
            assert not place.results
        if before is not None:
            assert rank(plan) >= rank(before)
        before = plan
    assert before is not None
    assert plan_with(reads, parameters, whole) == plan_gpu(
        reads, parameters, budget=whole, host_budget=ENOUGH
    )
    with pytest.raises(DeviceError, match="takes at least"):
        plan_with(reads, parameters, smallest - 1)


def test_batches_become_smaller_before_anything_moves() -> None:
    budgets = {name: budget_for(name, LARGE, CorrectionParameters()) for name in NAMES}
    assert [*budgets.values()] == sorted(budgets.values(), reverse=True)
    plan = plan_with(LARGE, CorrectionParameters(), budgets["smaller batches"])
    assert plan.host == 0
    assert plan.batches.edit_bytes < BatchSizes().edit_bytes
    names = ["results", "a table", "half of the tables", "all tables", "qualities", "planes"]
    lines = [plan_with(LARGE, CorrectionParameters(), budgets[name]).line() for name in names]
    moved = [line.partition("on the host ")[2].partition(": ")[2] for line in lines]
    assert moved[:4] == [
        "results",
        "results, 1 of 48 tables",
        "results, 24 of 48 tables",
        "results, 48 of 48 tables",
    ]
    assert moved[4].endswith("qualities")
    assert moved[5].endswith("qualities, planes")


def test_eight_gibibytes_suffice_for_thirty_million_reads() -> None:
    plan = plan_with(LARGE, CorrectionParameters(), 8 * GIB)
    assert plan.total <= 8 * GIB
    assert plan.document() | {"planned_bytes": 0} == {
        "planned_bytes": 0,
        "budget_bytes": 8 * GIB,
        "read_bytes": LARGE.total,
        "table_bytes": plan.tables,
        "building_bytes": plan.building,
        "correcting_bytes": plan.working,
        "host_bytes": plan.host,
        "tables_on_host": 48 - plan.placement.tables,
        "results_on_host": True,
        "reads_on_host": [],
        "divided_over": 1,
        "reads_divided": False,
        "edit_bytes": plan.batches.edit_bytes,
        "workspace_blocks": plan.batches.workspace_blocks,
    }


def test_too_little_memory_is_told() -> None:
    with pytest.raises(DeviceError) as caught:
        plan_with(LARGE, CorrectionParameters(), GIB)
    assert re.fullmatch(
        r"correcting 30,600,000 reads takes at least 1\.\d GiB of GPU memory, with 1\d\.\d GiB on "
        r"the host, and 1\.0 GiB may be used; use a GPU with more memory, raise `gpu_memory`, or "
        r"use `backend='cpu'`",
        str(caught.value),
    )
    with pytest.raises(DeviceError) as caught:
        plan_gpu(LARGE, CorrectionParameters(), budget=8 * GIB, host_budget=GIB)
    assert re.fullmatch(
        r"correcting 30,600,000 reads with 8\.0 GiB of GPU memory needs [\d.]+ GiB of pinned host "
        r"memory and 1\.0 GiB may be used; .*",
        str(caught.value),
    )
