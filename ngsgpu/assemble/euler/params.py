"""Parameters of Eulerian assembly."""

from __future__ import annotations

from typing import Final

from ngsgpu.declared.options import value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_COUNT, CountParameters

LONGEST: Final = 32
"""Longest tuple: 2 bits a base, one word."""


@parameters
class EulerParameters:
    """Which tuples make the graph, and which contigs are written."""

    length: int = value(
        31,
        "Length of the tuples that are edges (l in the source), 11 to 32; vertices are one base "
        "shorter. Even ones are allowed.",
    )
    min_abundance: int = value(
        1, "Tuples that occur less often on both strands together are left out.", least=1,
        most=MAX_COUNT,
    )  # fmt: skip
    min_contig: int = value(100, "Shortest contig that is written, in bases.", least=0)

    def __post_init__(self) -> None:
        if self.length > LONGEST:
            raise UsageError(
                f"the k-mers of `method='euler'` have at most {LONGEST} bases, not {self.length}; "
                "leave it out for longer ones"
            )
        self.counted()

    def counted(self) -> CountParameters:
        """Parameters of counting the tuples of reads."""
        return CountParameters(self.length, 0, self.min_abundance)
