"""Compressed streams hold the data, and depend on nothing else."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from ngsgpu.io.compress.deflate import SHORT, compressed


@given(st.binary(max_size=300), st.integers(1, 30), st.integers(1, 9), st.sampled_from([-15, 15]))
def test_any_data(data: bytes, times: int, level: int, wbits: int) -> None:
    assert zlib.decompress(compressed(data * times, level, wbits), wbits) == data * times


@pytest.mark.parametrize("level", [1, 2, 3])
def test_isa_l_has_no_short_data(level: int) -> None:
    """Its streams of short data are not always the same."""
    short, long = b"ACGT" * (SHORT // 4 - 1), b"ACGT" * (SHORT // 4)
    deflater = zlib.compressobj(level)
    assert compressed(short, level) == deflater.compress(short) + deflater.flush()
    assert compressed(long, level) == isal_zlib.compress(long, level)
