"""``ngsgpu classify``, ``classify-merge``, ``classify-table``: assign reads to taxa."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from ngsgpu.classify.params import OutputRules, QueryParameters
from ngsgpu.cli.classification import served
from ngsgpu.cli.classification.options import (
    ClassifyRun,
    Metacache,
    NoVerify,
    calling,
    open_classify_run,
    output_files,
)
from ngsgpu.cli.options import (
    CompressLevel,
    DryRun,
    InterleavedInput,
    PhredOffsetOption,
    SecondMates,
    StatsFile,
    ThreadsRun,
)
from ngsgpu.cli.run import cpu_options, phred, shows_plan
from ngsgpu.declared.options import INPUT, OUTPUT, argument, option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import (
    Read,
    ReadByName,
    ReadDatabase,
    ReadPath,
    Reads,
    Sheet,
    Text,
    Written,
)
from ngsgpu.errors import InputError, UsageError

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.classify.run.samples import ClassificationStatistics, SampleOutputs
    from ngsgpu.device.plan import HostPlan
    from ngsgpu.run.options import RunOptions

    @dataclass(frozen=True)
    class OutputFiles:
        """Output files, by the names of formats; made below, when all other options are known."""


@dataclass(frozen=True, kw_only=True)
class SamplesRun(ClassifyRun):
    """A run that classifies samples."""

    dry_run: DryRun = False


def classify(
    *,
    database: ReadDatabase | None = option(None, "DIR", "The database.", "-d", "--database"),
    references: list[Read] | None = option(
        None,
        "FILE",
        "Build a database of these files in memory, in place of -d; repeat for more.",
    ),
    taxonomy: Read | None = option(
        None, "DIR", "Taxonomy of --references: a folder with nodes.dmp and names.dmp."
    ),
    maps: list[Read] | None = option(
        None, "FILE", "Sequence-to-taxon mapping of --references; see `ngsgpu db build`.", "--map"
    ),
    in1: list[Reads] | None = option(
        None, "FILE", "Reads or first mates; repeat for each lane.", "-i", "--in1"
    ),
    in2: SecondMates = None,
    interleaved: InterleavedInput = False,
    sample: Text | None = option(
        None, "NAME", "Sample name.", shown_default="from -i", group=OUTPUT
    ),
    samples: Sheet | None = option(
        None,
        "FILE",
        "Sample sheet, in place of -i: columns sample, fastq_1, fastq_2; {sample} in output names "
        "is replaced by the sample name. -: samples are taken from standard input as they come.",
    ),
    only_partition: int | None = option(
        None, "K", "Query only this partition; needs --candidates.", group="Partitions"
    ),
    candidate_file: Written | None = option(
        None,
        "FILE",
        "Write only candidates, for `ngsgpu classify-merge`.",
        "--candidates",
        group="Partitions",
    ),
    files: OutputFiles,
    classified_out: Written | None = option(
        None,
        "FILE",
        "Write classified reads unchanged: all, or first mates.",
    ),
    classified_out2: Written | None = option(
        None, "FILE", "Write the second mates of classified pairs."
    ),
    unclassified_out: Written | None = option(
        None,
        "FILE",
        "Write unclassified reads unchanged: all, or first mates.",
    ),
    unclassified_out2: Written | None = option(
        None, "FILE", "Write the second mates of unclassified pairs."
    ),
    stats: StatsFile = None,
    calls: Options[QueryParameters],
    metacache: Metacache = False,
    rules: OutputRules,
    compress_level: CompressLevel = 1,
    phred_offset: PhredOffsetOption = "auto",
    no_verify: NoVerify = False,
    server: ReadByName | None = option(
        None,
        "[PATH]",
        "Use the database that `ngsgpu db serve` has open, at this socket.",
        shown_default="of the database, if no PATH is given",
        alone="",
        group=INPUT,
    ),
    run: SamplesRun,
) -> int:
    """Classify reads by the minhash features they share with reference sequences (MetaCache).

    Reads are FASTQ or FASTA of any length, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM;
    output names ending in .gz or .zst are compressed. --samples classifies many samples and opens
    the database once.

    With a database:    ngsgpu classify -d DB -i R1.fq.gz -I R2.fq.gz -o calls.tsv --report r.txt

    Without:            ngsgpu classify --references genomes/ -i reads.fq -o calls.tsv

    As samples come:    tail -n +1 -f sheet.tsv | ngsgpu classify -d DB --samples - -o '{sample}'

    By partition:       ngsgpu classify -d DB --only-partition 0 -i reads.fq --candidates 0.cand

                        ngsgpu classify-merge -d DB 0.cand 1.cand -o calls.tsv
    """
    from ngsgpu.run.rehearsal import is_rehearsal

    if (samples is None) == (not in1):
        raise UsageError("give reads with -i or a sample sheet with --samples")
    if samples is not None and (in2 or interleaved or sample):
        raise UsageError("--samples names the files; omit -I, --interleaved and --sample")
    if (only_partition is None) != (candidate_file is None):
        raise UsageError("--only-partition and --candidates go together")
    parameters, rules = calling(calls, rules, metacache=metacache)
    run = replace(run, compress_level=compress_level)
    opened = None if server is None else served.opened
    if server is not None and opened is None and not run.dry_run:
        return served.ask_server(server, database, only_partition, run, verifies=not no_verify)
    with (opened.run if opened else open_classify_run)(run, database, only_partition) as options:
        from ngsgpu.classify.query.engine import check_partitions
        from ngsgpu.classify.run.pipeline import Classifier
        from ngsgpu.classify.run.samples import SampleOutputs, one_sample, read_samples
        from ngsgpu.classify.run.stream import check_stream

        wanted = None if only_partition is None else [only_partition]
        held = [] if is_rehearsal() else wanted
        found = []
        if samples is None:
            found = [one_sample(in1 or [], in2 or [], interleaved=interleaved, name=sample)]
        elif samples != "-":
            found = read_samples(samples)

        def plan() -> HostPlan:
            from ngsgpu.classify.run.plan import plan_samples

            source = _source(database, references or [], wanted, verified=not no_verify)
            return plan_samples(
                source, found, parameters, rules, references=references or (), partitions=wanted,
                options=options,
            )  # fmt: skip

        if shows_plan(run, options, stats, plan):
            return 0
        outputs = SampleOutputs(
            stats=stats,
            candidates=candidate_file,
            classified_out=classified_out,
            classified_out2=classified_out2,
            unclassified_out=unclassified_out,
            unclassified_out2=unclassified_out2,
            **asdict(files),
        )
        if samples == "-":
            check_stream(outputs)
        else:
            outputs.check(len(found))
        known = _database(
            database, references or [], taxonomy, maps or [], held, options,
            verified=not no_verify, opened=opened,
        )  # fmt: skip
        check_partitions(known, wanted or [])
        classifier = Classifier(
            known, parameters, partitions=held, rules=rules, options=options,
            like=None if opened is None else opened.classifier,
        )  # fmt: skip
        offset = phred(phred_offset)
        if samples == "-":
            also_read = [*filter(None, [database, taxonomy]), *(references or []), *(maps or [])]
            return _classify_stream(classifier, outputs, also_read, offset, quiet=run.quiet)
        done = classifier.classify(found, outputs, phred_offset=offset)
    _say(done, classifier.engine.database, run.quiet or candidate_file is not None)
    return 0


def classify_merge(
    *,
    candidate_files: Annotated[
        list[Reads],
        argument(..., "CANDIDATES...", "Candidate files, one per partition."),
    ],
    database: ReadDatabase = option(..., "DIR", "The database.", "-d", "--database"),
    sample: Text | None = option(None, "NAME", "Sample name.", shown_default="from the files"),
    files: OutputFiles,
    stats: StatsFile = None,
    calls: Options[QueryParameters],
    metacache: Metacache = False,
    rules: OutputRules,
    compress_level: CompressLevel = 1,
    no_verify: NoVerify = False,
    run: ThreadsRun,
) -> None:
    """Classify the reads of a sample from the candidates of all partitions.

    The result equals a run with all partitions at once. Options that affect which candidates are
    kept must match those used to write the files.
    """
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.classify.run.samples import SampleOutputs

    parameters, rules = calling(calls, rules, metacache=metacache)
    options = cpu_options(run, compress_level)
    outputs = SampleOutputs(stats=stats, **asdict(files))
    outputs.check(1)
    classifier = Classifier(
        open_database(database, verified=not no_verify),
        parameters,
        partitions=[],
        rules=rules,
        options=options,
    )
    _say(
        [classifier.merge(candidate_files, outputs, sample)], classifier.engine.database, run.quiet
    )


if not TYPE_CHECKING:
    OutputFiles = output_files(classify, classify_merge)


def classify_table(
    *,
    reports: Annotated[
        list[ReadPath],
        argument(
            ..., "REPORTS...", "Kraken-style reports, one a sample: SAMPLE.kraken2.report.txt."
        ),
    ],
    reads: Written | None = option(None, "FILE", "Table of reads at and below each taxon."),
    abundances: Written | None = option(
        None, "FILE", "Table of estimated abundances at each rank, in per cent of the reads."
    ),
    ranks: Text = option(
        "domain,phylum,class,order,family,genus,species",
        "LIST",
        "Ranks in --reads and --abundances.",
    ),
    taxpasta: Written | None = option(
        None, "FILE", "Table of reads of each taxon itself, as `taxpasta merge` writes it."
    ),
    biom: Written | None = option(None, "FILE", "BIOM table of all samples."),
) -> None:
    """Merge the Kraken-style reports of several samples into tables of taxa by samples.

    Samples are named after their files. The reports must be made with one taxonomy.
    """
    from ngsgpu.classify.outputs.biom import biom_table
    from ngsgpu.classify.outputs.merged import (
        abundance_tables,
        checked_ranks,
        reads_table,
        taxpasta_table,
    )
    from ngsgpu.classify.outputs.reports import read_trees
    from ngsgpu.io.output.atomic import write_texts

    if not (reads or abundances or taxpasta or biom):
        raise UsageError("no output given; name one, for example --reads reads.tsv")
    chosen = checked_ranks(name for name in ranks.split(",") if name)
    samples = read_trees(reports)
    texts: dict[str | Path, str] = {}
    if reads is not None:
        texts[reads] = reads_table(samples, chosen)
    if abundances is not None:
        texts[abundances] = abundance_tables(samples, chosen)
    if taxpasta is not None:
        texts[taxpasta] = taxpasta_table(samples)
    if biom is not None:
        texts[biom] = biom_table(samples)
    write_texts(texts)


def _classify_stream(
    classifier: Classifier,
    outputs: SampleOutputs,
    also_read: list[str],
    phred_offset: Literal["auto", 33, 64],
    *,
    quiet: bool,
) -> int:
    """Classify the samples that standard input names, and print a line for each.

    Returns:
        The exit status, of the worst failure.
    """
    from ngsgpu.classify.run.stream import classify_stream
    from ngsgpu.cli.adapter import as_typed

    def done(statistics: ClassificationStatistics) -> None:
        if not (quiet or outputs.candidates):
            click.echo("\n".join(statistics.summary()), err=True)

    with open(0, encoding="utf-8-sig", errors="replace", closefd=False) as lines:
        failures = classify_stream(
            classifier, lines, outputs, lambda line: click.echo(as_typed(line)), done,
            also_read=also_read, phred_offset=phred_offset,
        )  # fmt: skip
    _say([], classifier.engine.database, quiet or outputs.candidates is not None)
    return max(failures, default=0)


def _source(
    database: str | None, references: list[str], partitions: list[int] | None, *, verified: bool
) -> Database | None:
    """The database that is given; None for references."""
    from ngsgpu.classify.database.database import open_database

    if (database is None) == (not references):
        raise UsageError("give a database with -d or references with --references")
    return None if database is None else open_database(database, load=partitions, verified=verified)


def _database(
    database: str | None,
    references: list[str],
    taxonomy: str | None,
    maps: list[str],
    partitions: list[int] | None,
    options: RunOptions,
    *,
    verified: bool,
    opened: served.Opened | None,
) -> Database:
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.database.source import find_sources
    from ngsgpu.run.rehearsal import end_rehearsal, is_rehearsal

    if opened is not None and database is not None and not references:
        source: Database | None = opened.database(database)
    else:
        source = _source(database, references, partitions, verified=verified)
    if source is not None:
        if taxonomy or maps:
            raise UsageError("--taxonomy and --map need --references; a database has its own")
        return source
    found = find_sources(references, taxonomy, maps)
    for path in filter(None, [*references, taxonomy, *maps]):
        if is_rehearsal() and not Path(path).exists():
            raise InputError(path, "no such file", "check the path")
    end_rehearsal([])
    return build_database(
        found.references,
        None,
        taxonomy=found.taxonomy,
        maps=found.maps,
        options=replace(options, gpus=1),
    )


def _say(done: list[ClassificationStatistics], database: Database, quiet: bool) -> None:
    from ngsgpu.classify.database.info import taxon_lines

    if not quiet:
        for statistics in done:
            click.echo("\n".join(statistics.summary()), err=True)
        for line in taxon_lines(database):
            click.echo(line, err=True)
