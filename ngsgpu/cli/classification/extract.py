"""``ngsgpu extract``: the reads of taxa."""

from __future__ import annotations

from dataclasses import dataclass

from ngsgpu.classify.extract.params import ExtractionParameters
from ngsgpu.cli.options import (
    CompressLevel,
    DryRun,
    FirstOutputs,
    InterleavedInput,
    ReadsOrFirstMates,
    SecondMates,
    SecondOutputs,
    StatsFile,
    ThreadsRun,
)
from ngsgpu.cli.run import cpu_options, run_or_plan
from ngsgpu.declared.options import option
from ngsgpu.declared.roles import Read, ReadDatabase
from ngsgpu.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class ExtractRun(ThreadsRun):
    """A run that copies records."""

    stats: StatsFile = None
    compress_level: CompressLevel = 1
    dry_run: DryRun = False


def extract(
    calls: Read = option(
        ...,
        "FILE",
        "Calls of these reads: the table of classify -o, or Kraken's output.",
        "-c",
        "--calls",
    ),
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    out1: FirstOutputs = None,
    out2: SecondOutputs = None,
    interleaved: InterleavedInput = False,
    database: ReadDatabase | None = option(
        None, "DIR", "The database, for the taxa below others.", "-d", "--database"
    ),
    taxonomy: Read | None = option(
        None,
        "DIR",
        "The taxonomy in place of -d: NCBI's nodes.dmp and names.dmp, or GTDB's files.",
    ),
    *,
    parameters: ExtractionParameters,
    run: ExtractRun,
) -> None:
    """Write the reads of taxa, by the calls of a classification.

    Mates stay together. Records are unchanged and in order; the reads must be those that were
    classified, in the same order.
    Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names
    ending in .gz (BGZF) or .zst are compressed. - is standard input or output.

    Taxon:  ngsgpu extract -c calls.tsv -i R1.fq.gz -I R2.fq.gz -o E1.fq.gz -O E2.fq.gz --taxon 562

    Clade:  ngsgpu extract -c calls.tsv -d DB --taxon 9606 --with-children --invert -i R.fq -o O.fq
    """  # fmt: skip
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.extract.stage import ExtractionStatistics, extract_files, plan_files
    from ngsgpu.taxonomy.dump import load_taxonomy

    if database is not None and taxonomy is not None:
        raise UsageError("`database` has a taxonomy; give only one of it and `taxonomy`")
    options = cpu_options(run, run.compress_level)

    def extracted() -> ExtractionStatistics:
        tree = None if taxonomy is None else load_taxonomy(taxonomy)
        if database is not None:
            tree = open_database(database).taxonomy
            if tree is None:
                raise UsageError(f"{database}: the database has no taxonomy; give `taxonomy`")
        return extract_files(
            calls, in1 or [], out1 or [], in2 or [], out2 or [], interleaved=interleaved,
            parameters=parameters, taxonomy=tree, stats=run.stats, options=options,
        )  # fmt: skip

    run_or_plan(
        run, options, run.stats, extracted,
        lambda: plan_files(in1 or [], in2 or [], interleaved=interleaved, options=options),
    )  # fmt: skip
