"""``ngsgpu kmers``: count k-mers, and use the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import click

from ngsgpu.cli.options import CountRun, StatsFile, Threads, ThreadsRun
from ngsgpu.cli.run import cpu_options, open_run, phred, run_or_plan, thread_count
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import ReadDatabase, Reads, Text, Written
from ngsgpu.errors import UsageError
from ngsgpu.kmers.params import MAX_WIDE_COUNT, CountParameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ngsgpu.kmers import KmerDatabase

DatabasePath = Annotated[ReadDatabase, option(..., "DIR", "The database.", "-d", "--database")]
Databases = Annotated[
    list[ReadDatabase],
    argument(..., "DB...", "The databases, at least two."),
]
NewDatabase = Annotated[Written, option(..., "DIR", "The new database.", "-o", "--out")]
TextFile = Annotated[Written, option(..., "FILE", "Output; - is standard output.", "-o", "--out")]


def count(
    in1: Annotated[
        list[Reads], option(..., "FILE", "Reads or sequences; repeat for more.", "-i", "--in1")
    ],
    in2: list[Reads] | None = option(
        None, "FILE", "More reads, for example second mates; repeatable.", "-I", "--in2"
    ),
    out: Written | None = option(None, "DIR", "The new database.", "-o", "--out"),
    histo_file: Written | None = option(
        None,
        "FILE",
        "Write the histogram, as ngsgpu kmers histo does; - is standard output.",
        "--histo",
    ),
    stats: StatsFile = None,
    *,
    parameters: CountParameters,
    run: CountRun,
) -> None:
    """Count the canonical k-mers of reads or genomes, exactly.

    Input is FASTQ or FASTA, plain or compressed. Of a k-mer and its reverse complement the first
    in alphabetical order counts; k-mers with letters other than ACGT do not. Counts end at 65,535
    unless --count-bits 32 is given. What does not fit into memory goes to files beside the output.

    ngsgpu kmers count -i R1.fq.gz -I R2.fq.gz -k 31 -o reads.kmers

    ngsgpu kmers count -i R1.fq.gz -I R2.fq.gz -k 21 --histo reads.histo
    """
    with open_run(run, "ngsgpu.io.gpu.parse", "ngsgpu.kmers.gpu") as options:
        from ngsgpu.kmers.count import count_files, plan_files

        run_or_plan(
            run, options, stats,
            lambda: count_files(
                in1, out, parameters, in2=in2 or [], histo_file=histo_file, stats=stats,
                phred_offset=phred(run.phred_offset), options=options,
            ),
            lambda: plan_files([*in1, *(in2 or [])], parameters, options),
        )  # fmt: skip


def histo(
    database: DatabasePath,
    out: TextFile = "-",
    highest: int = option(
        10_000, "N", "The last line is of all higher counts.", "-m", "--max", least=1
    ),
    threads: Threads = 0,
) -> None:
    """Print the number of distinct k-mers by count, as jellyfish histo does."""
    from ngsgpu.kmers import open_database
    from ngsgpu.kmers.text import histogram_lines

    threads = thread_count(threads)
    opened = open_database(database, threads)
    lines = histogram_lines(
        opened.histogram(threads), min(highest, MAX_WIDE_COUNT), opened.high_counts(threads)
    )
    _write(out, map(str.encode, lines))


def dump(
    database: DatabasePath,
    out: TextFile = "-",
    min_count: int = option(1, "N", "Lowest count."),
    max_count: int | None = option(None, "N", "Highest count.", shown_default="no limit"),
    threads: Threads = 0,
) -> None:
    """Print k-mers and counts, tab-separated, in alphabetical order."""
    from ngsgpu.kmers import open_database
    from ngsgpu.kmers.text import dump as lines

    most = MAX_WIDE_COUNT if max_count is None else max_count
    _write(out, lines(open_database(database, thread_count(threads)), min_count, most))


def model(
    database: DatabasePath,
    ploidy: Literal[1, 2] = option(
        2, "1|2", "Sets of chromosomes; 1 for bacteria and other haploids."
    ),
    json_output: bool = flag("Print JSON.", "--json"),
    threads: Threads = 0,
) -> None:
    """Estimate size, heterozygosity and duplications of a genome, and the errors of its reads.

    From the histogram of reads that cover it at least 15-fold, with GenomeScope's model. The
    database must have all k-mers: counted without --min-count and --min-quality.
    """
    from dataclasses import asdict

    from ngsgpu.errors import InputError
    from ngsgpu.kmers import open_database
    from ngsgpu.kmers.model import fit_genome

    threads = thread_count(threads)
    opened = open_database(database, threads)
    if opened.parameters.min_count > 1 or opened.parameters.min_quality > 0:
        raise InputError(
            database,
            "does not have all k-mers",
            "count again without --min-count and --min-quality",
        )
    kmer = opened.parameters.kmer
    high = opened.high_counts(threads)
    fitted = fit_genome(opened.histogram(threads), kmer, ploidy, high=high, path=database)
    if json_output:
        import json

        click.echo(json.dumps(asdict(fitted), indent=1))
        return
    for name, value in {
        "k-mer length": f"{kmer}",
        "genome size": f"{fitted.genome_size:,} bases",
        "depth": f"{fitted.depth:.1f} (mean count of a k-mer in one set of chromosomes)",
        "heterozygosity": f"{100 * fitted.heterozygosity:.3f} %",
        "duplicated": f"{100 * fitted.duplicated:.1f} % of k-mers twice",
        "read errors": f"{100 * fitted.error_rate:.3f} % of bases",
    }.items():
        click.echo(f"{name:16}{value}")


def info(database: DatabasePath, json_output: bool = flag("Print JSON.", "--json")) -> None:
    """Show what a database holds, and of what."""
    from ngsgpu.kmers import open_database

    opened = open_database(database, check=False)
    values = {
        "kmer": opened.parameters.kmer,
        "min_quality": opened.parameters.min_quality,
        "min_count": opened.parameters.min_count,
        "sequences": opened.source.sequences,
        "bases": opened.source.bases,
        "kmers": opened.source.kmers,
        "distinct": len(opened),
        "files": list(opened.source.files),
    }
    if opened.parameters.count_bits > 16:
        values["count_bits"] = opened.parameters.count_bits
    if json_output:
        import json

        click.echo(json.dumps(values, indent=1))
        return
    for name, value in values.items():
        shown = " ".join(value) if isinstance(value, list) else value
        click.echo(f"{name.replace('_', ' '):14}{shown}")


def query(
    database: DatabasePath,
    sequences: Annotated[
        list[Text] | None,
        argument(..., "SEQUENCE...", "Sequences of at least k bases."),
    ] = None,
    in1: list[Reads] | None = option(
        None, "FILE", "FASTA or FASTQ file of sequences; repeatable.", "-i", "--in1"
    ),
    every: bool = flag("Print every k-mer of the files and its count.", "--all"),
    out: TextFile = "-",
    threads: Threads = 0,
) -> None:
    """Print the counts of sequences' k-mers.

    For sequences of the command line, every canonical k-mer and its count, tab-separated; for
    files a line for each sequence: its name, number of k-mers, how many of them the database has,
    and the median of all their counts.

    ngsgpu kmers query -d reads.kmers ACGTACGTTAGCATGCATCGATGCATGCATC

    ngsgpu kmers query -d reads.kmers -i genes.fa -o genes.tsv
    """
    from ngsgpu.kmers import open_database

    if bool(sequences) == bool(in1):
        raise UsageError("give sequences or files of them (-i)")
    threads = thread_count(threads)
    opened = open_database(database, threads)
    if sequences:
        _write(out, _counts_of(opened, sequences))
    else:
        _write(out, _counts_in(opened, in1 or [], every, threads))


def intersect(
    databases: Databases, out: NewDatabase, threads: Threads = 0, stats: StatsFile = None
) -> None:
    """Keep the k-mers that all databases have, each with its lowest count."""
    _combine("intersect", databases, out, threads, stats)


def subtract(
    databases: Databases, out: NewDatabase, threads: Threads = 0, stats: StatsFile = None
) -> None:
    """Keep the k-mers of the first database that the others lack, with their counts."""
    _combine("subtract", databases, out, threads, stats)


def union(
    databases: Databases, out: NewDatabase, threads: Threads = 0, stats: StatsFile = None
) -> None:
    """Keep the k-mers of all databases, with the sums of their counts."""
    _combine("union", databases, out, threads, stats)


def _combine(kept: str, databases: list[str], out: str, threads: int, stats: str | None) -> None:
    from ngsgpu.kmers import Kept, combine

    first, *others = databases
    if not others:
        raise UsageError("give at least two databases")
    options = cpu_options(ThreadsRun(threads=threads))
    combine(first, others, out, Kept(kept), options.threads, stats=stats, command=options.command)


def spectrum(
    in1: list[Reads] = option(
        ..., "FILE", "Reads or first mates; repeat for more files.", "-i", "--in1"
    ),
    in2: list[Reads] | None = option(
        None, "FILE", "Second mates; repeat for more files.", "-I", "--in2"
    ),
    out: Written = option("-", "FILE", "Histogram file; - is standard output.", "-o", "--out"),
    kmer: int = option(21, "K", "k-mer length, 1 to 32.", "-k", "--kmer", least=1, most=32),
    exact: bool = flag("Count all k-mers instead of a sample.", "--exact"),
    threads: Threads = 0,
) -> None:
    """Compute the k-mer spectrum of reads, or of a sample of their k-mers, and the coverage.

    The histogram lists each multiplicity with its number of distinct canonical k-mers; k-mers with
    letters other than ACGT do not count. For large inputs only a sample of the k-mers is counted,
    each with all its occurrences. The first line gives the sampling rate and the estimated coverage
    (reads per genome position).
    """
    from ngsgpu.io.output.atomic import check_distinct, write_text_atomically
    from ngsgpu.io.text.reader import read_batches
    from ngsgpu.readset import ReadSetBuilder
    from ngsgpu.readset.kmers import count_kmers, estimate_coverage

    files = [*in1, *(in2 or [])]
    check_distinct(files, [out])
    threads = thread_count(threads)
    builder = ReadSetBuilder(paired=False, quality_bits=0, threads=threads)
    for path in files:
        for _ in builder.add_all((batch,) for batch in read_batches(path, threads=threads)):
            pass
    spectrum = count_kmers(builder.finish(), kmer, threads=threads, exact=exact, known_only=True)
    lines = [
        f"# k={kmer} sampled=1/{spectrum.sampled} coverage={estimate_coverage(spectrum):.2f}",
        "multiplicity\tcount",
    ]
    pairs = zip(spectrum.multiplicity.tolist(), spectrum.count.tolist(), strict=True)
    lines += [f"{multiplicity}\t{count}" for multiplicity, count in pairs]
    write_text_atomically(out, "\n".join(lines) + "\n")


def _write(out: str, pieces: Iterable[bytes]) -> None:
    from ngsgpu.io.output.atomic import AtomicFile

    with AtomicFile(out) as file:
        for piece in pieces:
            file.write(piece)
        file.commit()


def _counts_of(opened: KmerDatabase, sequences: list[str]) -> Iterator[bytes]:
    from ngsgpu.kmers.text import counts_of_text, lines_of

    k = opened.parameters.kmer
    for text in sequences:
        kmers, counts = counts_of_text(opened, text)
        if len(kmers) == 0:
            raise UsageError(f"{text!r} has no {k}-mer of the letters ACGT")
        yield lines_of(kmers, counts, k)


def _counts_in(
    opened: KmerDatabase, paths: list[str], every: bool, threads: int
) -> Iterator[bytes]:
    import numpy as np

    from ngsgpu.kmers.text import counts_of_files, lines_of

    if not every:
        yield b"sequence\tkmers\tfound\tmedian\n"
    for path in paths:
        for name, kmers, counts in counts_of_files(opened, path, threads):
            if every:
                yield lines_of(kmers, counts, opened.parameters.kmer)
                continue
            median = float(np.median(counts)) if len(counts) else 0.0
            yield f"{name}\t{len(kmers)}\t{np.count_nonzero(counts)}\t{median:g}\n".encode()


COMMANDS: Final = {
    "count": count,
    "histo": histo,
    "dump": dump,
    "info": info,
    "query": query,
    "intersect": intersect,
    "subtract": subtract,
    "union": union,
    "model": model,
    "spectrum": spectrum,
}
