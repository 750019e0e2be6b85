"""``ngsgpu adapters``: whether reads continue into adapters."""

from __future__ import annotations

import click

from ngsgpu.cli.options import (
    FirstMates,
    HostRun,
    InterleavedInput,
    PhredOffsetOption,
    SecondMates,
    StatsFile,
)
from ngsgpu.cli.run import cpu_options, phred
from ngsgpu.declared.options import option
from ngsgpu.declared.roles import Written


def adapters(
    in1: FirstMates = None,
    in2: SecondMates = None,
    interleaved: InterleavedInput = False,
    fasta: Written | None = option(
        None, "FILE", "Write the adapters here (FASTA); none if there is no need to trim."
    ),
    stats: StatsFile = None,
    phred_offset: PhredOffsetOption = "auto",
    *,
    run: HostRun,
) -> None:
    """Check reads, and look for adapters and tails of G in a sample of them.

    All records are read and checked. Adapters are found in pairs by the overlap of their mates, and
    in single reads by the sequences of known ones (Illumina TruSeq, Nextera, small RNA; BGI/MGI).
    Prints a command line that trims the reads, if they should be.

    ngsgpu adapters -i R1.fq.gz -I R2.fq.gz --fasta adapters.fa
    """
    from ngsgpu.run.trimming import look_for_adapters

    found = look_for_adapters(
        in1 or [],
        in2 or [],
        interleaved=interleaved,
        phred_offset=phred(phred_offset),
        stats=stats,
        fasta=fasta,
        options=cpu_options(run),
    )
    if not run.quiet:
        click.echo("\n".join(found.summary()), err=True)
