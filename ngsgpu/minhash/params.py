"""Parameters of the minhash tables."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.errors import UsageError


@dataclass(frozen=True, slots=True)
class MinhashParameters:
    """How reads that may overlap are found (CARE, section 4.3.1).

    Attributes:
        kmer: k-mer length, 8 to 32 bases.
        hashes: hash functions, and so tables, 1 to 255.
        window_factor: of a bucket with more than ``window_factor`` x coverage reads, a repeat,
            a read looks at that many.
        window_minimum: the smallest such window, in reads.
        seed: chooses another family of hash functions, 0 to 2^32 - 1.
    """

    kmer: int = 20
    hashes: int = 48
    window_factor: float = 2.5
    window_minimum: int = 10
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

    def window(self, coverage: float) -> int:
        """Reads of a bucket that are looked at, at a coverage (reads per position)."""
        return min(65_535, max(self.window_minimum, int(self.window_factor * coverage)))
