"""Parameters of assembly."""

from __future__ import annotations

from typing import Final, Literal

from ngsgpu.assemble.params import UnitigParameters, check_odd
from ngsgpu.declared.options import option, value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_COUNT

Bubbles = Literal["auto", "errors", "merge", "keep"]
Names = Literal["ngsgpu", "shovill"]

MAX_KMER: Final = 501
MIN_ABUNDANCE: Final = 2
"""Lowest count of a k-mer, unless coverage is low."""


@parameters
class AssemblyParameters:
    """How reads are assembled."""

    kmers: tuple[int, ...] | None = option(
        None,
        "K,K,...|auto",
        "k-mer lengths, odd, ascending; auto: by the reads.",
        "-k",
        "--kmers",
        word="auto",
        most=MAX_KMER,
    )
    min_abundance: int | None = value(
        None,
        "Lowest count of a k-mer of the first graph; None: 2, or 1 where coverage is low.",
        least=1,
        most=MAX_COUNT,
    )
    min_quality: int = option(
        0, "Q", "Do not count k-mers that have a base of lower quality.", least=0, most=93
    )
    bubbles: Bubbles = option(
        "auto",
        "auto|errors|merge|keep",
        "Alternatives of like length: drop those as rare as errors, all but the most frequent, or "
        "none; auto: merge where reads are of a diploid or of strains, else errors.",
    )
    min_contig: int = option(200, "N", "Leave out shorter contigs.", least=1)
    names: Names = option(
        "ngsgpu",
        "ngsgpu|shovill",
        "Names of contigs: contig_1 length= coverage=, or contig00001 len= cov= as Shovill's.",
    )
    min_pairs: int = value(
        5, "Pairs or reads that join two pieces over a repeat, at least.", least=1
    )
    min_low_pairs: int = value(
        2,
        "The same where coverage is low, of two pieces of which neither has more to another one.",
        least=1,
    )

    def __post_init__(self) -> None:
        if self.kmers is not None:
            if not self.kmers or list(self.kmers) != sorted(set(self.kmers)):
                raise UsageError("`kmers` must be ascending numbers, such as 31,51,71")
            for kmer in self.kmers:
                check_odd(kmer)
        self.unitigs(self.kmers[0] if self.kmers else 31, self.min_abundance)

    def unitigs(self, kmer: int, min_abundance: int | None) -> UnitigParameters:
        """Parameters of the first graph."""
        return UnitigParameters(kmer, min_abundance or MIN_ABUNDANCE, self.min_quality)
