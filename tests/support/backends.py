"""The same assertions on both backends; on the GPU's they run with ``-m gpu``."""

from __future__ import annotations

import pytest

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
BACKENDS = ("cpu", CUDA)


def need_gpu() -> None:
    """Whoever asks for tests on a GPU wants them run: without one they fail, once and clearly."""
    from ngsgpu.device.backend import missing_for_cuda

    if problem := missing_for_cuda():
        pytest.exit(f"tests of the GPU need one: {problem}", returncode=2)


def seeds(*, cpu: int, cuda: int) -> pytest.MarkDecorator:
    """Parametrise by ``backend`` and ``seed``, with more seeds where a test is quick."""
    cases = [pytest.param("cpu", seed) for seed in range(cpu)]
    cases += [pytest.param("cuda", seed, marks=pytest.mark.gpu) for seed in range(cuda)]
    return pytest.mark.parametrize(("backend", "seed"), cases, indirect=["backend"])
