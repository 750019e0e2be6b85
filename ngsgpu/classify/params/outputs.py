"""What a sample's reads together decide, and the rules of its outputs."""

from __future__ import annotations

from typing import Final

from ngsgpu.declared.options import OUTPUT, option
from ngsgpu.declared.roles import Text
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANKS

MOST_ERRORS: Final = 0.25
"""Errors per base of reads whose k-mers still tell something."""


@parameters
class EvidenceParameters:
    """Thresholds for accepting a species."""

    species_identity: float = option(
        0.93,
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
        0.05,
        "X",
        "With --species-identity: minimum fraction of shared k-mers for reads without an accepted "
        "species among their candidates.",
        least=0,
        most=1,
    )
    read_errors: float | None = option(
        None,
        "X|auto",
        "With --species-identity: errors per base of the reads, such as 0.05 for nanopore reads; "
        "--confidence and --doubtful-confidence are then fractions of the k-mers that these leave. "
        "auto: of long reads as the qualities of the first ones say, if more than 0.014; else "
        "estimated from hits, up to 0.014.",
        word="auto",
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
        group=OUTPUT,
    )
    abundance_ranks: tuple[str, ...] = option(
        ("species",),
        "LIST",
        "Ranks of --abundance, separated by commas.",
        "--abundance-rank",
        choices=RANKS,
        group=OUTPUT,
    )
    coverage_share: float = option(
        0.0,
        "X",
        "Drop the least covered reference sequences, up to this fraction of the summed coverage; "
        "0: none.",
        "--coverage-filter",
        least=0,
        below=1,
        group=OUTPUT,
    )
    evidence: EvidenceParameters = NO_EVIDENCE

    def __post_init__(self) -> None:
        if not self.abundance_ranks:
            raise UsageError("`abundance_ranks` names no rank")

    @property
    def is_two_pass(self) -> bool:
        """Whether all reads have to be looked at before the first is called."""
        return self.coverage_share > 0 or self.evidence.species_identity > 0
