"""Compressed streams hold the data, and depend on nothing else."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.io.compress import bgzf_blocks as module
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, bgzf_blocks
from ngsgpu.io.compress.deflate import MAX_LEVEL, compressed
from tests.support.io import deflate_soak
from tests.support.io.gzip_files import fastq_text


@given(st.binary(max_size=300), st.integers(1, 30), st.integers(1, MAX_LEVEL), st.booleans())
def test_any_data(data: bytes, times: int, level: int, raw: bool) -> None:
    wbits = -15 if raw else 15
    assert zlib.decompress(compressed(data * times, level, raw=raw), wbits) == data * times


@pytest.mark.parametrize("level", [1, 2, 5, 9, 12])
def test_many_blocks_at_once_are_those_one_by_one(
    monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    """Of reads, of bytes that cannot be compressed, and of a last block of any size."""
    rng = random.Random(level)
    text = fastq_text(rng, 3000) + rng.randbytes(3 * BLOCK_BYTES + 17)
    for data in (text, text[: 9 * BLOCK_BYTES], text[: 9 * BLOCK_BYTES + 1], text[-BLOCK_BYTES:]):
        monkeypatch.setattr(module, "_SMALL", 0)
        together = bytes(bgzf_blocks(data, level))
        monkeypatch.setattr(module, "_SMALL", 1 << 30)
        assert together == bgzf_blocks(data, level)
        assert gzip.decompress(together) == data
        monkeypatch.undo()


def test_what_does_not_fit_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library does it, but one could make more of a block than a block may have."""
    data = random.Random(1).randbytes(10 * BLOCK_BYTES)
    monkeypatch.setattr(module, "compressed", lambda *_, **__: bytes(1 << 16))
    monkeypatch.setattr(module, "_SMALL", 1 << 30)
    assert gzip.decompress(bgzf_blocks(data, 1)) == data


def test_same_bytes_in_memory_that_changes() -> None:
    blocks, digests = deflate_soak.soak(1600, rounds=2)
    assert blocks >= 1600
    assert len(digests) == 1
