"""The plan of a GPU's memory, which needs no GPU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.spectrum.gpu_plan import SpectrumGpuPlan, plan_gpu
from ngsgpu.spectrum.params import SpectrumParameters

READS = 15_000
LENGTH = 150


def plan(budget: int, blocks: int = 528) -> SpectrumGpuPlan:
    memory = ReadMemory.expected(READS, READS * LENGTH, LENGTH, paired=False, quality_bits=8)
    parameters = SpectrumParameters(kmer=25)
    return plan_gpu(
        memory, READS * LENGTH, parameters, budget=budget, host_budget=1 << 30, blocks=blocks
    )


@given(st.integers(12 << 20, 512 << 20), st.sampled_from([64, 528]))
def test_fits(budget: int, blocks: int) -> None:
    """What it takes is within the budget, whose every byte may count; more memory moves no more."""
    found = plan(budget, blocks)
    assert found.fits
    assert found.total <= budget
    assert len(plan(2 * budget, blocks).moved) <= len(found.moved)


def test_steps_share_memory() -> None:
    """There are no tables while k-mers are counted, nor counted k-mers beside corrected reads."""
    found = plan(64 << 20)
    assert not found.moved_reads
    assert found.kept + found.building + found.spare == found.arena


def test_too_little() -> None:
    with pytest.raises(DeviceMemoryError, match=r"15,000 reads by their k-mers takes at least"):
        plan(4 << 20)
