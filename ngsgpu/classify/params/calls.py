"""How queries are called, by themselves."""

from __future__ import annotations

from typing import Final, NamedTuple

from ngsgpu.classify.params.sketch import ALL_KEYS, SketchParameters
from ngsgpu.declared.options import option, value
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES, RANKS

PER_MILLION: Final = 1_000_000

NEVER: Final = 1 << 40
"""More hits than a query has."""
_FEW_KEPT: Final = ALL_KEYS >> 2
"""A quarter: four features of a read of 100 bases, in the mean."""


class QueryRules(NamedTuple):
    """``QueryParameters`` in the kernels' form; ratios in millionths.

    ``unit`` and ``chance`` are those of ``HitScale``.
    """

    min_hits: int
    near_hits: int
    few_hits: int
    many_hits: int
    unit: int
    chance: int
    difference: int
    confidence: int
    species_confidence: int
    insert_size: int
    lowest: int
    highest: int
    best_alone: int

    def by_ties(self) -> QueryRules:
        """The same, but only candidates with as many hits are near the best."""
        return self._replace(near_hits=1, few_hits=0, many_hits=NEVER)

    def span_of(self, *, paired: bool) -> int:
        """Bases that a query may span, if it does not have more: single reads have no insert."""
        return self.insert_size if paired else 0


@parameters
class QueryParameters:
    """How queries are classified.

    ``min_hits`` None stands for a third of the sketch, 2 and 1 for sketches of less than 6 and 4
    features; ``near_hits`` None for ``min_hits``; of a fraction of the features, ``few_hits`` is
    that fraction. With a ``lowest`` rank above ``sequence``, candidates are taxa of it.
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
        "2, of up to 6 hits above 3, from 24 on above 1 (above --min-hits without "
        "--species-identity).",
        least=0,
        most=1,
    )
    near_hits: int | None = value(
        None, "Hits of the best candidate from which `hit_difference` counts.", least=1
    )
    few_hits: int = value(0, "Hits of the best candidate up to which it must lead by one more.")
    many_hits: int = value(NEVER, "Hits of the best candidate from which it must lead by one less.")
    confidence: float = option(
        0.05,
        "X",
        "Minimum fraction of a read's k-mers shared with its best candidate, as estimated from "
        "hits, 0 to 1; in a database with a fraction of all features twice that.",
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
        500,
        "N",
        "Maximum span of a pair, if its mates do not have more bases.",
        shown_default="500; 0 with --metacache",
        least=0,
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
        size = sketch.sketch or sketch.per_window
        wanted = self.min_hits or (size // 3 if size >= 6 else 2 if size >= 4 else 1)
        return max(min(wanted, 2), (2 * wanted * sketch.kept + ALL_KEYS) // (2 * ALL_KEYS))

    def least_share(self, sketch: SketchParameters) -> float:
        """``confidence`` for such sketches; twice that where they are a fraction of the features.

        Of the few hits there, the best candidate has more than others by chance as well.
        """
        return min(self.confidence * (2 if sketch.is_thin else 1), 1.0)

    def hits_near(self, sketch: SketchParameters) -> int:
        """``near_hits`` for such sketches; half as many where few features are left."""
        if self.near_hits is None:
            return self.hits_needed(sketch)
        return self.near_hits if sketch.kept >= _FEW_KEPT else -(-self.near_hits // 2)

    def hits_many(self, sketch: SketchParameters) -> int:
        """``many_hits`` for such sketches: those equal to the best stay near it."""
        return self.many_hits if self.hits_near(sketch) > 1 else NEVER


METACACHE_SKETCH: Final = SketchParameters(sketch=16)
"""Windows and sketches of MetaCache's databases."""

METACACHE_CALLS: Final = QueryParameters(
    min_hits=None,
    confidence=0.0,
    species_confidence=0.0,
    candidates=2,
    insert_size=0,
    ties="ambiguous",
)
"""With these, and its sketches, calls are MetaCache's."""

CALLS_BY_EVIDENCE: Final = QueryParameters(
    near_hits=2, few_hits=6, many_hits=24, species_confidence=0.0
)
"""For calls by the identity of the species in a sample; see ``ngsgpu.classify.call.evidence``."""
