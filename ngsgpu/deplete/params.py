"""Parameters of host indexes and of depletion, and their form for the kernels.

The defaults were chosen on reads of human chromosome 20 with up to 8 % substitutions and of 27
bacteria, and checked on other reads (``docs/deplete.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ngsgpu.errors import UsageError

CENTRE: Final = 16
"""Bases in the middle of a k-mer that decide whether it is sampled."""

MAX_KMER: Final = 32
MILLION: Final = 1_000_000
_MAX_ONE_IN: Final = 1000
_MAX_REPEATS: Final = 1000


class Sampling(NamedTuple):
    """What kernels need to take the sampled k-mers of a sequence; see ``kmers``.

    Attributes:
        kmer: k-mer length.
        limit: highest hash of the centre of a sampled k-mer.
    """

    kmer: int
    limit: np.uint32


@dataclass(frozen=True, slots=True)
class IndexParameters:
    """Which k-mers of a host are kept in its index.

    Attributes:
        kmer: k-mer length, even, 16 to 32. Longer ones are lost to more substitutions, shorter ones
            occur by chance in other genomes.
        one_in: one in this many k-mers is sampled, 1 to 1000.
        max_repeats: highest number of pairs of equal triplets in a k-mer; more repetitive ones
            (of homopolymers and microsatellites) are left out, since they occur in all genomes.
    """

    kmer: int = 24
    one_in: int = 4
    max_repeats: int = 40

    def __post_init__(self) -> None:
        if not CENTRE <= self.kmer <= MAX_KMER or self.kmer % 2:
            raise UsageError(
                f"--kmer must be an even number from {CENTRE} to {MAX_KMER}, not {self.kmer}"
            )
        if not 1 <= self.one_in <= _MAX_ONE_IN:
            raise UsageError(f"--one-in must be from 1 to {_MAX_ONE_IN}, not {self.one_in}")
        if not 0 <= self.max_repeats <= _MAX_REPEATS:
            raise UsageError(
                f"--max-repeats must be from 0 to {_MAX_REPEATS}, not {self.max_repeats}"
            )

    def sampling(self) -> Sampling:
        """The parameters for the kernels."""
        return Sampling(self.kmer, np.uint32((1 << 32) // self.one_in - 1))


@dataclass(frozen=True, slots=True)
class DepletionParameters:
    """Which reads are the host's, and which are kept.

    Attributes:
        min_bases: bases of a read, or of both mates, that k-mers of the host must cover.
        min_share: the same as a share of its bases; both must be met.
        keep_host: keep the host's reads instead of the others.
    """

    min_bases: int = 36
    min_share: float = 0.01
    keep_host: bool = False

    def __post_init__(self) -> None:
        if self.min_bases < 1:
            raise UsageError(f"--min-bases must be 1 or more, not {self.min_bases}")
        if not 0 <= self.min_share <= 1:
            raise UsageError(f"--min-share must be from 0 to 1, not {self.min_share:g}")

    @property
    def millionths(self) -> int:
        """``min_share`` in millionths."""
        return round(self.min_share * MILLION)
