"""Parameters of Eulerian assembly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_COUNT, CountParameters

LONGEST: Final = 32
"""Longest tuple: 2 bits a base, one word."""


@dataclass(frozen=True, slots=True)
class EulerParameters:
    """Which tuples make the graph, and which contigs are written.

    Attributes:
        length: of the tuples that are edges (l in the source), 11 to 32; vertices are one base
            shorter. Even ones are allowed.
        min_abundance: tuples that occur less often on both strands together are left out.
        min_contig: shortest contig that is written, bases.
    """

    length: int = 31
    min_abundance: int = 1
    min_contig: int = 100

    def __post_init__(self) -> None:
        if self.length > LONGEST:
            raise UsageError(
                f"the k-mers of --method euler have at most {LONGEST} bases, not {self.length}; "
                "leave it out for longer ones"
            )
        if not 1 <= self.min_abundance <= MAX_COUNT:
            raise UsageError(
                f"--min-abundance must be from 1 to {MAX_COUNT}, not {self.min_abundance}"
            )
        if self.min_contig < 0:
            raise UsageError(f"--min-contig must not be negative, but is {self.min_contig}")
        self.counted()

    def counted(self) -> CountParameters:
        """How the tuples of reads are counted."""
        return CountParameters(self.length, 0, self.min_abundance)
