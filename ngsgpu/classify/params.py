"""Parameters of databases and of classification.

The method is MetaCache's (Kobus 2022, section 6.4). Windows and limits have the values of its
version 2.6; sketches are larger, and calls are decided by estimated identity, which finds more at
the same precision (``docs/classify.md`` has the curves). ``METACACHE_SKETCH`` and
``METACACHE_CALLS`` are its own. What kernels need is imported when it is used, since the command
line imports the parameters.
"""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ngsgpu.declared.options import flag, option, value
from ngsgpu.declared.roles import Text
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES, RANKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_KMER: Final = 16
MAX_SKETCH: Final = 32
MAX_WINDOW: Final = 1 << 16
KEEP_ALL: Final = (1 << 31) - 1
"""Limit of locations that is none."""

PER_MILLION: Final = 1_000_000

ALL_KEYS: Final = 1 << 16
"""Values of the half of a key that decides whether its feature is kept: one bit more than it."""
LEAST_KEPT: Final = ALL_KEYS >> 10
"""Of the smallest fraction, a 1024th."""
_FEW_KEPT: Final = ALL_KEYS >> 2
"""A quarter: four features of a read of 100 bases, in the mean."""
_THIN_SCALE: Final = 256
_SLACK: Final = 16


class SketchRules(NamedTuple):
    """``SketchParameters`` in the kernels' form.

    Features are kept if the lower half of their key is below ``kept``.
    """

    kmer: int
    sketch: int
    window: int
    stride: int
    kept: int = ALL_KEYS


class HitScale(NamedTuple):
    """How hits are counted where they are compared with those that are expected.

    A hit counts ``unit``; those of chance count ``chance``, and a k-mer of a query adds
    ``per_window`` to what is expected.
    """

    unit: int
    chance: int
    per_window: int


@parameters
class SketchParameters:
    """How sequences are split into windows and windows sketched into features."""

    kmer: int = option(16, "K", "k-mer length, 4 to 16.", least=4, most=MAX_KMER)
    sketch: int = option(
        21, "N", "Features per window (sketch size), 1 to 32.", least=1, most=MAX_SKETCH
    )
    window: int = option(127, "N", "Window length in bases.", least=4, most=MAX_WINDOW)
    stride: int = option(
        112,
        "N",
        "Distance between window starts.",
        shown_default="window - kmer + 1",
        least=1,
    )
    fraction: float = option(
        1.0,
        "F",
        "Keep this fraction of all features, those with the lowest hashes; in steps of 1/65536.",
        least=LEAST_KEPT / ALL_KEYS,
        most=1,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", round(self.fraction * ALL_KEYS) / ALL_KEYS)
        if self.window < self.kmer:
            raise UsageError(f"`window` must be at least `kmer` ({self.kmer}), not {self.window}")
        if self.stride > self.window:
            raise UsageError(
                f"`stride` must be from 1 to `window` ({self.window}), not {self.stride}"
            )

    @property
    def rules(self) -> SketchRules:
        """The parameters in the kernels' form."""
        return SketchRules(self.kmer, self.sketch, self.window, self.stride, self.kept)

    @property
    def kept(self) -> int:
        """``fraction`` in the kernels' form, 64 to 65,536."""
        return round(self.fraction * ALL_KEYS)

    @property
    def is_thin(self) -> bool:
        """Whether some features are left out."""
        return self.kept < ALL_KEYS

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

    def most_features(self, windows: int) -> int:
        """Features of windows at most.

        Which of them a ``fraction`` keeps is as good as random: a sixteenth is added to what is
        expected.
        """
        most = windows * self.sketch
        if not self.is_thin:
            return most
        expected = -(-most * self.kept // ALL_KEYS)
        return min(most, expected + expected // _SLACK + ALL_KEYS // _THIN_SCALE)

    @property
    def hit_scale(self) -> HitScale:
        """See there; ratios of its values are all that matters."""
        if not self.is_thin:
            return HitScale(self.stride, self.stride, self.per_window)
        share = self.kept * _THIN_SCALE

        def thinned(value: int) -> int:
            return max(1, (value * share + ALL_KEYS // 2) // ALL_KEYS)

        return HitScale(self.stride * _THIN_SCALE, thinned(self.stride), thinned(self.per_window))

    def expected_hits(
        self, length1: NDArray[np.int32], length2: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Hits of queries in an identical sequence above those of chance, as ``HitScale`` counts.

        Any stretch of a reference sequence has ``per_window / stride`` features per k-mer, or
        ``fraction`` of that; a query looks up nearly all of them. One hit is chance: of the
        features of a read, one is often somewhere in a large database; of a fraction of them, that
        fraction.

        Args:
            length1: int32[n], bases of reads or first mates.
            length2: int32[n], of second mates; 0 for single reads.

        Returns:
            int64[n], at least those of chance.
        """
        import numpy as np

        kmers = np.zeros(len(length1), dtype=np.int64)
        for length in (length1, length2):
            kmers += np.maximum(length.astype(np.int64) - (self.kmer - 1), 0)
        _, chance, per_window = self.hit_scale
        return np.maximum(kmers * per_window - chance, chance)


@parameters
class DatabaseParameters:
    """How a database is built."""

    sketch: SketchParameters = field(default_factory=SketchParameters)
    max_locations: int = option(
        254,
        "N|all",
        "Keep the first N locations of a feature in each partition.",
        word="all",
        least=1,
        most=KEEP_ALL,
    )
    remove_overfull: bool = flag(
        "Drop features exceeding --max-locations instead.", "--remove-overfull"
    )
    ambiguous_rank: Text = option(
        "",
        "RANK",
        "Drop features found in more than --max-taxa taxa of this rank.",
        shown_default="none",
    )
    max_taxa: int = option(1, "N", "See --ambiguous-rank.", least=1)

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds them: without the fraction, if all features are kept."""
        values = asdict(self)
        if not self.sketch.is_thin:
            del values["sketch"]["fraction"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> DatabaseParameters:
        """From the manifest."""
        return cls(**{**values, "sketch": SketchParameters(**values["sketch"])})


@parameters
class PartitionRequest:
    """The requested partitioning of a database; by default one partition, if possible."""

    number: int | None = option(
        None,
        "N",
        "Number of partitions.",
        "--partitions",
        shown_default="1",
        least=1,
        most=10_000,
    )
    bytes: int | None = value(None, "Memory limit for the index of a partition.")
    size: int | None = value(
        None, "Limit for the size of the database, which has as many features."
    )

    def __post_init__(self) -> None:
        if self.number is not None and self.bytes is not None:
            raise UsageError("give `number` or `partition_memory`, not both")


class QueryRules(NamedTuple):
    """``QueryParameters`` in the kernels' form; ratios in millionths.

    ``unit`` and ``chance`` are those of ``HitScale``.
    """

    min_hits: int
    near_hits: int
    unit: int
    chance: int
    difference: int
    confidence: int
    species_confidence: int
    insert_size: int
    lowest: int
    highest: int
    best_alone: int


@parameters
class QueryParameters:
    """How queries are classified.

    ``min_hits`` None stands for a third of the sketch, 2 and 1 for sketches of less than 6 and 4
    features; ``near_hits`` None for ``min_hits``. With a ``lowest`` rank above ``sequence``,
    candidates are taxa of it.
    """

    min_hits: int | None = option(
        3,
        "N",
        "Minimum features a read shares with its best candidate; in a database with a fraction of "
        "all features that fraction, at least 2.",
        least=1,
    )
    hit_difference: float = option(
        1.0,
        "X",
        "Ignore candidates that trail the best one by more than this fraction of its hits above "
        "2 (above --min-hits without --species-identity).",
        least=0,
        most=1,
    )
    near_hits: int | None = value(
        None, "Hits of the best candidate from which `hit_difference` counts.", least=1
    )
    confidence: float = option(
        0.05,
        "X",
        "Minimum fraction of a read's k-mers shared with its best candidate, as estimated from "
        "hits, 0 to 1.",
        least=0,
        most=1,
    )
    species_confidence: float = option(
        0.22,
        "X",
        "Minimum fraction for a species call; below it the call moves up one rank.",
        shown_default="0; 0.22 without --species-identity",
        least=0,
        most=1,
    )
    candidates: int = option(
        6, "N", "Candidates kept per read, 1 to 64.", "--candidates-kept", least=1, most=64
    )
    insert_size: int = option(
        0, "N", "Maximum span of a pair.", shown_default="read lengths", least=0
    )
    lowest: str = option("sequence", "RANK", "Lowest rank of calls.", choices=RANKS)
    highest: str = option(
        "domain", "RANK", "Highest rank of calls; above: unclassified.", choices=RANKS
    )
    ties: str = option(
        "first",
        "first|ambiguous",
        "Without a taxonomy, reads with several close candidates get the best one (on ties, the "
        "first in the database) or stay unclassified.",
        shown_default="first; ambiguous with --metacache",
        choices=("first", "ambiguous"),
    )

    def __post_init__(self) -> None:
        if RANK_CODES[self.lowest] > RANK_CODES[self.highest]:
            raise UsageError(f"`lowest` {self.lowest} is above `highest` {self.highest}")

    def hits_needed(self, sketch: SketchParameters) -> int:
        """``min_hits`` for such sketches; of a fraction of the features that fraction, at least 2.

        Halves are rounded up.

        A single hit is chance too often, whatever the fraction.
        """
        size = sketch.sketch
        wanted = self.min_hits or (size // 3 if size >= 6 else 2 if size >= 4 else 1)
        return max(min(wanted, 2), (2 * wanted * sketch.kept + ALL_KEYS) // (2 * ALL_KEYS))

    def hits_near(self, sketch: SketchParameters) -> int:
        """``near_hits`` for such sketches; half as many where few features are left."""
        if self.near_hits is None:
            return self.hits_needed(sketch)
        return self.near_hits if sketch.kept >= _FEW_KEPT else -(-self.near_hits // 2)


METACACHE_SKETCH: Final = SketchParameters(sketch=16)
"""Windows and sketches of MetaCache's databases."""

METACACHE_CALLS: Final = QueryParameters(
    min_hits=None, confidence=0.0, species_confidence=0.0, candidates=2, ties="ambiguous"
)
"""With these, and its sketches, calls are MetaCache's."""

CALLS_BY_EVIDENCE: Final = QueryParameters(near_hits=2, species_confidence=0.0)
"""For calls by the identity of the species in a sample; see ``ngsgpu.classify.call.evidence``."""


MOST_ERRORS: Final = 0.25
"""Errors per base of reads whose k-mers still tell something."""


@parameters
class EvidenceParameters:
    """Thresholds for accepting a species."""

    species_identity: float = option(
        0.94,
        "X",
        "Accept a species only if the identity of its reads to its reference sequences, as "
        "estimated from all of them, reaches this; reads of other species are called one rank "
        "up. Reads the input twice; 0: accept all, one pass.",
        least=0,
        most=1,
    )
    genus_identity: float = option(
        0.9,
        "X",
        "With --species-identity: the same for a genus, judged by its best species.",
        least=0,
        most=1,
    )
    doubtful_confidence: float = option(
        0.1,
        "X",
        "With --species-identity: minimum fraction of shared k-mers for reads without an accepted "
        "species among their candidates.",
        least=0,
        most=1,
    )
    read_errors: float | None = option(
        None,
        "X",
        "With --species-identity: errors per base of the reads, such as 0.05 for nanopore reads; "
        "--confidence and --doubtful-confidence are then fractions of the k-mers that these leave.",
        shown_default="estimated, up to 0.014",
        least=0,
        most=MOST_ERRORS,
    )
    max_accident: float = option(
        1.0,
        "P",
        "With --species-identity: accept no species whose reads have a higher probability than "
        "this if those of all rejected species were spread over the database; 1: any.",
        least=0,
        most=1,
    )

    def __post_init__(self) -> None:
        if self.max_accident < 1 and self.species_identity == 0:
            raise UsageError(
                "`max_accident` needs `species_identity` above 0 (and no `metacache`): without "
                "it, species are not judged"
            )

    def left_by_errors(self, kmer: int) -> float:
        """Fraction of a read's k-mers that ``read_errors`` leave; 1 if they are not stated.

        Fractions that decide about reads are fractions of these.
        """
        return 1.0 if self.read_errors is None else (1 - self.read_errors) ** kmer


NO_EVIDENCE: Final = EvidenceParameters(species_identity=0.0)
"""All species are accepted, in one pass."""


@parameters
class OutputRules:
    """Rules for the outputs of a sample."""

    columns: tuple[Text, ...] = option(
        ("taxon", "score", "target", "range"),
        "LIST",
        "Columns of -o after the read name: taxon, score, target, range, in this order.",
    )
    abundance_ranks: tuple[str, ...] = option(
        ("species",),
        "LIST",
        "Ranks of --abundance, separated by commas.",
        "--abundance-rank",
        choices=RANKS,
    )
    coverage_share: float = option(
        0.0,
        "X",
        "Drop the least covered reference sequences, up to this fraction of the summed coverage; "
        "0: none.",
        "--coverage-filter",
        least=0,
        below=1,
    )
    evidence: EvidenceParameters = NO_EVIDENCE

    def __post_init__(self) -> None:
        if not self.abundance_ranks:
            raise UsageError("`abundance_ranks` names no rank")

    @property
    def is_two_pass(self) -> bool:
        """Whether all reads have to be looked at before the first is called."""
        return self.coverage_share > 0 or self.evidence.species_identity > 0
