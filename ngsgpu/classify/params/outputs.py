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

SHORT_READ_ERRORS: Final = 0.002
"""Errors per base of reads of Illumina."""


@parameters
class EvidenceParameters:
    """What the reads of a sample are called by, together; see ``ngsgpu.classify.call.fit``."""

    species_identity: float = option(
        0.95,
        "X",
        "Least average identity of strains of a species to its reference sequences; what is "
        "farther is a relative that the database lacks. Reads the input twice; 0: calls by "
        "MetaCache's rule, in one pass.",
        least=0,
        below=1,
    )
    posterior: float = option(
        0.95,
        "P",
        "Call a read as the lowest taxon that it is from with this probability.",
        least=0.5,
        most=1,
    )
    max_p_value: float = option(
        0.001,
        "P",
        "Highest p-value of a species that is present: of its reads without it, and of the places "
        "they are in with it.",
        above=0,
        most=1,
    )
    genome_share: float = option(
        0.5,
        "X",
        "A species is present if its reads are scattered over this fraction of its genome; a "
        "plasmid or a gene is less. 0: they may be anywhere, as amplicons are.",
        least=0,
        most=1,
    )
    read_errors: float | None = option(
        None,
        "X|auto",
        "Errors per base of the reads, such as 0.05 for nanopore reads. auto: of long reads as the "
        "qualities of the first ones say, of others 0.002.",
        word="auto",
        least=0,
        most=MOST_ERRORS,
    )

    @property
    def by_model(self) -> bool:
        """Whether calls are by the model, not by MetaCache's rule."""
        return self.species_identity > 0

    @property
    def errors(self) -> float:
        """Errors per base of the reads."""
        return SHORT_READ_ERRORS if self.read_errors is None else self.read_errors


NO_EVIDENCE: Final = EvidenceParameters(species_identity=0.0)
"""Calls by MetaCache's rule, in one pass."""


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
        "With --metacache: drop the least covered reference sequences, up to this fraction of the "
        "summed coverage; 0: none.",
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
        return self.coverage_share > 0 or self.evidence.by_model
