"""Teams of GPUs, budgets of their memory, and the pool of pinned buffers, without CUDA."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import (
    ADVICE,
    Allocation,
    GpuMemory,
    HostPlan,
    MemoryPlan,
    first_fitting,
    gpu_memory,
    largest_array_bytes,
    plan_on_gpu,
    retry_with_less,
)
from ngsgpu.device.team import Team, here, limited_gpu_memory
from ngsgpu.errors import DeviceError, DeviceMemoryError, HostMemoryError
from ngsgpu.readset.gpu_plan import STEPS, TeamPlan
from tests.support.device import FIRST, GIB, Device, four_gpus, stack

RESERVE = 512 << 20


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """GPUs."""
    yield four_gpus(monkeypatch)
    assert stack() == [FIRST]


def test_budget(cuda):
    assert gpu_memory() == GpuMemory(80 * GIB, 10 * GIB, 10 * GIB - RESERVE)
    assert gpu_memory(8 * GIB).budget == 8 * GIB
    assert gpu_memory(70 * GIB).budget == 10 * GIB - RESERVE


def test_budget_of_one_array(cuda):
    """What the pool keeps is of no use for it, and what others hold counts."""
    assert largest_array_bytes(None) == 9 * GIB - RESERVE
    cuda.pools[FIRST].used = 3 * GIB
    assert largest_array_bytes(8 * GIB, GIB) == 8 * GIB - GIB - 3 * GIB
    assert largest_array_bytes(3 * GIB) == 0


def test_what_does_not_fit_is_refused(cuda):
    plan_on_gpu("making tables", 8 * GIB, Allocation("tables", 8 * GIB)).check()
    with pytest.raises(DeviceMemoryError) as caught:
        plan_on_gpu("making tables", 8 * GIB, Allocation("tables", 12 * GIB)).check()
    assert str(caught.value) == (
        "making tables takes at least 12.0 GiB of GPU memory and 8.0 GiB may be used; "
        "use a GPU with more memory, raise `gpu_memory`, or use `backend='cpu'`"
    )


def test_more_than_kernels_take_is_refused(cuda):
    plan = plan_on_gpu("sorting 9 letters", None, Allocation("letters", 9), beyond="8 letters")
    assert not plan.fits
    with pytest.raises(DeviceMemoryError) as caught:
        plan.check()
    assert str(caught.value) == (
        "sorting 9 letters is too large for a GPU, which takes 8 letters; use `backend='cpu'`"
    )


def test_of_what_the_host_lacks():
    """Sizes that are about right get a margin."""
    parts = (Allocation("program", GIB), Allocation("table", GIB))
    plan = HostPlan(doing="counting", allocations=parts, budget=GIB, remedies=("fewer threads",))
    with pytest.raises(HostMemoryError) as caught:
        plan.check()
    assert str(caught.value) == (
        "counting takes 2.0 GiB of memory and 1.0 GiB may be used; try fewer threads, or "
        "`memory='2048M'` on a machine that has it"
    )
    assert "takes about 2.0 GiB of memory" in str(replace(plan, about="about ").refusal())
    assert "`memory='2151M'`" in str(replace(plan, about="about ").refusal())
    assert replace(plan, budget=2 * GIB).fits


def test_a_plan_is_summed_up_and_said():
    class Plan(TeamPlan):
        WORK = "sorting"

    plan = Plan(
        doing="sorting 3 reads",
        allocations=(
            Allocation("reads", 3 * GIB, arrays=1),
            Allocation("rounding", 1 << 20),
            Allocation("tables", 2 * GIB, STEPS, arrays=2),
            Allocation("building", GIB, STEPS[:1]),
            Allocation("working", 4 * GIB, STEPS[1:]),
            Allocation("spare", GIB, STEPS),
        ),
        budget=12 * GIB,
        reading=GIB,
    )
    assert plan.arena == 7 * GIB
    assert plan.total == 10 * GIB + (1 << 20)
    assert plan.fits
    assert plan.line() == (
        "10.0 GiB of 12.0 GiB: reads 3.0 GiB, tables 2.0 GiB, work 5.0 GiB, before that 1.0 GiB "
        "to read"
    )
    assert plan.document() == {
        "planned_bytes": plan.total, "budget_bytes": 12 * GIB, "read_bytes": 3 * GIB,
        "table_bytes": 2 * GIB, "building_bytes": GIB, "sorting_bytes": 4 * GIB, "host_bytes": 0,
        "divided_over": 1,
        "reads_divided": False,
    }  # fmt: skip
    # Half of each, and 3 GiB before they are divided take as much as the work afterwards.
    half = plan.divided(2)
    assert (half.divided_over, half.divided_tables) == (2, 2 * GIB + 1024)
    assert half.arena == 5 * GIB
    assert GIB * 3 // 2 < half.reads < GIB * 3 // 2 + (64 << 20)
    assert half.total == half.reads + half.tables + 5 * GIB + (1 << 20)


def test_the_first_plan_that_fits_is_chosen():
    def plan(size: int, host: int, budget: int = 5 * GIB) -> MemoryPlan:
        moved = Allocation("slots", host, on_host=True)
        return MemoryPlan(
            doing="sorting", allocations=(Allocation("tables", size), moved),
            budget=budget, host_budget=GIB,
        )  # fmt: skip

    assert first_fitting(plan(size * GIB, 0) for size in (7, 5, 3)).bytes_of("tables") == 5 * GIB
    with pytest.raises(DeviceMemoryError) as caught:
        first_fitting([plan(9 * GIB, 0), plan(7 * GIB, GIB), plan(6 * GIB, 2 * GIB)])
    assert str(caught.value) == (
        "sorting takes at least 6.0 GiB of GPU memory, with 2.0 GiB on the host, and 5.0 GiB may "
        f"be used; {ADVICE}"
    )
    with pytest.raises(DeviceMemoryError) as caught:
        first_fitting([plan(9 * GIB, 0), plan(4 * GIB, 2 * GIB), plan(3 * GIB, 4 * GIB)])
    assert str(caught.value) == (
        "sorting with 5.0 GiB of GPU memory needs 2.0 GiB of pinned host memory and 1.0 GiB may "
        f"be used; {ADVICE}"
    )


def test_less_is_taken_once(cuda, caplog):
    tried: list[bool] = []

    def attempt(less: bool) -> str:
        tried.append(less)
        if not less:
            raise MemoryError("no more")
        return "done"

    assert retry_with_less(attempt, "sorting", needed=lambda: GIB) == "done"
    assert tried == [False, True]
    assert cuda.pools[FIRST].kept == 0
    assert caplog.messages == ["sorting: GPU memory ran out (no more); going on with less"]


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_each_gpu_is_current_in_its_turn(cuda, gpus):
    team = Team(gpus)
    places = list(range(gpus))
    assert len(team) == gpus
    assert team.each(lambda member: (member, Device().id)) == [(i, FIRST + i) for i in places]
    assert team.at_once(lambda member: (member, Device().id)) == [(i, FIRST + i) for i in places]


def test_all_gpus_work_at_the_same_time(cuda):
    together = threading.Barrier(3)

    def work(member: int) -> int:
        together.wait(10)
        return member

    assert Team(3).at_once(work) == [0, 1, 2]


@pytest.mark.parametrize("fails", [0, 2])
def test_one_that_fails_stops_the_others(cuda, fails):
    stopped = threading.Event()
    ended: list[int] = []

    def work(member: int) -> None:
        if member == fails:
            raise DeviceError("it fell off the bus")
        assert stopped.wait(10)
        ended.append(member)

    with pytest.raises(DeviceError, match="fell off"):
        Team(3).at_once(work, stopped.set)
    assert sorted(ended) == sorted({0, 1, 2} - {fails})


def test_arrays_are_brought_here(cuda, monkeypatch):
    import cupy

    class Array:
        def __init__(self, device: Device) -> None:
            self.device, self.shape, self.dtype, self.nbytes = device, (3,), "uint8", 3
            self.data: Any = self

        def copy_from_device_async(self, source: object, size: int, stream: object) -> None:
            copied.append((source, size, stream))

    copied: list[tuple[object, int, object]] = []
    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: Array(Device()))
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: "stream")
    own, other = Array(Device()), Array(Device(3))
    assert here(own) is own
    assert here(other).device == Device(FIRST)
    assert copied == [(other, 3, "stream")]


def test_limit_holds_inside(cuda):
    pool = cuda.pools[FIRST]
    with limited_gpu_memory(3 * GIB):
        assert (pool.limit, pool.kept) == (3 * GIB, 0)
    assert pool.limit == 0
    with limited_gpu_memory(None):
        assert pool.limit == 0


def test_limit_holds_on_every_gpu(cuda):
    """Also where the first of them is not the first that can be seen."""
    cuda.pools[2].limit = GIB
    with limited_gpu_memory(3 * GIB, gpus=3):
        assert [pool.limit for pool in cuda.pools] == [0, 3 * GIB, 3 * GIB, 3 * GIB]
        assert stack() == [FIRST]
    assert [pool.limit for pool in cuda.pools] == [0, 0, GIB, 0]


def test_a_team_that_grows_is_limited_again(cuda):
    """The first GPU twice; both limits end in the order in which they began, reversed."""
    with Team(1).limited(3 * GIB), Team(2).limited(2 * GIB):
        assert [pool.limit for pool in cuda.pools] == [0, 2 * GIB, 2 * GIB, 0]
    assert [pool.limit for pool in cuda.pools] == [0, 0, 0, 0]


def test_memory_that_runs_out_inside(cuda):
    import cupy

    with pytest.raises(DeviceError, match="not enough GPU memory"), limited_gpu_memory(GIB):
        raise cupy.cuda.memory.OutOfMemoryError(2 * GIB, 0, GIB)
    assert cuda.pools[FIRST].limit == 0


def test_buffers_are_used_again(cuda):
    pool = PinnedPool(100, 2)
    first = pool.take()
    assert (first.shape, first.dtype.str, first.flags.writeable) == ((100,), "|u1", True)
    pool.release(first)
    with pool.borrowed() as second:
        assert second is first
        pool.take()
    assert cuda.made == [100, 100]
    with pytest.raises(ValueError, match="not from this pool"):
        pool.release(second[:50])


def test_who_asks_for_more_waits(cuda):
    pool = PinnedPool(10, 1)
    buffer = pool.take()
    taken = []
    thread = threading.Thread(target=lambda: taken.append(pool.take()))
    thread.start()
    thread.join(0.1)
    assert not taken
    pool.release(buffer)
    thread.join(10)
    assert taken[0] is buffer


def test_pinned_memory_that_runs_out(cuda):
    pool = PinnedPool(2 * GIB, 1)
    for _ in range(2):  # a failure takes no buffer from the pool
        with pytest.raises(DeviceError, match=r"could not allocate 2\.0 GiB of pinned host memory"):
            pool.take()
