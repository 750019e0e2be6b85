"""Options shared by ``ngsgpu classify`` and ``ngsgpu classify-merge``: outputs and calling."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ngsgpu.classify.params import QueryParameters
    from ngsgpu.classify.run.cpu_run import OutputRules
    from ngsgpu.classify.run.samples import SampleOutputs


Gpus = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="GPUs to use; partitions, or else reads, are distributed over them; 0: none.",
        show_default="1 if available",
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory budget per GPU.",
        show_default="free memory",
    ),
]


NoVerify = Annotated[
    bool,
    typer.Option(
        "--no-verify",
        help="Skip checksum verification of the database.",
    ),
]


def output_file(*names: str, text: str) -> typer.models.OptionInfo:
    """An option that names a file."""
    option: typer.models.OptionInfo = typer.Option(*names, metavar="FILE", help=text)
    return option


@dataclass(frozen=True)
class OutputFiles:
    """Output files, named as in ``SampleOutputs``."""

    reads: Annotated[
        str | None,
        output_file("-o", "--out", text="Table of calls, one line per read; -: standard output."),
    ] = None
    kraken_reads: Annotated[
        str | None, output_file("--kraken-reads", text="Calls in Kraken's per-read format.")
    ] = None
    report: Annotated[
        str | None,
        output_file(
            "--report", text="Kraken-style report; name it SAMPLE.kraken2.report.txt for MultiQC."
        ),
    ] = None
    krona: Annotated[
        str | None, output_file("--krona", text="Krona text input (ktImportText).")
    ] = None
    cami: Annotated[str | None, output_file("--cami", text="CAMI profile.")] = None
    biom: Annotated[str | None, output_file("--biom", text="BIOM table of all samples.")] = None
    abundance: Annotated[
        str | None, output_file("--abundance", text="Estimated abundances at --abundance-rank.")
    ] = None
    coverage: Annotated[
        str | None,
        output_file("--coverage", text="Coverage of the reference sequences by mapped reads."),
    ] = None
    stats: Annotated[str | None, output_file("--stats", text="Run statistics (JSON).")] = None

    def outputs(self, candidates: str | None = None) -> SampleOutputs:
        """Convert to the classifier's ``SampleOutputs``."""
        from ngsgpu.classify.run.samples import SampleOutputs

        return SampleOutputs(**asdict(self), candidates=candidates)


@dataclass(frozen=True)
class CallOptions:
    """Options for calling reads and for the outputs' contents."""

    columns: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Columns of -o after the read name: taxon, score, target, range, in this order.",
        ),
    ] = "taxon,score,target,range"
    abundance_rank: Annotated[str, typer.Option(metavar="RANK", help="Rank of --abundance.")] = (
        "species"
    )
    min_hits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Minimum features a read shares with its best candidate.",
            show_default="2; 3 without --species-evidence",
        ),
    ] = None
    hit_difference: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Ignore candidates that trail the best one by more than this fraction of its hits "
            "above --min-hits.",
        ),
    ] = 1.0
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Minimum fraction of a read's features that must hit, 0 to 1.",
            show_default="0.12; 0.15 without --species-evidence",
        ),
    ] = None
    species_confidence: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Minimum fraction for a species call; below it the call moves up one rank.",
            show_default="0.2; 0.25 without --species-evidence",
        ),
    ] = None
    candidates_kept: Annotated[
        int, typer.Option(metavar="N", help="Candidates kept per read, 1 to 64.")
    ] = 6
    metacache: Annotated[
        bool,
        typer.Option(
            "--metacache",
            help="Classify with MetaCache's defaults: overrides the five options above and turns "
            "--species-evidence off (for a database with --sketch 16).",
        ),
    ] = False
    ties: Annotated[
        str,
        typer.Option(
            metavar="first|ambiguous",
            help="Without a taxonomy, reads with several close candidates get the best one (on "
            "ties, the first in the database) or stay unclassified.",
            show_default="first; ambiguous with --metacache",
        ),
    ] = ""
    insert_size: Annotated[
        int,
        typer.Option(metavar="N", help="Maximum span of a pair.", show_default="read lengths"),
    ] = 0
    lowest: Annotated[str, typer.Option(metavar="RANK", help="Lowest rank of calls.")] = "sequence"
    highest: Annotated[
        str, typer.Option(metavar="RANK", help="Highest rank of calls; above: unclassified.")
    ] = "domain"
    coverage_filter: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Drop the least covered reference sequences, up to this fraction of the summed "
            "coverage; 0: none.",
        ),
    ] = 0.0
    species_evidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Accept a species only if the median fraction of hit features over its reads "
            "reaches this; reads of other species are called one rank up. Reads the input twice; "
            "0: accept all, one pass.",
        ),
    ] = 0.4
    genus_evidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="With --species-evidence: the same for a genus, judged by its best species.",
        ),
    ] = 0.2
    doubtful_confidence: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="With --species-evidence: minimum fraction of hit features for reads without an "
            "accepted species among their candidates.",
        ),
    ] = 0.2

    def parameters(self) -> QueryParameters:
        """Parameters that decide the call of a read."""
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
        """Rules that apply to a whole sample and to its outputs."""
        from ngsgpu.classify.call.evidence import EvidenceParameters
        from ngsgpu.classify.run.cpu_run import OutputRules

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
