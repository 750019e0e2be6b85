"""Limits that the ranges of parameters share with the kernels."""

from __future__ import annotations

from typing import Final

MAX_READ_LENGTH: Final = 32_767
"""Bases of the longest read: positions are kept in 15 bits."""

MAX_AGREEING: Final = 16
"""Largest number of reads that may have to agree on an allele."""

MAX_SEED: Final = (1 << 32) - 1
"""Largest seed of the hash functions."""

MAX_TAXID: Final = (1 << 63) - 1
"""Largest taxid (int64); those of GTDB's taxa are hashes of 48 bits."""
