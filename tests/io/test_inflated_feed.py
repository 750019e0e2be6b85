"""How much of a file is inflated on a GPU at a time."""

from __future__ import annotations

import pytest

from ngsgpu.io.gpu.inflated_feed import batch_bytes_within

MIB = 1 << 20


@pytest.mark.parametrize(
    ("memory", "file", "batch"),
    [
        (1 << 40, 2000 * MIB, 64),
        (1 << 40, 33 * MIB, 64),
        (1 << 40, 32 * MIB, 32),
        (1 << 40, 100, 1),
        (1000 * MIB, 2000 * MIB, 32),
        (1000 * MIB, 3 * MIB, 4),
        (30 * MIB, 2000 * MIB, 1),
        (20 * MIB, 2000 * MIB, 0),
        (20 * MIB, 100, 0),
    ],
)
def test_batches_fit_memory_and_file(memory: int, file: int, batch: int) -> None:
    assert batch_bytes_within(memory, file) == batch * MIB
