"""Options shared by ``ngsgpu classify`` and ``ngsgpu classify-merge``: outputs and calling."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated

from ngsgpu.classify.formats import formats
from ngsgpu.cli.options import Compute
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import Text, Written

if TYPE_CHECKING:
    from ngsgpu.classify.params import OutputRules, QueryParameters


Gpus = Annotated[
    int | None,
    option(
        ...,
        "N",
        "GPUs to use; partitions, or else reads, are distributed over them; 0: none.",
        shown_default="1 if available",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClassifyRun(Compute):
    """A run that looks up features."""

    gpus: Gpus = None


NoVerify = Annotated[
    bool, flag("Skip checksum verification of the database.", "--no-verify", default=...)
]


if TYPE_CHECKING:

    @dataclass(frozen=True)
    class OutputFiles:
        """Output files, by the names of formats."""

else:
    OutputFiles = make_dataclass(
        "OutputFiles",
        [
            (own.name, Written | None, option(None, own.metavar, own.help, *own.names))
            for own in formats().values()
        ],
        frozen=True,
    )


@dataclass(frozen=True)
class CallOptions:
    """Options for calling reads and for the outputs' contents."""

    columns: Text = option(
        "taxon,score,target,range",
        "LIST",
        "Columns of -o after the read name: taxon, score, target, range, in this order.",
    )
    abundance_rank: Text = option("species", "LIST", "Ranks of --abundance, separated by commas.")
    min_hits: int | None = option(
        None,
        "N",
        "Minimum features a read shares with its best candidate.",
        shown_default="3",
    )
    hit_difference: float = option(
        1.0,
        "X",
        "Ignore candidates that trail the best one by more than this fraction of its hits above "
        "2 (above --min-hits without --species-identity).",
    )
    confidence: float = option(
        0.05,
        "X",
        "Minimum fraction of a read's k-mers shared with its best candidate, as estimated from "
        "hits, 0 to 1.",
    )
    species_confidence: float | None = option(
        None,
        "X",
        "Minimum fraction for a species call; below it the call moves up one rank.",
        shown_default="0; 0.22 without --species-identity",
    )
    candidates_kept: int = option(6, "N", "Candidates kept per read, 1 to 64.")
    metacache: bool = flag(
        "Classify with MetaCache's defaults: overrides the five options above and turns "
        "--species-identity off (for a database with --sketch 16).",
        "--metacache",
    )
    ties: Text = option(
        "",
        "first|ambiguous",
        "Without a taxonomy, reads with several close candidates get the best one (on ties, the "
        "first in the database) or stay unclassified.",
        shown_default="first; ambiguous with --metacache",
    )
    insert_size: int = option(0, "N", "Maximum span of a pair.", shown_default="read lengths")
    lowest: Text = option("sequence", "RANK", "Lowest rank of calls.")
    highest: Text = option("domain", "RANK", "Highest rank of calls; above: unclassified.")
    coverage_filter: float = option(
        0.0,
        "X",
        "Drop the least covered reference sequences, up to this fraction of the summed coverage; "
        "0: none.",
    )
    species_identity: float = option(
        0.94,
        "X",
        "Accept a species only if the identity of its reads to its reference sequences, as "
        "estimated from all of them, reaches this; reads of other species are called one rank "
        "up. Reads the input twice; 0: accept all, one pass.",
    )
    genus_identity: float = option(
        0.9, "X", "With --species-identity: the same for a genus, judged by its best species."
    )
    doubtful_confidence: float = option(
        0.1,
        "X",
        "With --species-identity: minimum fraction of shared k-mers for reads without an accepted "
        "species among their candidates.",
    )
    read_errors: float | None = option(
        None,
        "X",
        "With --species-identity: errors per base of the reads, such as 0.05 for nanopore reads.",
        shown_default="estimated, up to 0.014",
    )
    max_accident: float = option(
        1.0,
        "P",
        "With --species-identity: accept no species whose reads have a higher probability than "
        "this if those of all rejected species were spread over the database; 1: any.",
    )

    def parameters(self) -> QueryParameters:
        """Parameters that decide the call of a read."""
        from dataclasses import replace

        from ngsgpu.classify.params import CALLS_BY_EVIDENCE, METACACHE_CALLS, QueryParameters

        parameters = METACACHE_CALLS
        if not self.metacache:
            usual = CALLS_BY_EVIDENCE if self.species_identity > 0 else QueryParameters()
            parameters = replace(
                usual,
                min_hits=usual.min_hits if self.min_hits is None else self.min_hits,
                hit_difference=self.hit_difference,
                confidence=self.confidence,
                species_confidence=(
                    usual.species_confidence
                    if self.species_confidence is None
                    else self.species_confidence
                ),
                candidates=self.candidates_kept,
            )
        return replace(
            parameters, insert_size=self.insert_size, lowest=self.lowest, highest=self.highest,
            ties=self.ties or parameters.ties,
        )  # fmt: skip

    def rules(self) -> OutputRules:
        """Rules that apply to a whole sample and to its outputs."""
        from ngsgpu.classify.params import EvidenceParameters, OutputRules

        return OutputRules(
            columns=tuple(name for name in self.columns.split(",") if name),
            abundance_ranks=tuple(
                dict.fromkeys(name for name in self.abundance_rank.split(",") if name)
            ),
            coverage_share=self.coverage_filter,
            evidence=EvidenceParameters(
                0.0 if self.metacache else self.species_identity,
                self.genus_identity,
                self.doubtful_confidence,
                self.read_errors,
                self.max_accident,
            ),
        )
