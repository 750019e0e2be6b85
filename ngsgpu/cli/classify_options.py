"""What ``ngsgpu classify`` and ``ngsgpu classify-merge`` both take: outputs, and how to call."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ngsgpu.classify.params import QueryParameters
    from ngsgpu.classify.sample_run import OutputRules
    from ngsgpu.classify.samples import SampleOutputs


Gpus = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="GPUs to use: they share the partitions, or the reads; 0: none.",
        show_default="1, if there are any",
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of each GPU that may be used.",
        show_default="what is free",
    ),
]


NoVerify = Annotated[
    bool,
    typer.Option(
        "--no-verify",
        help="Do not compare what is read of the database with its checksums.",
    ),
]


def output_file(*names: str, text: str) -> typer.models.OptionInfo:
    """An option that names a file."""
    option: typer.models.OptionInfo = typer.Option(*names, metavar="FILE", help=text)
    return option


@dataclass(frozen=True)
class OutputFiles:
    """Files to write, named as in ``SampleOutputs``."""

    reads: Annotated[
        str | None,
        output_file("-o", "--out", text="Table of calls, a line a read; - is standard output."),
    ] = None
    kraken_reads: Annotated[
        str | None, output_file("--kraken-reads", text="A line a read, as Kraken writes them.")
    ] = None
    report: Annotated[
        str | None,
        output_file(
            "--report", text="Report as Kraken's; name it SAMPLE.kraken2.report.txt for MultiQC."
        ),
    ] = None
    krona: Annotated[str | None, output_file("--krona", text="Text for Krona (ktImportText).")] = (
        None
    )
    cami: Annotated[str | None, output_file("--cami", text="CAMI profile.")] = None
    biom: Annotated[str | None, output_file("--biom", text="BIOM table of all samples.")] = None
    abundance: Annotated[
        str | None, output_file("--abundance", text="Estimated abundances at --abundance-rank.")
    ] = None
    coverage: Annotated[
        str | None,
        output_file("--coverage", text="Where on the reference sequences reads were mapped."),
    ] = None
    stats: Annotated[str | None, output_file("--stats", text="What was seen and done (JSON).")] = (
        None
    )

    def outputs(self, candidates: str | None = None) -> SampleOutputs:
        """As the classifier takes them."""
        from ngsgpu.classify.samples import SampleOutputs

        return SampleOutputs(**asdict(self), candidates=candidates)


@dataclass(frozen=True)
class CallOptions:
    """How reads are called, and what the outputs show of it."""

    columns: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Columns of -o beside the read: taxon, score, target, range, in this order.",
        ),
    ] = "taxon,score,target,range"
    abundance_rank: Annotated[str, typer.Option(metavar="RANK", help="Rank of --abundance.")] = (
        "species"
    )
    min_hits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Features that a read has to share with its best candidate.",
            show_default="2; 3 without --species-evidence",
        ),
    ] = None
    hit_difference: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Part of the best candidate's hits above --min-hits by which others must fall "
            "behind, not to count.",
        ),
    ] = 1.0
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Part of a read's features that must hit, 0 to 1.",
            show_default="0.12; 0.15 without --species-evidence",
        ),
    ] = None
    species_confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="The same, below which a call is no species, but the next rank.",
            show_default="0.2; 0.25 without --species-evidence",
        ),
    ] = None
    candidates_kept: Annotated[
        int, typer.Option(metavar="N", help="Candidates that are looked at, 1 to 64.")
    ] = 6
    metacache: Annotated[
        bool,
        typer.Option(
            "--metacache",
            help="Decide as MetaCache does by default, whatever the five options above say, and "
            "without --species-evidence (for a database with --sketch 16).",
        ),
    ] = False
    ties: Annotated[
        str,
        typer.Option(
            metavar="first|ambiguous",
            help="Without a taxonomy, reads with several near candidates: called by the best, of "
            "equal ones the first in the database, or unclassified.",
            show_default="first; ambiguous with --metacache",
        ),
    ] = ""
    insert_size: Annotated[
        int, typer.Option(metavar="N", help="Bases that pairs may span.", show_default="their own")
    ] = 0
    lowest: Annotated[str, typer.Option(metavar="RANK", help="Lowest rank of calls.")] = "sequence"
    highest: Annotated[
        str, typer.Option(metavar="RANK", help="Highest rank of calls; above: unclassified.")
    ] = "domain"
    coverage_filter: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Leave out the reference sequences that are covered least, up to this part of the "
            "sum of all coverages; 0: none.",
        ),
    ] = 0.0
    species_evidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Median part of the features of its reads that must hit for a species to be "
            "believed; reads of others are called at the next rank. Looks at all reads twice; 0: "
            "believe all, look once.",
        ),
    ] = 0.4
    genus_evidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="With --species-evidence: the same for a genus, of which the best species counts.",
        ),
    ] = 0.2
    doubtful_confidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="With --species-evidence: part of a read's features that must hit where no "
            "species that is believed is near.",
        ),
    ] = 0.2

    def parameters(self) -> QueryParameters:
        """What decides about a read."""
        from dataclasses import replace

        from ngsgpu.classify.params import CALLS_BY_EVIDENCE, METACACHE_CALLS, QueryParameters

        parameters = METACACHE_CALLS
        if not self.metacache:
            usual = CALLS_BY_EVIDENCE if self.species_evidence > 0 else QueryParameters()
            parameters = replace(
                usual,
                min_hits=usual.min_hits if self.min_hits is None else self.min_hits,
                hit_difference=self.hit_difference,
                confidence=usual.confidence if self.confidence is None else self.confidence,
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
        """What decides about a sample, and what is shown."""
        from ngsgpu.classify.evidence import EvidenceParameters
        from ngsgpu.classify.sample_run import OutputRules

        return OutputRules(
            columns=tuple(name for name in self.columns.split(",") if name),
            abundance_rank=self.abundance_rank,
            coverage_share=self.coverage_filter,
            evidence=EvidenceParameters(
                0.0 if self.metacache else self.species_evidence,
                self.genus_evidence,
                self.doubtful_confidence,
            ),
        )
