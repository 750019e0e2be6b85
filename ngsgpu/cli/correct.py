"""``ngsgpu correct``: replace sequencing errors in reads."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from ngsgpu.errors import UsageError

Paths = list[str]


class BackendChoice(StrEnum):
    """Values of ``--backend``."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class PhredChoice(StrEnum):
    """Values of ``--phred-offset``."""

    auto = "auto"
    phred33 = "33"
    phred64 = "64"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="correct")(correct)


def correct(
    in1: Annotated[
        Paths | None, typer.Option("-i", "--in1", help="Reads, or first mates; once a lane.")
    ] = None,
    in2: Annotated[
        Paths | None, typer.Option("-I", "--in2", help="Second mates; once a lane.")
    ] = None,
    out1: Annotated[
        Paths | None, typer.Option("-o", "--out1", help="Output for -i: once, or once a lane.")
    ] = None,
    out2: Annotated[
        Paths | None, typer.Option("-O", "--out2", help="Output for -I: once, or once a lane.")
    ] = None,
    interleaved: Annotated[
        bool, typer.Option("--interleaved", help="-i holds both mates, one after the other.")
    ] = False,
    coverage: Annotated[
        str,
        typer.Option(help="Reads per position of the genome, or auto: from the k-mer spectrum."),
    ] = "auto",
    kmer: Annotated[int, typer.Option(help="k-mer length, 8 to 32.")] = 20,
    hashes: Annotated[int, typer.Option(help="Hash functions and tables, 1 to 255.")] = 48,
    quality_bits: Annotated[
        int, typer.Option(help="Bits of quality kept a base: 8, 2, 1 or 0 (less memory).")
    ] = 8,
    phred_offset: Annotated[
        PhredChoice, typer.Option(help="What quality characters count from.")
    ] = PhredChoice.auto,
    threads: Annotated[int, typer.Option("-t", "--threads", help="0: all CPUs.")] = 0,
    backend: Annotated[
        BackendChoice, typer.Option(help="Both give the same bytes.")
    ] = BackendChoice.auto,
    gpus: Annotated[int | None, typer.Option(help="GPUs to use; 0: none.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory that may be used, such as 16G; default: what is free."),
    ] = None,
    stats: Annotated[
        str | None, typer.Option(help="Write what was seen and done to this file (JSON).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses another family of hash functions.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the input, print the plan, write nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Correct substitution errors in Illumina reads (CARE).

    The output is the input with some bases replaced: order, names, comments, line ends and
    qualities stay as they are. Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2 or xz; an
    output whose name ends in .gz is compressed. - is standard input or output.

    Single reads:   ngsgpu correct -i reads.fq.gz -o corrected.fq.gz

    Pairs:          ngsgpu correct -i R1.fq -I R2.fq -o C1.fq -O C2.fq
    """
    from ngsgpu.correct import (
        CorrectionParameters,
        MinhashParameters,
        RunOptions,
        correct_files,
        plan_files,
    )
    from ngsgpu.device.backend import choose_backend
    from ngsgpu.device.memory import parse_size, usable_cpus

    if threads < 0:
        raise UsageError(f"--threads must be 0 or more, not {threads}")
    chosen = choose_backend(backend.value, gpus)
    parameters = CorrectionParameters(
        coverage=_coverage(coverage),
        minhash=MinhashParameters(kmer=kmer, hashes=hashes, seed=seed),
        quality_bits=quality_bits,
    )
    options = RunOptions(
        threads=threads or usable_cpus(),
        memory=None if memory is None else parse_size(memory),
        progress=not quiet,
        backend_note=chosen.reason,
        command=("ngsgpu", *sys.argv[1:]),
    )
    offset = "auto" if phred_offset is PhredChoice.auto else int(phred_offset.value)
    if dry_run:
        plan = plan_files(
            in1 or [],
            in2 or [],
            interleaved=interleaved,
            parameters=parameters,
            phred_offset=offset,  # type: ignore[arg-type]
            options=options,
        )
        typer.echo("\n".join([f"backend  {chosen}", *plan.lines()]))
        plan.check(parameters)
        return
    statistics = correct_files(
        in1 or [],
        out1 or [],
        in2 or [],
        out2 or [],
        interleaved=interleaved,
        parameters=parameters,
        phred_offset=offset,  # type: ignore[arg-type]
        stats=stats,
        options=options,
    )
    if not quiet:
        typer.echo("\n".join(statistics.summary()), err=True)


def _coverage(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--coverage must be auto or a number, not {text!r}") from None
