"""Memory that is divided over GPUs, as far as it can be tested without them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.device.spread import can_spread, share_bytes, stripe_bytes


@given(st.integers(0, 1 << 42), st.integers(1, 16))
def test_stripes_are_shared_evenly(size: int, gpus: int) -> None:
    stripe = stripe_bytes(size, gpus)
    assert stripe % (2 << 20) == 0
    stripes = -(-size // stripe)
    assert stripes <= 64 * gpus
    shares = Counter(number % gpus for number in range(stripes))
    assert share_bytes(size, gpus) == stripe * max(shares.values(), default=0)
    # Rounded up by a stripe, which is a page or a 64th.
    assert share_bytes(size, gpus) <= size / gpus * (1 + 1 / 64) + 2 * (2 << 20)


def test_one_gpu_shares_nothing() -> None:
    assert not can_spread([0])
    assert not can_spread([])
