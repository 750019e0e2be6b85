"""Tests that need an NVIDIA GPU: ``scripts/gpu-check``, or ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


# First, because pytest selects by marks in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    """Whoever asks for these tests wants them run: without a GPU they fail, once and clearly."""
    from ngsgpu.device.backend import missing_for_cuda

    if problem := missing_for_cuda():
        pytest.exit(f"tests of the GPU need one: {problem}", returncode=2)
