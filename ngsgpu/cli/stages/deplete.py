"""``ngsgpu deplete`` and ``deplete-index``: take a host's reads out, and indexes of hosts."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from ngsgpu.cli.options import (
    DryRun,
    FirstOutputs,
    HostRun,
    InterleavedInput,
    ReadsOrFirstMates,
    RecordRun,
    SecondMates,
    SecondOutputs,
    StatsFile,
)
from ngsgpu.cli.run import cpu_options, open_run, run_or_plan, say
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import Read, Reads, Written
from ngsgpu.deplete.params import DepletionParameters, IndexParameters
from ngsgpu.errors import TOO_MANY_FOUND

if TYPE_CHECKING:
    from ngsgpu.deplete.sets import Operation

logger = logging.getLogger("ngsgpu")


def deplete(
    index: Read = option(
        ..., "FILE", "Index of the host, made by ngsgpu deplete-index.", "-d", "--index"
    ),
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    out1: FirstOutputs = None,
    out2: SecondOutputs = None,
    interleaved: InterleavedInput = False,
    max_host: float | None = option(
        None,
        "X",
        "End with exit status 4 if more than this share of the reads is the host's; all outputs "
        "are written.",
        least=0,
        most=1,
    ),
    *,
    parameters: DepletionParameters,
    run: RecordRun,
) -> int:
    """Take the reads of a host (human, for example) out of FASTQ files.

    Mates stay together: a pair goes or stays as a whole. Kept records are unchanged and in order.
    Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names
    ending in .gz (BGZF) or .zst are compressed. - is standard input or output.

    Index once:  ngsgpu deplete-index human.fa.gz -o human.idx

    Pairs:       ngsgpu deplete -d human.idx -i R1.fq.gz -I R2.fq.gz -o C1.fq.gz -O C2.fq.gz
    """
    with open_run(run, "ngsgpu.io.gpu.parse", "ngsgpu.deplete.gpu") as options:
        from ngsgpu.deplete.stage import deplete_files, plan_files

        statistics = run_or_plan(
            run, options, run.stats,
            lambda: deplete_files(
                index, in1 or [], out1 or [], in2 or [], out2 or [], interleaved=interleaved,
                parameters=parameters, stats=run.stats, options=options,
            ),
            lambda: plan_files(
                index, in1 or [], in2 or [], interleaved=interleaved, options=options
            ),
        )  # fmt: skip
    if statistics is None or max_host is None or statistics.host_share <= max_host:
        return 0
    logger.warning(
        "%.4g of the reads are the host's, more than `max_host=%s`", statistics.host_share, max_host
    )
    return TOO_MANY_FOUND


@dataclass(frozen=True, kw_only=True)
class IndexRun(HostRun):
    """A run that indexes."""

    dry_run: DryRun = False


KeepKmers = Annotated[
    bool,
    flag(
        "Also keep a list of the k-mers, 8 bytes each, which union, diff and intersect need.",
        "--keep-kmers",
        default=...,
    ),
]


def deplete_index(
    references: Annotated[
        list[Reads], argument(..., "FASTA...", "Sequences of the host; - is stdin.")
    ],
    out: Written = option(..., "FILE", "The index.", "-o", "--out"),
    exclude: list[Reads] | None = option(
        None,
        "FASTA",
        "Leave out k-mers of these sequences, for example of microbes to be kept; repeatable.",
        "-x",
        "--exclude",
    ),
    keep_kmers: KeepKmers = False,
    stats: StatsFile = None,
    *,
    parameters: IndexParameters,
    run: IndexRun,
) -> None:
    """Index the genome of a host for ngsgpu deplete.

    Sequences are FASTA or FASTQ, plain or compressed. The index holds a sample of the k-mers; it
    is one file, mapped into memory when used. ngsgpu deplete-index union, diff and intersect make
    one of others, info shows what one holds; write ./union for a file of sequences of that name.

    ngsgpu deplete-index GRCh38.fa.gz -o human.idx
    """
    from ngsgpu.deplete.build import index_files, plan_index

    options = cpu_options(run)
    beside: dict[str, Any] = {"exclude": exclude or (), "keep_kmers": keep_kmers}
    run_or_plan(
        run, options, stats,
        lambda: index_files(references, out, parameters, stats=stats, options=options, **beside),
        lambda: plan_index(references, parameters, options, **beside),
    )  # fmt: skip


Indexes = Annotated[
    list[Read], argument(..., "INDEX...", "Indexes made by ngsgpu deplete-index --keep-kmers.")
]
IndexFile = Annotated[Written, option(..., "FILE", "The index.", "-o", "--out")]


def union(indexes: Indexes, out: IndexFile, keep_kmers: KeepKmers = False, *, run: HostRun) -> None:
    """Index the k-mers that are in any of several indexes.

    The index is that of all their sequences.

    ngsgpu deplete-index union human.idx phix.idx -o both.idx
    """
    _combine("union", indexes, out, run, keep_kmers=keep_kmers)


def diff(indexes: Indexes, out: IndexFile, keep_kmers: KeepKmers = False, *, run: HostRun) -> None:
    """Index the k-mers of the first index that are in none of the others.

    The index is that of the first one's sequences with those of the others as --exclude.

    ngsgpu deplete-index diff human.idx microbes.idx -o safe.idx
    """
    _combine("diff", indexes, out, run, keep_kmers=keep_kmers)


def intersect(
    indexes: Indexes, out: IndexFile, keep_kmers: KeepKmers = False, *, run: HostRun
) -> None:
    """Index the k-mers that are in all of several indexes.

    ngsgpu deplete-index intersect human.idx mouse.idx -o shared.idx
    """
    _combine("intersect", indexes, out, run, keep_kmers=keep_kmers)


def info(
    index: Annotated[Read, argument(..., "INDEX", "An index made by ngsgpu deplete-index.")],
    json_output: bool = flag("Print JSON.", "--json"),
) -> None:
    """Show what an index holds.

    ngsgpu deplete-index info human.idx
    """
    from ngsgpu.deplete.index import open_index

    opened = open_index(index)
    found = {**opened.describe(), "keeps_kmers": opened.has_kmers}
    if json_output:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        shown = ", ".join(value) if isinstance(value, list) else value
        click.echo(f"{name.replace('_', ' '):14}{shown}")


def _combine(
    operation: Operation, indexes: list[str], out: str, run: HostRun, *, keep_kmers: bool
) -> None:
    """Make an index of others."""
    from ngsgpu.deplete.sets import combine_files

    options = cpu_options(run)
    say(combine_files(operation, indexes, out, keep_kmers=keep_kmers, options=options), run.quiet)
