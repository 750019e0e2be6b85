"""GPU memory of an index that is made in buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ngsgpu.device.memory import format_size
from ngsgpu.device.plan import Allocation, MemoryPlan, first_fitting
from ngsgpu.suffix.bucket.cover import cover_stride, difference_cover
from ngsgpu.suffix.bucket.sort import MOST_SUFFIXES, SUFFIX_BYTES
from ngsgpu.suffix.bucket.text import text_bytes

_PERIODS: Final = (512, 1024, 2048)
"""Of the difference cover: short ones compare less, long ones take less memory."""

_RANK_BYTES: Final = 80
"""GPU memory of a place of the cover while these are ranked, at its most."""

_FILLING: Final = 2
"""GPU memory of a base while the blocks of the transform are filled: rows, twice, blocks, counts
and their sums (1.4), and what gets lost."""

_SHARES: Final = 256
"""The largest number of buckets that is worth while."""

_FILLED: Final = 0.8
"""Of a bucket as planned: their sizes are estimated from some suffixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan(MemoryPlan):
    """How an index is made.

    Attributes:
        size: letters of the text.
        period: of the difference cover.
        most: suffixes of the largest bucket.
    """

    size: int
    period: int
    most: int

    @property
    def buckets(self) -> int:
        """The approximate number of buckets."""
        return 1 if self.size <= self.most else -(-self.size // self.aim)

    @property
    def aim(self) -> int:
        """Suffixes of a bucket, about."""
        return max(1, int(_FILLED * self.most))

    def advice(self) -> list[str]:
        """With what it fits, as shown to users."""
        return [f"use `gpu_memory='{-(-self.total >> 20)}M'` on a GPU that has it"]

    def line(self) -> str:
        """The plan for people."""
        return (
            f"{format_size(self.total)} of {format_size(self.budget)}: {self.buckets:,} "
            f"bucket{'' if self.buckets == 1 else 's'} of at most {self.most:,} suffixes, "
            f"difference cover of {self.period}"
        )


def plan_buckets(size: int, budget: int) -> BucketPlan:
    """Plan the index of a text.

    Args:
        size: its letters, of both strands.
        budget: GPU memory that may be used on each GPU, in bytes.

    Raises:
        DeviceMemoryError: the text does not fit.
    """
    return first_fitting(_plan_for(size, budget, period) for period in _PERIODS)


def _plan_for(size: int, budget: int, period: int) -> BucketPlan:
    text = text_bytes(size)
    places = len(difference_cover(period)) * cover_stride(size, period)
    # Ranks, rows that are done, and counts of each part while a bucket is taken.
    lasting = 4 * places + size // 4 + size // 8
    least = min(size, -(-size // _SHARES))
    most = max(least, min(size, (budget - text - lasting) // SUFFIX_BYTES, MOST_SUFFIXES))
    return BucketPlan(
        doing=f"the index of {size:,} letters, both strands,",
        allocations=(
            Allocation("text", text, ("ranking", "sorting")),
            Allocation("cover", places * _RANK_BYTES, ("ranking",)),
            Allocation("ranks", lasting, ("sorting",)),
            Allocation("bucket", most * SUFFIX_BYTES, ("sorting",)),
            Allocation("blocks", size * _FILLING, ("filling",)),
        ),
        budget=budget,
        size=size,
        period=period,
        most=most,
    )
