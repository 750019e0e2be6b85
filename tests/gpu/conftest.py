"""Tests that need an NVIDIA GPU: ``scripts/gpu-check``, or ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

from pathlib import Path

import pytest

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
