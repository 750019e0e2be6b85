"""``ngsgpu deplete`` and ``deplete-index``: take a host's reads out."""

from __future__ import annotations

from typing import Annotated

import click

from ngsgpu.cli.options import (
    FirstOutputs,
    HostRun,
    InterleavedInput,
    ReadsOrFirstMates,
    RecordRun,
    SecondMates,
    SecondOutputs,
)
from ngsgpu.cli.run import cpu_options, open_run, say
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import Read, Reads, Written
from ngsgpu.deplete.params import DepletionParameters, IndexParameters


def deplete(
    index: Read = option(
        ..., "FILE", "Index of the host, made by ngsgpu deplete-index.", "-d", "--index"
    ),
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    out1: FirstOutputs = None,
    out2: SecondOutputs = None,
    interleaved: InterleavedInput = False,
    *,
    parameters: DepletionParameters,
    run: RecordRun,
) -> None:
    """Take the reads of a host (human, for example) out of FASTQ files.

    Mates stay together: a pair goes or stays as a whole. Kept records are unchanged and in order.
    Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names
    ending in .gz (BGZF) or .zst are compressed. - is standard input or output.

    Index once:  ngsgpu deplete-index human.fa.gz -o human.idx

    Pairs:       ngsgpu deplete -d human.idx -i R1.fq.gz -I R2.fq.gz -o C1.fq.gz -O C2.fq.gz
    """
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.deplete.gpu",
        max_gpus=1,
    ) as (_, options):
        from ngsgpu.deplete.stage import deplete_files

        statistics = deplete_files(
            index,
            in1 or [],
            out1 or [],
            in2 or [],
            out2 or [],
            interleaved=interleaved,
            parameters=parameters,
            stats=run.stats,
            options=options,
        )
        say(statistics, run.quiet)


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
    dry_run: bool = flag("Print the plan from the file sizes; write nothing.", "--dry-run"),
    *,
    parameters: IndexParameters,
    run: HostRun,
) -> None:
    """Index the genome of a host for ngsgpu deplete.

    Sequences are FASTA or FASTQ, plain or compressed. The index holds a sample of the k-mers; it
    is one file, mapped into memory when used.

    ngsgpu deplete-index GRCh38.fa.gz -o human.idx
    """
    from ngsgpu.deplete.build import build_index, plan_index
    from ngsgpu.device.memory import format_size

    options = cpu_options(run)
    if dry_run:
        needed, size = plan_index([*references, *(exclude or [])], parameters)
        click.echo(
            f"memory   about {format_size(needed)} of {format_size(options.budget)}\n"
            f"index    about {format_size(size)}"
        )
        return
    index = build_index(references, parameters, exclude=exclude or (), options=options)
    index.save(out, options.threads)
    if not run.quiet:
        click.echo(
            f"{index.kmers:,} k-mers of {index.sequences:,} sequences with {index.bases:,} bases; "
            f"{format_size(index.table.nbytes)}",
            err=True,
        )
