"""What the benchmarks ask of a GPU: times of kernels, and how much memory is in use."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from benchmarks.harness.device_memory import DeviceMemory, Driver
from benchmarks.kernels import extension
from benchmarks.kernels.correction import describe_kernel, measure_kernels
from benchmarks.kernels.models import EXTENSION_MODELS, MODELS, Load
from ngsgpu.extend import ExtensionParameters
from tests.support.correct.random_reads import simulate, write_fastq

pytestmark = pytest.mark.gpu


def test_every_kernel_of_a_correction_is_timed(tmp_path: Path) -> None:
    sequences, qualities = simulate(random.Random(5), paired=True, quality=True)
    assert qualities is not None
    files = [tmp_path / f"r{mate}.fq" for mate in (1, 2)]
    for mate, file in enumerate(files):
        write_fastq(file, sequences[mate::2], qualities[mate::2], "\n")
    statistics, totals = measure_kernels(files, threads=2)
    assert {"sign_reads", "cupy.argsort", "correct_anchors"} <= set(totals)
    assert {name for name in totals if "." not in name} <= set(MODELS)
    load = Load.of(statistics, files)
    for name, (launches, milliseconds) in totals.items():
        assert launches > 0
        assert milliseconds > 0
        described = describe_kernel(name, launches, milliseconds, load)
        assert (name in MODELS) == ("floor_ms" in described)


@pytest.mark.parametrize("one_batch", [False, True])
def test_every_kernel_of_an_extension_is_timed(tmp_path: Path, one_batch: bool) -> None:
    sequences, qualities = simulate(random.Random(6), paired=True, quality=True)
    assert qualities is not None
    files = [tmp_path / f"r{mate}.fq" for mate in (1, 2)]
    for mate, file in enumerate(files):
        write_fastq(file, sequences[mate::2], qualities[mate::2], "\n")
    parameters = ExtensionParameters(insert_mean=300.0, insert_sd=30.0)
    statistics, totals = extension.measure_kernels(
        files, parameters, threads=2, one_batch=one_batch
    )
    assert {"sign_ends", "cupy.argsort", "extend_pairs"} <= set(totals)
    assert {name for name in totals if "." not in name} <= set(EXTENSION_MODELS)
    load = extension.load_of(statistics, files)
    for name, (launches, milliseconds) in totals.items():
        described = describe_kernel(name, launches, milliseconds, load, EXTENSION_MODELS)
        assert (name in EXTENSION_MODELS) == ("floor_ms" in described)


def test_memory_in_use_is_seen() -> None:
    """Other processes may give memory back at the same time, but hardly so every time."""
    import cupy

    seen = []
    for _ in range(10):
        with DeviceMemory(Driver()) as memory:
            taken = cupy.cuda.Memory(1 << 30)
            time.sleep(0.1)
            del taken
        seen.append(memory.peak_bytes or 0)
        if seen[-1] >= 1 << 30:
            return
    raise AssertionError(f"1 GiB was taken, {seen} bytes were seen")
