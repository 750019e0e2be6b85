"""How queries are called, by themselves."""

from __future__ import annotations

from typing import Final, NamedTuple

from ngsgpu.classify.params.sketch import ALL_KEYS, SketchParameters
from ngsgpu.declared.options import option
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES, RANKS

PER_MILLION: Final = 1_000_000


class QueryRules(NamedTuple):
    """``QueryParameters`` in the kernels' form; ratios in millionths."""

    min_hits: int
    difference: int
    insert_size: int
    lowest: int
    highest: int
    best_alone: int

    def span_of(self, *, paired: bool) -> int:
        """Bases that a query may span, if it does not have more: single reads have no insert."""
        return self.insert_size if paired else 0


@parameters
class QueryParameters:
    """How queries are classified.

    ``min_hits`` None stands for a third of the sketch, 2 and 1 for sketches of less than 6 and 4
    features; with calls by the model only ``candidates``, ``insert_size``, ``lowest`` and
    ``highest`` count. With a ``lowest`` rank above ``sequence``, candidates are taxa of it.
    """

    min_hits: int | None = option(
        3,
        "N",
        "With --metacache: minimum features a read shares with its best candidate; in a database "
        "with a fraction of all features that fraction, at least 2.",
        least=1,
    )
    hit_difference: float = option(
        1.0,
        "X",
        "With --metacache: ignore candidates that trail the best one by more than this fraction "
        "of its hits above --min-hits.",
        least=0,
        most=1,
    )
    candidates: int = option(
        6,
        "N",
        "Candidates kept per read, 1 to 64.",
        "--candidates-kept",
        shown_default="8; 2 with --metacache",
        least=1,
        most=64,
    )
    insert_size: int = option(
        500,
        "N",
        "Maximum span of a pair, if its mates do not have more bases.",
        shown_default="500; 0 with --metacache",
        least=0,
    )
    lowest: str = option(
        "sequence",
        "RANK",
        "Lowest rank of calls.",
        shown_default="species; sequence with --metacache",
        choices=RANKS,
    )
    highest: str = option(
        "domain", "RANK", "Highest rank of calls; above: unclassified.", choices=RANKS
    )
    ties: str = option(
        "first",
        "first|ambiguous",
        "With --metacache and without a taxonomy, reads with several close candidates get the best "
        "one (on ties, the first in the database) or stay unclassified.",
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


METACACHE_SKETCH: Final = SketchParameters(sketch=16)
"""Windows and sketches of MetaCache's databases."""

METACACHE_CALLS: Final = QueryParameters(
    min_hits=None,
    candidates=2,
    insert_size=0,
    ties="ambiguous",
)
"""With these, and its sketches, calls are MetaCache's."""

CALLS_BY_EVIDENCE: Final = QueryParameters(candidates=8, lowest="species")
"""For calls by the model; see ``ngsgpu.classify.call.fit``."""
