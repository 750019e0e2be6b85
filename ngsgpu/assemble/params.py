"""Parameters of unitigs."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_COUNT, CountParameters


@dataclass(frozen=True, slots=True)
class UnitigParameters:
    """Which k-mers make the graph.

    Attributes:
        kmer: k-mer length, odd, 11 to 127; if it is even, a k-mer can be its own reverse
            complement, and has no two sides.
        min_abundance: k-mers that are less frequent are left out; None: at the valley of the
            histogram.
        min_quality: k-mers of reads with a base of lower quality (Phred) are not counted.
    """

    kmer: int = 31
    min_abundance: int | None = None
    min_quality: int = 0

    def __post_init__(self) -> None:
        self.counted()
        check_odd(self.kmer)
        if self.min_abundance is not None and not 1 <= self.min_abundance <= MAX_COUNT:
            raise UsageError(
                f"--min-abundance must be auto or from 1 to {MAX_COUNT}, not {self.min_abundance}"
            )

    def counted(self) -> CountParameters:
        """How the k-mers of reads are counted.

        The valley needs the histogram of all; k-mers below a known threshold need no room.
        """
        return CountParameters(self.kmer, self.min_quality, max(1, self.min_abundance or 1))


def check_odd(kmer: int) -> None:
    """Refuse an even k-mer length.

    Raises:
        UsageError: it is even.
    """
    if kmer % 2 == 0:
        raise UsageError(
            f"--kmer must be odd, not {kmer}: no k-mer is then its own reverse complement"
        )
