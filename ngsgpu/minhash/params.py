"""Parameters of the tables in which reads find each other."""

from __future__ import annotations

import dataclasses
from typing import Final, Self

from ngsgpu.declared.limits import MAX_SEED
from ngsgpu.declared.options import RESEARCH, option, value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

MAX_ENTRIES: Final = 16_384
"""Table entries that a read looks at, over all tables."""

PLACE_BITS: Final = 8

FEWEST_BASES: Final = 16
MOST_BASES: Final = 20
"""Of the k-mers of tables, where their length is chosen."""

MOST_TABLES: Final = 48
FEWEST_TABLES: Final = 16
"""Where the number of tables is chosen."""

MANY_ENTRIES: Final = 1 << 33
"""Entries of all tables beyond which there are fewer tables."""

MANY_REPEATED: Final = 0.04
"""Share of the k-mers in buckets of repeats from which the longest ones are chosen."""


@parameters
class MinhashParameters:
    """The search for overlapping reads (CARE, section 4.3.1)."""

    kmer: int | None = option(
        None,
        "K",
        "k-mer length: of the minhash tables, 8 to 32; with --method spectrum 11 to 31; auto: "
        "chosen by the number of bases, 16 to 20, or by the size of the genome.",
        word="auto",
        least=8,
        most=32,
    )
    hashes: int | None = option(
        None,
        "N",
        "Hash functions, one table each, 1 to 255; more find more overlaps but need more memory "
        "(5 bytes per read and table); auto: 48, for more than 178 million reads fewer, at least "
        "16.",
        word="auto",
        least=1,
        most=255,
    )
    crowd_factor: float = value(
        2.5,
        "A bucket of more than this times the coverage comes from a repeat; a read examines that "
        "many of its entries.",
        least=0,
        most=1000,
    )
    crowd_minimum: int = value(
        10,
        "Buckets of at most this many reads are never considered repeats.",
        least=1,
        most=MAX_ENTRIES,
    )
    seed: int = option(
        0, "N", "Seed of the hash functions.", least=0, most=MAX_SEED, group=RESEARCH
    )

    @property
    def k(self) -> int:
        """The k-mer length given or chosen (``for_reads``), otherwise the longest one."""
        return MOST_BASES if self.kmer is None else self.kmer

    @property
    def tables(self) -> int:
        """The number of tables given or chosen (``for_number``), otherwise the largest one."""
        return MOST_TABLES if self.hashes is None else self.hashes

    def for_number(self, reads: int) -> Self:
        """The same with a number of tables that suits a number of reads."""
        if self.hashes is not None:
            return self
        fitting = MANY_ENTRIES // max(1, reads)
        return dataclasses.replace(self, hashes=min(MOST_TABLES, max(FEWEST_TABLES, fitting)))

    def for_reads(
        self, reads: int, bases: int, repeated: float = 0.0, coverage: float = 0.0
    ) -> Self:
        """The same with a number of tables and a k-mer length that suit some reads.

        Of 16 times as many k-mers as there are bases, hardly any meet by chance; the shorter they
        are, the more reads with errors share some with others. But the more do copies of a repeat.
        Where a bucket has more reads than are looked at, there is no lack of others.

        Args:
            reads: number of reads.
            bases: of all of them.
            repeated: share of their k-mers, of that length, that are in buckets of repeats.
            coverage: reads per position.
        """
        own = self.for_number(reads)
        if own.kmer is not None:
            return own
        wanted = (max(16 * bases - 1, 1).bit_length() + 1) // 2
        if repeated > MANY_REPEATED or coverage > MAX_ENTRIES // own.tables:
            wanted = MOST_BASES
        return dataclasses.replace(own, kmer=min(max(FEWEST_BASES, wanted), MOST_BASES))

    @property
    def first_function(self) -> int:
        """Number that the first hash function adds to a k-mer."""
        return self.seed << 8

    def max_bucket_size(self, coverage: float) -> int:
        """Most reads in a bucket that is not a repeat's, at a coverage (reads per position)."""
        return max(self.crowd_minimum, int(self.crowd_factor * coverage))

    def window(self, coverage: float) -> int:
        """Reads of a bucket that are looked at, so that all tables give ``MAX_ENTRIES`` at most."""
        return min(self.max_bucket_size(coverage), MAX_ENTRIES // self.tables)


@parameters
class EndParameters:
    """How reads that begin inside a sequence are found."""

    kmer: int = option(20, "K", "k-mer length of the tables, 8 to 32.", least=8, most=32)
    window: int = value(50, "First bases of an end whose k-mers count.")
    hashes: int = option(
        4,
        "N",
        "Hash functions, one table each (17 bytes per read and table); 2 suffice for corrected "
        "reads.",
        least=1,
        most=64,
    )
    seed: int = option(0, "N", "Seed of the hash functions.", least=0, most=MAX_SEED)

    def __post_init__(self) -> None:
        longest = self.kmer + (1 << PLACE_BITS) - 1
        if not self.kmer <= self.window <= longest:
            raise UsageError(
                f"the window must be from {self.kmer} (the k-mer length) to {longest} bases, "
                f"not {self.window}"
            )

    @property
    def first_function(self) -> int:
        """Number that the first hash function adds to a k-mer."""
        return self.seed << 8
