"""``ngsgpu classify`` and ``ngsgpu classify-merge``: which taxa reads come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ngsgpu.cli.options import BackendChoice, InterleavedInput, PhredChoice
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.classify.database import Database
    from ngsgpu.classify.params import QueryParameters
    from ngsgpu.classify.sample_run import ClassifyOptions, OutputRules
    from ngsgpu.classify.stats import ClassificationStatistics


def _file(*names: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(*names, metavar="FILE", help=text)
    return option


Reads = Annotated[
    str | None, _file("-o", "--out", text="Table of calls, a line a read; - is standard output.")
]
KrakenReads = Annotated[
    str | None, _file("--kraken-reads", text="A line a read, as Kraken writes them.")
]
Report = Annotated[
    str | None,
    _file("--report", text="Report as Kraken's; name it SAMPLE.kraken2.report.txt for MultiQC."),
]
Krona = Annotated[str | None, _file("--krona", text="Text for Krona (ktImportText).")]
Cami = Annotated[str | None, _file("--cami", text="CAMI profile.")]
Biom = Annotated[str | None, _file("--biom", text="BIOM table of all samples.")]
Abundance = Annotated[
    str | None, _file("--abundance", text="Estimated abundances at --abundance-rank.")
]
Coverage = Annotated[
    str | None, _file("--coverage", text="Where on the reference sequences reads were mapped.")
]
Stats = Annotated[str | None, _file("--stats", text="What was seen and done (JSON).")]
AbundanceRank = Annotated[
    str, typer.Option("--abundance-rank", metavar="RANK", help="Rank of --abundance.")
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="LIST",
        help="Columns of -o beside the read: taxon, score, target, range, in this order.",
    ),
]
SpeciesEvidence = Annotated[
    float,
    typer.Option(
        "--species-evidence",
        metavar="X",
        help="Median part of the features of its reads that must hit for a species to be "
        "believed; reads of others are called at the next rank. Looks at all reads twice; 0: "
        "believe all, look once.",
    ),
]
DoubtfulConfidence = Annotated[
    float,
    typer.Option(
        "--doubtful-confidence",
        metavar="X",
        help="With --species-evidence: part of a read's features that must hit where no species "
        "that is believed is near.",
    ),
]
CoverageFilter = Annotated[
    float,
    typer.Option(
        "--coverage-filter",
        metavar="X",
        help="Leave out the reference sequences that are covered least, up to this part of the "
        "sum of all coverages; 0: none.",
    ),
]
MinHits = Annotated[
    int | None,
    typer.Option(
        "--min-hits",
        metavar="N",
        help="Features that a read has to share with its best candidate.",
        show_default="2; 3 without --species-evidence",
    ),
]
HitDifference = Annotated[
    float,
    typer.Option(
        "--hit-difference",
        metavar="X",
        help="Part of the best candidate's hits above --min-hits by which others must fall "
        "behind, not to count.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        metavar="X",
        help="Part of a read's features that must hit, 0 to 1.",
        show_default="0.12; 0.15 without --species-evidence",
    ),
]
SpeciesConfidence = Annotated[
    float | None,
    typer.Option(
        "--species-confidence",
        metavar="X",
        help="The same, below which a call is no species, but the next rank.",
        show_default="0; 0.25 without --species-evidence",
    ),
]
Metacache = Annotated[
    bool,
    typer.Option(
        "--metacache",
        help="Decide as MetaCache does by default, whatever the four options above say (for a "
        "database with --sketch 16).",
    ),
]
CandidatesKept = Annotated[
    int,
    typer.Option("--candidates-kept", metavar="N", help="Candidates that are looked at, 1 to 64."),
]
InsertSize = Annotated[
    int,
    typer.Option(
        "--insert-size", metavar="N", help="Bases that pairs may span.", show_default="their own"
    ),
]
Lowest = Annotated[str, typer.Option("--lowest", metavar="RANK", help="Lowest rank of calls.")]
Highest = Annotated[
    str,
    typer.Option("--highest", metavar="RANK", help="Highest rank of calls; above: unclassified."),
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", metavar="N", help="Threads that work; 0: all CPUs.")
]
BackendOption = Annotated[
    BackendChoice,
    typer.Option("--backend", metavar="auto|cpu|cuda", help="What computes; all give the same."),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus",
        metavar="N",
        help="GPUs to use: they share the partitions, or the reads; 0: none.",
        show_default="1, if there are any",
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        "--gpu-memory",
        metavar="SIZE",
        help="Memory of the GPU that may be used.",
        show_default="what is free",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(name="classify")(classify)
    app.command(name="classify-merge")(classify_merge)


def classify(
    database: Annotated[
        str | None, typer.Option("-d", "--database", metavar="DIR", help="The database.")
    ] = None,
    references: Annotated[
        list[str] | None,
        typer.Option(
            "--references",
            metavar="FILE",
            help="Build a database of these in memory, in place of -d; repeat for more.",
        ),
    ] = None,
    taxonomy: Annotated[
        str | None, typer.Option("--taxonomy", metavar="DIR", help="For --references.")
    ] = None,
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FILE", help="For --references; see `ngsgpu db build`."),
    ] = None,
    in1: Annotated[
        list[str] | None,
        typer.Option(
            "-i", "--in1", metavar="FILE", help="Reads, or first mates; repeat for each lane."
        ),
    ] = None,
    in2: Annotated[
        list[str] | None,
        typer.Option("-I", "--in2", metavar="FILE", help="Second mates, one file for each -i."),
    ] = None,
    interleaved: InterleavedInput = False,
    sample: Annotated[
        str | None,
        typer.Option("--sample", metavar="NAME", help="The sample's name.", show_default="from -i"),
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples",
            metavar="FILE",
            help="Many samples, in place of -i: a table with columns sample, fastq_1, fastq_2; "
            "{sample} in the names of outputs stands for each one's name.",
        ),
    ] = None,
    only_partition: Annotated[
        int | None,
        typer.Option(
            "--only-partition",
            metavar="K",
            help="Look into this partition only; with --candidates.",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        _file("--candidates", text="Candidates, for `ngsgpu classify-merge`, and nothing else."),
    ] = None,
    out: Reads = None,
    kraken_reads: KrakenReads = None,
    report: Report = None,
    krona: Krona = None,
    cami: Cami = None,
    biom: Biom = None,
    abundance: Abundance = None,
    coverage: Coverage = None,
    stats: Stats = None,
    columns: Columns = "taxon,score,target,range",
    abundance_rank: AbundanceRank = "species",
    min_hits: MinHits = None,
    hit_difference: HitDifference = 1.0,
    confidence: Confidence = None,
    species_confidence: SpeciesConfidence = None,
    candidates_kept: CandidatesKept = 6,
    metacache: Metacache = False,
    insert_size: InsertSize = 0,
    lowest: Lowest = "sequence",
    highest: Highest = "domain",
    coverage_filter: CoverageFilter = 0.0,
    species_evidence: SpeciesEvidence = 0.35,
    doubtful_confidence: DoubtfulConfidence = 0.2,
    phred_offset: Annotated[
        PhredChoice,
        typer.Option(metavar="auto|33|64", help="What quality characters count from."),
    ] = PhredChoice.auto,
    threads: Threads = 0,
    backend: BackendOption = BackendChoice.auto,
    gpus: Gpus = None,
    gpu_memory: GpuMemory = None,
    quiet: Quiet = False,
) -> None:
    """Classify reads by the reference sequences they share features with (MetaCache).

    Reads are FASTQ or FASTA of any length, plain, gzip, BGZF, bzip2 or xz; an output whose name
    ends in .gz is compressed. Give --samples to open the database once for many samples.

    With a database:    ngsgpu classify -d DB -i R1.fq.gz -I R2.fq.gz -o calls.tsv --report r.txt

    Without:            ngsgpu classify --references genomes/ -i reads.fq -o calls.tsv

    Part by part:       ngsgpu classify -d DB --only-partition 0 -i reads.fq --candidates 0.cand

                        ngsgpu classify-merge -d DB 0.cand 1.cand -o calls.tsv
    """
    from dataclasses import replace

    from ngsgpu.device.backend import choose_backend
    from ngsgpu.device.early import prepare_cuda
    from ngsgpu.device.memory import parse_size

    if (samples is None) == (not in1):
        raise UsageError("give the reads with -i, or a sheet of samples with --samples")
    if samples is not None and (in2 or interleaved or sample):
        raise UsageError("--samples names the files: leave out -I, --interleaved and --sample")
    if (only_partition is None) != (candidates is None):
        raise UsageError("--only-partition and --candidates go together")
    parameters = _parameters(
        min_hits,
        hit_difference,
        confidence,
        species_confidence,
        species_evidence,
        candidates_kept,
        metacache,
        insert_size,
        lowest,
        highest,
    )
    memory = None if gpu_memory is None else parse_size(gpu_memory)
    offset = "auto" if phred_offset is PhredChoice.auto else int(phred_offset.value)
    with choose_backend(backend.value, gpus, engines=("cpu", "cuda")) as chosen:
        # The GPU gets ready while Python imports the rest.
        prepare_cuda(
            len(chosen.gpus),
            "ngsgpu.io.gpu_parse",
            "ngsgpu.classify.gpu_search",
            "ngsgpu.classify.gpu_calls",
        )
        from ngsgpu.classify.pipeline import Classifier
        from ngsgpu.classify.samples import SampleOutputs, one_sample, read_samples

        found = (
            read_samples(samples)
            if samples is not None
            else [one_sample(in1 or [], in2 or [], interleaved=interleaved, name=sample)]
        )
        outputs = SampleOutputs(
            out, kraken_reads, report, krona, cami, biom, abundance, coverage, stats, candidates
        )
        outputs.check(len(found))
        rules = _rules(
            columns, abundance_rank, coverage_filter, species_evidence, doubtful_confidence,
            metacache,
        )  # fmt: skip
        options = replace(
            _options(threads, quiet),
            backend=chosen.name,
            may_fall_back=backend is BackendChoice.auto,
            gpus=max(1, len(chosen.gpus)),
            gpu_memory=memory,
            device=str(chosen) if chosen.name == "cuda" else "",
        )
        classifier = Classifier(
            _database(database, references or [], taxonomy, maps or [], options),
            parameters,
            partitions=None if only_partition is None else [only_partition],
            rules=rules,
            options=options,
        )
        done = classifier.classify(found, outputs, phred_offset=offset)  # type: ignore[arg-type]
    _say(done, quiet or candidates is not None)


def classify_merge(
    candidates: Annotated[
        list[str],
        typer.Argument(
            metavar="CANDIDATES...", help="A file of each partition.", show_default=False
        ),
    ],
    database: Annotated[
        str,
        typer.Option("-d", "--database", metavar="DIR", help="The database.", show_default=False),
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample", metavar="NAME", help="The sample's name.", show_default="as in the files"
        ),
    ] = None,
    out: Reads = None,
    kraken_reads: KrakenReads = None,
    report: Report = None,
    krona: Krona = None,
    cami: Cami = None,
    biom: Biom = None,
    abundance: Abundance = None,
    coverage: Coverage = None,
    stats: Stats = None,
    columns: Columns = "taxon,score,target,range",
    abundance_rank: AbundanceRank = "species",
    min_hits: MinHits = None,
    hit_difference: HitDifference = 1.0,
    confidence: Confidence = None,
    species_confidence: SpeciesConfidence = None,
    candidates_kept: CandidatesKept = 6,
    metacache: Metacache = False,
    insert_size: InsertSize = 0,
    lowest: Lowest = "sequence",
    highest: Highest = "domain",
    coverage_filter: CoverageFilter = 0.0,
    species_evidence: SpeciesEvidence = 0.35,
    doubtful_confidence: DoubtfulConfidence = 0.2,
    threads: Threads = 0,
    quiet: Quiet = False,
) -> None:
    """Call the reads of a sample by the candidates that all partitions found.

    The result is that of classifying with all partitions at once. Options that decide which
    candidates there are must be those that the files were made with.
    """
    from ngsgpu.classify.database import open_database
    from ngsgpu.classify.pipeline import Classifier
    from ngsgpu.classify.samples import SampleOutputs

    options = _options(threads, quiet)
    outputs = SampleOutputs(
        out, kraken_reads, report, krona, cami, biom, abundance, coverage, stats
    )
    outputs.check(1)
    classifier = Classifier(
        open_database(database),
        _parameters(
            min_hits,
            hit_difference,
            confidence,
            species_confidence,
            species_evidence,
            candidates_kept,
            metacache,
            insert_size,
            lowest,
            highest,
        ),
        partitions=[],
        rules=_rules(
            columns,
            abundance_rank,
            coverage_filter,
            species_evidence,
            doubtful_confidence,
            metacache,
        ),
        options=options,
    )
    _say([classifier.merge(candidates, outputs, sample)], quiet)


def _options(threads: int, quiet: bool) -> ClassifyOptions:
    import logging

    from ngsgpu.classify.sample_run import ClassifyOptions
    from ngsgpu.device.memory import usable_cpus

    if quiet:
        logging.getLogger("ngsgpu").setLevel(logging.WARNING)
    if threads < 0:
        raise UsageError(f"--threads must be 0 or more, not {threads}")
    return ClassifyOptions(
        threads=threads or usable_cpus(),
        progress=not quiet,
        command=("ngsgpu", *sys.argv[1:]),
    )


def _parameters(
    min_hits: int | None,
    hit_difference: float,
    confidence: float | None,
    species_confidence: float | None,
    species_evidence: float,
    candidates: int,
    metacache: bool,
    insert_size: int,
    lowest: str,
    highest: str,
) -> QueryParameters:
    from dataclasses import replace

    from ngsgpu.classify.params import CALLS_BY_EVIDENCE, METACACHE_CALLS, QueryParameters

    parameters = METACACHE_CALLS
    if not metacache:
        usual = CALLS_BY_EVIDENCE if species_evidence > 0 else QueryParameters()
        parameters = replace(
            usual,
            min_hits=usual.min_hits if min_hits is None else min_hits,
            confidence=usual.confidence if confidence is None else confidence,
            species_confidence=(
                usual.species_confidence if species_confidence is None else species_confidence
            ),
            candidates=candidates,
        )
    return replace(
        parameters,
        hit_difference=hit_difference,
        insert_size=insert_size,
        lowest=lowest,
        highest=highest,
    )


def _rules(
    columns: str,
    abundance_rank: str,
    coverage_filter: float,
    species_evidence: float,
    doubtful_confidence: float,
    metacache: bool,
) -> OutputRules:
    from ngsgpu.classify.evidence import EvidenceParameters
    from ngsgpu.classify.sample_run import OutputRules

    groups = tuple(name for name in columns.split(",") if name)
    evidence = EvidenceParameters(0.0 if metacache else species_evidence, doubtful_confidence)
    return OutputRules(groups, abundance_rank, coverage_filter, evidence)


def _database(
    database: str | None,
    references: list[str],
    taxonomy: str | None,
    maps: list[str],
    options: ClassifyOptions,
) -> Database:
    from ngsgpu.classify.build import build_database
    from ngsgpu.classify.database import open_database
    from ngsgpu.classify.plan import BuildOptions

    if (database is None) == (not references):
        raise UsageError("name a database with -d, or references with --references")
    if database is not None:
        if taxonomy or maps:
            raise UsageError("--taxonomy and --map are for --references; a database has its own")
        return open_database(database)
    return build_database(
        references,
        None,
        taxonomy=taxonomy,
        maps=maps,
        options=BuildOptions(
            threads=options.threads,
            progress=options.progress,
            backend=options.backend,
            may_fall_back=options.may_fall_back,
            gpu_memory=options.gpu_memory,
        ),
    )


def _say(done: list[ClassificationStatistics], quiet: bool) -> None:
    if not quiet:
        for statistics in done:
            typer.echo("\n".join(statistics.summary()), err=True)
