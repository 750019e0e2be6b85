"""``ngsgpu extend``: connect the reads of pairs to long reads."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    DryRun,
    FirstMates,
    GpuMemory,
    Gpus,
    InterleavedInput,
    Memory,
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
from ngsgpu.errors import UsageError


class LibraryChoice(StrEnum):
    """Values of ``--library``."""

    pe = "pe"
    mp = "mp"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="extend")(extend)


def extend(
    in1: FirstMates = None,
    in2: SecondMates = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FILE", help="Extended reads.", show_default=False),
    ] = None,
    remaining1: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="First mates of pairs that were not connected, or, without --remaining2, both.",
        ),
    ] = None,
    remaining2: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Second mates of pairs that were not connected."),
    ] = None,
    interleaved: InterleavedInput = False,
    library: Annotated[
        LibraryChoice,
        typer.Option(
            metavar="pe|mp", help="pe: mates point to each other; mp (mate pairs): away from it."
        ),
    ] = LibraryChoice.pe,
    insert_size: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Mean length of fragments, both reads included.",
            show_default="estimated",
        ),
    ] = None,
    insert_sd: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Standard deviation of that length.", show_default="estimated"
        ),
    ] = None,
    min_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Shortest fragment that is connected.",
            show_default="mean less 4 deviations",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Longest fragment that is connected.",
            show_default="mean plus 4 deviations",
        ),
    ] = None,
    strict: Annotated[
        int,
        typer.Option(
            metavar="0|1|2",
            help="2: both sides must reach the mate by the same way; 1: or one, and the other "
            "agree as far as it came; 0: one suffices.",
        ),
    ] = 0,
    gap_mismatches: Annotated[
        int,
        typer.Option(metavar="N", help="Bases in which the ways of both sides may differ."),
    ] = 0,
    confirm_ratio: Annotated[
        float,
        typer.Option(
            metavar="X", help="Part of a gap that the other side must have reached to confirm it."
        ),
    ] = 0.5,
    confirm_matches: Annotated[
        float, typer.Option(metavar="X", help="Part of that which must be equal.")
    ] = 0.95,
    merge_overlap: Annotated[
        int,
        typer.Option(
            metavar="N", help="Overlap by which two unfinished sides are merged (--strict 0)."
        ),
    ] = 40,
    outward: Annotated[bool, typer.Option("--outward", help="Extend pairs outwards, too.")] = False,
    kmer: Annotated[
        int, typer.Option(metavar="K", help="k-mer length of the tables, 8 to 32.")
    ] = 20,
    hashes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Hash functions and tables; 2 do for corrected reads (17 bytes a read and table).",
        ),
    ] = 4,
    step: Annotated[
        int, typer.Option(metavar="N", help="Bases that are appended at a time, 1 to 64.")
    ] = 20,
    min_reads: Annotated[
        int, typer.Option(metavar="N", help="Reads that cover an appended base at least.")
    ] = 3,
    min_overlap: Annotated[
        int, typer.Option(metavar="N", help="Shortest overlap with another read, at least 50.")
    ] = 50,
    min_overlap_ratio: Annotated[
        float, typer.Option(metavar="X", help="The same as a part of the start read's length.")
    ] = 0.5,
    max_mismatch_ratio: Annotated[
        float, typer.Option(metavar="X", help="Mismatches an overlap may have, as a part of it.")
    ] = 0.05,
    quality_bits: QualityBits = 8,
    gap_quality: Annotated[
        int | None,
        typer.Option(
            metavar="Q",
            help="Phred score of all bases that are no read's.",
            show_default="from the reads that support it",
        ),
    ] = None,
    fasta: Annotated[bool, typer.Option("--fasta", help="Write extended reads as FASTA.")] = False,
    include_remaining: Annotated[
        bool,
        typer.Option("--include-remaining", help="Write pairs that were not connected to -o, too."),
    ] = False,
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Write in the order in which work is done.")
    ] = False,
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
    """Extend pairs to long reads (CAREx).

    Both reads of a pair and what lies between them become one read, found from the other reads of
    the run: no reference is needed. The reads' own bases stay as they are. Correct the reads first
    (ngsgpu correct), and give all lanes of a library at once.

    Pairs:   ngsgpu extend -i R1.fq -I R2.fq -o extended.fq --remaining1 r1.fq --remaining2 r2.fq
    """
    from ngsgpu.device.backend import choose_backend
    from ngsgpu.device.early import prepare_cuda
    from ngsgpu.device.memory import parse_size, usable_cpus
    from ngsgpu.extend import (
        EndParameters,
        ExtensionOutputs,
        ExtensionParameters,
        RunOptions,
        extend_files,
        plan_files,
    )

    obey_quiet(quiet)
    if threads < 0:
        raise UsageError(f"--threads must be 0 or more, not {threads}")
    parameters = ExtensionParameters(
        ends=EndParameters(kmer=kmer, hashes=hashes, seed=seed),
        quality_bits=quality_bits,
        strict=strict,
        insert_mean=insert_size,
        insert_sd=insert_sd,
        min_length=min_length,
        max_length=max_length,
        step=step,
        min_reads=min_reads,
        min_overlap=min_overlap,
        min_overlap_ratio=min_overlap_ratio,
        max_mismatch_ratio=max_mismatch_ratio,
        gap_mismatches=gap_mismatches,
        confirm_ratio=confirm_ratio,
        confirm_matches=confirm_matches,
        merge_overlap=merge_overlap,
        outward=outward,
        mate_pairs=library is LibraryChoice.mp,
    )
    if out is None and not dry_run:
        raise UsageError("no output was given; name one with -o")
    with choose_backend(backend.value, gpus, engines=("cpu", "cuda"), lease=not dry_run) as chosen:
        if not dry_run:
            prepare_cuda(
                len(chosen.gpus), "ngsgpu.io.gpu_parse", "ngsgpu.minhash.ends_gpu",
                "ngsgpu.extend.gpu",
            )  # fmt: skip
        options = RunOptions(
            threads=threads or usable_cpus(),
            memory=None if memory is None else parse_size(memory),
            progress=not quiet,
            backend=chosen.name,
            may_fall_back=backend is BackendChoice.auto,
            gpu_memory=None if gpu_memory is None else parse_size(gpu_memory),
            gpus=max(1, len(chosen.gpus)),
            backend_note=chosen.reason,
            command=("ngsgpu", *sys.argv[1:]),
        )
        offset = "auto" if phred_offset is PhredChoice.auto else int(phred_offset.value)
        if dry_run or out is None:
            plan = plan_files(
                in1 or [],
                in2 or [],
                interleaved=interleaved,
                parameters=parameters,
                phred_offset=offset,  # type: ignore[arg-type]
                options=options,
            )
            typer.echo(f"backend  {chosen}")
            if chosen.name == "cuda":
                from ngsgpu.extend.gpu_plan import plan_for_this_gpu

                gpu_plan = plan_for_this_gpu(plan, parameters, options)
                typer.echo("\n".join([*plan.lines()[:2], f"GPU      {gpu_plan.line()}"]))
                return
            typer.echo("\n".join(plan.lines()))
            plan.check(parameters)
            return
        statistics = extend_files(
            in1 or [],
            in2 or [],
            outputs=ExtensionOutputs(
                out,
                remaining1,
                remaining2,
                stats,
                fasta=fasta,
                include_remaining=include_remaining,
                sort=not unsorted,
                gap_quality=gap_quality,
            ),
            interleaved=interleaved,
            parameters=parameters,
            phred_offset=offset,  # type: ignore[arg-type]
            options=options,
        )
        if not quiet:
            typer.echo("\n".join(statistics.summary()), err=True)
