"""Tests that need an NVIDIA GPU: ``scripts/gpu-check``, or ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.device.team import free_unused
from tests.support.backends import need_gpu

HERE = Path(__file__).parent


# First, because pytest selects by marks in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    need_gpu()
    # CUDA sees the GPUs of the moment in which it begins; commands that tests run in this process
    # lease some of them.
    from cupy import cuda

    cuda.runtime.getDeviceCount()


@pytest.fixture(autouse=True)
def give_back(gpu: None) -> Iterator[None]:
    """Have CuPy keep nothing after a test that others, who use the GPU too, might need."""
    yield
    free_unused()
