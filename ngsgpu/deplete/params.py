"""Parameters of host indexes and of depletion, and their form for the kernels.

The defaults were chosen on reads of human chromosome 20 with up to 8 % substitutions and of 27
bacteria, and checked on other reads; those for short reads on reads of 36 to 100 bases of the first
half of 5 Mb of it and of 27 bacteria, and checked on the other half and 26 others
(``docs/deplete.md``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ngsgpu.declared.options import flag, option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

CENTRE: Final = 16
"""Bases in the middle of a k-mer that decide whether it is sampled."""

MAX_KMER: Final = 32
_MIN_BASES: Final = 36
_SHORT: Final = 120
MILLION: Final = 1_000_000


class Sampling(NamedTuple):
    """What kernels need to take the sampled k-mers of a sequence; see ``kmers``.

    Attributes:
        kmer: k-mer length.
        limit: highest hash of the centre of a sampled k-mer.
    """

    kmer: int
    limit: np.uint32


class Bounds(NamedTuple):
    """How many bases k-mers of the host have to cover.

    They must be ``least``, and half of the bases of the read or pair up to ``most`` of them, and
    ``millionths`` of its bases in millionths. Of a read or pair of up to ``short_bases`` any number
    is enough if all sampled k-mers are the host's, or if with one other base they cover three
    quarters.

    Attributes:
        least: of any read.
        most: that are always enough, but for the share.
        millionths: share of the bases.
        short_bases: of a read or pair that one error may hide.
    """

    least: int
    most: int
    millionths: int
    short_bases: int


@parameters
class IndexParameters:
    """Which k-mers of a host are kept in its index.

    Longer k-mers are lost to more substitutions, shorter ones occur by chance in other genomes;
    repetitive ones (of homopolymers and microsatellites) occur in all.
    """

    kmer: int = option(
        24, "K", "k-mer length, even, 16 to 32.", "-k", "--kmer", least=CENTRE, most=MAX_KMER
    )
    one_in: int = option(
        4,
        "N",
        "Sample one in N k-mers, 1 to 1000; fewer need less memory but miss more.",
        least=1,
        most=1000,
    )
    max_repeats: int = option(
        40,
        "N",
        "Leave out k-mers with more than N pairs of equal triplets: homopolymers, microsatellites.",
        least=0,
        most=1000,
    )

    def __post_init__(self) -> None:
        if self.kmer % 2:
            raise UsageError(
                f"`kmer` must be an even number from {CENTRE} to {MAX_KMER}, not {self.kmer}"
            )

    def sampling(self) -> Sampling:
        """The parameters for the kernels."""
        import numpy as np

        return Sampling(self.kmer, np.uint32((1 << 32) // self.one_in - 1))


@parameters
class DepletionParameters:
    """Which reads are the host's, and which are kept."""

    min_bases: int | None = option(
        None,
        "N|auto",
        "A read, or a pair as a whole, is the host's if k-mers of the host cover at least N bases; "
        "auto: 36, or half of the bases if that is less, but more than a k-mer; fewer of a short "
        "read of which one error may hide the others.",
        "-a",
        "--min-bases",
        word="auto",
        least=1,
    )
    min_share: float = option(
        0.01, "X", "And at least this share of its bases.", "-r", "--min-share", least=0, most=1
    )
    keep_host: bool = flag("Keep the host's reads instead of the others.", "--keep-host")
    rename: bool = flag(
        "Call the reads of each output 1, 2, 3, ..., both mates the same; their names may identify "
        "a run."
    )

    def bounds(self, kmer: int) -> Bounds:
        """What kernels need to decide, for k-mers of a length."""
        if self.min_bases is not None:
            return Bounds(self.min_bases, self.min_bases, self.millionths, 0)
        return Bounds(kmer + 1, _MIN_BASES, self.millionths, _SHORT)

    @property
    def millionths(self) -> int:
        """``min_share`` in millionths."""
        return round(self.min_share * MILLION)
