"""Parameters of k-mer counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ngsgpu.errors import UsageError

MIN_KMER: Final = 11
MAX_KMER: Final = 127
MAX_COUNT: Final = (1 << 16) - 1
"""Highest count; k-mers that are more frequent have it, too."""

_MAX_QUALITY: Final = 93


@dataclass(frozen=True, slots=True)
class CountParameters:
    """Which k-mers are counted, and which are kept.

    Attributes:
        kmer: k-mer length, 11 to 127.
        min_quality: k-mers with a base of lower quality (Phred) are not counted; 0 counts all.
        min_count: k-mers that are less frequent are left out.
    """

    kmer: int = 31
    min_quality: int = 0
    min_count: int = 1

    def __post_init__(self) -> None:
        if not MIN_KMER <= self.kmer <= MAX_KMER:
            raise UsageError(f"--kmer must be from {MIN_KMER} to {MAX_KMER}, not {self.kmer}")
        if not 0 <= self.min_quality <= _MAX_QUALITY:
            raise UsageError(
                f"--min-quality must be from 0 to {_MAX_QUALITY}, not {self.min_quality}"
            )
        if not 1 <= self.min_count <= MAX_COUNT:
            raise UsageError(f"--min-count must be from 1 to {MAX_COUNT}, not {self.min_count}")

    @property
    def words(self) -> int:
        """Words of a k-mer."""
        return words_of(self.kmer)


def words_of(kmer: int) -> int:
    """Words of a k-mer of this length, 32 bases each."""
    return (kmer + 31) // 32
