"""The plan of the GPUs' memory, which needs no GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.spectrum.gpu_plan import Demand, SpectrumGpuPlan, plan_gpu, plan_team
from ngsgpu.spectrum.params import SpectrumParameters

READS = 15_000
LENGTH = 150
GIB = 1 << 30


def demand(reads: int, length: int, budget: int, gpus: int = 1, blocks: int = 528) -> Demand:
    return Demand(
        reads=ReadMemory.expected(reads, reads * length, length, paired=False, quality_bits=8),
        bases=reads * length,
        parameters=SpectrumParameters(kmer=25),
        budget=budget,
        host_budget=1 << 40,
        blocks=blocks,
        gpus=gpus,
    )


def plan(budget: int, blocks: int = 528, gpus: int = 1, divided_over: int = 1) -> SpectrumGpuPlan:
    return plan_gpu(demand(READS, LENGTH, budget, gpus, blocks), divided_over)


@given(st.integers(12 << 20, 512 << 20), st.sampled_from([64, 528]), st.sampled_from([1, 2, 3, 4]))
def test_fits(budget: int, blocks: int, gpus: int) -> None:
    """What it takes is within the budget, whose every byte may count; more memory moves no more."""
    found = plan(budget, blocks, gpus)
    assert found.fits
    assert found.total <= budget
    assert len(plan(2 * budget, blocks, gpus).moved) <= len(found.moved)
    # Several have less to count each, and the same reads and table.
    assert len(found.moved_reads) <= len(plan(budget, blocks).moved_reads)


@given(st.integers(20 << 20, 512 << 20), st.sampled_from([2, 3, 4, 8]))
def test_fits_where_it_is_divided(budget: int, gpus: int) -> None:
    found = plan(budget, gpus=gpus, divided_over=gpus)
    assert found.fits
    assert found.divided_over == gpus
    assert found.reads + found.tables + found.arena <= found.total <= budget
    assert gpus * found.tables >= found.divided_tables


def test_steps_share_memory() -> None:
    """There are no tables while k-mers are counted, nor counted k-mers beside corrected reads."""
    found = plan(64 << 20)
    assert not found.moved_reads
    assert found.kept + found.building + found.bytes_of("spare") == found.arena


def test_each_of_several_keeps_its_share() -> None:
    one, four = plan(1 << 30), plan(1 << 30, gpus=4)
    assert one.kept / 4 <= four.kept < one.kept / 3
    assert (four.reads, four.tables) == (one.reads, one.tables)


def test_too_little() -> None:
    with pytest.raises(DeviceMemoryError, match=r"15,000 reads by their k-mers takes at least"):
        plan(4 << 20)


def test_data_are_divided_where_they_do_not_fit_on_each_gpu() -> None:
    # Human reads, 30-fold.
    human = demand(900_000_000, 100, 139 * GIB, 4)
    divided = plan_team(human, linked=True)
    assert (divided.divided_over, divided.moved) == (4, [])
    assert divided.total <= 139 * GIB
    assert divided.line().endswith("; reads and tables are divided over 4 GPUs")
    assert divided.document()["divided_over"] == 4
    # Without links, reads go to the host, or it is refused.
    alone = plan_team(human, linked=False)
    assert alone.divided_over == 1
    assert alone.moved_reads
    with pytest.raises(DeviceMemoryError, match="takes at least"):
        plan_team(replace(human, budget=100 * GIB), linked=False)
    # What fits on each is not divided.
    assert plan_team(replace(human, budget=1 << 40), linked=True).divided_over == 1


def test_reads_of_the_host_may_be_larger_than_a_gpu() -> None:
    """Where they are on the first GPU, it needs room for them and its share."""
    large = demand(900_000_000, 100, 100 * GIB, 4)
    assert large.reads.total > large.budget
    there = plan_team(replace(large, arrived="host"), linked=True)
    assert (there.divided_over, there.moved_reads) == (4, ())
    assert plan_team(large, linked=True).moved_reads
