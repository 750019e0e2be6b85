"""Parameters of the minhash tables."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.errors import UsageError

MAX_ENTRIES = 16_384
"""Table entries that a read looks at, over all tables."""


@dataclass(frozen=True, slots=True)
class MinhashParameters:
    """Parameters of the search for overlapping reads (CARE, section 4.3.1).

    Attributes:
        kmer: k-mer length, 8 to 32 bases.
        hashes: hash functions, one table each, 1 to 255.
        crowd_factor: a bucket of more than ``crowd_factor`` x coverage reads comes from a repeat; a
            read examines that many of its entries.
        crowd_minimum: buckets of at most this many reads are never considered repeats.
        seed: seed of the hash functions, 0 to 2^32 - 1.
    """

    kmer: int = 20
    hashes: int = 48
    crowd_factor: float = 2.5
    crowd_minimum: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not 8 <= self.kmer <= 32:
            raise UsageError(f"--kmer must be from 8 to 32, not {self.kmer}")
        if not 1 <= self.hashes <= 255:
            raise UsageError(f"--hashes must be from 1 to 255, not {self.hashes}")
        if not 0 <= self.seed < 1 << 32:
            raise UsageError(f"--seed must be from 0 to {(1 << 32) - 1}, not {self.seed}")

    @property
    def first_function(self) -> int:
        """Number that the first hash function adds to a k-mer."""
        return self.seed << 8

    def max_bucket_size(self, coverage: float) -> int:
        """Most reads in a bucket that is not a repeat's, at a coverage (reads per position)."""
        return max(self.crowd_minimum, int(self.crowd_factor * coverage))

    def window(self, coverage: float) -> int:
        """Reads of a bucket that are looked at, so that all tables give ``MAX_ENTRIES`` at most."""
        return min(self.max_bucket_size(coverage), MAX_ENTRIES // self.hashes)
