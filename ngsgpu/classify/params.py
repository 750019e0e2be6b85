"""Parameters of databases and of classification.

The method is MetaCache's (Kobus 2022, section 6.4). Windows and limits have the values of its
version 2.6; sketches are larger, and calls are decided by estimated identity, which finds more at
the same precision (``docs/classify.md`` has the curves). ``METACACHE_SKETCH`` and
``METACACHE_CALLS`` are its own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError, check_range
from ngsgpu.taxonomy.ranks import RANK_CODES, rank_code

MAX_KMER: Final = 16
MAX_SKETCH: Final = 32
MAX_WINDOW: Final = 1 << 16
KEEP_ALL: Final = (1 << 31) - 1
"""Limit of locations that is none."""

PER_MILLION: Final = 1_000_000


class SketchRules(NamedTuple):
    """``SketchParameters`` in the kernels' form."""

    kmer: int
    sketch: int
    window: int
    stride: int


@dataclass(frozen=True, slots=True)
class SketchParameters:
    """How sequences are split into windows and windows sketched into features.

    Attributes:
        kmer: length of k-mers, 4 to 16 bases.
        sketch: features per window: its smallest distinct k-mer hashes.
        window: bases per window.
        stride: distance between the starts of consecutive windows; at most ``window``. With the
            default, ``window - kmer + 1``, every k-mer is in one window.
    """

    kmer: int = 16
    sketch: int = 21
    window: int = 127
    stride: int = 112

    def __post_init__(self) -> None:
        if not 4 <= self.kmer <= MAX_KMER:
            raise UsageError(f"--kmer must be from 4 to {MAX_KMER}, not {self.kmer}")
        if not 1 <= self.sketch <= MAX_SKETCH:
            raise UsageError(f"--sketch must be from 1 to {MAX_SKETCH}, not {self.sketch}")
        if not self.kmer <= self.window <= MAX_WINDOW:
            raise UsageError(
                f"--window must be from --kmer ({self.kmer}) to {MAX_WINDOW}, not {self.window}"
            )
        if not 1 <= self.stride <= self.window:
            raise UsageError(
                f"--stride must be from 1 to --window ({self.window}), not {self.stride}"
            )

    @property
    def rules(self) -> SketchRules:
        """The parameters in the kernels' form."""
        return SketchRules(self.kmer, self.sketch, self.window, self.stride)

    def windows(self, length: int) -> int:
        """Windows of a sequence, except those too short for a k-mer."""
        if length <= self.window:
            return int(length >= self.kmer)
        full = (length - self.window) // self.stride + 1
        return full + int(length - full * self.stride >= self.kmer)

    @property
    def per_window(self) -> int:
        """Features of a full window without repeated k-mers."""
        return min(self.sketch, self.window - self.kmer + 1)

    def expected_hits(
        self, length1: NDArray[np.int32], length2: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Hits of queries in an identical sequence above one, times ``stride``.

        Any stretch of a reference sequence has ``per_window / stride`` features per k-mer; a
        query looks up nearly all of them. One hit is chance: of the features of a read, one is
        often somewhere in a large database.

        Args:
            length1: int32[n], bases of reads or first mates.
            length2: int32[n], of second mates; 0 for single reads.

        Returns:
            int64[n], at least ``stride``.
        """
        kmers = np.zeros(len(length1), dtype=np.int64)
        for length in (length1, length2):
            kmers += np.maximum(length.astype(np.int64) - (self.kmer - 1), 0)
        return np.maximum(kmers * self.per_window - self.stride, self.stride)


@dataclass(frozen=True, slots=True)
class DatabaseParameters:
    """How a database is built.

    Attributes:
        sketch: windows and features.
        max_locations: locations kept of a feature in a partition: the first ones in the order of
            the targets. ``KEEP_ALL`` keeps all.
        remove_overfull: drop features with more than ``max_locations`` instead.
        ambiguous_rank: rank at which features of many taxa are dropped; empty: none are.
        max_taxa: taxa of that rank that a feature may have.
    """

    sketch: SketchParameters = field(default_factory=SketchParameters)
    max_locations: int = 254
    remove_overfull: bool = False
    ambiguous_rank: str = ""
    max_taxa: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.max_locations <= KEEP_ALL:
            raise UsageError(f"--max-locations must be all or above 0, not {self.max_locations}")
        if self.max_taxa < 1:
            raise UsageError(f"--max-taxa must be 1 or more, not {self.max_taxa}")

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds them."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> DatabaseParameters:
        """From the manifest."""
        return cls(**{**values, "sketch": SketchParameters(**values["sketch"])})


class QueryRules(NamedTuple):
    """``QueryParameters`` in the kernels' form; ratios in millionths.

    ``unit`` is the stride of the windows, in which ``SketchParameters.expected_hits`` counts.
    """

    min_hits: int
    near_hits: int
    unit: int
    difference: int
    confidence: int
    species_confidence: int
    insert_size: int
    lowest: int
    highest: int
    best_alone: int


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """How queries are classified.

    Attributes:
        min_hits: minimum hits of the best candidate for a call; None: a third of the sketch, 2 and
            1
            for sketches of less than 6 and 4 features.
        hit_difference: candidates that trail the best one by more than this fraction of its hits
            above ``near_hits`` are ignored; 0 to 1.
        near_hits: see ``hit_difference``; None: ``min_hits``.
        confidence: minimum fraction of the query's k-mers that the best candidate shares, as
            estimated from hits; 0 to 1.
        species_confidence: the same for a call at species level or below; otherwise the next rank
            is called; 0 to 1.
        candidates: number of reference sequences (or taxa of the lowest rank) kept.
        insert_size: maximum span of a pair on a target, in bases; at least the query's length.
        lowest: lowest rank of a call.
        highest: highest rank of a call; above it queries are unclassified.
        ties: queries with several close candidates in a database without a taxonomy: ``first``
            calls
            the best one, on ties that of the earliest reference sequence; ``ambiguous`` leaves them
            unclassified.
    """

    min_hits: int | None = 3
    hit_difference: float = 1.0
    near_hits: int | None = None
    confidence: float = 0.05
    species_confidence: float = 0.22
    candidates: int = 6
    insert_size: int = 0
    lowest: str = "sequence"
    highest: str = "domain"
    ties: str = "first"

    def __post_init__(self) -> None:
        if self.min_hits is not None and self.min_hits < 1:
            raise UsageError(f"--min-hits must be 1 or more, not {self.min_hits}")
        check_range("--near-hits", self.near_hits, 1)
        for name in ("hit_difference", "confidence", "species_confidence"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise UsageError(f"--{name.replace('_', '-')} must be 0 to 1, not {value:g}")
        if not 1 <= self.candidates <= 64:
            raise UsageError(f"--candidates must be from 1 to 64, not {self.candidates}")
        if self.insert_size < 0:
            raise UsageError(f"--insert-size must be 0 or more, not {self.insert_size}")
        if self.ties not in ("first", "ambiguous"):
            raise UsageError(f"--ties must be first or ambiguous, not {self.ties!r}")
        for option, rank in (("--lowest", self.lowest), ("--highest", self.highest)):
            if rank not in RANK_CODES:
                known = ", ".join(RANK_CODES)
                raise UsageError(f"{option} {rank!r} is not a rank; choose one of {known}")
        if RANK_CODES[self.lowest] > RANK_CODES[self.highest]:
            raise UsageError(f"--lowest {self.lowest} is above --highest {self.highest}")

    def hits_needed(self, sketch: int) -> int:
        """``min_hits`` for sketches of this size."""
        if self.min_hits is not None:
            return self.min_hits
        if sketch >= 6:
            return sketch // 3
        return 2 if sketch >= 4 else 1


METACACHE_SKETCH: Final = SketchParameters(sketch=16)
"""Windows and sketches of MetaCache's databases."""

METACACHE_CALLS: Final = QueryParameters(
    min_hits=None, confidence=0.0, species_confidence=0.0, candidates=2, ties="ambiguous"
)
"""With these, and its sketches, calls are MetaCache's."""

CALLS_BY_EVIDENCE: Final = QueryParameters(near_hits=2, species_confidence=0.0)
"""For calls by the identity of the species in a sample; see ``ngsgpu.classify.call.evidence``."""


MOST_ERRORS: Final = 0.25
"""Largest `EvidenceParameters.read_errors`."""


@dataclass(frozen=True, slots=True)
class EvidenceParameters:
    """Thresholds for accepting a species.

    Attributes:
        species_identity: minimum identity of a species to its references; 0 accepts all in a
            single pass.
        genus_identity: the same for a genus, judged by its best species.
        doubtful_confidence: minimum fraction of shared k-mers for reads with only rejected species
            near the best.
        read_errors: errors per base of the reads; None: estimated from the sample.
        max_accident: highest probability of a species' reads by chance; 1 accepts any.
    """

    species_identity: float = 0.0
    genus_identity: float = 0.9
    doubtful_confidence: float = 0.1
    read_errors: float | None = None
    max_accident: float = 1.0

    def __post_init__(self) -> None:
        for option, value in (
            ("--species-identity", self.species_identity),
            ("--genus-identity", self.genus_identity),
            ("--doubtful-confidence", self.doubtful_confidence),
            ("--read-errors", self.read_errors or 0.0),
            ("--max-accident", self.max_accident),
        ):
            if not 0 <= value <= 1:
                raise UsageError(f"{option} must be 0 to 1, not {value:g}")
        if self.read_errors is not None and self.read_errors > MOST_ERRORS:
            raise UsageError(
                f"--read-errors must be at most {MOST_ERRORS:g}, not {self.read_errors:g}: "
                "k-mers of such reads tell nothing"
            )
        if self.max_accident < 1 and self.species_identity == 0:
            raise UsageError(
                "--max-accident needs --species-identity above 0 (and no --metacache): without it, "
                "species are not judged"
            )


@dataclass(frozen=True, slots=True)
class OutputRules:
    """Rules for the outputs of a sample.

    Attributes:
        columns: column groups of the table of reads; see ``ReadTableWriter``.
        abundance_ranks: ranks of the table of abundances.
        coverage_share: threshold of the coverage filter; 0: no filter.
        evidence: thresholds for accepting species.
    """

    columns: tuple[str, ...] = ("taxon", "score", "target", "range")
    abundance_ranks: tuple[str, ...] = ("species",)
    coverage_share: float = 0.0
    evidence: EvidenceParameters = field(default_factory=EvidenceParameters)

    @property
    def is_two_pass(self) -> bool:
        """Whether all reads have to be looked at before the first is called."""
        return self.coverage_share > 0 or self.evidence.species_identity > 0

    def __post_init__(self) -> None:
        if not 0 <= self.coverage_share < 1:
            raise UsageError(
                f"--coverage-filter must be from 0 to below 1, not {self.coverage_share:g}"
            )
        if not self.abundance_ranks:
            raise UsageError("--abundance-rank names no rank")
        for rank in self.abundance_ranks:
            rank_code(rank)
