"""Parameters of unitigs."""

from __future__ import annotations

from ngsgpu.declared.options import option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_COUNT, MAX_KMER, MIN_KMER, CountParameters


@parameters
class UnitigParameters:
    """Which k-mers make the graph."""

    kmer: int = option(
        31,
        "K",
        "k-mer length, odd, 11 to 127.",
        "-k",
        "--kmer",
        shown_default="31, or the database's",
        least=MIN_KMER,
        most=MAX_KMER,
    )
    min_abundance: int | None = option(
        None,
        "N|auto",
        "Leave out k-mers that occur fewer times; auto: than at the valley of the histogram.",
        word="auto",
        least=1,
        most=MAX_COUNT,
    )
    min_quality: int = option(
        0, "Q", "Skip k-mers that have a base of lower quality.", least=0, most=93
    )

    def __post_init__(self) -> None:
        check_odd(self.kmer)

    def counted(self) -> CountParameters:
        """Parameters of counting the k-mers of reads.

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
            f"`kmer` must be odd, not {kmer}: no k-mer is then its own reverse complement"
        )
