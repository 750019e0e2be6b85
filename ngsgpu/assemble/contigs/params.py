"""Parameters of assembly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from ngsgpu.assemble.params import UnitigParameters, check_odd
from ngsgpu.errors import UsageError, check_choice

Bubbles = Literal["errors", "merge", "keep"]

MAX_KMER: Final = 501


@dataclass(frozen=True, slots=True)
class AssemblyParameters:
    """How reads are assembled.

    Attributes:
        kmers: k-mer lengths, odd, ascending, the first up to 127; None: chosen by length and
            depth of the reads.
        min_abundance: lowest count of a k-mer of the first graph.
        min_quality: k-mers with a base of lower quality (Phred) are not counted.
        bubbles: which alternatives of like length are merged: those as rare as errors, all, or
            none.
        min_contig: bases of the shortest contig that is written.
        min_pairs: pairs or reads that join two pieces over a repeat, at least.
    """

    kmers: tuple[int, ...] | None = None
    min_abundance: int = 2
    min_quality: int = 0
    bubbles: Bubbles = "errors"
    min_contig: int = 200
    min_pairs: int = 5

    def __post_init__(self) -> None:
        if self.kmers is not None:
            if not self.kmers or list(self.kmers) != sorted(set(self.kmers)):
                raise UsageError("--kmers must be ascending numbers, such as 31,51,71")
            for kmer in self.kmers:
                check_odd(kmer)
            if self.kmers[-1] > MAX_KMER:
                raise UsageError(f"--kmers must be at most {MAX_KMER}, not {self.kmers[-1]}")
        check_choice("--bubbles", self.bubbles, get_args(Bubbles))
        if self.min_contig < 1:
            raise UsageError(f"--min-contig must be 1 or more, not {self.min_contig}")
        if self.min_pairs < 1:
            raise UsageError(f"--min-pairs must be 1 or more, not {self.min_pairs}")
        self.unitigs(self.kmers[0] if self.kmers else 31)

    def unitigs(self, kmer: int) -> UnitigParameters:
        """Parameters of the first graph."""
        return UnitigParameters(kmer, self.min_abundance, self.min_quality)
