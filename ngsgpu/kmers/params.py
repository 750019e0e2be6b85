"""Parameters of k-mer counting."""

from __future__ import annotations

from typing import Final, Literal

from ngsgpu.declared.options import option
from ngsgpu.declared.values import parameters

MIN_KMER: Final = 11
MAX_KMER: Final = 127
MAX_COUNT: Final = (1 << 16) - 1
"""Highest count unless it is asked for more; k-mers that are more frequent have it, too."""
MAX_WIDE_COUNT: Final = (1 << 32) - 1
"""Highest count of 32 bits."""


@parameters
class CountParameters:
    """Which k-mers are counted, and which are kept."""

    kmer: int = option(
        31, "K", "k-mer length, 11 to 127.", "-k", "--kmer", least=MIN_KMER, most=MAX_KMER
    )
    min_quality: int = option(
        0, "Q", "Skip k-mers that have a base of lower quality.", least=0, most=93
    )
    min_count: int = option(
        1, "N", "Leave out k-mers that occur fewer times.", least=1, most=MAX_COUNT
    )
    count_bits: Literal[16, 32] = option(
        16,
        "16|32",
        "Bits of a count: counts end at 65,535 or 4,294,967,295; k-mers that are more frequent "
        "have that count.",
    )

    @property
    def words(self) -> int:
        """Words of a k-mer."""
        return words_of(self.kmer)

    @property
    def count_type(self) -> Literal["uint16", "uint32"]:
        """Type of the counts, as NumPy names it."""
        return "uint16" if self.count_bits == 16 else "uint32"


def words_of(kmer: int) -> int:
    """Words of a k-mer of this length, 32 bases each."""
    return (kmer + 31) // 32
