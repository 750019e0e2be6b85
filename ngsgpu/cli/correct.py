"""``ngsgpu correct``: correct substitution errors in reads."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    DryRun,
    GpuMemory,
    Gpus,
    Memory,
    Paths,
    PhredChoice,
    PhredOffsetOption,
    QualityBits,
    Quiet,
    SecondMates,
    Seed,
    StatsFile,
    Threads,
    obey_quiet,
)
from ngsgpu.cli.run import number_or, open_run, phred, show_plan


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="correct")(correct)


def correct(
    in1: Annotated[
        Paths | None,
        typer.Option(
            "-i", "--in1", metavar="FILE", help="Reads or first mates; repeat for each lane."
        ),
    ] = None,
    in2: SecondMates = None,
    out1: Annotated[
        Paths | None,
        typer.Option(
            "-o", "--out1", metavar="FILE", help="Output for -i: one per lane or one for all."
        ),
    ] = None,
    out2: Annotated[
        Paths | None,
        typer.Option(
            "-O", "--out2", metavar="FILE", help="Output for -I: one per lane or one for all."
        ),
    ] = None,
    interleaved: Annotated[
        bool, typer.Option("--interleaved", help="-i and -o hold interleaved pairs.")
    ] = False,
    coverage: Annotated[
        str,
        typer.Option(
            metavar="X",
            help="Sequencing depth (reads per genome position); auto estimates it from the k-mer "
            "spectrum.",
        ),
    ] = "auto",
    kmer: Annotated[
        int, typer.Option(metavar="K", help="k-mer length of the minhash tables, 8 to 32.")
    ] = 20,
    hashes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Hash functions, one table each, 1 to 255; more find more overlaps but need more "
            "memory (10 bytes per read and table).",
        ),
    ] = 48,
    quality_bits: QualityBits = 8,
    phred_offset: PhredOffsetOption = PhredChoice.auto,
    threads: Threads = 0,
    backend: BackendOption = BackendChoice.auto,
    gpus: Gpus = None,
    memory: Memory = None,
    gpu_memory: GpuMemory = None,
    stats: StatsFile = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Correct substitution errors in Illumina reads (CARE).

    Only bases change: read order, names, comments, line endings and qualities are preserved.
    Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2 or xz; output names ending in .gz are
    compressed (BGZF). - is standard input or output. Give all lanes of a library in one run: the
    method relies on coverage.

    Single reads:   ngsgpu correct -i reads.fq.gz -o corrected.fq.gz

    Pairs:          ngsgpu correct -i R1.fq -I R2.fq -o C1.fq -O C2.fq
    """
    obey_quiet(quiet)
    with open_run(
        "ngsgpu.io.gpu.parse",
        "ngsgpu.readset.gpu_kmers",
        "ngsgpu.minhash.gpu",
        "ngsgpu.correct.gpu",
        threads=threads,
        backend=backend,
        gpus=gpus,
        memory=memory,
        gpu_memory=gpu_memory,
        quiet=quiet,
        lease=not dry_run,
    ) as (chosen, options):
        from ngsgpu.correct import (
            CorrectionParameters,
            MinhashParameters,
            correct_files,
            plan_files,
        )
        from ngsgpu.correct.gpu_plan import plan_for_this_gpu

        parameters = CorrectionParameters(
            coverage=number_or("auto", coverage, float, "--coverage"),
            minhash=MinhashParameters(kmer=kmer, hashes=hashes, seed=seed),
            quality_bits=quality_bits,
        )
        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(phred_offset),
            "options": options,
        }
        if dry_run:
            plan = plan_files(in1 or [], in2 or [], **settings)
            show_plan(chosen, plan, parameters, options, plan_for_this_gpu)
            return
        statistics = correct_files(
            in1 or [], out1 or [], in2 or [], out2 or [], stats=stats, **settings
        )
        if not quiet:
            typer.echo("\n".join(statistics.summary()), err=True)
