"""Reads, and budgets of GPU memory that force each thing that a plan can do."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ngsgpu.device import spread
from ngsgpu.errors import DeviceError
from ngsgpu.readset import ReadSet, gpu_divided
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.spectrum import SpectrumCorrections, SpectrumParameters, gpu_correct, gpu_plan
from ngsgpu.spectrum import gpu as spectrum_gpu
from ngsgpu.spectrum.gpu_plan import Demand, SpectrumGpuPlan, plan_gpu
from tests.support.spectrum.samples import sample

ENOUGH = 1 << 44
BLOCKS = 16
"""Of four multiprocessors."""

NAMES = [
    "everything on the GPU",
    "as little as that takes",
    "in parts",
    "qualities",
    "planes",
    "the smallest",
]


def make_reads(seed: int, *, reads: int = 400) -> tuple[ReadSet, SpectrumParameters, bool]:
    """Reads, how to correct them, and whether to trim them."""
    rng = random.Random(seed)
    _, texts, qualities = sample(seed, reads, rng.choice([0.01, 0.03]))
    if rng.random() < 0.3:
        length = min(map(len, texts), default=0) + 1
        texts = [f"{text}ACGTACGTACGTA"[: length + 12] for text in texts]
        qualities = [f"{quality}IIIIIIIIIIIII"[: length + 12] for quality in qualities]
    parameters = SpectrumParameters(
        kmer=rng.choice([11, 15, 19]),
        min_count=rng.choice([2, 4]),
        rule=rng.choice(["search", "search", "voting", "exhaustive"]),  # type: ignore[arg-type]
        filter=rng.choice(["exact", "exact", "bloom"]),  # type: ignore[arg-type]
    )
    return ReadSet.from_sequences(texts, qualities), parameters, rng.random() < 0.4


def assert_same(found: SpectrumCorrections, expected: SpectrumCorrections) -> None:
    """Corrections are the same, and of the same types."""
    for name in ("classes", "begin", "end"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert np.array_equal(ours, theirs), name
        assert ours.dtype == theirs.dtype, name
    for ours, theirs in zip(found.edits, expected.edits, strict=True):
        assert np.array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def small_units(monkeypatch: pytest.MonkeyPatch, *, pages: bool = False) -> None:
    """Let GPUs take few reads and k-mers at a time, so that little data makes many of them.

    Args:
        monkeypatch: of the test.
        pages: also let memory be divided in small pages, which no GPU has.
    """
    monkeypatch.setattr(gpu_correct, "_LEAST_READS", 16)
    monkeypatch.setattr(gpu_correct, "_FEWEST_READS", 8)
    monkeypatch.setattr(gpu_plan, "_LEAST_ROWS", 64)
    monkeypatch.setattr(spectrum_gpu, "_FEWEST_BROUGHT", 64)
    if pages:
        monkeypatch.setattr(spread, "_LARGEST_PAGE", 1 << 9)


def divide_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide reads and table over linked GPUs also where they fit on each."""
    monkeypatch.setattr(gpu_divided, "divisions", lambda gpus, linked: [(gpus, True)])


def budget_for(
    name: str, reads: ReadSet, parameters: SpectrumParameters, gpus: int, divided_over: int = 1
) -> int:
    """The largest budget that makes one thing that a plan can do, of ``NAMES``; ever less."""
    demand = Demand(
        reads=ReadMemory.of(reads),
        bases=reads.bases,
        parameters=parameters,
        budget=0,
        host_budget=ENOUGH,
        blocks=BLOCKS,
        gpus=gpus,
    )

    def plan(budget: int) -> SpectrumGpuPlan:
        return plan_gpu(replace(demand, budget=budget), divided_over)

    def largest(holds: Callable[[SpectrumGpuPlan], bool]) -> int:
        low, high = 0, ENOUGH
        while high - low > 1:
            middle = (low + high) // 2
            try:
                wanted = holds(plan(middle))
            except DeviceError:
                wanted = True
            low, high = (middle, high) if wanted else (low, middle)
        return low

    def smallest() -> int:
        return 1 + largest(lambda made: False)

    def in_parts() -> int:
        return largest(lambda made: made.rows * demand.gpus < demand.bases)

    choices: dict[str, Callable[[], int]] = {
        "everything on the GPU": lambda: ENOUGH,
        "as little as that takes": lambda: plan(ENOUGH).total,
        "in parts": lambda: max(in_parts(), smallest()),
        "qualities": lambda: largest(lambda made: bool(made.moved_reads)),
        "planes": lambda: largest(lambda made: "planes" in made.moved_reads),
        "the smallest": smallest,
    }
    return choices[name]()
